"""A session's state, and `evolve`, which folds one event into it.

State holds counters, ids and the current plan, never transcript or output (DESIGN §1). It is what
`decide` and the gate read; everything in it can be rebuilt from the events alone.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field

from oikos.domain import events as ev
from oikos.domain.consent import Consent, Grant, Window
from oikos.domain.instant import Instant
from oikos.domain.plan import LIVE, Plan, PlanStatus, Scope, StepStatus
from oikos.domain.run import NeverStarted, RemoteState, RunOrder, RunOutcome, TimedOut, succeeded
from oikos.domain.value import dataclass, replace
from oikos.domain.verdict import Risk


class Phase(enum.StrEnum):
    """States of a session (SPEC R1.1)."""

    IDLE = "idle"
    EXECUTING = "executing"
    AWAITING = "awaiting_approval"
    WAITING = "waiting"
    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


TERMINAL = frozenset({Phase.DONE, Phase.FAILED, Phase.STOPPED})

CLOCK_SLACK_S = 2.0
"""Two processes' appends may carry times a little out of order; more than this means the clock was set back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Limits per plan (SPEC R1.4); *Raise and continue* adds the same amounts once more."""

    iterations: float = 40.0
    tokens: float = 2_000_000.0
    runs: float = 200.0
    wall_s: float = 4 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the current plan has used."""

    iterations: float = 0.0
    tokens: int = 0
    runs: int = 0
    since: Instant | None = None
    warned: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """Where a step of the current generation stands."""

    status: StepStatus
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What the rules need to know of one run of the current generation."""

    order: RunOrder
    call_id: str
    target: str
    step: int | None
    risk: Risk
    key: str
    """Target, canonical command and stdin: equal keys are the same command (SPEC R3.10)."""
    authority: str
    started_seq: int
    generation: int
    check: int | None = None
    creates: tuple[str, ...] = ()
    """Ids of the guests that it makes on its target, if it succeeds."""
    ended_seq: int | None = None
    outcome: RunOutcome | None = None
    passed: bool | None = None
    detached: bool = False

    @property
    def running(self) -> bool:
        """No outcome yet."""
        return self.outcome is None

    @property
    def goes_on(self) -> bool:
        """No outcome yet, or a time limit that did not provably kill it."""
        if isinstance(self.outcome, TimedOut):
            return self.outcome.remote is not RemoteState.KILLED
        return self.outcome is None

    @property
    def ok(self) -> bool:
        """Ended with exit code 0."""
        return self.outcome is not None and succeeded(self.outcome)

    @property
    def mutated(self) -> bool:
        """It may have changed something: above read_only and not proven never started."""
        return self.risk is not Risk.READ_ONLY and not isinstance(self.outcome, NeverStarted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A run that waits for a decision, or has one and waits for its start."""

    event: ev.RunParked
    at: Instant
    consent: Consent | None = None
    """Set once approved: it is judged again by the gate at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The tool calls of the newest model response."""

    calls: tuple[ev.ToolCall, ...] = ()
    """Not answered yet, in order."""
    broken: bool = False
    """A call parked or was refused: the rest is not run (SPEC R1.2)."""
    proposed: bool = False
    mutated: bool = False
    """It ran, or tried to run, something that is not read-only."""
    ran_reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything that `decide` and the gate may look at."""

    session_id: str = ""
    seq: int = 0
    newest: Instant | None = None
    """Time of the newest event: a wall clock behind it closes all windows (DESIGN §6.5)."""
    phase: Phase = Phase.IDLE
    mode: str = "ask"
    lab: bool = False
    goal: str = ""
    generation: int = 0
    """The last generation number that was given out."""
    plan: Plan | None = None
    """Of the newest generation, whatever its status; None after a reopen."""
    status: PlanStatus = PlanStatus.CLOSED
    digest: str = ""
    proposed_at: Instant | None = None
    ticked: frozenset[int] = frozenset()
    items: tuple[int, ...] = ()
    """Destructive items the consent covers."""
    counted_plans: int = 0
    """Generations that were accepted or approved (SPEC R2.10)."""
    steps: Mapping[int, StepState] = field(default_factory=dict)
    next_step: int = 1
    window: Window | None = None
    consents: Mapping[str, Consent] = field(default_factory=dict)
    runs: Mapping[str, RunState] = field(default_factory=dict)
    parked: Parked | None = None
    batch: Batch = Batch()
    operator_since_plan: bool = False
    hold_proposals: bool = False
    """Rejected: no proposal until the operator writes (SPEC R1.11)."""
    declined: frozenset[str] = frozenset()
    cited: frozenset[str] = frozenset()
    """Runs of this generation that a write-back cited."""
    question: ev.QuestionAsked | None = None
    waiting: ev.WaitBegun | None = None
    blocked: ev.SessionBlocked | None = None
    turn: bool = False
    turn_acted: bool = False
    """A plan was proposed or a run started in this turn (SPEC R1.3)."""
    nudged: bool = False
    repeats: tuple[str, int] = ("", 0)
    repeat_nudged: bool = False
    usage: Usage = Usage()
    raises: int = 0
    model_failures: int = 0
    """Turns in a row that the provider ended by failing."""
    decided: str = ""
    """The last decision in words, for 409 answers: `plan 2 was approved by anna`."""
    outcome: str = ""
    summary: str = ""

    @property
    def live_plan(self) -> Plan | None:
        """The plan that is proposed, accepted or approved."""
        return self.plan if self.status in LIVE else None

    @property
    def awaiting_plan(self) -> bool:
        """A plan waits for a person's decision."""
        return self.plan is not None and self.status is PlanStatus.PROPOSED

    @property
    def awaiting_run(self) -> bool:
        """A run waits for a person's decision."""
        return self.parked is not None and self.parked.consent is None

    @property
    def halted(self) -> bool:
        """A halt word stopped everything until Resume (SPEC R1.8)."""
        return self.blocked is not None and self.blocked.on == "halted"

    def clock_set_back(self, now: Instant) -> bool:
        """Whether the wall clock is behind the newest event, which closes all windows (DESIGN §6.5).

        On the same boot a little disorder between processes is no proof, and the boot clock bounds it.
        """
        if self.newest is None:
            return False
        slack_s = CLOCK_SLACK_S if now.boot_id and now.boot_id == self.newest.boot_id else 0.0
        return now.wall_s < self.newest.wall_s - slack_s

    @property
    def running(self) -> tuple[RunState, ...]:
        """Runs without an outcome, of any generation."""
        return tuple([run for run in self.runs.values() if run.outcome is None])

    @property
    def due(self) -> bool:
        """Whether the agent loop should take the session up."""
        return self.phase is Phase.EXECUTING

    @property
    def waits_for(self) -> str:
        """What the operator is asked, in words; empty when nothing is."""
        if self.awaiting_run and self.parked is not None:
            return f"run {self.parked.event.order.run_id[:8]} on {self.parked.event.target}: {self.parked.event.why}"
        if self.awaiting_plan and self.plan is not None:
            return f"plan {self.plan.generation}: {self.plan.goal}"
        if self.question is not None:
            return f"question: {self.question.text}"
        return self.blocked.reason if self.blocked is not None else ""


def run_key(target_id: str, canonical: str, stdin: str | None) -> str:
    """What makes two runs the same command (SPEC R3.10)."""
    return f"{target_id}\0{canonical}\0{'' if stdin is None else stdin}"


def evolve(state: State, record: ev.Recorded) -> State:
    """The state after one more event."""
    before = state.window
    state = _apply(state, record.event, record.seq, record.at)
    opened = state.window is not None and (before is None or before.consent_id != state.window.consent_id)
    # A window opened now is measured from now: what an earlier, wrong clock said does not count against it.
    newest = record.at if opened else _later(state.newest, record.at)
    return replace(state, session_id=record.session_id, seq=record.seq, newest=newest)


def fold(records: Iterable[ev.Recorded], state: State | None = None) -> State:
    """The state after all of them."""
    current = state if state is not None else State()
    for record in records:
        current = evolve(current, record)
    return current


def _later(newest: Instant | None, at: Instant) -> Instant:
    return at if newest is None or at.wall_s >= newest.wall_s else newest


def _apply(state: State, event: ev.Event, seq: int, at: Instant) -> State:
    match event:
        case ev.SessionOpened():
            return replace(state, mode=event.mode, lab=event.lab)
        case ev.OperatorSaid():
            return _operator_said(state, event)
        case ev.SessionReopened():
            return replace(
                state, phase=Phase.EXECUTING, goal="", outcome="", summary="", plan=None, status=PlanStatus.CLOSED,
                steps={}, window=None, parked=None, question=None, waiting=None, blocked=None, declined=frozenset(),
                cited=frozenset(), hold_proposals=False, usage=Usage(), raises=0, batch=_rest(state.batch),
                nudged=False, repeats=("", 0), repeat_nudged=False, runs=_still_running(state),
            )  # fmt: skip
        case ev.TurnStarted():
            state = replace(state, turn=True, turn_acted=False, nudged=False, repeats=("", 0), repeat_nudged=False)
            if state.blocked is not None and state.blocked.on == "model":  # the provider is asked again
                return replace(state, blocked=None, phase=Phase.EXECUTING)
            return state
        case ev.TurnEnded():
            return _turn_ended(state)
        case ev.AssistantSaid():
            return _assistant_said(state, event)
        case ev.ToolAnswered():
            return _tool_answered(state, event)
        case ev.GoalSet():
            return replace(state, goal=event.goal)
        case ev.PlanProposed():
            return _plan_proposed(state, event, at)
        case ev.PlanAccepted():
            return replace(
                state, status=PlanStatus.ACCEPTED, counted_plans=state.counted_plans + 1, phase=Phase.EXECUTING
            )
        case ev.ConsentGranted():
            return _consent_granted(state, event.consent)
        case ev.ItemTicked():
            return replace(
                state,
                ticked=state.ticked | {event.item},
                decided=f"{f'item {event.item}' if event.item else 'the snapshot'} was ticked by {event.by}",
            )
        case ev.PlanApproved():
            return _plan_approved(state, event)
        case ev.PlanRejected():
            decided = f"plan {event.generation} was rejected by {event.by}"
            rejected = replace(state, status=PlanStatus.REJECTED, steps=_replaced(state), window=None, decided=decided)
            if event.changes_asked:
                return replace(rejected, phase=Phase.EXECUTING)
            return replace(rejected, phase=Phase.IDLE, hold_proposals=True)
        case ev.PlanClosed():
            status = PlanStatus(event.status)
            closed = replace(state, status=status, steps=_replaced(state), ticked=frozenset(), items=())
            parks = status is PlanStatus.EXPIRED and state.phase is Phase.AWAITING
            return replace(closed, phase=Phase.IDLE) if parks else closed
        case ev.ApprovalUnanswered():
            return replace(state, decided="nobody answered in time")
        case ev.StepMarked():
            return replace(state, steps={**state.steps, event.seq: StepState(status=event.status, note=event.note)})
        case ev.RunParked():
            batch = replace(state.batch, broken=True, mutated=True)
            return replace(state, parked=Parked(event=event, at=at), phase=Phase.AWAITING, batch=batch)
        case ev.RunDecided():
            return _run_decided(state, event)
        case ev.RunStarted():
            return _run_started(state, event, seq)
        case ev.RunDetached():
            run = state.runs[event.run_id]
            return replace(state, runs={**state.runs, event.run_id: replace(run, detached=True)})
        case ev.RunFinished():
            return _run_finished(state, event, seq)
        case ev.EntityCreated():
            return _entity_created(state, event)
        case ev.FactsWritten():
            return replace(state, cited=state.cited | {event.run_id}) if event.run_id else state
        case ev.QuestionAsked():
            return replace(state, question=event, phase=Phase.BLOCKED)
        case ev.QuestionAnswered():
            return replace(
                state,
                question=None,
                blocked=None,
                phase=Phase.EXECUTING,
                operator_since_plan=True,
                hold_proposals=False,
            )
        case ev.WaitBegun():
            return replace(state, waiting=event, phase=Phase.WAITING)
        case ev.WaitEnded():
            return replace(state, waiting=None, phase=Phase.EXECUTING if state.phase is Phase.WAITING else state.phase)
        case ev.Nudged():
            if event.about == "repetition":
                return replace(state, repeat_nudged=True)
            return replace(state, nudged=True)
        case ev.LimitWarned():
            return replace(state, usage=replace(state.usage, warned=state.usage.warned | {event.limit}))
        case ev.SessionBlocked():
            failures = state.model_failures + (event.on == "model")
            return replace(state, blocked=event, phase=Phase.BLOCKED, model_failures=failures)
        case ev.LimitRaised():
            phase = Phase.EXECUTING if state.phase is Phase.BLOCKED else state.phase
            usage = replace(state.usage, warned=frozenset())
            return replace(state, raises=state.raises + 1, blocked=None, phase=phase, usage=usage)
        case ev.ModelRetried():
            return state
        case ev.WindowRenewed():
            return _window_renewed(state, event)
        case ev.WindowSuspended():
            return replace(state, window=replace(state.window, suspended=True)) if state.window else state
        case ev.WindowClosed():
            return replace(state, window=_without(state.window, event.target_id))
        case ev.RuleTaught() | ev.RuleRemoved():
            return state
        case ev.SessionCompleted():
            phase = Phase.FAILED if event.outcome == "failed" else Phase.DONE
            return replace(
                state, phase=phase, outcome=event.outcome, summary=event.summary, window=None, parked=None,
                question=None, waiting=None, blocked=None,
            )  # fmt: skip
        case ev.SessionStopped():  # pragma: no branch: the union is closed, mypy proves it
            return replace(
                state, phase=Phase.STOPPED, outcome="stopped", window=None, parked=None, question=None, waiting=None,
                blocked=None, decided=f"stopped by {event.by}",
            )  # fmt: skip


def _rest(batch: Batch) -> Batch:
    """Calls that an end cut off: none of them is carried out any more, all are still answered (SPEC R1.2, R1.12)."""
    return Batch(calls=batch.calls, broken=bool(batch.calls))


def _operator_said(state: State, event: ev.OperatorSaid) -> State:
    state = replace(state, operator_since_plan=True, hold_proposals=False)
    if not event.wakes or state.awaiting_run or state.question is not None:
        return state
    return replace(state, phase=Phase.EXECUTING, blocked=None)


def _turn_ended(state: State) -> State:
    state = replace(state, turn=False)
    if state.phase is not Phase.EXECUTING:
        return state
    return replace(state, phase=Phase.AWAITING if state.awaiting_plan else Phase.IDLE)


def _assistant_said(state: State, event: ev.AssistantSaid) -> State:
    usage = state.usage
    used = usage.tokens + event.tokens_in + event.tokens_out
    return replace(state, batch=Batch(calls=event.calls), usage=replace(usage, tokens=used), model_failures=0)


def _tool_answered(state: State, event: ev.ToolAnswered) -> State:
    batch = state.batch
    left = tuple(call for call in batch.calls if call.id != event.call_id)
    ended = bool(batch.calls) and not left
    batch = replace(batch, calls=left, broken=batch.broken or bool(event.refusal))
    usage = state.usage
    if ended:  # an iteration is over: one of reads only counts a quarter (SPEC R1.4)
        weight = 0.25 if batch.ran_reads and not batch.mutated else 1.0
        usage = replace(usage, iterations=usage.iterations + weight)
    last, count = state.repeats
    repeats = state.repeats
    if event.seen:
        repeats = (event.seen, count + 1 if event.seen == last else 1)
    elif event.name == "wait":
        repeats = ("", 0)
    parked = state.parked
    if parked is not None and parked.event.call_id == event.call_id:
        parked = None  # answered: nothing waits for a decision or a start any more
    return replace(state, batch=batch, usage=usage, repeats=repeats, parked=parked)


def _plan_proposed(state: State, event: ev.PlanProposed, at: Instant) -> State:
    plan = event.plan
    steps = {step.seq: StepState(status=StepStatus.PENDING) for step in plan.steps}
    return replace(
        state, generation=plan.generation, plan=plan, status=PlanStatus.PROPOSED, digest=event.digest, proposed_at=at,
        ticked=frozenset(), items=(), steps=steps, next_step=max((step.seq for step in plan.steps), default=0) + 1,
        window=None, runs=_still_running(state), declined=frozenset(), cited=frozenset(), operator_since_plan=False,
        phase=Phase.AWAITING if plan.needs_approval else Phase.EXECUTING, turn_acted=True, nudged=False,
        batch=replace(state.batch, proposed=True, broken=state.batch.broken or plan.needs_approval),
        usage=Usage(since=at), raises=0,
    )  # fmt: skip


def _consent_granted(state: State, consent: Consent) -> State:
    consents = {**state.consents, consent.id: consent}
    state = replace(state, consents=consents)
    if consent.grant is Grant.REOPEN:
        return replace(state, window=_window(consent))
    return state


def _plan_approved(state: State, event: ev.PlanApproved) -> State:
    consent = state.consents[event.consent_id]
    phase = state.phase if state.question is not None else Phase.EXECUTING
    return replace(
        state, status=PlanStatus.APPROVED, items=event.items, window=_window(consent), phase=phase, blocked=None,
        counted_plans=state.counted_plans + 1, operator_since_plan=False,
        decided=f"plan {event.generation} was approved by {consent.by}",
    )  # fmt: skip


def _window(consent: Consent) -> Window:
    return Window(
        consent_id=consent.id, generation=consent.generation, machines=consent.machines, opened=consent.at,
        duration_s=consent.duration_s, by=consent.by,
    )  # fmt: skip


def _window_renewed(state: State, event: ev.WindowRenewed) -> State:
    consent = state.consents[event.consent_id]
    return replace(state, window=_window(consent))


def _without(window: Window | None, target_id: str) -> Window | None:
    """The window without one machine, or no window at all."""
    if window is None or not target_id:
        return None
    left = tuple(machine for machine in window.machines if machine != target_id)
    return replace(window, machines=left) if left else None


def _run_decided(state: State, event: ev.RunDecided) -> State:
    parked = state.parked
    if parked is None:
        return state
    words = f"run {event.run_id[:8]} was {event.decision}" + (f" by {event.by}" if event.by else "")
    if event.decision == "approved":
        consent = state.consents[event.consent_id]
        return replace(state, parked=replace(parked, consent=consent), phase=Phase.EXECUTING, decided=words)
    declined = state.declined
    if event.decision in ("declined", "unanswered"):  # void, judged again at its start, is no refusal
        order = parked.event.order
        declined |= {run_key(order.target_id, parked.event.canonical or order.command, order.stdin)}
    return replace(state, parked=None, declined=declined, phase=Phase.EXECUTING, decided=words)


def _run_started(state: State, event: ev.RunStarted, seq: int) -> State:
    order = event.order
    run = RunState(
        order=order, call_id=event.call_id, target=event.target, step=event.step, risk=event.risk,
        key=run_key(order.target_id, event.canonical or order.command, order.stdin), authority=event.authority,
        started_seq=seq, generation=order.generation, check=event.check, creates=event.creates,
    )  # fmt: skip
    steps = state.steps
    if event.step is not None and event.step in steps and steps[event.step].status is not StepStatus.RUNNING:
        steps = {**steps, event.step: StepState(status=StepStatus.RUNNING)}
    parked = state.parked
    if parked is not None and parked.event.order.run_id == order.run_id:
        parked = None
    reads = event.risk is Risk.READ_ONLY
    batch = state.batch
    if event.authority != "probe":
        batch = replace(batch, ran_reads=batch.ran_reads or reads, mutated=batch.mutated or not reads)
    usage = replace(state.usage, runs=state.usage.runs + 1)
    return replace(
        state,
        runs={**state.runs, order.run_id: run},
        steps=steps,
        parked=parked,
        turn_acted=True,
        batch=batch,
        usage=usage,
    )


def _run_finished(state: State, event: ev.RunFinished, seq: int) -> State:
    run = state.runs.get(event.run_id)
    if run is None:
        return state
    ended = replace(run, outcome=event.report.outcome, ended_seq=seq, passed=event.passed)
    return replace(state, runs={**state.runs, event.run_id: ended})


def _entity_created(state: State, event: ev.EntityCreated) -> State:
    """The name stands for the entity, in the plan and in the window that was opened for the plan."""
    if state.plan is None or event.generation != state.plan.generation:
        return state
    made = Scope(target_id=event.entity.id, slug=event.entity.slug)
    window = state.window
    if window is not None:
        window = replace(window, machines=(*window.machines, made.target_id))
    return replace(state, plan=state.plan.bound(made), window=window)


def _still_running(state: State) -> Mapping[str, RunState]:
    return {run_id: run for run_id, run in state.runs.items() if run.running}


def _replaced(state: State) -> Mapping[int, StepState]:
    unfinished = (StepStatus.PENDING, StepStatus.RUNNING)
    return {
        seq: StepState(status=StepStatus.REPLACED, note=step.note) if step.status in unfinished else step
        for seq, step in state.steps.items()
    }
