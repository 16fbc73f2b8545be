"""A household for tests: the whole application on a fresh home, a real store, real local runs, a scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import orjson
import pytest

from oikos.adapters.clock import SystemClock
from oikos.adapters.model.scripted import Scripted, script_text
from oikos.app.service import Card, Done
from oikos.bootstrap import LAB_MARK, Oikos, open_oikos, open_store
from oikos.config import load
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import Refusal
from oikos.domain.instant import Instant
from oikos.domain.inventory import AccessPath, Entity, Mode, Transport
from oikos.domain.session import State, evolve
from oikos.domain.state import Budgets
from oikos.evals.harness import rest
from oikos.ports import Clock, Message, Model, Reply, Retrying, Runner, TextDelta, ToolSpec

WAIT_S = 30.0
"""Nothing in these tests takes longer, not even on a loaded machine."""

LOOK = (
    "- calls: [{tool: set_goal, args: {goal: look}}]\n"
    "- calls: [{tool: propose_plan, args: {steps: [{title: look, target: box, commands: [ls]}]}}]\n"
)
"""Two responses: a goal, and a plan that only looks."""
ANNA = Principal(id="anna", role=Role.ADMIN, channel=Channel.CLI)


@dataclass(eq=False)
class Household:
    """One application and one session in it."""

    oikos: Oikos
    session_id: str
    workshop: Path
    """A directory that commands may use; `{{workshop}}` in scripts."""
    by: Principal = ANNA

    async def say(self, text: str, *, shown: bool = False) -> State:
        """Send a message and wait until the session rests."""
        card = await self.card() if shown else None
        done = await self.oikos.service.send(self.session_id, text, self.by, shown=card)
        assert isinstance(done, Done), done
        return await self.rest(done)

    async def rest(self, done: Done | Refusal) -> State:
        """Wait until nothing is due any more."""
        assert isinstance(done, Done), done
        with anyio.fail_after(WAIT_S):
            return await rest(self.oikos, self.session_id, done.seq)

    async def approve(self, **options: object) -> State:
        """Approve what waits."""
        card = await self.card()
        assert card is not None, "nothing waits"
        return await self.rest(await self.oikos.service.approve(self.session_id, card, self.by, **options))  # type: ignore[arg-type]  # test helper

    async def until(self, holds: Callable[[State], bool], session_id: str = "") -> State:
        """Wait for the first state in which something holds."""
        state = State()
        with anyio.fail_after(WAIT_S):
            async with aclosing(self.oikos.feed.follow(session_id or self.session_id, ephemeral=False)) as items:
                async for item in items:
                    if isinstance(item, ev.Recorded):
                        state = evolve(state, item)
                        if holds(state):
                            return state
        raise AssertionError("the feed ended by itself")

    async def send(self, text: str) -> Done:
        """Send a message and go on."""
        done = await self.oikos.service.send(self.session_id, text, self.by)
        assert isinstance(done, Done), done
        return done

    async def state(self) -> State:
        """As it is now."""
        return await self.oikos.service.state(self.session_id)

    async def also(self) -> Household:
        """A second session of the same household."""
        return replace(self, session_id=await self.oikos.open_session(self.by))

    async def record(self) -> bytes:
        """Every byte that the home keeps of sessions: events, consents, facts, outputs."""
        home = self.oikos.config.home
        files = [file for file in home.glob("oikos.db*") if file.is_file()]
        return b"".join([await anyio.Path(file).read_bytes() for file in files])

    async def card(self) -> Card | None:
        return await self.oikos.service.card(self.session_id)

    async def events(self) -> list[ev.Event]:
        """Everything that happened."""
        return [record.event for record in await self.oikos.service.history(self.session_id)]

    async def only(self, *kinds: type[ev.Event]) -> list[ev.Event]:
        """What happened of these kinds."""
        return [event for event in await self.events() if isinstance(event, kinds)]

    async def refusals(self) -> list[str]:
        """Codes of refused calls, in order."""
        return [event.refusal for event in await self.events() if isinstance(event, ev.ToolAnswered) and event.refusal]

    async def answers(self, tool: str) -> list[dict[str, object]]:
        """What a tool answered, decoded."""
        return [orjson.loads(e.text) for e in await self.events() if isinstance(e, ev.ToolAnswered) and e.name == tool]


class ShiftedClock:
    """The system's clock, moved on by as much as a test likes; sleeping takes its real time."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self.shift_s = 0.0

    def now(self) -> Instant:
        """This moment, shifted."""
        now = self._clock.now()
        return replace(now, wall_s=now.wall_s + self.shift_s, boot_s=now.boot_s + self.shift_s)

    async def sleep(self, seconds: float) -> None:
        """Really sleep."""
        await self._clock.sleep(seconds)


