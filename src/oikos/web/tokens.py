"""Bearer tokens: who may call the API, with which role; kept hashed in one private file of the home.

Authority comes from this file's columns, never from a request's text. A token is 256 random bits, so a plain SHA-256
keeps it; it is shown once, when it is made. The file is read again when it changed: a revoked token is refused at the
next request, and its open streams end (SPEC R10.4, security/THREATS T29).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Sequence
from pathlib import Path

import orjson

from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import ConfigError
from oikos.domain.inventory import NAME
from oikos.domain.value import dataclass

FILE = "api-tokens.json"
PREFIX = "oikos_"
_SHAPE = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
ID_PREFIX = "api:"
"""Before a token's name in the record: a token is not the person of the same name at the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One row: a name, a role, and the hash of what its holder sends."""

    name: str
    role: Role
    sha256: str
    created_s: float
    """Wall time, seconds since the epoch."""

    @property
    def principal(self) -> Principal:
        """Whoever sends it, as the rules see them."""
        return Principal(id=ID_PREFIX + self.name, role=self.role, channel=Channel.API)


class Tokens:
    """The token file of a home."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE
        self._stamp: tuple[int, int, int] | None = None
        self._rows: tuple[Token, ...] = ()

    def rows(self) -> Sequence[Token]:
        """All tokens, oldest first.

        Raises:
            ConfigError: the file is not private, or damaged; one line with the remedy.
        """
        try:
            info = self._file.stat()
        except FileNotFoundError:
            self._stamp, self._rows = None, ()
            return ()
        if info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise ConfigError(f"{self._file} can be read or written by others: chmod 600 it, and revoke its tokens")
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if stamp != self._stamp:
            self._rows, self._stamp = self._read(), stamp
        return self._rows

    def who(self, given: str) -> Principal | None:
        """Whose token this is; None when it is nobody's. Takes the same time for every wrong one."""
        digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()
        found: Token | None = None
        for row in self.rows():
            if hmac.compare_digest(row.sha256, digest):
                found = row
        return found.principal if found is not None and _SHAPE.fullmatch(given) else None

    def add(self, name: str, role: Role, *, now_s: float) -> str:
        """Make a token; returns it, for the only time.

        Raises:
            ConfigError: the name is taken, or no name.
        """
        if not NAME.fullmatch(name):
            raise ConfigError(f"{name!r} cannot be a token's name: use lower-case letters, digits and hyphens")
        rows = self.rows()
        if any(row.name == name for row in rows):
            raise ConfigError(f"there is a token {name} already: revoke it first, or choose another name")
        text = PREFIX + secrets.token_urlsafe(32)
        row = Token(name=name, role=role, sha256=hashlib.sha256(text.encode()).hexdigest(), created_s=now_s)
        self._write((*rows, row))
        return text

    def revoke(self, name: str) -> None:
        """Forget a token.

        Raises:
            ConfigError: there is none of that name.
        """
        rows = self.rows()
        left = tuple(row for row in rows if row.name != name)
        if len(left) == len(rows):
            raise ConfigError(f"there is no token {name}: `oikos serve token list` shows them")
        self._write(left)

    def _read(self) -> tuple[Token, ...]:
        try:
            return tuple(
                Token(name=row["name"], role=Role(row["role"]), sha256=row["sha256"], created_s=float(row["created_s"]))
                for row in orjson.loads(self._file.read_bytes())
            )
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{self._file} is damaged ({error}): remove it and make the tokens anew") from None

    def _write(self, rows: Sequence[Token]) -> None:
        body = [
            {"name": row.name, "role": row.role.value, "sha256": row.sha256, "created_s": row.created_s} for row in rows
        ]
        beside = self._file.with_name(f".{FILE}.{secrets.token_hex(4)}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._file)
