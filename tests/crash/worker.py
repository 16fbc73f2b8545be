"""A process that works on one session and dies where it is told to: the controller of the crash tests.

It is the whole application on a real home with real local runs. Points to die at are around the store's appends
and in the model; the product holds no hook for them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from oikos.adapters.clock import SystemClock
from oikos.adapters.store.sql import SqlStore
from oikos.bootstrap import Oikos, open_oikos, open_store
from oikos.config import load
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.events import ToolCall
from oikos.domain.instant import Instant
from oikos.domain.inventory import AccessPath, Entity, Transport
from oikos.domain.session import Phase, State, evolve
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec

ANNA = Principal(id="anna", role=Role.ADMIN, channel=Channel.CLI)
LEASE_S = 31.0
"""A dead process keeps its session's lease for 30 s; the next one looks at a clock that is so much later."""


class LaterClock:
    """The system's clock and a fixed shift."""

    def __init__(self, shift_s: float) -> None:
        self._clock = SystemClock()
        self._shift_s = shift_s

    def now(self) -> Instant:
        """This moment, shifted."""
        now = self._clock.now()
        return replace(now, wall_s=now.wall_s + self._shift_s, boot_s=now.boot_s + self._shift_s)

    async def sleep(self, seconds: float) -> None:
        """Really sleep."""
        await self._clock.sleep(seconds)


class Steady:
    """A model that is a function of what it is shown: plan, run until it worked, check, write back, complete."""

    name = "steady"

    def __init__(self, command: str, check: str, *, dies: bool) -> None:
        self._command = command
        self._check = check
        self._dies = dies

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """The next call."""
        if self._dies:
            yield TextDelta(text="I am")
            die()
        names = {call.id: call for message in messages for call in message.calls}
        answers = [(names[m.call_id], orjson.loads(m.text)) for m in messages if m.role == "tool"]
        said = len([message for message in messages if message.role == "assistant"])
        calls = tuple(
            ToolCall(id=f"c{said}-{number}", name=name, arguments=json.dumps(args))
            for number, (name, args) in enumerate(self._next(answers))
        )
        yield Reply(text="" if calls else "I am done.", calls=calls)

    def _next(self, answers: list[tuple[ToolCall, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
        done = {call.name for call, answer in answers if "refused" not in answer}
        runs = [(json.loads(call.arguments)["command"], answer) for call, answer in answers if call.name == "run"]
        if "set_goal" not in done:
            return [("set_goal", {"goal": "count once"})]
        if "propose_plan" not in done:
            steps = [{"title": "count", "target": "box", "commands": [self._command]}]
            return [("propose_plan", {"steps": steps, "checks": [{"target": "box", "command": self._check}]})]
        counted = [answer for command, answer in runs if command == self._command]
        if not counted or counted[-1].get("exit", "").startswith("never started"):
            return [("run", {"target": "box", "command": self._command, "step": 1})]
        if counted[-1].get("exit", "").startswith("outcome unknown"):
            if "ask_operator" not in done:
                return [("ask_operator", {"question": "nobody can tell what happened"})]
            return [("run", {"target": "box", "command": self._command, "step": 1})]
        checked = [answer for command, answer in runs if command == self._check and answer.get("exit") == "exit 0"]
        if not checked:
            return [("run", {"target": "box", "command": self._check})]
        if "complete_task" in done:
            return []
        run_id = checked[-1]["run"]
        return [
            ("update_plan_step", {"seq": 1, "status": "done"}),
            ("update_entity_attributes", {"entity": "box", "attributes": {"counted": True}, "run": run_id}),
            ("complete_task", {"outcome": "done", "summary": "counted once", "evidence": [run_id]}),
        ]

    async def close(self) -> None:
        """Nothing to close."""


def die() -> None:
    """As the power going off for this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def arm(when: str, kind: str) -> None:
    """Die `before` or `after` the append of the first event of a kind; runs of probes do not count."""
    real = SqlStore.append
    started: set[str] = set()

    def hit(event: ev.Event) -> bool:
        if isinstance(event, ev.RunStarted) and event.authority != "probe":
            started.add(event.order.run_id)
        if isinstance(event, ev.RunStarted):
            return kind == "RunStarted" and event.authority != "probe"
        if isinstance(event, ev.RunFinished):
            return kind == "RunFinished" and event.run_id in started
        if isinstance(event, ev.AssistantSaid) and kind.startswith("AssistantSaid:"):
            return any(call.name == kind.partition(":")[2] for call in event.calls)
        return type(event).__name__ == kind

    def append(
        self: SqlStore, session_id: str, expected: int, events: Sequence[ev.Event], **more: Any
    ) -> Coroutine[Any, Any, int]:
        meant = sum(map(hit, events)) > 0
        if meant and when == "before":
            die()
        writing = real(self, session_id, expected, events, **more)

        async def and_die() -> int:
            seq = await writing
            die()
            return seq

        return and_die() if meant else writing

    SqlStore.append = append  # type: ignore[method-assign, assignment]  # this process is the test's


def work(home: str, command: str, check: str, point: str, later_s: float) -> None:
    """Entry point of the process; `point` is empty, `model`, or `before|after KIND`."""
    os.environ["HOME"] = home
    if point and point != "model":
        arm(*point.split(" "))
    asyncio.run(_work(Path(home), Steady(command, check, dies=point == "model"), LaterClock(later_s)))


async def _work(home: Path, model: Steady, clock: LaterClock) -> None:
    config = await asyncio.to_thread(load, {"OIKOS_HOME": str(home / "oikos")})
    async with open_store(config) as store:
        if not any(entity.slug == "box" for entity in (await store.inventory()).entities.values()):
            await store.put_entity(
                Entity(id="id-box", kind="host", slug="box", access=AccessPath(transport=Transport.LOCAL))
            )
    async with open_oikos(config, model=model, clock=clock) as oikos:
        rows = await oikos.service.sessions()
        session_id = rows[0].session_id if rows else await oikos.open_session(ANNA)
        async with asyncio.timeout(50):
            await _operate(oikos, session_id)


async def _operate(oikos: Oikos, session_id: str) -> None:
    """The operator: asks, approves what waits, answers, until the session is done."""
    service, state = oikos.service, State()
    if not any(isinstance(record.event, ev.OperatorSaid) for record in await service.history(session_id)):
        await service.send(session_id, "count once", ANNA)
    async with aclosing(oikos.feed.follow(session_id, ephemeral=False)) as items:
        async for item in items:
            if not isinstance(item, ev.Recorded):
                continue
            state = evolve(state, item)
            if state.phase is Phase.DONE and not state.turn:
                return
            if state.turn or state.seq != (await service.state(session_id)).seq:
                continue
            card = await service.card(session_id)
            if state.question is not None:
                await service.send(session_id, "look and do it again", ANNA)
            elif card is not None and card.run is not None and card.run.phrase:
                await service.confirm(session_id, card.run.phrase, ANNA, shown=card)
            elif card is not None and (card.plan is not None or card.run is not None):
                await service.approve(session_id, card, ANNA)  # refused when another process was first
