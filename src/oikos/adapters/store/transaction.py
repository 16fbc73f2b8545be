"""What is written inside one transaction: events with their chain, ledger and read models, outputs, leases, wakes.

Plain synchronous functions on a DBAPI connection; the writer thread calls them. A function that refuses
(`REFUSALS`) does so before its first write, so that its neighbours in a group commit are not touched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from oikos.adapters.store import codec, project
from oikos.adapters.store import statements as sql
from oikos.adapters.store.chain import GENESIS, link
from oikos.domain.consent import Consent
from oikos.domain.errors import Fenced, NameTaken, SeqConflict, TargetBusy, TargetChanged
from oikos.domain.events import ConsentGranted, EntityCreated
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Fact
from oikos.domain.run import OUTPUT_CAP_BYTES, Stream
from oikos.ports import Guard, Lease, OutputPiece

if TYPE_CHECKING:
    from oikos.adapters.store.dialect import Connection

REMEMBERED = 10_000
"""Most sessions whose line the writer keeps in mind."""
EVERYTHING = 1 << 62
"""A limit that limits nothing."""
PURGES = ""
"""The session id of the store's own stream, which holds the purge records."""


REFUSALS = (SeqConflict, Fenced, TargetBusy, TargetChanged)
"""What a write may raise before it has written anything."""


class Appending(NamedTuple):
    """One append, encoded."""

    session_id: str
    expected_seq: int
    events: tuple[codec.Encoded, ...]
    at: Instant
    actor: str
    epoch: int | None
    wake: str
    phase: str
    waiting_for: str
    output: tuple[OutputPiece, ...]
    guard: Guard | None


class Memory:
    """What the writer knows from its last transactions; true as long as nobody else has committed."""

    __slots__ = ("epochs", "head", "lines", "version")

    def __init__(self) -> None:
        self.version: int | None = None
        self.forget()

    def forget(self) -> None:
        """After a failure, a commit of another process, or when it has grown long."""
        self.head: tuple[int, bytes] | None = None
        self.lines: dict[str, project.Line] = {}
        self.epochs: dict[str, int] = {}

    def check(self, version: int) -> None:
        """Begin a transaction in which the database has this data version."""
        if version != self.version or len(self.lines) > REMEMBERED:
            self.version = version
            self.forget()


