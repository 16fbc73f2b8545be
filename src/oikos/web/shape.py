"""Sessions, cards, plans, runs and the fleet as the API shows them. Ways in and references to secrets stay inside."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from oikos.app.feed import Delta, Item, OutputChunk
from oikos.app.service import Card, Done, card_of
from oikos.domain import events as ev
from oikos.domain.consent import SNAPSHOT_ITEM
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Fact, Inventory
from oikos.domain.plan import Plan
from oikos.domain.session import State

Shape = dict[str, object]


def recorded(record: ev.Recorded) -> Shape:
    """One event with its place; `event` has the fields of its kind, as they are kept."""
    return {"seq": record.seq, "at": record.at, "kind": record.event.KIND, "event": record.event}


def item(what: Item) -> tuple[str, int | None, Shape]:
    """An item of the feed: name of the server-sent event, its id if it has one, and its data."""
    match what:
        case Delta(text=text, reasoning=reasoning):
            return "text_delta", None, {"text": text, "reasoning": reasoning}
        case OutputChunk(run_id=run_id, stream=stream, offset=offset, data=data):
            raw = base64.b64encode(data).decode()
            return "output_chunk", None, {"run_id": run_id, "stream": stream, "offset": offset, "base64": raw}
        case ev.Recorded():
            return what.event.KIND, what.seq, recorded(what)


def card(shown: Card | None) -> Shape | None:
    """What a session waits for, with all that a decision must carry."""
    if shown is None:
        return None
    body: Shape = {
        "kind": shown.kind, "text": shown.text, "generation": shown.generation, "digest": shown.digest,
        "plan": shown.plan, "run": shown.run, "question": shown.question,
    }  # fmt: skip
    if shown.plan is not None:
        body["items"] = [
            {
                "item": number, "step": step.seq, "command": command.text, "ticked": number in shown.ticked,
                "phrase": command.preauthorise.phrase if command.preauthorise is not None else "",
            }
            for number, (step, command) in enumerate(shown.plan.destructive_items(), start=1)
        ]  # fmt: skip
        body["snapshots"] = [
            {"target": kept.target, "node": kept.node, "command": kept.command(shown.session_id, shown.generation),
             "ticked": SNAPSHOT_ITEM in shown.ticked}
            for kept in shown.plan.snapshots
        ]  # fmt: skip
    return body


def session(state: State, now: Instant) -> Shape:
    """The snapshot: everything up to `seq`; the stream goes on from there."""
    window, usage = state.window, state.usage
    return {
        "id": state.session_id, "seq": state.seq, "phase": state.phase, "mode": state.mode, "goal": state.goal,
        "generation": state.generation, "plan_status": state.status if state.plan is not None else None,
        "plan_generations": state.counted_plans, "digest": state.digest, "steps": _steps(state),
        "window": None if window is None else {
            "generation": window.generation, "machines": window.machines, "by": window.by,
            "suspended": window.suspended, "remaining_s": window.remaining_s(now), "consent": window.consent_id,
        },
        "running": [run.order.run_id for run in state.running], "card": card(card_of(state.session_id, state)),
        "waits_for": state.waits_for, "decided": state.decided, "outcome": state.outcome, "summary": state.summary,
        "usage": {"iterations": usage.iterations, "tokens": usage.tokens, "runs": usage.runs},
    }  # fmt: skip


def _steps(state: State) -> list[Shape]:
    return [{"seq": seq, "status": step.status, "note": step.note} for seq, step in sorted(state.steps.items())]


def plans(records: Sequence[ev.Recorded], state: State) -> list[Shape]:
    """Every generation, newest last, each step with where it stood."""
    found: dict[int, tuple[Plan, str]] = {}
    status: dict[int, str] = {}
    steps: dict[int, Shape] = {}
    for record in records:
        match record.event:
            case ev.PlanProposed(plan=plan, digest=digest):
                found[plan.generation], status[plan.generation] = (plan, digest), "proposed"
            case ev.PlanAccepted(generation=generation):
                status[generation] = "accepted"
            case ev.PlanApproved(generation=generation):
                status[generation] = "approved"
            case ev.PlanRejected(generation=generation):
                status[generation] = "rejected"
            case ev.PlanClosed(generation=generation, status=ended):
                status[generation] = ended
            case ev.StepMarked(seq=seq, status=marked, note=note):
                steps[seq] = {"status": marked, "note": note}
            case _:
                pass
    if state.plan is not None:
        status[state.plan.generation] = state.status.value
    return [
        {
            "generation": number, "digest": digest, "status": status[number], "goal": plan.goal, "plan": plan,
            "steps": {str(step.seq): steps.get(step.seq, {"status": "pending", "note": ""}) for step in plan.steps},
        }
        for number, (plan, digest) in sorted(found.items())
    ]  # fmt: skip


def entity(known: Entity) -> Shape:
    """One thing of the fleet, without its keys and secrets."""
    access = known.access
    return {
        "id": known.id, "kind": known.kind, "slug": known.slug, "name": known.name, "aliases": known.aliases,
        "parent": known.parent, "mode": known.mode, "gone": known.gone, "lab": known.lab,
        "transport": None if access is None else access.transport, "address": "" if access is None else access.address,
        "support": None if access is None else access.support,
    }  # fmt: skip


def facts(inventory: Inventory, now_s: float) -> list[Shape]:
    """Current facts with their provenance; `value` is JSON text."""
    return [_fact(fact, now_s) for known in inventory.facts.values() for fact in known.values()]


def _fact(fact: Fact, now_s: float) -> Shape:
    return {
        "entity_id": fact.entity_id, "key": fact.key, "value": fact.value, "source": fact.source,
        "observed_s": fact.observed_s, "ttl_s": fact.ttl_s, "stale": fact.stale(now_s),
    }  # fmt: skip


def done(result: Done) -> Shape:
    """What an act brought about; events up to `seq` hold it."""
    stopped = [{"run_id": run_id, "remote": known} for run_id, known in result.stopped]
    return {"id": result.session_id, "seq": result.seq, "notice": result.notice, "stopped": stopped}
