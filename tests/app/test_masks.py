"""Secrets, known or likely, reach neither database, nor feed, nor model, whichever way they come (SPEC R5.10)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from oikos.app.feed import Delta, Item, OutputChunk
from oikos.domain import events as ev
from oikos.domain.events import ToolCall
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec
from tests.app.conftest import LOOK, WAIT_S, Hooked, Household, Open, plan, run
from tests.wait import until_async

pytestmark = pytest.mark.anyio

SECRET = "Zx9-correct-horse"
TOML = '[secrets]\nbackup = "file:%s"\n'


@pytest.fixture
def toml(tmp_path: Path) -> str:
    """A configuration that knows the secret."""
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n", encoding="utf-8")
    return TOML % file


async def listening(house: Household, text: str) -> list[Item]:
    """Say something, and all that a listener gets until the session rests."""
    seen: list[Item] = []
    ready = anyio.Event()

    async def listen() -> None:
        async with aclosing(house.oikos.feed.follow(house.session_id)) as items:
            async for item in items:
                seen.append(item)
                ready.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await ready.wait()
        state = await house.say(text)
        await until_async(
            lambda: any(isinstance(item, ev.Recorded) and item.seq == state.seq for item in seen),
            "the reader to have it",
            WAIT_S,
        )
        tasks.cancel_scope.cancel()
    return seen


def live(items: Sequence[Item]) -> str:
    """What came besides events."""
    parts = [
        item.text if isinstance(item, Delta) else item.data.decode()
        for item in items
        if isinstance(item, Delta | OutputChunk)
    ]
    return "".join(parts)


async def test_in_output_even_when_it_comes_in_pieces(household: Open, toml: str, workshop: Path) -> None:
    half = len(SECRET) // 2
    command = f"printf %s {SECRET[:half]}; sleep 0.3; printf '%s\\n' {SECRET[half:]}; echo end"
    model = Hooked(
        LOOK + run(command) + "- sees: ['[masked:backup]']\n  text: a\n- text: b\n", {"workshop": str(workshop)}, {}
    )
    async with household(model, toml=toml) as house:
        seen = await listening(house, "look")
        assert "[masked:backup]\nend\n" in live(seen)
        assert SECRET not in live(seen)
        assert SECRET.encode() not in await house.record()
        assert SECRET not in "".join(message.text for asked in model.asked for message in asked)


class Babbling:
    """Says the secret in its text, in pieces, in its reasoning, in its arguments and in its opaque blob."""

    name = "babbling"

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """Once with a call, then in words."""
        for start in range(0, len(SECRET), 3):
            yield TextDelta(text=SECRET[start : start + 3])
            yield TextDelta(text=SECRET[start : start + 3], reasoning=True)
        call = ToolCall(id="c1", name="set_goal", arguments=json.dumps({"goal": f"use {SECRET}"}))
        calls = (call,) if len(messages) == 2 else ()
        yield Reply(text=SECRET, reasoning=f"I know {SECRET}", calls=calls, opaque=json.dumps({"signed": SECRET}))

    async def close(self) -> None:
        """Nothing to close."""


async def test_in_what_the_model_says(household: Open, toml: str) -> None:
    async with household(Babbling(), toml=toml) as house:
        seen = await listening(house, "look")
        assert live(seen).count("[masked:backup]") == 4
        assert SECRET not in live(seen)
        assert SECRET.encode() not in await house.record()
        [first, _] = [event for event in await house.only(ev.AssistantSaid) if isinstance(event, ev.AssistantSaid)]
        assert (first.text, first.reasoning, first.opaque) == ("[masked:backup]", "I know [masked:backup]", "")
        assert (await house.state()).goal == "use [masked:backup]"


async def test_in_what_the_operator_says(household: Open, toml: str, workshop: Path) -> None:
    model = Hooked(plan("touch {{workshop}}/made") + "- text: a\n" * 3, {"workshop": str(workshop)}, {})
    async with household(model, toml=toml) as house:
        await house.say(f"the key is {SECRET}")
        await house.oikos.service.ask_for_changes(house.session_id, f"use {SECRET}", house.by)
        await house.until(lambda state: state.status.value == "rejected" and not state.turn and not state.due)
        assert SECRET.encode() not in await house.record()
        assert SECRET not in "".join(message.text for asked in model.asked for message in asked)


async def test_in_the_texts_of_decisions(household: Open, toml: str) -> None:
    async with household(plan("touch {{workshop}}/made"), toml=toml) as house:
        await house.say("make it")
        await house.oikos.service.confirm(house.session_id, SECRET, house.by, shown=await house.card())
        card = await house.card()
        assert card is not None
        await house.oikos.service.reject(house.session_id, house.by, reason=f"not with {SECRET}")
        assert SECRET.encode() not in await house.record()


async def test_what_only_looks_like_a_secret_in_arguments(household: Open) -> None:
    bad = "curl -H 'Authorization: Bearer abcdefghijklmnopqrstuvwx' http://localhost/"
    async with household(LOOK + run(bad) + "- refused: malformed_call\n  text: a\n- text: b\n") as house:
        await house.say("look")
        assert b"abcdefghijklmnopqrstuvwx" not in await house.record()
        assert await house.refusals() == ["malformed_call"]


async def test_in_facts_and_file_names(household: Open, toml: str, workshop: Path) -> None:
    (workshop / SECRET).touch()
    script = (
        LOOK
        + run("ls {{workshop}}")
        + (
            "- calls:\n    - tool: update_entity_attributes\n"
            "      args: {entity: box, run: '{{run:last}}', attributes: {file: "
            f"{SECRET}}}}}\n- text: a\n- text: b\n"
        )
    )
    async with household(Hooked(script, {"workshop": str(workshop)}, {}), toml=toml) as house:
        await house.say("look")
        inventory = await house.oikos.store.inventory()
        assert [fact.value for fact in inventory.facts["id-box"].values()] == ['"[masked:backup]"']
        assert SECRET.encode() not in await house.record()
