"""The stores that keep the Store contract; another database joins by one more entry in `STORES`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from oikos.adapters.clock import VirtualClock
from oikos.adapters.store.sql import SqlStore

Opening = Callable[[Path, VirtualClock], Awaitable[SqlStore]]


async def open_sqlite(home: Path, clock: VirtualClock) -> SqlStore:
    """A store on the one SQLite database of `home`."""
    return await SqlStore.open(home / "oikos.db", clock=clock)


STORES: dict[str, Opening] = {"sqlite": open_sqlite}


@dataclass(slots=True)
class Database:
    """One database; every `open` is another process's view of it."""

    home: Path
    opening: Opening
    clock: VirtualClock = field(default_factory=VirtualClock)
    opened: list[SqlStore] = field(default_factory=list)

    async def open(self) -> SqlStore:
        """A store that is closed at the end of the test."""
        store = await self.opening(self.home, self.clock)
        self.opened.append(store)
        return store


@pytest.fixture(params=STORES.values(), ids=STORES.keys())
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    """A fresh database."""
    found = Database(home=tmp_path, opening=request.param)
    yield found
    for store in found.opened:
        await store.close()


@pytest.fixture
async def store(database: Database) -> SqlStore:
    """A store on a fresh database."""
    return await database.open()
