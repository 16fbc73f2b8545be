"""What operators and the agent can want of a session; `oikos.domain.session.decide` answers each."""

from __future__ import annotations

from oikos.domain.consent import WINDOW_CHOICES_S, Principal
from oikos.domain.inventory import Fact
from oikos.domain.plan import Check, Creates, Scope, Snapshot, Step, StepStatus
from oikos.domain.value import dataclass

# ---- operators (SPEC R1.11) ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """A message. The assent grammar reads it; only then is it a decision or a comment."""

    text: str
    by: Principal
    consent_id: str
    """Id for a consent, should the message turn out to be one."""
    shown_generation: int | None = None
    shown_digest: str = ""
    """What the operator's screen displayed as pending; without it no message decides anything (THREATS T5)."""
    answer_is_stored: bool = False
    """The text is a secret's reference: its value went to the secret store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """Approve the plan; `items` are destructive items whose phrases were typed."""

    generation: int
    digest: str
    by: Principal
    consent_id: str
    items: tuple[int, ...] = ()
    phrases: tuple[str, ...] = ()
    duration_s: float = WINDOW_CHOICES_S[0]
    text: str = ""
    snapshot: bool = False
    """Keep each guest that the plan offers to keep before its first change (SPEC R5.12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveRun:
    """Approve one parked run, exactly as shown."""

    run_id: str
    digest: str
    by: Principal
    consent_id: str
    reopen_s: float = 0.0
    """Also reopen the ended window for this long; only where the card offers it (SPEC R3.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """A typed phrase: ticks its item of the plan, or admits the parked run once, exactly as shown."""

    phrase: str
    digest: str
    """Of the plan or run that was shown: two runs can ask for the same phrase."""
    by: Principal
    consent_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AskForChanges:
    """Not like this; the text goes to the agent."""

    text: str
    by: Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """No."""

    by: Principal
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke:
    """Close the window; running commands go on."""

    by: Principal
    reason: str = "revoked"
    """`revoked`, or `role` when the approver lost the role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the session; running commands are killed or disowned by the caller."""

    by: Principal
    kill: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """Raise the budgets by their default step and go on."""

    by: Principal


OperatorIntent = Send | Approve | ApproveRun | Confirm | AskForChanges | Reject | Revoke | Stop | Raise

# ---- the agent (SPEC §2); targets and risks are resolved before ------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGoal:
    """`set_goal`."""

    goal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """`propose_plan`, with targets resolved and commands classified by the server."""

    call_id: str
    steps: tuple[Step, ...]
    """Numbered from 1; decide renumbers them to continue the session's count."""
    checks: tuple[Check, ...] = ()
    creates: tuple[Creates, ...] = ()
    scope: tuple[Scope, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkStep:
    """`update_plan_step`."""

    seq: int
    status: StepStatus
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFacts:
    """`update_entity_attributes`."""

    entity_id: str
    facts: tuple[Fact, ...]
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """`ask_operator`."""

    call_id: str
    kind: str
    text: str
    choices: tuple[str, ...] = ()
    secret_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """`wait`."""

    call_id: str
    seconds: float
    reason: str
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """`complete_task`."""

    outcome: str
    summary: str
    evidence: tuple[str, ...] = ()


AgentIntent = SetGoal | Propose | MarkStep | WriteFacts | Ask | Wait | Complete

# ---- time and the supervisor -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Time passed: ends what has run out."""


SystemIntent = Tick

Intent = OperatorIntent | AgentIntent | SystemIntent
