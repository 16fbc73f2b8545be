"""What a session changed, with the undo its plans named, and the request to plan the way back (SPEC R5.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oikos.domain import events as ev
from oikos.domain.run import NeverStarted, describe
from oikos.domain.snapshot import SNAPSHOT
from oikos.domain.verdict import Risk


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One run above read_only."""

    at_s: float
    """Wall time of its start."""
    run: ev.RunStarted
    outcome: str
    """In words; `running` without one."""
    began: bool
    """Not proven never to have started."""
    undo: str
    """Of its step; empty when the plan named none."""


def changes_of(records: Sequence[ev.Recorded]) -> tuple[Change, ...]:
    """Every change of a session, in order."""
    undo: dict[int, str] = {}
    kept: dict[tuple[str, str], str] = {}
    ended: dict[str, ev.RunFinished] = {}
    started: list[tuple[float, ev.RunStarted]] = []
    for record in records:
        match record.event:
            case ev.PlanProposed(plan=plan):
                undo |= {step.seq: step.undo for step in plan.steps}
                place = (record.session_id, plan.generation)
                kept |= {(one.node_id, one.command(*place)): one.way_back(*place) for one in plan.snapshots}
            case ev.RunStarted() as run if run.risk is not Risk.READ_ONLY:
                started.append((record.at.wall_s, run))
            case ev.RunFinished() as end:
                ended[end.run_id] = end
            case _:
                pass

    def undo_of(run: ev.RunStarted) -> str:
        back = kept.get((run.order.target_id, run.order.command), "") if run.authority.startswith(SNAPSHOT) else ""
        return f"{back}  (puts all of the guest back; what came later is lost)" if back else undo.get(run.step or 0, "")

    return tuple(_change(at_s, run, ended.get(run.order.run_id), undo_of(run)) for at_s, run in started)


def _change(at_s: float, run: ev.RunStarted, end: ev.RunFinished | None, undo: str) -> Change:
    began = end is None or not isinstance(end.report.outcome, NeverStarted)
    outcome = "running" if end is None else describe(end.report.outcome)
    return Change(at_s=at_s, run=run, outcome=outcome, began=began, undo=undo)


def way_back(changes: Sequence[Change]) -> str:
    """The message that asks for a plan which undoes the changes, newest first; it grants nothing."""
    lines = [
        "Plan the way back. Undo what this session changed, newest change first, and nothing else. Look first which of "
        "it is still in place, then propose a plan with these undo commands where they still fit:"
    ]
    for change in reversed([change for change in changes if change.began]):
        if change.run.authority.startswith(SNAPSHOT):
            lines.append(f"- before it a snapshot was taken ({change.outcome}); on {change.run.target}: {change.undo}")
            continue
        lines.append(f"- {change.run.target} $ {change.run.order.command}  ({change.outcome})")
        lines.append(f"  undo: {change.undo}" if change.undo else "  undo: none was named; work it out")
    return "\n".join(lines)
