"""Refusals, which are values with a closed code, and the exceptions of the product.

OikosError                  anything the product raises on purpose; its text is one line for an operator
├── ConfigError             configuration, runbook or manifest that cannot be used
├── StoreError              the database cannot be used
│   ├── SeqConflict         somebody else appended first: reload and decide again
│   ├── Fenced              a newer owner holds the session's lease
│   ├── TargetBusy          another mutation of this target has no outcome yet
│   ├── TargetChanged       the target's mode is not what the gate saw
│   ├── NameTaken           another entity has this name
│   └── NewerDatabase       written by a newer Oikos
├── TargetError             a target cannot be reached or is not who it should be
│   └── AnotherMachine      it shows another host key than the enrolled one
├── ModelError              the model's provider failed; `retryable` says whether to try again
└── SealError               an Admission that the gate did not make, or that was used before
"""

from __future__ import annotations

import enum

from oikos.domain.value import dataclass


class Code(enum.StrEnum):
    """Why something was refused. Closed: faces and models may rely on every value."""

    # plan and session order (SPEC R2.2, R2.3, R2.8, R2.9)
    NO_GOAL = "no_goal"
    NO_PLAN = "no_plan"
    EMPTY_PLAN = "empty_plan"
    PLAN_LIVE = "plan_live"
    GOAL_LIVE = "goal_live"
    AWAITING_OPERATOR = "awaiting_operator"
    PROPOSE_AND_RUN = "propose_and_run"
    UNKNOWN_STEP = "unknown_step"
    STEP_CLOSED = "step_closed"
    NOT_CREATED_YET = "not_created_yet"
    SESSION_OVER = "session_over"
    LOOK_ONLY_SESSION = "look_only_session"
    # targets (SPEC R3.1, R3.9, R3.13, R5.8, R5.11)
    UNKNOWN_TARGET = "unknown_target"
    AMBIGUOUS_TARGET = "ambiguous_target"
    TARGET_LOCKED = "target_locked"
    TARGET_LOOK_ONLY = "target_look_only"
    OUT_OF_SCOPE = "out_of_scope"
    NO_ACCESS = "no_access"
    IDENTITY_MISMATCH = "identity_mismatch"
    TARGET_BUSY = "target_busy"
    UNREACHABLE = "unreachable"
    SNAPSHOT_FAILED = "snapshot_failed"
    # the command itself (SPEC R3.10 – R3.12)
    INTERACTIVE = "interactive"
    DUPLICATE = "duplicate"
    DECLINED = "declined"
    # completion (SPEC R2.6)
    RUN_STILL_RUNNING = "run_still_running"
    STEPS_OPEN = "steps_open"
    NO_WRITE_BACK = "no_write_back"
    NO_CHECK = "no_check"
    CHECK_NOT_PASSED = "check_not_passed"
    STEP_FAILED = "step_failed"
    NO_NOTE = "no_note"
    COMPLETED_ALREADY = "completed_already"
    # facts and questions
    UNKNOWN_ENTITY = "unknown_entity"
    BAD_FACT = "bad_fact"
    NEEDS_OPERATOR = "needs_operator"
    UNKNOWN_RUN = "unknown_run"
    # the call (SPEC R1.2, R8.1)
    UNKNOWN_TOOL = "unknown_tool"
    MALFORMED_CALL = "malformed_call"
    BATCH_ENDED = "batch_ended"
    REPEATED_CALL = "repeated_call"
    LIMIT_REACHED = "limit_reached"
    # operator intents (SPEC R1.11, R3.6)
    WRONG_STATE = "wrong_state"
    STALE_GENERATION = "stale_generation"
    STALE_DIGEST = "stale_digest"
    NOTHING_PENDING = "nothing_pending"
    ALREADY_DECIDED = "already_decided"
    NOT_APPROVER = "not_approver"
    NO_TERMINAL = "no_terminal"
    WRONG_PHRASE = "wrong_phrase"
    EXPIRED = "expired"
    NO_SUCH_SESSION = "no_such_session"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A "no" with its reason, and the way out (SPEC R2.8)."""

    code: Code
    text: str
    """One line for the operator: the thing, the cause, the remedy."""
    directive: str = ""
    """What the model should do next; empty when the text says it already."""
    details: tuple[str, ...] = ()
    """For a stale approval: lines of what differs, `- ` shown then, `+ ` so now."""

    def for_model(self) -> str:
        """The text and directive as one paragraph."""
        return f"{self.text} {self.directive}".strip()


class OikosError(Exception):
    """Base of everything the product raises on purpose; `str()` is one line for an operator."""


class ConfigError(OikosError):
    """Configuration, a runbook or a manifest that cannot be used; the text names file, line and remedy."""


class StoreError(OikosError):
    """The database cannot be used."""


class SeqConflict(StoreError):
    """Another writer appended to the session first."""


class Fenced(StoreError):
    """The writer's lease epoch is no longer the session's."""


class TargetBusy(StoreError):
    """Another run above read_only on the target has no outcome yet (SPEC R5.7)."""


class TargetChanged(StoreError):
    """The target's mode changed, or it is gone, since the gate looked."""


class NewerDatabase(StoreError):
    """The database was written by a newer Oikos."""


class NameTaken(StoreError):
    """Another entity that is not gone has this name; nothing was written."""


class TargetError(OikosError):
    """A target cannot be reached, or is not the machine it should be."""


class AnotherMachine(TargetError):
    """A target shows another host key than the one that was enrolled; nothing was sent."""


class ModelError(OikosError):
    """The provider of the model failed."""

    def __init__(self, text: str, *, retryable: bool, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.retryable = retryable
        """Whether the same request may succeed later."""
        self.retry_after_s = retry_after_s
        """Seconds the provider asked to wait, when it said so."""


class SealError(OikosError):
    """An Admission was forged, altered or used twice."""
