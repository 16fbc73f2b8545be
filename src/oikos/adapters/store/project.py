"""The read models: what each event changes in the tables that lists and searches read.

Called in the transaction that appends the events, and again by `verify` on a scratch database, so that a read
model that was edited by hand differs from what its events say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Self

from oikos.adapters.store import statements as sql
from oikos.domain import events as ev
from oikos.domain.inventory import Fact
from oikos.domain.run import describe

Execute = Callable[[str, Sequence[Any]], object]

TITLE_CHARS = 80
PLAN = "plan"
"""The subject of a plan's pending approval."""

_PHASES: Final[dict[type, str]] = {
    ev.SessionOpened: "idle",
    ev.SessionReopened: "executing",
    ev.TurnStarted: "executing",
    ev.PlanProposed: "awaiting_approval",
    ev.PlanAccepted: "executing",
    ev.PlanApproved: "executing",
    ev.RunParked: "awaiting_approval",
    ev.RunDecided: "executing",
    ev.QuestionAsked: "blocked",
    ev.QuestionAnswered: "executing",
    ev.WaitBegun: "waiting",
    ev.WaitEnded: "executing",
    ev.SessionBlocked: "blocked",
    ev.LimitRaised: "executing",
    ev.SessionStopped: "stopped",
}
_PROJECTED: Final = frozenset(
    {
        ev.RunStarted, ev.RunFinished, ev.FactsWritten, ev.PlanProposed, ev.RunParked, ev.PlanAccepted, ev.PlanApproved,
        ev.PlanRejected, ev.PlanClosed, ev.ApprovalUnanswered, ev.RunDecided, ev.SessionReopened, ev.SessionStopped,
        ev.SessionCompleted,
    }
)  # fmt: skip
"""What `project` has a case for."""
_AFTER_TURN: Final = {
    "question": "blocked",
    "waiting": "waiting",
    "approval": "awaiting_approval",
    "stopped": "stopped",
    "limit": "blocked",
    "model": "blocked",
    "blocked": "blocked",
    "idle": "idle",
}


class Placed(NamedTuple):
    """An event with what its projection needs to know of its row."""

    position: int
    session_id: str
    seq: int
    wall_s: float
    event: ev.Event


class Line:
    """A session's line of the list, while events are added to it."""

    __slots__ = ("generation", "opened_s", "phase", "seq", "title", "waiting_for")

    def __init__(
        self, title: str, phase: str, generation: int, opened_s: float, waiting_for: str, seq: int
    ) -> None:  # fmt: skip
        self.title, self.phase, self.generation = title, phase, generation
        self.opened_s, self.waiting_for, self.seq = opened_s, waiting_for, seq

    @classmethod
    def new(cls, opened_s: float) -> Self:
        """Of a session without events."""
        return cls("", "idle", 0, opened_s, "", 0)

    def add(self, seq: int, event: ev.Event) -> None:
        """Take in one more event."""
        self.seq = seq
        self.phase = phase_after(self.phase, event)
        if isinstance(event, ev.OperatorSaid):
            self.title = self.title or " ".join(event.text[: 4 * TITLE_CHARS].split())[:TITLE_CHARS]
        elif isinstance(event, ev.PlanProposed):
            self.generation = event.plan.generation

    def columns(self) -> tuple[Any, ...]:
        """What is stored, in the order of `PUT_SESSION` after the id."""
        return (self.title, self.phase, self.generation, self.opened_s, self.waiting_for)


def phase_after(phase: str, event: ev.Event) -> str:
    """A coarse phase by the kind of the event alone, for callers that pass none (SPEC R1.1)."""
    fixed = _PHASES.get(type(event))
    if fixed is not None:
        return fixed
    match event:
        case ev.OperatorSaid(wakes=wakes):
            return "executing" if wakes else phase
        case ev.TurnEnded(reason=reason):
            return _AFTER_TURN.get(reason, phase)
        case ev.PlanRejected(changes_asked=changes_asked):
            return "executing" if changes_asked else "idle"
        case ev.SessionCompleted(outcome=outcome):
            return "failed" if outcome == "failed" else "done"
        case _:
            return phase


def project(execute: Execute, placed: Placed) -> None:
    """Write what one event changes in runs, facts and pending approvals."""
    if type(placed.event) not in _PROJECTED:
        return
    session_id = placed.session_id
    match placed.event:
        case ev.RunStarted() as e:
            execute(
                sql.PUT_RUN,
                (placed.position, e.order.run_id, session_id, e.order.generation, e.step, e.order.target_id, e.target,
                 e.order.command, e.risk, e.authority, placed.wall_s, e.order.limits.output_cap_bytes),
            )  # fmt: skip
        case ev.RunFinished(run_id=run_id, report=report):
            outcome = describe(report.outcome)
            execute(sql.END_RUN, (outcome, placed.wall_s, report.out_bytes, report.err_bytes, run_id))
        case ev.FactsWritten(facts=facts):
            for fact in facts:
                put_fact(execute, fact, session_id)
        case ev.PlanProposed(plan=plan, digest=digest):
            if plan.needs_approval:
                _ask(execute, placed, PLAN, plan.generation, digest, plan.goal)
        case ev.RunParked(order=order, why=why):
            _ask(execute, placed, order.run_id, order.generation, order.digest(), why or order.command)
        case ev.PlanAccepted() | ev.PlanApproved() | ev.PlanRejected() | ev.PlanClosed():
            execute(sql.DROP_APPROVAL, (session_id, PLAN))
        case ev.ApprovalUnanswered(run_id=run_id):
            execute(sql.DROP_APPROVAL, (session_id, run_id or PLAN))
        case ev.RunDecided(run_id=run_id):
            execute(sql.DROP_APPROVAL, (session_id, run_id))
        case ev.SessionReopened() | ev.SessionStopped() | ev.SessionCompleted():
            execute(sql.DROP_APPROVALS, (session_id,))
        case _:
            pass


def put_fact(execute: Execute, fact: Fact, session_id: str) -> None:
    """Append one fact."""
    execute(
        sql.PUT_FACT,
        (fact.entity_id, fact.key, fact.value, fact.source, fact.observed_s, fact.ttl_s, session_id),
    )


def _ask(execute: Execute, placed: Placed, subject: str, generation: int, digest: str, text: str) -> None:
    execute(sql.PUT_APPROVAL, (placed.session_id, subject, generation, digest, text, placed.wall_s))
