"""Alembic as a library: the only module that imports it, and only when a migration is due."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from oikos.domain.errors import StoreError

LOCK_TIMEOUT_S = 30.0


def upgrade(path: Path, scripts: Path, head: str, locked: Callable[[], None]) -> None:
    """Run the chain up to `head` in one transaction that holds the write lock; `locked` is called first in it.

    Raises:
        StoreError: a migration failed; the database is as it was.
    """
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(path, timeout=LOCK_TIMEOUT_S, isolation_level=None),
        poolclass=NullPool,
    )
    event.listen(engine, "begin", _begin_immediate)
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    try:
        with engine.begin() as connection:
            locked()
            config.attributes["connection"] = connection
            command.upgrade(config, head)
    except Exception as error:  # a migration is any code: whatever it raises, the transaction was rolled back
        cause = " ".join(str(error).split())
        raise StoreError(f"the migration of {path} to {head} failed and changed nothing: {cause}") from error
    finally:
        engine.dispose()


def _begin_immediate(connection: Connection) -> None:
    """The driver begins nothing by itself (isolation_level None), and a deferred transaction would be too late."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
