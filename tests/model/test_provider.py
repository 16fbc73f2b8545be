from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from tests.model.endpoint_server import Server, serve

from oikos.adapters.model.endpoint import Deadlines, endpoint
from oikos.adapters.model.provider import Provider
from oikos.domain.errors import ModelError
from oikos.domain.events import ToolCall
from oikos.domain.instant import Instant
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec

pytestmark = pytest.mark.anyio

GOOD: dict[str, Any] = {
    "events": [
        {"choices": [{"index": 0, "delta": {"content": "All "}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {"content": "well."}, "finish_reason": "stop"}]},
    ]
}
LONG = "x" * 700
TOOLS = (ToolSpec(name="run", description="Run a command", parameters={"type": "object", "properties": {}}),)


@dataclass
class SleepingClock:
    """Time that only passes in sleeps, of which it keeps a list."""

    slept: list[float] = field(default_factory=list)

    def now(self) -> Instant:
        return Instant(wall_s=1000.0 + sum(self.slept), boot_s=0.0, boot_id="b")

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def cases(name: str) -> list[Any]:
    rows = yaml.safe_load((Path(__file__).parent / "wire" / name).read_text())
    for row in rows:
        row["answers"] = [_filled(GOOD if answer == "good" else answer) for answer in row["answers"]]
    return [pytest.param(row, id=row["case"]) for row in rows]


def _filled(answer: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(answer).replace('"LONG"', f'"{LONG}"')))


def provider(server: Server, clock: SleepingClock, **options: Any) -> Provider:
    quick = Deadlines(connect_s=5, first_s=options.pop("first_s", 5), idle_s=options.pop("idle_s", 5), total_s=60)
    where = endpoint(server.url, "m", key="sk-test-key", deadlines=quick, **options)
    return Provider(where, clock=clock, seed=1)


async def ask(model: Provider, messages: Sequence[Message]) -> tuple[list[TextDelta | Retrying], Reply]:
    parts = [part async for part in model.stream(messages, TOOLS)]
    reply = parts.pop()
    assert isinstance(reply, Reply)
    return [part for part in parts if not isinstance(part, Reply)], reply


def user(text: str = "hello") -> Message:
    return Message(role="user", text=text)


def history(ids: Sequence[str]) -> list[Message]:
    calls = tuple(ToolCall(id=name, name="run", arguments="{}") for name in ids)
    answers = [Message(role="tool", text="{}", call_id=name, name="run") for name in ids]
    return [user(), *([Message(role="assistant", text="", calls=calls)] if calls else []), *answers]


def expected(row: Mapping[str, Any]) -> Reply:
    tokens_in, tokens_out = row.get("tokens", (0, 0))
    return Reply(
        text=row.get("text", ""),
        reasoning=row.get("reasoning", ""),
        calls=tuple(ToolCall(id=i, name=n, arguments=a) for i, n, a in row.get("calls", ())),
        opaque=row.get("opaque", ""),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
    )


@pytest.mark.parametrize("split", [1 << 30, 64, 7, 1])
@pytest.mark.parametrize("row", [*cases("openai.yaml"), *cases("compatible.yaml")])
async def test_every_servers_shape_gives_the_same_reply_however_it_is_cut_into_packets(
    row: dict[str, Any], split: int
) -> None:
    async with serve(row["answers"], split=split) as server:
        model = provider(server, SleepingClock())
        parts, reply = await ask(model, [user()])
        await model.close()
    assert reply == expected(row["reply"])
    deltas = [part for part in parts if isinstance(part, TextDelta)]
    if "\ufffd" not in reply.text:
        assert "".join(delta.text for delta in deltas if not delta.reasoning) == reply.text
    assert "".join(delta.text for delta in deltas if delta.reasoning) == reply.reasoning
    assert len(server.asked) == 1


@pytest.mark.parametrize("row", cases("broken.yaml"))
async def test_of_a_broken_answer_nothing_is_used_and_the_next_attempt_is_visible(row: dict[str, Any]) -> None:
    clock = SleepingClock()
    impatient = any(answer.get("then") in ("stall", "silent") for answer in row["answers"])
    async with serve(row["answers"]) as server:
        model = provider(server, clock, **({"idle_s": 0.2, "first_s": 0.2} if impatient else {}))
        if "error" in row:
            with pytest.raises(ModelError, match=re.escape(row["error"])) as caught:
                await ask(model, history([]))
            assert (caught.value.retryable, caught.value.retry_after_s) == (row["retryable"], row.get("retry_after_s"))
            assert len(server.asked) == row["requests"]
        else:
            parts, reply = await ask(model, history(row.get("history_ids", ())))
            assert reply == expected(row.get("reply", {"text": "All well."}))
            retries = [part for part in parts if isinstance(part, Retrying)]
            assert [retry.attempt for retry in retries] == list(range(1, len(row.get("retries", ())) + 1))
            for retry, reason in zip(retries, row.get("retries", ()), strict=True):
                assert re.search(reason, retry.reason), retry.reason
            assert clock.slept == [retry.delay_s for retry in retries]
            assert clock.slept == row.get("slept", clock.slept)
            assert all(1.0 <= slept <= 1.25 for slept in clock.slept) or "slept" in row
        await model.close()


@pytest.mark.parametrize("row", cases("refused.yaml"))
async def test_a_refusal_is_one_line_with_a_remedy_and_is_not_repeated(row: dict[str, Any]) -> None:
    async with serve(row["answers"]) as server:
        model = provider(server, SleepingClock())
        with pytest.raises(ModelError) as caught:
            await ask(model, [user()])
        await model.close()
    text = str(caught.value)
    assert row["error"] in text
    assert (caught.value.retryable, "\n" in text, "sk-test-key" in text, len(text) < 700) == (False, False, False, True)
    assert len(server.asked) == 1


