"""What the application needs from the outside world, as protocols; `oikos.adapters` fulfils them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

from oikos.domain.admission import Admission
from oikos.domain.consent import Consent
from oikos.domain.events import Event, Recorded, ToolCall
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Fact, Inventory, Route, Support
from oikos.domain.run import Identity, RemoteState, RunOrder, RunReport, Stream
from oikos.domain.value import dataclass
from oikos.domain.verdict import Verdict

# ---- time -----------------------------------------------------------------------------------------------------------


class Clock(Protocol):
    """The only source of time; tests pass a virtual one."""

    def now(self) -> Instant:
        """This moment."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


# ---- store ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One line of the sessions list (a read model)."""

    session_id: str
    title: str
    """The first words of the first message."""
    phase: str
    generation: int
    seq: int
    opened_s: float
    active_s: float
    waiting_for: str = ""
    """What the operator is asked, if anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run for people (a read model); output is read by `Store.output`."""

    run_id: str
    session_id: str
    generation: int
    step: int | None
    target_id: str
    target: str
    command: str
    risk: str
    authority: str
    status: str
    """running or finished."""
    outcome: str
    """Human text of the outcome; empty while running."""
    started_s: float
    ended_s: float | None
    out_bytes: int
    err_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to append executor events to one session; `epoch` fences older owners (invariant I7)."""

    session_id: str
    owner: str
    epoch: int
    until_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPiece:
    """Masked output bytes that begin at raw offset `offset` of a stream."""

    run_id: str
    stream: Stream
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What must still be true of a target in the transaction that journals a start (DESIGN §1)."""

    target_id: str
    mode: str
    """The target's mode that the gate saw."""
    exclusive: bool
    """No other run above read_only may be unfinished on the target, in any session (SPEC R5.7)."""
    also: tuple[Guard, ...] = ()
    """Other machines and things that the command reaches, as the gate saw them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What `oikos audit verify` found."""

    events: int
    consents: int
    head: str
    """Hash of the newest row."""
    problems: tuple[str, ...] = ()
    """One line each; empty: the chain is whole."""


class Store(Protocol):
    """Event streams, runs with output, facts, consents, leases and wakes. Every call is one whole transaction."""

    async def append(
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
    ) -> int:
        """Append events after `expected_seq`; returns the new last seq once it is durable.

        The order of commits is the order of calls: the place in the writer's queue is taken when the coroutine
        first runs. `phase` and `waiting_for` go to the sessions list; `output` is stored as by `put_output`, in the
        same transaction; `guard` is checked in it.

        Read models (sessions, runs, facts, consents, pending approvals) are written in the same transaction.
        `epoch` fences executor events by the lease; operator intents pass None. `wake` also leaves a wake row.

        Raises:
            SeqConflict: somebody appended first.
            Fenced: the lease has a newer epoch.
            TargetBusy: the guard's target has an unfinished mutation of another run.
            TargetChanged: the guard's target has another mode by now, or is gone.
            StoreError: the database cannot take it (full, locked, damaged); nothing was written.
        """
        ...  # fmt: skip

    async def load(self, session_id: str, *, after: int = 0) -> Sequence[Recorded]:
        """Events of a session with seq > `after`, in order; empty for an unknown session."""
        ...

    async def sessions(self, *, limit: int = 100) -> Sequence[SessionRow]:
        """Newest first by activity."""
        ...

    async def runs(
        self, *, session_id: str | None = None, run_id: str | None = None, limit: int = 100, unfinished: bool = False
    ) -> Sequence[RunRow]:
        """Runs, newest first; `unfinished` keeps only those without an outcome."""
        ...  # fmt: skip

    async def put_output(
        self, run_id: str, stream: Stream, offset: int, data: bytes, *, until: int | None = None
    ) -> None:
        """Store masked output bytes that begin at raw offset `offset`; `until` moves the resume offset with them.

        A repeat of an offset that is already stored is ignored, so that two followers cannot double bytes
        (durable/NOTES bug 1). Beyond the run's cap only the tail is kept.
        """
        ...

    async def output(self, run_id: str, stream: Stream) -> bytes:
        """What is stored of a stream: whole to the cap, else head, a marker with the exact gap, and tail."""
        ...

    async def resume_offsets(self, run_id: str) -> Mapping[Stream, int]:
        """Where a follower must go on reading, in raw bytes of the target's spool."""
        ...

    async def put_resume_offsets(self, run_id: str, offsets: Mapping[Stream, int]) -> None:
        """Remember raw offsets up to which output is safely masked and stored (SPEC R5.10)."""
        ...

    async def consents(self, *, session_id: str | None = None) -> Sequence[Consent]:
        """The ledger, oldest first."""
        ...

    async def inventory(self) -> Inventory:
        """All entities and their current facts."""
        ...

    async def put_entity(self, entity: Entity) -> None:
        """Create or replace an entity (operator action)."""
        ...

    async def put_facts(self, facts: Sequence[Fact]) -> None:
        """Append facts outside any session (importers, enrolment)."""
        ...

    async def take_lease(self, session_id: str, owner: str, *, now_s: float, ttl_s: float) -> Lease | None:
        """Take or re-take a session; None while another owner's lease lasts. Each take raises the epoch."""
        ...

    async def renew_lease(self, lease: Lease, *, now_s: float, ttl_s: float) -> Lease | None:
        """Prolong; None when a newer owner has it."""
        ...

    async def drop_lease(self, lease: Lease) -> None:
        """Give it back; no error if it is gone."""
        ...

    async def free_leases(self, owner: str) -> None:
        """Give back the leases of an owner that is proven dead; epochs go on rising."""
        ...

    async def wake(self, session_id: str, reason: str) -> None:
        """Leave a wake row."""
        ...

    async def take_wakes(self) -> Sequence[tuple[str, str]]:
        """(session id, reason) rows that no live lease covers; `clear_wake` removes them as a turn begins."""
        ...

    async def clear_wake(self, session_id: str) -> None:
        """Forget a session's wakes: its turn has seen them."""
        ...

    async def data_version(self) -> int:
        """Changes whenever any process committed something: the feed's cheap poll."""
        ...

    async def verify(self) -> AuditReport:
        """Check the hash chain, the ledger and the blobs offline."""
        ...

    async def close(self) -> None:
        """Finish what is queued and let go of the database."""
        ...


