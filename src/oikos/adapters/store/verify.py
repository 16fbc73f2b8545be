"""`oikos audit verify`: is what the database holds what was written, all of it, in that order?

Reads only, in one snapshot. The read models are compared with what a scratch database makes of the same events,
so a run's outcome or a fact that was edited by hand is found as well as an edited event.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator

from oikos.adapters.store import codec, project
from oikos.adapters.store import statements as sql
from oikos.adapters.store.chain import GENESIS, link
from oikos.adapters.store.dialect import Connection
from oikos.adapters.store.transaction import PURGES
from oikos.domain.events import ConsentGranted
from oikos.domain.instant import Instant
from oikos.ports import AuditReport

MOST_PROBLEMS = 50
"""More are counted, not told."""

_COMPARED = {
    "sessions": "SELECT session_id, title, generation, opened_s FROM sessions",
    "runs": "SELECT * FROM runs",
    "facts of sessions": "SELECT entity_id, attribute, value, source, observed_s, ttl_s, session_id FROM facts "
    "WHERE session_id <> ''",
    "pending approvals": "SELECT * FROM approvals",
}
"""What must equal its projection; phase and waiting_for are hints of the application."""


def verify(
    connection: Connection, scratch: Connection, integrity: Callable[[], list[str]], head: str = ""
) -> AuditReport:
    """Check everything; `scratch` is an empty database of the same schema, `head` a hash exported before."""
    connection.execute("BEGIN")
    try:
        return _Audit(connection, scratch, head).run(integrity)
    finally:
        connection.execute("ROLLBACK")


class _Audit:
    def __init__(self, connection: Connection, scratch: Connection, head: str) -> None:
        self._connection, self._scratch = connection, scratch
        self._wanted = head.lower()
        self._problems: list[str] = []
        self._more = 0
        self._events = 0
        self._head = GENESIS
        self._ledger: list[tuple[str, int, str]] = []
        """(session id, seq, consent as JSON) as the events tell it."""
        self._referred: set[bytes] = set()
        self._purged: set[bytes] = set()

    def run(self, integrity: Callable[[], list[str]]) -> AuditReport:
        for line in integrity():
            self._say(f"database: {line}")
        self._check_events()
        consents = self._check_ledger()
        self._check_blobs()
        self._check_read_models()
        if self._more:
            self._problems.append(f"… and {self._more} more")
        return AuditReport(
            events=self._events, consents=consents, head=self._head.hex(), problems=tuple(self._problems)
        )

    def _say(self, text: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(text)
        else:
            self._more += 1

    def _check_events(self) -> None:
        seen_head = not self._wanted
        last: dict[str, int] = {}
        rows: dict[str, project.Line] = {}
        prev, expected = GENESIS, 0
        for row in self._connection.execute(sql.ALL_EVENTS):
            *chained, body_sha256, told, digest, body = row
            position, session_id, seq, kind, version, wall_s, boot_s, boot_id, _ = chained
            where = f"event {position} ({kind} of session {session_id or 'store'}, seq {seq})"
            expected += 1
            self._events += 1
            if position != expected:
                self._say(f"{where}: {expected} expected: rows are missing or were inserted")
                expected = position
            if told != prev:
                self._say(f"{where}: does not continue the row before it")
            if hashlib.sha256(_bytes(body)).digest() != body_sha256:
                self._say(f"{where}: its body was changed")
            if self._link(told, *chained, _bytes(body_sha256).hex()) != digest:
                self._say(f"{where}: its hash does not fit its columns")
            if seq != last.get(session_id, 0) + 1:
                self._say(f"{where}: seq {last.get(session_id, 0) + 1} expected")
            last[session_id] = seq
            prev = _bytes(digest)
            seen_head = seen_head or prev.hex() == self._wanted
            at = Instant(wall_s=wall_s, boot_s=boot_s, boot_id=boot_id)
            try:
                self._replay(where, rows, (position, session_id, seq, kind, version, body), at)
            except Exception as error:  # whatever a forged row breaks: the audit goes on, and is not clean
                self._say(f"{where}: {error}")
        self._head = prev
        for session_id, line in rows.items():
            self._scratch.execute(sql.PUT_SESSION, (session_id, *line.columns()))
        if not seen_head:
            self._say(f"the exported head {self._wanted} is not in the chain: its end was cut off, or it was rewritten")

    def _replay(
        self, where: str, rows: dict[str, project.Line], row: tuple[int, str, int, str, int, str], at: Instant
    ) -> None:
        position, session_id, seq, kind, version, body = row
        self._referred.update(sha256 for sha256, _ in codec.references(body))
        event = codec.decode(kind, version, body, self._blob)
        if isinstance(event, codec.BlobPurged):
            if session_id != PURGES:
                self._say(f"{where}: a purge record in a session")
            self._purged.add(bytes.fromhex(event.sha256))
            return
        placed = project.Placed(position, session_id, seq, at.wall_s, event)
        rows.setdefault(session_id, project.Line.new(at.wall_s)).add(seq, event)
        project.project(self._scratch.execute, placed)
        if isinstance(event, ConsentGranted):
            self._ledger.append((session_id, seq, codec.dump(event.consent)))

    def _blob(self, sha256: bytes) -> bytes | None:
        row = self._connection.execute(sql.BLOB, (sha256,)).fetchone()
        return None if row is None else _bytes(row[0])

    def _check_ledger(self) -> int:
        prev = GENESIS
        found: list[tuple[str, int, str]] = []
        for row in self._connection.execute(sql.ALL_CONSENTS):
            position, consent_id, session_id, seq, body, told, digest = row
            where = f"consent {position} ({consent_id})"
            if position != len(found) + 1:
                self._say(f"{where}: {len(found) + 1} expected: rows are missing or were inserted")
            if told != prev:
                self._say(f"{where}: does not continue the row before it")
            if self._link(told, position, consent_id, session_id, seq, body) != digest:
                self._say(f"{where}: its hash does not fit its columns")
            prev = _bytes(digest)
            found.append((session_id, seq, body))
        if found != self._ledger:
            self._say("the consent ledger is not what the events granted")
        return len(found)

    def _check_blobs(self) -> None:
        present: set[bytes] = set()
        for sha256, data in self._connection.execute(sql.ALL_BLOBS):
            present.add(_bytes(sha256))
            if hashlib.sha256(_bytes(data)).digest() != sha256:
                self._say(f"text {_bytes(sha256).hex()[:16]}: its content was changed")
        for sha256 in sorted(self._referred - present - self._purged):
            self._say(f"text {sha256.hex()[:16]}: is missing, and no record says that it was purged")
        for sha256 in sorted(present - self._referred):
            self._say(f"text {sha256.hex()[:16]}: belongs to no event")

    def _check_read_models(self) -> None:
        for name, statement in _COMPARED.items():
            there = Counter(map(tuple, self._rows(self._connection, statement)))
            made = Counter(map(tuple, self._rows(self._scratch, statement)))
            wrong = len(list(((there - made) + (made - there)).elements()))
            if wrong:
                self._say(f"{name}: {wrong} rows are not what the events say")

    @staticmethod
    def _link(told: bytes, *columns: str | float) -> bytes:
        try:
            return link(_bytes(told), *columns)
        except TypeError:  # a column of a wrong type: no hash fits it
            return b""

    @staticmethod
    def _rows(connection: Connection, statement: str) -> Iterator[tuple[object, ...]]:
        yield from connection.execute(statement)


def _bytes(column: bytes | str | float | None) -> bytes:
    """A column of whatever type a vandal left in it."""
    return column if isinstance(column, bytes) else str(column).encode("utf-8", "replace")
