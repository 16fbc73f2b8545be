"""The closed union of all that can happen in a session.

State, what the model is shown, what people see and what auditors verify are all projections of these.
Every class has a `KIND`, the published name of the event (SPEC R7.1); a field, once released, keeps its
meaning for ever (DESIGN §1).
"""

from __future__ import annotations

from typing import ClassVar

from oikos.domain.consent import Consent
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Fact
from oikos.domain.plan import Plan, StepStatus
from oikos.domain.run import RunOrder, RunReport
from oikos.domain.scripts import Script
from oikos.domain.teaching import TaughtRule
from oikos.domain.value import dataclass
from oikos.domain.verdict import Effect, NamedObject, Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A conversation began."""

    KIND: ClassVar[str] = "session.opened"
    mode: str = "ask"
    """`ask` or `look` (SPEC R3.9)."""
    model: str = ""
    by: str = ""
    lab: bool = False
    """In a home made by the lab: the channel `script` may decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSaid:
    """A message of the operator."""

    KIND: ClassVar[str] = "operator.said"
    text: str
    by: str
    channel: str
    reading: str = "comment"
    """How the assent grammar read it: comment, assent, refusal, halt or clarify (SPEC R3.7)."""
    wakes: bool = True
    """Whether it starts or resumes a turn; a refusal to an ended session, for one, does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionReopened:
    """A follow-up to an ended session (SPEC R1.7)."""

    KIND: ClassVar[str] = "session.reopened"
    after: str
    """The state it left: done, failed or stopped."""
    generation: int
    """The generation that is history now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted:
    """The agent loop took the session up."""

    KIND: ClassVar[str] = "turn.started"
    wake: str
    """message, decision, run, timer, restart, answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """The agent loop put the session down."""

    KIND: ClassVar[str] = "turn.ended"
    reason: str
    """completed, question, waiting, approval, stopped, limit, model, idle, blocked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call of a model response, as the provider's field said it."""

    id: str
    name: str
    arguments: str
    """JSON text, unparsed: it may be malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantSaid:
    """One model response (SPEC R1.2); never overwritten."""

    KIND: ClassVar[str] = "assistant.said"
    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: str = ""
    """What the provider wants back verbatim, as JSON text."""
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswered:
    """The answer to one tool call, exactly as the model is shown it."""

    KIND: ClassVar[str] = "tool.answered"
    call_id: str
    name: str
    text: str
    refusal: str = ""
    """The refusal's code; empty when the call was carried out."""
    run_id: str = ""
    seen: str = ""
    """Digest of call and result without times, for stuck detection (SPEC R1.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalSet:
    """What "done" is judged against."""

    KIND: ClassVar[str] = "goal.set"
    goal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProposed:
    """A proposal that passed validation took the next generation number (SPEC R2.10)."""

    KIND: ClassVar[str] = "plan.proposed"
    plan: Plan
    digest: str
    call_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAccepted:
    """Read-only throughout: accepted without approval (SPEC R2.4)."""

    KIND: ClassVar[str] = "plan.accepted"
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentGranted:
    """A row of the ledger; what it opens is said by the event that follows it."""

    KIND: ClassVar[str] = "consent.granted"
    consent: Consent


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTicked:
    """An approver typed the phrase of a destructive item of the plan on the card, or `snapshot` for its offer."""

    KIND: ClassVar[str] = "plan.item_ticked"
    generation: int
    item: int
    """From 1; 0 for the snapshots that are offered."""
    by: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanApproved:
    """An approver granted the plan; its window is open."""

    KIND: ClassVar[str] = "plan.approved"
    generation: int
    digest: str
    consent_id: str
    items: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRejected:
    """An approver said no, or asked for changes."""

    KIND: ClassVar[str] = "plan.rejected"
    generation: int
    by: str
    reason: str = ""
    changes_asked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanClosed:
    """A plan is no longer live; its unfinished steps are replaced, finished ones keep their state."""

    KIND: ClassVar[str] = "plan.closed"
    generation: int
    status: str
    """closed, superseded or expired."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalUnanswered:
    """Nobody answered in time: the plan or run is parked no longer (SPEC R3.8)."""

    KIND: ClassVar[str] = "approval.unanswered"
    generation: int
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMarked:
    """A step changed state."""

    KIND: ClassVar[str] = "step.marked"
    seq: int
    status: StepStatus
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParked:
    """A run waits for a decision; its call is answered when it is decided (SPEC R1.12)."""

    KIND: ClassVar[str] = "run.parked"
    order: RunOrder
    call_id: str
    target: str
    step: int | None
    risk: Risk
    effects: tuple[Effect, ...]
    objects: tuple[NamedObject, ...]
    canonical: str
    why: str
    """Why it is asked, one line."""
    phrase: str = ""
    """What must be typed; empty when approving is enough."""
    offers_reopen: bool = False
    rerun: str = ""
    scripts: tuple[Script, ...] = ()
    """Files that it runs, with what they held when it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDecided:
    """A parked run was approved, declined or left unanswered."""

    KIND: ClassVar[str] = "run.decided"
    run_id: str
    decision: str
    """approved, declined, unanswered, stopped; void when an approval no longer held at the start."""
    by: str = ""
    consent_id: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The intent is durable; only after this may the target hear of the run."""

    KIND: ClassVar[str] = "run.started"
    order: RunOrder
    call_id: str
    target: str
    """Slug, for people."""
    step: int | None
    risk: Risk
    effects: tuple[Effect, ...]
    canonical: str
    authority: str
    """read_only, window:CONSENT, preauthorised:CONSENT:ITEM, approval:CONSENT, snapshot:CONSENT, probe."""
    admitted: str
    """Digest of the order, as the Admission held it."""
    check: int | None = None
    """Position of the plan's check this run answers."""
    rerun: str = ""
    creates: tuple[str, ...] = ()
    """Ids of the guests that it makes on its target, if it succeeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetached:
    """The turn goes on while the run does (SPEC R5.6)."""

    KIND: ClassVar[str] = "run.detached"
    run_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """The outcome of a run; exactly one for each start."""

    KIND: ClassVar[str] = "run.finished"
    run_id: str
    report: RunReport
    passed: bool | None = None
    """For a check: whether it showed what was expected."""
    hint: str = ""
    hint_class: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityCreated:
    """What the plan creates exists and said who it is: its name means this entity from here on (SPEC R2.3)."""

    KIND: ClassVar[str] = "entity.created"
    generation: int
    entity: Entity
    """Its slug is the name in the plan."""
    run_id: str
    """The run that made it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsWritten:
    """The model or an operator wrote attributes into the inventory (SPEC R6.2)."""

    KIND: ClassVar[str] = "facts.written"
    entity_id: str
    facts: tuple[Fact, ...]
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """The agent needs something only the operator has (SPEC R2.11)."""

    KIND: ClassVar[str] = "question.asked"
    call_id: str
    kind: str
    """text, choice or secret."""
    text: str
    choices: tuple[str, ...] = ()
    secret_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """The operator answered; a secret's value is never here."""

    KIND: ClassVar[str] = "question.answered"
    call_id: str
    text: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBegun:
    """The agent waits for a run or for time to pass."""

    KIND: ClassVar[str] = "wait.begun"
    call_id: str
    until: Instant
    seconds: float
    reason: str
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded:
    """The wait is over."""

    KIND: ClassVar[str] = "wait.ended"
    call_id: str
    by: str
    """run, timer, message, stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nudged:
    """The one automatic reminder (SPEC R1.3, R1.5)."""

    KIND: ClassVar[str] = "agent.nudged"
    about: str
    """open_steps or repetition."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitWarned:
    """80 % of a budget is used (SPEC R1.4)."""

    KIND: ClassVar[str] = "limit.warned"
    limit: str
    used: float
    of: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBlocked:
    """Only a person, or time, can bring the session on."""

    KIND: ClassVar[str] = "session.blocked"
    on: str
    """question, limit, model, nudge, repetition, halted, provider."""
    reason: str
    retry_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitRaised:
    """The operator raised the budgets by their default step."""

    KIND: ClassVar[str] = "limit.raised"
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRetried:
    """A model request failed and is tried again (SPEC R8.1)."""

    KIND: ClassVar[str] = "model.retried"
    attempt: int
    delay_s: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRenewed:
    """The window of the same approved plan opened again, by consent."""

    KIND: ClassVar[str] = "window.renewed"
    consent_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSuspended:
    """A halt word: nothing is admitted until Resume or a renewing assent."""

    KIND: ClassVar[str] = "window.suspended"
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowClosed:
    """Nothing more is admitted on this consent; running commands go on (SPEC R3.6)."""

    KIND: ClassVar[str] = "window.closed"
    generation: int
    reason: str
    """completed, reopened, superseded, rejected, revoked, stopped, expired, role, identity, clock."""
    target_id: str = ""
    """Only for this target: its identity or host key changed (SPEC R3.6); empty: the whole window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCompleted:
    """The agent completed the goal, or gave up with evidence."""

    KIND: ClassVar[str] = "session.completed"
    outcome: str
    """done, failed or nothing_to_do."""
    summary: str
    evidence: tuple[str, ...] = ()
    """Run ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStopped:
    """The operator stopped it."""

    KIND: ClassVar[str] = "session.stopped"
    by: str
    runs: str
    """kill or disown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTaught:
    """An admin taught the classifier an exact command, in the stream `rules`."""

    KIND: ClassVar[str] = "rule.taught"
    rule: TaughtRule
    text: str
    """The phrase that was typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRemoved:
    """A taught rule no longer counts."""

    KIND: ClassVar[str] = "rule.removed"
    rule_id: str
    by: str


Event = (
    SessionOpened | OperatorSaid | SessionReopened | TurnStarted | TurnEnded | AssistantSaid | ToolAnswered | GoalSet
    | PlanProposed | PlanAccepted | ConsentGranted | ItemTicked | PlanApproved | PlanRejected | PlanClosed
    | ApprovalUnanswered | StepMarked | RunParked | RunDecided | RunStarted | RunDetached | RunFinished
    | EntityCreated | FactsWritten
    | QuestionAsked | QuestionAnswered | WaitBegun | WaitEnded | Nudged | LimitWarned | SessionBlocked | LimitRaised
    | ModelRetried | WindowRenewed | WindowSuspended | WindowClosed | SessionCompleted | SessionStopped | RuleTaught
    | RuleRemoved
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event with its place in the session's stream."""

    session_id: str
    seq: int
    at: Instant
    event: Event