class Transaction:
    """One open write transaction; events and session lines are written together when it is flushed."""

    __slots__ = ("_connection", "_events", "_lines", "_memory", "execute")

    def __init__(self, connection: Connection, memory: Memory) -> None:
        self._connection, self._memory = connection, memory
        self.execute = connection.execute
        self._events: list[tuple[Any, ...]] = []
        self._lines: dict[str, project.Line] = {}

    def flush(self) -> None:
        """Write what was put together; before the commit, and before anything that reads it back."""
        if self._events:
            self._connection.executemany(sql.PUT_EVENT, self._events)
            self._events = []
        if self._lines:
            rows = [(session_id, *line.columns()) for session_id, line in self._lines.items()]
            self._connection.executemany(sql.PUT_SESSION, rows)
            self._lines = {}

    def append(self, new: Appending) -> int:
        """Append events, their ledger rows and read models; returns the last seq.

        Raises:
            SeqConflict: the stream does not end at the expected seq.
            Fenced: the session's lease has another epoch.
            TargetBusy, TargetChanged: the guard does not hold.
        """
        execute, session_id, at = self.execute, new.session_id, new.at
        line = self._line(session_id, at.wall_s)
        seq, before = line.seq, line.columns()
        if seq != new.expected_seq:
            raise SeqConflict(f"session {session_id} is at {seq}, not {new.expected_seq}: load it and decide again")
        if new.epoch is not None:
            self._fence(session_id, new.epoch)
        if new.guard is not None:
            self._check(new.guard)
        for encoded in new.events:
            seq += 1
            event = encoded.event
            assert not isinstance(event, codec.BlobPurged)  # of the store's own stream
            position = self._record(session_id, seq, encoded, at, new.actor)
            line.add(seq, event)
            project.project(execute, project.Placed(position, session_id, seq, at.wall_s, event))
            if isinstance(event, ConsentGranted):
                self._consent(session_id, seq, event.consent)
            elif isinstance(event, EntityCreated):
                self.put_entity(event.entity)
        if new.phase:
            line.phase = new.phase
        line.waiting_for = new.waiting_for
        if new.events:
            self._memory.lines[session_id] = line
            if new.expected_seq == 0 or line.columns() != before:
                self._lines[session_id] = line
        for piece in new.output:
            self.put_output(piece)
        if new.wake:
            execute(sql.PUT_WAKE, (session_id, new.wake))
        return seq

    def purge_session(self, session_id: str, at: Instant, actor: str, reason: str) -> int:
        """Remove a session's long texts and its runs' outputs, and say so in the chain; returns how many.

        What was consented to stays: the ledger repeats it.
        """
        self.flush()
        execute = self.execute
        purged: list[codec.BlobPurged] = []
        stored = execute(sql.REPLAY, (session_id,)).fetchall()
        granted = {found for row in stored if row[2] == ConsentGranted.KIND for found in codec.references(row[5])}
        for sha256, size in dict.fromkeys(found for row in stored for found in codec.references(row[5])):
            kept = (sha256, size) in granted or execute(
                sql.BLOB_ELSEWHERE, (session_id, f"%{sha256.hex()}%")
            ).fetchone() is not None
            if kept or execute(sql.BLOB, (sha256,)).fetchone() is None:
                continue
            execute(sql.DROP_BLOB, (sha256,))
            purged.append(codec.BlobPurged(sha256=sha256.hex(), size_bytes=size, reason=reason))
        for run in execute(sql.RUNS_OF, (session_id, EVERYTHING)).fetchall():
            for stream in Stream:
                kept_bytes = b"".join(row[1] for row in execute(sql.CHUNKS, (run[0], stream)).fetchall())
                if kept_bytes:
                    execute(sql.DROP_OUTPUT, (run[0], stream))
                    digest = hashlib.sha256(kept_bytes).hexdigest()
                    purged.append(
                        codec.BlobPurged(
                            sha256=digest, size_bytes=len(kept_bytes), reason=reason, output=f"{run[0]}/{stream}"
                        )
                    )
        (last,) = execute(sql.LAST_SEQ, (PURGES,)).fetchone()
        for seq, record in enumerate(purged, last + 1):
            self._record(PURGES, seq, codec.encode(record), at, actor)
        if purged:
            self._project_again(session_id)
        return len(purged)

    def put_output(self, piece: OutputPiece, until: int | None = None) -> None:
        """Add a piece unless its beginning is already stored; beyond the cap only head and tail are kept.

        `until` is the raw offset after it, where a follower goes on; None: not said.
        """
        key = (piece.run_id, piece.stream)
        total, cap, next_offset, resume = self._stream(*key)
        if piece.offset < next_offset or not piece.data:
            return
        self.execute(sql.PUT_CHUNK, (*key, total, piece.data))
        total += len(piece.data)
        if total > cap:
            half = cap // 2
            self.execute(sql.DROP_CHUNKS, (*key, half, total - half))
        if until is not None:
            resume = max(resume, until)
        self._put_stream(key, total, cap, max(piece.offset + 1, resume), resume)

    def put_resume_offset(self, run_id: str, stream: Stream, offset: int) -> None:
        """Remember that raw bytes before `offset` are stored; never goes back."""
        total, cap, next_offset, resume = self._stream(run_id, stream)
        if offset > resume:
            self._put_stream((run_id, stream), total, cap, max(next_offset, offset), offset)

    def put_entity(self, entity: Entity) -> None:
        """Create or replace an entity.

        Raises:
            NameTaken: another living entity has its slug.
        """
        if not entity.gone and (other := self.execute(sql.NAMESAKE, (entity.slug, entity.id)).fetchone()) is not None:
            raise NameTaken(f"the name {entity.slug} is that of {other[0]} already")
        self.execute(sql.PUT_ENTITY, (entity.id, entity.slug, int(entity.gone), entity.mode, codec.dump(entity)))

    def put_facts(self, facts: Sequence[Fact]) -> None:
        """Append facts that come from no session."""
        for fact in facts:
            project.put_fact(self.execute, fact, "")

    def take_lease(self, session_id: str, owner: str, now_s: float, ttl_s: float) -> Lease | None:
        """Take or re-take, with the next epoch; None while another owner's lease lasts."""
        found = self.execute(sql.LEASE, (session_id,)).fetchone()
        holder, epoch, until_s = found or ("", 0, 0.0)
        if holder and holder != owner and until_s > now_s:
            return None
        return self._put_lease(session_id, owner, epoch + 1, now_s + ttl_s)

    def renew_lease(self, lease: Lease, now_s: float, ttl_s: float) -> Lease | None:
        """Prolong; None when somebody took it since."""
        found = self.execute(sql.LEASE, (lease.session_id,)).fetchone()
        if found is None or (found[0], found[1]) != (lease.owner, lease.epoch):
            return None
        return self._put_lease(lease.session_id, lease.owner, lease.epoch, now_s + ttl_s)

    def drop_lease(self, lease: Lease) -> None:
        """Give it back; the row stays, so that the epoch goes on rising."""
        found = self.execute(sql.LEASE, (lease.session_id,)).fetchone()
        if found is not None and (found[0], found[1]) == (lease.owner, lease.epoch):
            self._put_lease(lease.session_id, "", lease.epoch, 0.0)

    # ---- parts ------------------------------------------------------------------------------------------------------

    def _line(self, session_id: str, now_s: float) -> project.Line:
        line = self._memory.lines.get(session_id)
        if line is None:
            found = self.execute(sql.SESSION, (session_id,)).fetchone()
            line = project.Line.new(now_s) if found is None else project.Line(*found)
        return line

    def _fence(self, session_id: str, epoch: int) -> None:
        current = self._memory.epochs.get(session_id)
        if current is None:
            found = self.execute(sql.LEASE, (session_id,)).fetchone()
            if found is not None:
                current = self._memory.epochs[session_id] = found[1]
        if current != epoch:
            now = "none" if current is None else current
            raise Fenced(f"session {session_id} has lease epoch {now}, not {epoch}: another worker took it over")

    def _check(self, guard: Guard) -> None:
        target = self.execute(sql.TARGET, (guard.target_id,)).fetchone()
        if target is None or target != (0, guard.mode):
            now = "gone" if target is None or target[0] else target[1]
            raise TargetChanged(f"target {guard.target_id} is {now} now, not {guard.mode}: decide again")
        for other in guard.also:
            self._check(other)
        if guard.exclusive and (busy := self.execute(sql.BUSY, (guard.target_id,)).fetchone()) is not None:
            raise TargetBusy(f"run {busy[0]} still changes target {guard.target_id}: wait for its outcome")

    def _record(self, session_id: str, seq: int, encoded: codec.Encoded, at: Instant, actor: str) -> int:
        position, prev = self._memory.head or self.execute(sql.HEAD).fetchone() or (0, GENESIS)
        position += 1
        chained = (position, session_id, seq, encoded.kind, encoded.version, float(at.wall_s), float(at.boot_s),
                   at.boot_id, actor)  # fmt: skip
        digest = link(prev, *chained, encoded.sha256.hex())
        for blob in encoded.blobs:
            self.execute(sql.PUT_BLOB, blob)
        self._events.append((*chained, encoded.sha256, prev, digest, encoded.body))
        self._memory.head = (position, digest)
        return position

    def _project_again(self, session_id: str) -> None:
        """Make the read models of a session anew: they may quote a text that is gone."""
        execute = self.execute

        def blob(sha256: bytes) -> bytes | None:
            found = execute(sql.BLOB, (sha256,)).fetchone()
            return None if found is None else bytes(found[0])

        line = self._line(session_id, 0.0)
        phase, line.title = line.phase, ""
        for statement in (sql.DROP_RUNS, sql.DROP_FACTS, sql.DROP_APPROVALS):
            execute(statement, (session_id,))
        for position, seq, kind, version, wall_s, body in execute(sql.REPLAY, (session_id,)).fetchall():
            event = codec.decode(kind, version, body, blob)
            assert not isinstance(event, codec.BlobPurged)  # of the store's own stream
            placed = project.Placed(position, session_id, seq, wall_s, event)
            line.add(seq, event)
            project.project(execute, placed)
        line.phase = phase
        self._lines[session_id] = line

    def _consent(self, session_id: str, seq: int, consent: Consent) -> None:
        position, prev = self.execute(sql.CONSENT_HEAD).fetchone() or (0, GENESIS)
        chained = (position + 1, consent.id, session_id, seq, codec.dump(consent))
        self.execute(sql.PUT_CONSENT, (*chained, prev, link(prev, *chained)))

    def _stream(self, run_id: str, stream: Stream) -> tuple[int, int, int, int]:
        found: tuple[int, int, int, int] | None = self.execute(sql.OUTPUT_STREAM, (run_id, stream)).fetchone()
        if found is not None:
            return found
        capped = self.execute(sql.RUN_CAP, (run_id,)).fetchone()
        return 0, OUTPUT_CAP_BYTES if capped is None else capped[0], 0, 0

    def _put_stream(self, key: tuple[str, Stream], total: int, cap: int, next_offset: int, resume: int) -> None:
        self.execute(sql.PUT_OUTPUT_STREAM, (*key, total, cap, next_offset, resume))

    def _put_lease(self, session_id: str, owner: str, epoch: int, until_s: float) -> Lease:
        self.execute(sql.PUT_LEASE, (session_id, owner, epoch, until_s))
        self._memory.epochs[session_id] = epoch
        return Lease(session_id=session_id, owner=owner, epoch=epoch, until_s=until_s)
