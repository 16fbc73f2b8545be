"""A household for tests: the whole application on a fresh home, a real store, real local runs, a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import orjson
import pytest

from oikos.adapters.model.scripted import Scripted, script_text
from oikos.app.service import Card, Done
from oikos.bootstrap import Oikos, open_oikos, open_store
from oikos.config import load
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import Refusal
from oikos.domain.inventory import AccessPath, Entity, Mode, Transport
from oikos.domain.session import State
from oikos.domain.state import Budgets
from oikos.evals.harness import rest
from oikos.ports import Model

ANNA = Principal(id="anna", role=Role.ADMIN, channel=Channel.CLI)


@dataclass(eq=False)
class Household:
    """One application and one session in it."""

    oikos: Oikos
    session_id: str
    workshop: Path
    """A directory that commands may use; `{{workshop}}` in scripts."""
    by: Principal = ANNA
    sent: list[str] = field(default_factory=list)

    async def say(self, text: str, *, shown: bool = False) -> State:
        """Send a message and wait until the session rests."""
        card = await self.card() if shown else None
        done = await self.oikos.service.send(self.session_id, text, self.by, shown=card)
        assert isinstance(done, Done), done
        return await self.rest(done)

    async def rest(self, done: Done | Refusal) -> State:
        """Wait until nothing is due any more."""
        assert isinstance(done, Done), done
        with anyio.fail_after(30):
            return await rest(self.oikos, self.session_id, done.seq)

    async def approve(self, **options: object) -> State:
        """Approve what waits."""
        card = await self.card()
        assert card is not None, "nothing waits"
        return await self.rest(await self.oikos.service.approve(self.session_id, card, self.by, **options))  # type: ignore[arg-type]  # test helper

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


Open = Callable[..., AbstractAsyncContextManager[Household]]


@pytest.fixture
def household(tmp_path: Path) -> Open:
    """`async with household(script) as house`."""
    workshop = tmp_path / "workshop"
    workshop.mkdir()
    config = load({"OIKOS_HOME": str(tmp_path / "home")})

    @asynccontextmanager
    async def open_it(
        script: str | Model, *, targets: Sequence[Entity] = (), budgets: Budgets | None = None, mode: str = "ask",
        by: Principal = ANNA, session_id: str = "", before: Callable[[Oikos], Awaitable[None]] | None = None,
    ) -> AsyncIterator[Household]:  # fmt: skip
        async with open_store(config) as store:
            if not (await store.inventory()).entities:
                for target in targets or (local("box"),):
                    await store.put_entity(target)
        model = Scripted(script_text(script), {"workshop": str(workshop)}) if isinstance(script, str) else script
        async with open_oikos(config, model=model, budgets=budgets) as oikos:
            opened = session_id or await oikos.open_session(by, mode=mode)
            yield Household(oikos, opened, workshop, by)

    return open_it


def local(slug: str, *, mode: Mode = Mode.ASK, entity_id: str = "") -> Entity:
    """This machine under a name."""
    return Entity(id=entity_id or f"id-{slug}", kind="host", slug=slug, mode=mode, access=AccessPath(transport=Transport.LOCAL))
