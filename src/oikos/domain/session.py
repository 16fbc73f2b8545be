"""The session's rules: `decide(state, intent) -> events | Refusal`, and `evolve`, its fold.

Together with `oikos.domain.gate.admit` this is the whole safety claim of Oikos, as pure functions: no clock,
no database, no model, no host (DESIGN §1).
"""

from __future__ import annotations

from oikos.domain import intents as it
from oikos.domain.agent_rules import decide_agent, decide_tick
from oikos.domain.decision import Decided, Decision
from oikos.domain.instant import Instant
from oikos.domain.operator_rules import decide_operator
from oikos.domain.state import Phase, State, evolve, fold

__all__ = ["Decided", "Decision", "Phase", "State", "decide", "evolve", "fold"]


def decide(state: State, intent: it.Intent, now: Instant) -> Decision:
    """Answer an intent at a moment: the events it makes, or why not."""
    match intent:
        case it.Tick():
            return decide_tick(state, now)
        case (
            it.Send() | it.Approve() | it.ApproveRun() | it.Confirm() | it.AskForChanges() | it.Reject() | it.Revoke()
            | it.Stop() | it.Raise()
        ):  # fmt: skip
            return decide_operator(state, intent, now)
        case (
            it.SetGoal() | it.Propose() | it.MarkStep() | it.WriteFacts() | it.Ask() | it.Wait() | it.Complete()
        ):  # pragma: no branch: the union is closed, mypy proves it
            return decide_agent(state, intent, now)
