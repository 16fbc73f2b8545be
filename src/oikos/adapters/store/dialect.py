"""What the store needs of a database: the seam at which PostgreSQL joins. Types only; imported by type checkers alone.

SQLite's is `sqlite.Sqlite`. A dialect hands out connections for the store's threads, whose statements are those of
`statements.py`; what is said here is all that differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from oikos.domain.errors import StoreError


class Cursor(Protocol):
    """The part of a DBAPI cursor that is used."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Any: ...


class Connection(Protocol):
    """The part of a DBAPI connection that is used; `execute` as sqlite3 and psycopg both have it."""

    def execute(self, statement: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, statement: str, rows: list[Any], /) -> Cursor: ...
    def close(self) -> None: ...


class Dialect(Protocol):
    """What differs between databases."""

    def prepare(self) -> Connection:
        """The writer's connection, to a database of the current version.

        Raises:
            StoreError: there is no usable database; the text has the remedy.
        """
        ...

    def connect(self) -> Connection:
        """A connection that can only read.

        Raises:
            StoreError: there is no usable database; the text has the remedy.
        """
        ...

    def begin(self, connection: Connection) -> None:
        """Begin a write transaction that holds the right to extend the chain until its end."""
        ...

    def rollback(self, connection: Connection) -> None:
        """Undo what is open, if anything is."""
        ...

    def explain(self, error: Exception) -> StoreError:
        """What went wrong in one line, with the remedy."""
        ...

    def data_version(self, connection: Connection) -> int:
        """A number that differs whenever anything was committed by anyone since it was last asked here."""
        ...

    def integrity(self, connection: Connection) -> list[str]:
        """What the database itself finds wrong with its file."""
        ...

    def scratch(self) -> Connection:
        """An empty database of the current version that vanishes when it is closed."""
        ...

    def make_room(self, error: Exception) -> bool:
        """Whether something was given up so that trying once more may work."""
        ...
