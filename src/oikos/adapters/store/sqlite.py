"""SQLite as a database of the store: connections, pragmas, files and their modes, errors in plain words."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from oikos.adapters.store import migrate
from oikos.domain.errors import StoreError

if TYPE_CHECKING:
    from oikos.adapters.store.dialect import Connection

BUSY_TIMEOUT_S = 5.0
BALLAST_BYTES = 1024 * 1024
_SWITCH_MS = 50
_SPARE_BYTES = 16 * BALLAST_BYTES
"""A ballast is only laid down where this much is free."""


class Sqlite:
    """One database file, private to its user (security/THREATS T27)."""

    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = path
        self._busy_timeout_s = busy_timeout_s
        self._ballast = path.with_name(path.name + ".ballast")

    def prepare(self) -> sqlite3.Connection:
        """The writer's connection to a database of the current version, made or migrated if need be.

        Raises:
            StoreError: it cannot be used; nothing was changed.
            NewerDatabase: a newer Oikos wrote it.
        """
        try:
            self._own_files()
            connection = self._connect()
            try:
                self._use_wal(connection)
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute("PRAGMA secure_delete = ON")  # what is purged does not stay in free pages
                migrate.ensure(connection, self.path)
            except BaseException:
                connection.close()
                raise
            self._lay_ballast()
        except (sqlite3.Error, OSError) as error:
            raise self.explain(error) from error
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to the write-ahead log; of several that do so at once, one must yield before any gets through."""
        connection.execute(f"PRAGMA busy_timeout = {_SWITCH_MS}")
        attempts = max(1, int(self._busy_timeout_s * 1000) // _SWITCH_MS)
        for attempt in range(attempts):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or attempt == attempts - 1:
                    raise
        connection.execute(f"PRAGMA busy_timeout = {int(self._busy_timeout_s * 1000)}")

    def connect(self) -> sqlite3.Connection:
        """A connection that can only read."""
        try:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise self.explain(error) from error
        return connection

    def _connect(self) -> sqlite3.Connection:
        """For one thread, and without the driver's own transactions (DESIGN §6.1)."""
        return sqlite3.connect(self.path, timeout=self._busy_timeout_s, isolation_level=None, check_same_thread=False)

    def begin(self, connection: Connection) -> None:
        """Take the write lock at once: a deferred transaction that reads first fails with BUSY (DESIGN §6.1)."""
        connection.execute("BEGIN IMMEDIATE")

    def rollback(self, connection: Connection) -> None:
        """Undo what is open; after some errors SQLite has done so already, and then this is one more error."""
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")

    def explain(self, error: Exception) -> StoreError:
        """What went wrong in one line, with the remedy."""
        name = getattr(error, "sqlite_errorname", "") or ""
        where = f"the database {self.path}"
        for prefix, text in _EXPLAINED.items():
            if name.startswith(prefix):
                return StoreError(text.format(where=where, timeout_s=self._busy_timeout_s))
        if isinstance(error, OSError):
            return StoreError(f"{where} cannot be used: {error.strerror or error}: check its directory")
        return StoreError(f"{where} refused: {error}")

    def data_version(self, connection: Connection) -> int:
        """Differs whenever another connection, of this process or not, has committed."""
        return int(connection.execute("PRAGMA data_version").fetchone()[0])

    def integrity(self, connection: Connection) -> list[str]:
        """What SQLite finds wrong with the file."""
        lines = [" ".join(str(row[0]).split()) for row in connection.execute("PRAGMA integrity_check(20)")]
        return [] if lines == ["ok"] else lines

    def scratch(self) -> sqlite3.Connection:
        """An empty database in memory."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate.ensure(connection, Path(":memory:"))
        return connection

    def make_room(self, error: Exception) -> bool:
        """Give up the ballast when the disk is full: even a DELETE needs room (durable/NOTES)."""
        if getattr(error, "sqlite_errorname", "") != "SQLITE_FULL":
            return False
        try:
            self._ballast.unlink()
        except OSError:
            return False
        return True

    def _own_files(self) -> None:
        """Make or check directory and file."""
        home = self.path.parent
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = home.lstat()
        if not stat.S_ISDIR(mode.st_mode):
            raise StoreError(f"{home} is not a directory: the database wants one of its own")
        if mode.st_uid != os.geteuid():
            raise StoreError(f"the directory {home} belongs to another user: run as that user, or choose another one")
        if stat.S_IMODE(mode.st_mode) & 0o077:
            raise StoreError(f"the directory {home} is open to other users: chmod 700 {home}")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            return
        found = self.path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise StoreError(f"{self.path} is not a file of this user: move it away, or choose another path")
        if stat.S_IMODE(found.st_mode) & 0o077:
            self.path.chmod(0o600)

    def _lay_ballast(self) -> None:
        space = os.statvfs(self.path.parent)
        if self._ballast.exists() or space.f_bavail * space.f_frsize < _SPARE_BYTES:
            return
        with contextlib.suppress(OSError):  # without a ballast the store works all the same
            file = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.posix_fallocate(file, 0, BALLAST_BYTES)
            finally:
                os.close(file)


_EXPLAINED = {
    "SQLITE_FULL": "the disk that holds {where} is full; nothing was written: free some space and go on",
    "SQLITE_BUSY": "{where} was locked by another process for {timeout_s:g} s; nothing was written: end that process "
    "or try again",
    "SQLITE_LOCKED": "{where} is locked; nothing was written: try again",
    "SQLITE_READONLY": "{where} is read-only; nothing was written: make file and directory writable for this user",
    "SQLITE_CANTOPEN": "{where} cannot be opened: check that its directory exists and is writable for this user",
    "SQLITE_CORRUPT": "{where} is damaged; stop Oikos and put back the newest copy (*.backup-*), or ask "
    "`sqlite3 FILE .recover`",
    "SQLITE_NOTADB": "{where} is not an SQLite database: move it away, or choose another path",
    "SQLITE_IOERR": "the disk that holds {where} fails; nothing was written: check the disk",
}
"""By the beginning of SQLite's error name."""
