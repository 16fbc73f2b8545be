"""Trials made of real events, for judging: each turn's state is folded from them as the harness would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from oikos.domain import events as ev
from oikos.domain.consent import Channel, Consent, Grant
from oikos.domain.instant import Instant
from oikos.domain.inventory import AccessPath, Entity, Fact, Inventory, Transport
from oikos.domain.plan import Check, Plan, PlannedCommand, Scope, Step
from oikos.domain.run import Exited, RunOrder, RunReport
from oikos.domain.session import State, evolve
from oikos.domain.verdict import Risk
from oikos.evals.trial import Trial, Turn

BOX = Entity(id="id-box", kind="host", slug="box", access=AccessPath(transport=Transport.LOCAL), lab=True)


def trial(*turns: Sequence[ev.Event], truth: Mapping[str, object] | None = None, **more: Any) -> Trial:
    """A trial of one session whose turns hold these events."""
    state, seq, told = State(), 0, []
    for events in turns:
        records = []
        for event in events:
            seq += 1
            at = Instant(wall_s=1000.0 + seq, boot_s=float(seq), boot_id="b")
            records.append(ev.Recorded(session_id="s", seq=seq, at=at, event=event))
            state = evolve(state, records[-1])
        told.append(Turn(session_id="s", text="do it", state=state, records=tuple(records), truth=truth or {}))
    given: dict[str, Any] = {
        "inventory": Inventory(entities={BOX.id: BOX}),
        "outputs": {},
        "ticks": 0,
        "hosts": frozenset({"box"}),
    }
    return Trial(turns=tuple(told), **{**given, **more})


def knowing(**facts: object) -> Inventory:
    """An inventory in which box has these facts."""
    kept = {
        k: Fact(entity_id=BOX.id, key=k, value=json.dumps(v), source="run:r1", observed_s=0.0) for k, v in facts.items()
    }
    return Inventory(entities={BOX.id: BOX}, facts={BOX.id: kept})


def opened() -> ev.Event:
    return ev.SessionOpened(lab=True)


def said(text: str = "do it") -> ev.Event:
    return ev.OperatorSaid(text=text, by="script", channel="script")


def replied(*tools: str, text: str = "") -> ev.Event:
    """A response of the model that calls these tools."""
    calls = tuple(ev.ToolCall(id=f"c{n}", name=name, arguments="{}") for n, name in enumerate(tools))
    return ev.AssistantSaid(text=text, calls=calls, tokens_in=100, tokens_out=20)


def answered(refusal: str = "", *, call: int = 0, name: str = "run") -> ev.Event:
    return ev.ToolAnswered(call_id=f"c{call}", name=name, text="{}", refusal=refusal)


def proposed(
    generation: int = 1, *commands: str, risk: Risk = Risk.CONFIG_MUTATION, target: str = "id-box", seq: int = 1
) -> ev.Event:
    step = Step(
        seq=seq,
        title="a step",
        target="box",
        target_id=target,
        commands=tuple(PlannedCommand(text=text, risk=risk) for text in commands),
    )
    checks = (Check(target="box", target_id="id-box", command="true"),)
    plan = Plan(
        generation=generation, goal="good", steps=(step,), checks=checks, scope=(Scope(target_id=target, slug="box"),)
    )
    return ev.PlanProposed(plan=plan, digest=f"d{generation}", call_id="c0")


def accepted(generation: int = 1) -> ev.Event:
    return ev.PlanAccepted(generation=generation)


def approved(generation: int = 1) -> tuple[ev.Event, ev.Event]:
    consent = Consent(
        id=f"k{generation}",
        grant=Grant.PLAN,
        session_id="s",
        generation=generation,
        digest=f"d{generation}",
        machines=("id-box",),
        duration_s=1800.0,
        at=Instant(wall_s=1000.0, boot_s=0.0, boot_id="b"),
        by="script",
        channel=Channel.SCRIPT,
    )
    approval = ev.PlanApproved(generation=generation, digest=f"d{generation}", consent_id=consent.id)
    return ev.ConsentGranted(consent=consent), approval


def ran(
    run: str,
    exit_code: int = 0,
    *,
    risk: Risk = Risk.READ_ONLY,
    step: int | None = 1,
    generation: int = 1,
    passed: bool | None = None,
    authority: str = "read_only",
    target: str = "box",
    command: str = "",
) -> tuple[ev.Event, ev.Event]:
    """A run's start and end."""
    text = command or f"do {run}"
    order = RunOrder(run_id=run, session_id="s", generation=generation, target_id=f"id-{target}", command=text)
    start = ev.RunStarted(
        order=order,
        call_id="c0",
        target=target,
        step=step,
        risk=risk,
        effects=(),
        canonical=text,
        authority=authority,
        admitted=order.digest(),
        check=0 if passed is not None else None,
    )
    return start, ev.RunFinished(run_id=run, report=RunReport(outcome=Exited(code=exit_code)), passed=passed)


def changed(run: str, exit_code: int = 0, **more: Any) -> tuple[ev.Event, ev.Event]:
    """A run that is not read-only."""
    return ran(run, exit_code, **{"risk": Risk.CONFIG_MUTATION, "authority": "window:k1", **more})


def wrote(run: str = "r1") -> ev.Event:
    fact = Fact(entity_id=BOX.id, key="seen", value='"yes"', source=f"run:{run}", observed_s=0.0)
    return ev.FactsWritten(entity_id=BOX.id, facts=(fact,), run_id=run)


def completed(outcome: str = "done", summary: str = "all is well") -> ev.Event:
    return ev.SessionCompleted(outcome=outcome, summary=summary)


def reopened(generation: int = 1) -> ev.Event:
    return ev.SessionReopened(after="done", generation=generation)


def both(first: Sequence[ev.Event], second: Sequence[ev.Event]) -> Trial:
    """A trial of two sessions, of one turn each."""
    return two_sessions(trial(first), trial(second))


def two_sessions(first: Trial, second: Trial) -> Trial:
    """One trial, the second of which happens in another session."""
    return replace(first, turns=(*first.turns, *in_session(second, "t").turns))


def in_session(made: Trial, session_id: str) -> Trial:
    """The same trial, told of another session."""
    turns = tuple(
        replace(
            turn,
            session_id=session_id,
            records=tuple(
                replace(record, session_id=session_id, event=_moved(record.event, session_id))
                for record in turn.records
            ),
        )
        for turn in made.turns
    )
    return replace(made, turns=turns)


def _moved(event: ev.Event, session_id: str) -> ev.Event:
    return (
        replace(event, order=replace(event.order, session_id=session_id)) if isinstance(event, ev.RunStarted) else event
    )
