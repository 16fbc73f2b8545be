"""A store's home for tests that look behind the port: files, threads, raw SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from oikos.adapters.clock import VirtualClock
from oikos.adapters.store.sql import SqlStore
from oikos.adapters.store.sqlite import Sqlite
from oikos.domain import events as ev
from oikos.domain.instant import Instant

AT = Instant(wall_s=1_700_000_000.25, boot_s=12.5, boot_id="boot-1")
OPENED = ev.SessionOpened(by="ada")


@asynccontextmanager
async def opened(path: Path, *, busy_timeout_s: float = 0.2) -> AsyncIterator[SqlStore]:
    """A store on the file `path` that does not wait long for locks."""
    store = SqlStore(Sqlite(path, busy_timeout_s=busy_timeout_s), VirtualClock())
    await store.start()
    try:
        yield store
    finally:
        await store.close()


async def append(store: SqlStore, seq: int, *events: ev.Event, session_id: str = "s1") -> int:
    """Append, with everything else fixed."""
    return await store.append(session_id, seq, events or [OPENED], at=AT, actor="ada")


def raw(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as a vandal with a shell would; the rows of the last one."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        rows: list[tuple[object, ...]] = []
        for statement in statements:
            rows = connection.execute(statement).fetchall()
        return rows
    finally:
        connection.close()