class Hooked(Scripted):
    """A scripted model before whose n-th answer (from 1) something else happens; remembers what it was shown."""

    def __init__(
        self, script: str, values: Mapping[str, str], hooks: Mapping[int, Callable[[], Awaitable[None]]]
    ) -> None:
        super().__init__(script_text(script), values)
        self.hooks = dict(hooks)
        self.asked: list[tuple[Message, ...]] = []

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """As the script says, once the hook has run."""
        self.asked.append(tuple(messages))
        hook = self.hooks.get(len(self.asked))
        if hook is not None:
            await hook()
        async with aclosing(super().stream(messages, tools)) as items:
            async for item in items:
                yield item


Open = Callable[..., AbstractAsyncContextManager[Household]]


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    """Where commands may work."""
    directory = tmp_path / "workshop"
    directory.mkdir()
    return directory


@pytest.fixture
def household(tmp_path: Path, workshop: Path) -> Open:
    """`async with household(script) as house`; the same home each time within one test."""

    @asynccontextmanager
    async def open_it(
        script: str | Model, *, targets: Sequence[Entity] = (), budgets: Budgets | None = None, mode: str = "ask",
        by: Principal = ANNA, session_id: str = "", clock: Clock | None = None, lab: bool = False, toml: str = "",
        runner: Runner | None = None, work: bool = True,
    ) -> AsyncIterator[Household]:  # fmt: skip
        home = anyio.Path(tmp_path / "home")
        await home.mkdir(mode=0o700, exist_ok=True)
        if lab:
            await (home / LAB_MARK).touch()
        if toml:
            await (home / "oikos.toml").write_text(toml, encoding="utf-8")
        config = await anyio.to_thread.run_sync(load, {"OIKOS_HOME": str(home)})
        async with open_store(config) as store:
            known = (await store.inventory()).entities
            for target in targets or (local("box"),):
                if target.id not in known:
                    await store.put_entity(target)
        model = Scripted(script_text(script), {"workshop": str(workshop)}) if isinstance(script, str) else script
        async with open_oikos(config, model=model, budgets=budgets, clock=clock, runner=runner, work=work) as oikos:
            opened = session_id or await oikos.open_session(by, mode=mode)
            yield Household(oikos, opened, workshop, by)

    return open_it


def local(slug: str, *, mode: Mode = Mode.ASK, entity_id: str = "", lab: bool = False) -> Entity:
    """This machine under a name."""
    access = AccessPath(transport=Transport.LOCAL)
    return Entity(id=entity_id or f"id-{slug}", kind="host", slug=slug, mode=mode, access=access, lab=lab)


def plan(
    *commands: str | Mapping[str, object], target: str = "box", check: str = "stat {{workshop}}", goal: str = "have it"
) -> str:
    """Two responses: a goal, and a plan of one step a command, with one check."""
    steps = ", ".join(
        f"{{title: step, target: {target}, commands: [{orjson.dumps(command).decode()}]}}" for command in commands
    )
    checks = f"[{{target: {target}, command: {orjson.dumps(check).decode()}}}]"
    return (
        f"- calls: [{{tool: set_goal, args: {{goal: {goal}}}}}]\n"
        f"- calls: [{{tool: propose_plan, args: {{steps: [{steps}], checks: {checks}}}}}]\n"
    )


def run(command: str, *, expects: str = "", target: str = "box", **more: object) -> str:
    """A response that runs one command; `expects` is what it sees first, as YAML lines."""
    args = orjson.dumps({"target": target, "command": command, **more}).decode()
    first = "".join(f"  {line}\n" for line in expects.splitlines())
    return f"- calls: [{{tool: run, args: {args}}}]\n{first}"


def finish(steps: int = 1, *, check: str = "stat {{workshop}}", target: str = "box") -> str:
    """Two responses: the check of `plan`, and the end of the task."""
    marks = "".join(
        f"    - {{tool: update_plan_step, args: {{seq: {n}, status: done}}}}\n" for n in range(1, steps + 1)
    )
    return run(check, target=target) + (
        f"- calls:\n{marks}"
        "    - tool: update_entity_attributes\n"
        f"      args: {{entity: {target}, attributes: {{seen: 'yes'}}, run: '{{{{run:last}}}}'}}\n"
        "    - {tool: complete_task, args: {outcome: done, summary: it is so, evidence: ['{{run:last}}']}}\n"
    )
