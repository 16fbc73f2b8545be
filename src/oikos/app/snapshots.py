"""Snapshots that an approver chose, taken right before the first change of their guest (SPEC R5.12)."""

from __future__ import annotations

from collections.abc import Iterable

from oikos.domain.consent import RUN_APPROVAL_S
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import plan_consent
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity
from oikos.domain.plan import Snapshot
from oikos.domain.run import MAX_TIMEOUT_S, Limits, RunOrder, RunOutcome, describe
from oikos.domain.snapshot import SNAPSHOT
from oikos.domain.state import RunState, State


def due(state: State, changed: Iterable[Entity]) -> Snapshot | None:
    """The next snapshot that was chosen for one of these and is not there yet."""
    consent = plan_consent(state)
    if state.plan is None or consent is None or not consent.snapshot:
        return None
    ids = {entity.id for entity in changed}
    for offer in state.plan.snapshots:
        if offer.target_id in ids and not any(run.ok for run in tries(state, offer)):
            return offer
    return None


def tries(state: State, offer: Snapshot) -> tuple[RunState, ...]:
    """Runs of this generation that were to take it, in order."""
    command = offer.command(state.session_id, state.generation)
    return tuple(
        run
        for run in state.runs.values()
        if run.authority.startswith(SNAPSHOT) and (run.order.target_id, run.order.command) == (offer.node_id, command)
    )


def order_of(offer: Snapshot, state: State, run_id: str, now: Instant) -> RunOrder:
    """The run that takes it: supervised, and not begun after its consent has grown old."""
    return RunOrder(
        run_id=run_id, session_id=state.session_id, generation=state.generation, target_id=offer.node_id,
        command=offer.command(state.session_id, state.generation), limits=Limits(total_s=MAX_TIMEOUT_S),
        supervised=True, not_after_s=now.wall_s + RUN_APPROVAL_S,
    )  # fmt: skip


def failed(offer: Snapshot, outcome: RunOutcome, complaint: str) -> Refusal:
    """The guest is not changed without the snapshot that was chosen; how to go on."""
    words = complaint.strip().splitlines()
    said = f": {words[-1].strip()[:200]}" if words else ""
    return Refusal(
        code=Code.SNAPSHOT_FAILED,
        text=f"The snapshot of {offer.target} that was chosen with the plan could not be taken "
        f"({describe(outcome)}{said}). {offer.target} was not changed.",
        directive="If the cause passes by itself (a lock), use wait and run this again: the snapshot is tried anew. "
        "Otherwise use ask_operator; going on without a snapshot takes a new plan that they approve so.",
    )  # fmt: skip
