"""The Store port on SQL: which thread does what, and rows as the domain's values.

    store = await SqlStore.open(Path("…/oikos.db"), clock=clock)
    pending = store.append(session_id, 4, [started], at=clock.now(), actor="nomos")   # accepted now, in this order
    …
    seq = await pending                                                               # durable from here on

Writes are *accepted* when the method is called, not when it is awaited: queue order is commit order. So a caller
may call, go on with something else, and await later; it must await at last, for there the errors come out. A
cancelled caller does not cancel its write: it re-reads before it tries again (DESIGN §6.2), and sees it, for a read
sees whatever this store accepted before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Never, Self, TypeVar

from oikos.adapters.store import codec, output
from oikos.adapters.store import statements as sql
from oikos.adapters.store.sqlite import Sqlite
from oikos.adapters.store.threads import Job, Reader, Writer
from oikos.adapters.store.transaction import Appending, Transaction
from oikos.domain.consent import Consent
from oikos.domain.errors import StoreError
from oikos.domain.events import Event, Recorded
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Fact, Inventory
from oikos.domain.run import Stream
from oikos.ports import AuditReport, Clock, Guard, Lease, OutputPiece, RunRow, SessionRow

if TYPE_CHECKING:
    from oikos.adapters.store.dialect import Connection

T = TypeVar("T")
READERS = 2


class SqlStore:
    """Event streams, runs with output, facts, consents, leases and wakes in one SQL database."""

    def __init__(self, dialect: Sqlite, clock: Clock) -> None:
        self._dialect, self._clock = dialect, clock
        self._writes: SimpleQueue[Job | None] = SimpleQueue()
        self._reads: SimpleQueue[Job | None] = SimpleQueue()
        self._polls: SimpleQueue[Job | None] = SimpleQueue()
        self._writer: Writer | None = None
        self._readers: list[Reader] = []
        self._poller: Reader | None = None
        self._closed = False

    @classmethod
    async def open(cls, path: Path, *, clock: Clock) -> Self:
        """The store in the SQLite file `path`, made or migrated if need be.

        Raises:
            StoreError: it cannot be used; one line with the remedy; nothing was changed.
            NewerDatabase: a newer Oikos wrote it.
        """
        store = cls(Sqlite(path), clock)
        await store.start()
        return store

    async def start(self) -> None:
        """Begin; as `open` for a store made by hand."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._writer = Writer(self._dialect, self._writes, ready)
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what is queued, let go of the database, and return when every thread has ended."""
        if not self._closed:
            self._closed = True
            self._writes.put(None)
            self._polls.put(None)
            for _ in self._readers:
                self._reads.put(None)
        for thread in (self._writer, self._poller, *self._readers):
            while thread is not None and thread.alive:  # noqa: ASYNC110 - nothing can tell of a thread's own end
                await asyncio.sleep(0.001)

    # ---- events -----------------------------------------------------------------------------------------------------

    def append(
        self,
        session_id: str,
        expected_seq: int,
        events: Sequence[Event],
        *,
        at: Instant,
        actor: str,
        epoch: int | None = None,
        wake: str = "",
        phase: str = "",
        waiting_for: str = "",
        output: Sequence[OutputPiece] = (),
        guard: Guard | None = None,
    ) -> Coroutine[Any, Any, int]:
        """Append events after `expected_seq`; awaited, it is the new last seq, durable.

        Accepted when called: see the module. `waiting_for` goes into the session's line as it is, and so does
        `phase`; without one, a coarse phase is read off the events. `output` is stored in the same transaction (one
        fsync for a run's last bytes and its outcome), `guard` is checked in it.

        Raises:
            SeqConflict: somebody appended first.
            Fenced: the lease has another epoch.
            TargetBusy: the guard's target has an unfinished mutation.
            TargetChanged: the guard's target has another mode, or is gone.
            StoreError: the database cannot take it (full, locked, damaged); nothing was written.
        """  # fmt: skip
        try:
            new = Appending(
                session_id, expected_seq, tuple([codec.encode(event) for event in events]), at, codec.clean(actor),
                epoch, wake, phase, codec.clean(waiting_for), tuple(output), guard,
            )  # fmt: skip
        except StoreError as error:
            return _refused(error)
        return self._write(lambda transaction: transaction.append(new))

    async def load(self, session_id: str, *, after: int = 0) -> Sequence[Recorded]:
        """Events of a session with seq > `after`, in order; empty for an unknown session.

        Raises:
            StoreError: one of them cannot be read; other sessions are not affected.
        """

        def read(connection: Connection) -> list[Recorded]:
            def blob(sha256: bytes) -> bytes | None:
                row = connection.execute(sql.BLOB, (sha256,)).fetchone()
                return None if row is None else bytes(row[0])

            return [_recorded(session_id, row, blob) for row in connection.execute(sql.LOAD, (session_id, after))]

        return await self._read(read)

    # ---- read models ------------------------------------------------------------------------------------------------

    async def sessions(self, *, limit: int = 100) -> Sequence[SessionRow]:
        """Newest first by activity."""
        return await self._rows(sql.SESSIONS, (limit,), _session_row)

    async def runs(
        self, *, session_id: str | None = None, run_id: str | None = None, limit: int = 100, unfinished: bool = False
    ) -> Sequence[RunRow]:
        """Runs, newest first; `unfinished` keeps only those without an outcome."""
        if run_id is not None:
            rows = await self._rows(sql.RUN, (run_id,), _run_row)
            return [
                row for row in rows
                if session_id in (None, row.session_id) and not (unfinished and row.status == "finished")
            ]  # fmt: skip
        if session_id is not None:
            return await self._rows(
                sql.RUNS_OF_UNFINISHED if unfinished else sql.RUNS_OF, (session_id, limit), _run_row
            )
        return await self._rows(sql.RUNS_UNFINISHED if unfinished else sql.RUNS, (limit,), _run_row)

    async def approvals(self) -> Sequence[Approval]:
        """What waits for a decision in any session, oldest first."""
        return await self._rows(sql.APPROVALS, (), lambda row: Approval(*row))

    async def consents(self, *, session_id: str | None = None) -> Sequence[Consent]:
        """The ledger, oldest first."""
        if session_id is None:
            return await self._rows(sql.CONSENTS, (), _consent)
        return await self._rows(sql.CONSENTS_OF, (session_id,), _consent)

    async def inventory(self) -> Inventory:
        """All entities and their current facts."""

        def read(connection: Connection) -> Inventory:
            entities = [codec.decode_as(Entity, row[0]) for row in connection.execute(sql.ENTITIES)]
            facts: dict[str, dict[str, Fact]] = {}
            for entity_id, key, value, source, observed_s, ttl_s in connection.execute(sql.FACTS):
                facts.setdefault(entity_id, {})[key] = Fact(
                    entity_id=entity_id, key=key, value=value, source=source, observed_s=observed_s, ttl_s=ttl_s
                )
            return Inventory(entities={entity.id: entity for entity in entities}, facts=facts)

        return await self._read(read)

    async def put_entity(self, entity: Entity) -> None:
        """Create or replace an entity.

        Raises:
            StoreError: another living entity has this slug.
        """
        await self._write(lambda transaction: transaction.put_entity(entity))

    async def put_facts(self, facts: Sequence[Fact]) -> None:
        """Append facts outside any session."""
        safe = [codec.decode_as(Fact, codec.dump(fact)) for fact in facts]
        await self._write(lambda transaction: transaction.put_facts(safe))

    # ---- output -----------------------------------------------------------------------------------------------------

    def put_output(
        self, run_id: str, stream: Stream, offset: int, data: bytes, *, until: int | None = None
    ) -> Coroutine[Any, Any, None]:
        """Store masked bytes that begin at raw `offset`; a repeat is ignored, beyond the cap head and tail are kept.

        `until` is the raw offset after them, which masking makes differ from `offset + len(data)`: said, the resume
        offset moves with the bytes in one transaction, and anything that begins before it later is a repeat. One call
        is one fsync: the caller coalesces. Accepted when called.
        """
        piece = OutputPiece(run_id=run_id, stream=stream, offset=offset, data=bytes(data))
        return self._write(lambda transaction: transaction.put_output(piece, until))

    async def output(self, run_id: str, stream: Stream) -> bytes:
        """What is stored of a stream: whole to the cap, else head, a marker with the exact gap, and tail."""
        return await self._read(lambda connection: output.read(connection, run_id, stream))

    async def resume_offsets(self, run_id: str) -> Mapping[Stream, int]:
        """Where a follower must go on reading, in raw bytes of the target's spool; streams without output: 0."""
        rows = await self._rows(sql.RESUME_OFFSETS, (run_id,), lambda row: (Stream(row[0]), int(row[1])))
        return {Stream.OUT: 0, Stream.ERR: 0} | dict(rows)

    def put_resume_offsets(self, run_id: str, offsets: Mapping[Stream, int]) -> Coroutine[Any, Any, None]:
        """Remember raw offsets up to which output is stored; they never go back. Accepted when called."""
        wanted = tuple(offsets.items())

        def put(transaction: Transaction) -> None:
            for stream, offset in wanted:
                transaction.put_resume_offset(run_id, stream, offset)

        return self._write(put)

    # ---- leases and wakes -------------------------------------------------------------------------------------------

    async def take_lease(self, session_id: str, owner: str, *, now_s: float, ttl_s: float) -> Lease | None:
        """Take or re-take a session; None while another owner's lease lasts. Each take raises the epoch."""
        return await self._write(lambda transaction: transaction.take_lease(session_id, owner, now_s, ttl_s))

    async def renew_lease(self, lease: Lease, *, now_s: float, ttl_s: float) -> Lease | None:
        """Prolong; None when a newer owner has it."""
        return await self._write(lambda transaction: transaction.renew_lease(lease, now_s, ttl_s))

    async def drop_lease(self, lease: Lease) -> None:
        """Give it back; no error if it is gone."""
        await self._write(lambda transaction: transaction.drop_lease(lease))

    async def free_leases(self, owner: str) -> None:
        """Give back what an owner held that is known to be dead; epochs go on rising."""
        await self._execute(sql.FREE_LEASES, (owner,))

    async def wake(self, session_id: str, reason: str) -> None:
        """Leave a wake row; one for each reason."""
        await self._execute(sql.PUT_WAKE, (session_id, reason))

    async def take_wakes(self) -> Sequence[tuple[str, str]]:
        """(session id, reason) rows that no live lease covers."""
        now_s = self._clock.now().wall_s
        return await self._rows(sql.WAKES, (now_s,), lambda row: (row[0], row[1]), poll=True)

    async def clear_wake(self, session_id: str) -> None:
        """Forget a session's wakes; call it before loading, so that a later one is not lost."""
        await self._execute(sql.DROP_WAKES, (session_id,))

    async def data_version(self) -> int:
        """Changes whenever any process committed something."""
        return await self._read(self._dialect.data_version, poll=True)

    # ---- audit ------------------------------------------------------------------------------------------------------

    async def verify(self, *, head: str = "") -> AuditReport:
        """Check chain, ledger, texts, read models and the file itself, in one snapshot.

        `head` is the `head` of an earlier report, kept elsewhere: with it, a cut-off end or a rewritten chain is
        found as well (security/THREATS T28).
        """

        from oikos.adapters.store.verify import verify  # not needed to start

        def read(connection: Connection) -> AuditReport:
            scratch = self._dialect.scratch()
            try:
                return verify(connection, scratch, lambda: self._dialect.integrity(connection), head)
            finally:
                scratch.close()

        return await self._read(read)

    async def purge(self, session_id: str, *, actor: str, reason: str) -> int:
        """Remove the long texts and outputs of a session for good, with a record each; returns how many.

        The chain stays valid, for it holds hashes of the texts. A text that another session has too stays.
        """
        at = self._clock.now()
        who, why = codec.clean(actor), codec.clean(reason)
        return await self._write(lambda transaction: transaction.purge_session(session_id, at, who, why))

    # ---- threads ----------------------------------------------------------------------------------------------------

    def _write(self, work: Callable[[Transaction], T]) -> Coroutine[Any, Any, T]:
        if self._closed or self._writer is None:
            return _refused(StoreError("the store is closed"))
        return _result(self._submit(self._writer, work))

    def _submit(self, writer: Writer, work: Callable[[Transaction], T] | None) -> asyncio.Future[T]:
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        writer.submit(Job(work, future))
        return future

    async def _execute(self, statement: str, parameters: Sequence[Any]) -> None:
        def execute(transaction: Transaction) -> None:
            transaction.execute(statement, parameters)

        await self._write(execute)

    async def _read(self, work: Callable[[Any], T], *, poll: bool = False) -> T:
        if self._closed or self._writer is None:
            raise StoreError("the store is closed")
        if self._writer.busy and not poll:
            await self._submit(self._writer, None)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if poll:
            if self._poller is None:
                self._poller = Reader(self._dialect, self._polls)
            self._polls.put(Job(work, future))
        else:
            if len(self._readers) < READERS and (not self._readers or not self._reads.empty()):
                self._readers.append(Reader(self._dialect, self._reads))
            self._reads.put(Job(work, future))
        return await future

    async def _rows(
        self, statement: str, parameters: Sequence[Any], make: Callable[[Any], T], *, poll: bool = False
    ) -> list[T]:
        return await self._read(
            lambda connection: [make(row) for row in connection.execute(statement, parameters)], poll=poll
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """Something that waits for a decision (a read model)."""

    session_id: str
    subject: str
    """`plan`, or the id of a parked run."""
    generation: int
    digest: str
    text: str
    since_s: float


async def _refused(error: StoreError) -> Never:
    raise error


async def _result(future: asyncio.Future[T]) -> T:
    return await future


def _recorded(session_id: str, row: Any, blob: Callable[[bytes], bytes | None]) -> Recorded:
    seq, kind, version, wall_s, boot_s, boot_id, body = row
    event = codec.decode(kind, version, body, blob)
    if isinstance(event, codec.BlobPurged):
        raise StoreError(f"session {session_id} has a purge record at seq {seq}: run `oikos audit verify`")
    at = Instant(wall_s=wall_s, boot_s=boot_s, boot_id=boot_id)
    return Recorded(session_id=session_id, seq=seq, at=at, event=event)


def _consent(row: Any) -> Consent:
    return codec.decode_as(Consent, row[0])


def _session_row(row: Any) -> SessionRow:
    session_id, title, phase, generation, seq, opened_s, active_s, waiting_for = row
    return SessionRow(
        session_id=session_id, title=title, phase=phase, generation=generation, seq=seq, opened_s=opened_s,
        active_s=active_s, waiting_for=waiting_for,
    )  # fmt: skip


def _run_row(row: Any) -> RunRow:
    (run_id, session_id, generation, step, target_id, target, command, risk, authority, status, outcome, started_s,
     ended_s, out_bytes, err_bytes) = row  # fmt: skip
    return RunRow(
        run_id=run_id, session_id=session_id, generation=generation, step=step, target_id=target_id, target=target,
        command=command, risk=risk, authority=authority, status=status, outcome=outcome, started_s=started_s,
        ended_s=ended_s, out_bytes=out_bytes, err_bytes=err_bytes,
    )  # fmt: skip