async def test_the_outbound_request_is_exactly_this() -> None:
    messages = [
        Message(role="system", text="Be brief."),
        user("größer?"),
        Message(
            role="assistant",
            text="",
            calls=(
                ToolCall(id="c1", name="run", arguments='{"command":"df"}'),
                ToolCall(id="c2", name="bad name!", arguments='{"command": "d'),
            ),
            reasoning="not sent back",
            opaque='{"reasoning_details":[{"text":"so"}],"extra_content":{"c1":{"google":{"thought_signature":"s"}}}}',
        ),
        Message(role="tool", text='{"run":"r1"}', call_id="c1", name="run"),
        Message(role="tool", text="refused", call_id="c2", name="bad name!"),
    ]
    async with serve([GOOD]) as server:
        model = provider(server, SleepingClock(), options={"temperature": 0.2}, headers={"X-Title": "Oikos"})
        await ask(model, messages)
        await model.close()
    asked = server.asked[0]
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert (asked.line, asked.headers) == (
        "POST /v1/chat/completions HTTP/1.1",
        {
            "host": host,
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "user-agent": "oikos",
            "authorization": "Bearer sk-test-key",
            "x-title": "Oikos",
            "content-length": str(len(asked.body)),
        },
    )
    assert asked.body.decode() == (
        '{"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.2,"tools":[{"type":"function",'
        '"function":{"name":"run","description":"Run a command","parameters":{"type":"object","properties":{}}}}],'
        '"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"größer?"},'
        '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"run",'
        '"arguments":"{\\"command\\":\\"df\\"}"},"extra_content":{"google":{"thought_signature":"s"}}},'
        '{"id":"c2","type":"function","function":{"name":"bad_name_",'
        '"arguments":"{\\"malformed_arguments\\":\\"{\\\\\\"command\\\\\\": \\\\\\"d\\"}"}}],'
        '"reasoning_details":[{"text":"so"}]},'
        '{"role":"tool","content":"{\\"run\\":\\"r1\\"}","tool_call_id":"c1"},'
        '{"role":"tool","content":"refused","tool_call_id":"c2"}]}'
    )


async def test_requests_share_one_connection_and_a_closed_one_is_replaced_unseen() -> None:
    closing = {**GOOD, "then": "end", "headers": {"connection": "close"}}
    async with serve([GOOD, GOOD, closing, GOOD]) as server:
        model = provider(server, SleepingClock())
        for _ in range(4):
            parts, _reply = await ask(model, [user()])
            assert not [part for part in parts if isinstance(part, Retrying)]
        await model.close()
    assert [asked.connection for asked in server.asked] == [1, 1, 1, 2]


async def test_a_connection_that_died_at_rest_costs_no_attempt() -> None:
    hang_up = {"then": "refuse"}
    async with serve([GOOD, hang_up, GOOD]) as server:
        model = provider(server, SleepingClock())
        await ask(model, [user()])
        parts, reply = await ask(model, [user()])
        await model.close()
    assert (reply.text, [part for part in parts if isinstance(part, Retrying)]) == ("All well.", [])


async def test_a_server_that_knows_no_stream_options_is_asked_without_them_from_then_on() -> None:
    refusal = {"status": 400, "json": {"error": {"message": "Unrecognized request argument: stream_options"}}}
    async with serve([refusal, GOOD]) as server:
        model = provider(server, SleepingClock())
        for _ in range(2):
            parts, _reply = await ask(model, [user()])
            assert not [part for part in parts if isinstance(part, Retrying)]
        await model.close()
    assert ["stream_options" in json.loads(asked.body) for asked in server.asked] == [True, False, False]


async def test_two_answers_at_once_take_two_connections() -> None:
    async with serve([GOOD]) as server:
        model = provider(server, SleepingClock())
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(ask, model, [user()])
        await model.close()
    assert sorted(asked.connection for asked in server.asked) == [1, 2]


async def test_leaving_an_answer_early_ends_its_connection() -> None:
    stalled = {**GOOD, "then": "stall", "done": False, "events": GOOD["events"][:1]}
    async with serve([stalled, GOOD]) as server:
        model = provider(server, SleepingClock())
        with anyio.fail_after(10):
            stream = model.stream([user()], TOOLS)
            assert await anext(stream) == TextDelta(text="All ")
            await stream.aclose()
            _parts, reply = await ask(model, [user()])
        await model.close()
    assert (reply.text, [asked.connection for asked in server.asked]) == ("All well.", [1, 2])


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    async with serve([GOOD]) as server:
        pass
    clock = SleepingClock()
    model = provider(server, clock)
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:\d+ cannot be reached") as caught:
        await ask(model, [user()])
    assert (caught.value.retryable, len(clock.slept)) == (True, 3)


async def test_a_message_is_encoded_once_in_its_life() -> None:
    messages = [user(f"message {number}") for number in range(5)]
    async with serve([GOOD]) as server:
        model = provider(server, SleepingClock())
        await ask(model, messages)
        object.__setattr__(messages[2], "text", "changed behind its back")
        await ask(model, messages)
        await ask(model, [*messages, copy.copy(messages[2])])
        await model.close()
    first, second, third = (json.loads(asked.body)["messages"] for asked in server.asked)
    assert (second, third[:5], third[5]["content"]) == (first, first, "changed behind its back")