# ---- runner ---------------------------------------------------------------------------------------------------------


class Sink(Protocol):
    """Where a Runner delivers output; awaiting it is the back-pressure."""

    async def output(self, stream: Stream, offset: int, data: bytes) -> None:
        """Raw bytes of a stream that begin at `offset`."""
        ...

    async def started(self, detail: str) -> None:
        """The target has claimed the run (`new`) or had claimed it before (`exists`)."""
        ...


class Runner(Protocol):
    """Executes orders on targets. Only `start` can begin anything, and only with an Admission."""

    async def start(self, admission: Admission, order: RunOrder, route: Route, sink: Sink) -> RunReport:
        """Run a journalled order to its end.

        The Admission is spent here: its digest must equal the order's.

        Raises:
            SealError: the Admission is forged, altered, spent, or not for this order.
            (everything else that can go wrong is an outcome in the report, never an exception)
        """
        ...

    async def attach(self, order: RunOrder, route: Route, sink: Sink, offsets: Mapping[Stream, int]) -> RunReport:
        """Follow a supervised run that was started before, from raw offsets; never starts anything.

        When the target proves that it never claimed the run, the run is voided there and the outcome is
        NeverStarted; what cannot be known is Unknown (DESIGN §3).
        """
        ...

    async def kill(self, order: RunOrder, route: Route) -> RemoteState:
        """End a run's process group on the target and say what is known of it."""
        ...

    async def acknowledge(self, order: RunOrder, route: Route) -> None:
        """The outcome is durable: the target may forget the spool. Best effort, never raises."""
        ...

    async def probe(self, admission: Admission, route: Route) -> Identity:
        """Ask a machine who it is, with constant bytes (SPEC §3).

        Raises:
            TargetError: unreachable, host key unknown or changed; one line with the remedy.
            SealError: not a probe admission.
        """
        ...

    def connection(self, route: Route) -> str:
        """Names the connection that the next command to this machine goes over; empty when none is open.

        A name is never used again: another one means a new connection, and perhaps another machine (SPEC R5.8).
        """
        ...

    async def close(self) -> None:
        """Close all connections; running supervised commands go on."""
        ...


class OfferedKey(Protocol):
    """A public host key that a machine shows."""

    @property
    def public(self) -> str:
        """OpenSSH form `TYPE BASE64`."""
        ...

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as ssh-keygen prints it."""
        ...

    @property
    def enrolled(self) -> bool:
        """Whether this very key is trusted already."""
        ...


class Checkup(Protocol):
    """What a trusted machine can do (SPEC R5.11)."""

    @property
    def support(self) -> Support:
        """full, attended or none."""
        ...

    @property
    def reason(self) -> str:
        """Why it is not full; empty when it is."""
        ...

    @property
    def identity(self) -> Identity | None:
        """Who it says it is."""
        ...


class Enroller(Protocol):
    """First contact with a machine, at an operator's word."""

    async def offered_keys(self, route: Route) -> Sequence[OfferedKey]:
        """The host keys it shows now; trusts none.

        Raises:
            TargetError: it cannot be reached; one line with the remedy.
        """
        ...

    async def check(self, route: Route) -> Checkup:
        """Connect with the enrolled keys, ask who it is, and try what durable runs need.

        Raises:
            TargetError: it cannot be reached or trusted; one line with the remedy.
        """
        ...


# ---- model ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class Message:
    """One message as the model sees it; compared and cached by identity, so each is encoded once."""

    role: str
    """system, user, assistant or tool."""
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    """Of the tool that is answered."""
    reasoning: str = ""
    opaque: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToolSpec:
    """A tool as it is offered to the model."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON Schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """A piece of the answer, for the feed only."""

    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """The adapter tries again after a failure (SPEC R8.1)."""

    attempt: int
    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole model response; always the last thing a stream yields."""

    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


class Model(Protocol):
    """Whatever answers prompts."""

    @property
    def name(self) -> str:
        """For people and the log, such as `runbook` or `gpt-local`."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncIterator[TextDelta | Retrying | Reply]:
        """Ask; yields deltas and at last exactly one Reply.

        Raises:
            ModelError: the provider failed after its retries; nothing of a broken answer is used.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


# ---- the rest -------------------------------------------------------------------------------------------------------


class Classify(Protocol):
    """Parse in a bounded thread pool and classify; never raises (a crash is a destructive verdict)."""

    async def __call__(self, text: str, target_id: str = "", stdin: str | None = None) -> Verdict:
        """The verdict on a command that is given `stdin`, with what was taught for the target."""
        ...


Ids = Callable[[], str]
"""Makes a new 128-bit random id in hex."""


class Wake(Protocol):
    """Tells workers, in this process and others, that a session wants attention."""

    def notify(self, session_id: str) -> None:
        """A wake row was committed; call after the commit."""
        ...

    async def wait(self, timeout_s: float) -> None:
        """Return when something was notified here, or after `timeout_s` (rows of other processes are polled)."""
        ...


class Notifier(Protocol):
    """Tells people."""

    async def notify(self, kind: str, session_id: str, text: str) -> None:
        """Best effort; never raises."""
        ...
