"""Bringing a database to the version this Oikos knows: one Alembic chain, run from here.

A database of the current version costs one query; a fresh one is made from `schema.sql`; only an older one
imports Alembic, after a copy was put beside it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oikos.domain.errors import NewerDatabase, StoreError

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """A chain of migrations: what this Oikos can read."""

    chain: Sequence[str]
    """Revisions, oldest first."""
    scripts: Path
    """Alembic's script directory."""
    schema: Path
    """What makes a fresh database of the newest revision."""

    @property
    def head(self) -> str:
        """The newest revision."""
        return self.chain[-1]


CURRENT = Versions(chain=("0001",), scripts=HERE / "migrations", schema=HERE / "schema.sql")


def ensure(connection: sqlite3.Connection, path: Path, versions: Versions = CURRENT) -> None:
    """Make the database at `path` one of the newest revision; `connection` is the writer's.

    Raises:
        NewerDatabase: its revision is not in the chain.
        StoreError: it is no database of Oikos, or the migration failed and changed nothing.
    """
    found = _version(connection)
    if found is None:
        _create(connection, path, versions)
        found = _version(connection)
    if found == versions.head:
        return
    if found is None or found not in versions.chain:
        raise NewerDatabase(
            f"the database {path} has version {found} of a newer Oikos, this one knows up to {versions.head}: "
            f"use the newer Oikos, or put back a copy ({path.name}.backup-*)"
        )
    _upgrade(connection, path, found, versions)


def _upgrade(connection: sqlite3.Connection, path: Path, found: str, versions: Versions) -> None:
    """Copy and migrate under one write lock: of two processes that start at once, one does it all."""
    from oikos.adapters.store import alembic_run  # 0.7 s of import, needed once a release

    def locked() -> None:
        if _version(connection) == found:  # nobody else was first
            _copy(connection, path.with_name(f"{path.name}.backup-{found}"))

    alembic_run.upgrade(path, versions.scripts, versions.head, locked)


def _version(connection: sqlite3.Connection) -> str | None:
    try:
        row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise
    return None if row is None else str(row[0])


def _create(connection: sqlite3.Connection, path: Path, versions: Versions) -> None:
    """Everything in one transaction; another process may have been first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) is None:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                raise StoreError(f"the database {path} was not made by Oikos: move it away, or choose another path")
            for statement in versions.schema.read_text().split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute("INSERT INTO alembic_version (version_num) VALUES (?)", (versions.head,))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _copy(connection: sqlite3.Connection, backup: Path) -> None:
    """A whole copy beside the database; written under another name first, so that a half one is never taken for it."""
    part = backup.with_name(backup.name + ".part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    target = sqlite3.connect(part)
    try:
        connection.backup(target)
    finally:
        target.close()
    part.replace(backup)
