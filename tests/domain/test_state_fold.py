"""What each event changes in a session's state, and that it changes nothing else (SPEC R1.1 – R1.12, R2.9, R2.10).

Each row folds one event into a state in which everything is at hand, and compares the whole of what comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import pytest
from tests.domain.world import CHANGE, DESTROY_131, FIX, LOOK, READ, WEB1, WEB2, at, planned, scope, step

from oikos.domain import events as ev
from oikos.domain.consent import Channel, Consent, Grant, Window
from oikos.domain.inventory import Entity
from oikos.domain.plan import Plan, PlanStatus, Scope, StepStatus
from oikos.domain.run import Exited, RunOrder, RunReport
from oikos.domain.state import Batch, Parked, Phase, RunState, State, StepState, Usage, evolve, run_key
from oikos.domain.teaching import TaughtRule
from oikos.domain.verdict import Risk

NOW = at(200.0)
SEQ = 42

# ---- a state in which everything is at hand --------------------------------------------------------------------------


def order(run_id: str, **more: object) -> RunOrder:
    return replace(
        RunOrder(run_id=run_id, session_id="s1", generation=3, target_id=WEB1.id, command=f"do {run_id}"), **more
    )


def run(run_id: str, **more: object) -> RunState:
    made = RunState(
        order=order(run_id), call_id=f"c-{run_id}", target="web1", step=5, risk=CHANGE,
        key=f"{WEB1.id}\0do {run_id}\0", authority="window:k", started_seq=30, generation=3,
    )  # fmt: skip
    return replace(made, **more)


def consent(consent_id: str, grant: Grant, *machines: str) -> Consent:
    return Consent(
        id=consent_id, grant=grant, session_id="s1", generation=3, digest="d", machines=machines, duration_s=3600.0,
        at=at(150.0), by="ben", channel=Channel.WEB,
    )  # fmt: skip


def plan(generation: int, *commands: tuple[str, Risk], first: int = 1) -> Plan:
    steps = tuple(step(WEB1, planned(*command), seq=number) for number, command in enumerate(commands, start=first))
    return Plan(generation=generation, goal="it runs", steps=steps, scope=scope(WEB1, WEB2))


WINDOW = Window(
    consent_id="k", generation=3, machines=(WEB1.id, WEB2.id), opened=at(90.0), duration_s=1800.0, by="anna"
)
OPENED = Window(
    consent_id="k-new", generation=3, machines=(WEB1.id,), opened=at(150.0), duration_s=3600.0, by="ben"
)  # fmt: skip
"""What the consent `k-new` opens."""
LIVE = run("0123456789abcdef")
OVER = run("fedcba9876543210", step=None, outcome=Exited(code=0), ended_seq=31, passed=True)
PARKED = Parked(
    event=ev.RunParked(
        order=order("aaaabbbbccccdddd", stdin="in"), call_id="c-parked", target="web1", step=5, risk=CHANGE, effects=(),
        objects=(DESTROY_131,), canonical="do it", why="It is asked.",
    ),
    at=at(95.0),
)  # fmt: skip
KEY = run_key(WEB1.id, "do it", "in")
CALLS = tuple(ev.ToolCall(id=call_id, name="run", arguments="{}") for call_id in ("c-a", "c-parked"))
ASKED = ev.QuestionAsked(call_id="c-ask", kind="text", text="Which?")
WAIT = ev.WaitBegun(call_id="c-wait", until=at(300.0), seconds=60.0, reason="settle")
BLOCKED = ev.SessionBlocked(on="limit", reason="40 iterations are used")

FULL = State(
    session_id="s1", seq=SEQ - 1, newest=at(100.0), phase=Phase.EXECUTING, mode="look", lab=True, goal="it runs",
    generation=3, plan=plan(3, (FIX, CHANGE), first=4), status=PlanStatus.APPROVED, digest="d", proposed_at=at(50.0),
    ticked=frozenset({1}), items=(1,), counted_plans=2,
    steps={
        4: StepState(status=StepStatus.PENDING), 5: StepState(status=StepStatus.RUNNING, note="half"),
        6: StepState(status=StepStatus.DONE, note="seen"), 7: StepState(status=StepStatus.FAILED, note="no"),
        8: StepState(status=StepStatus.SKIPPED, note="why"),
    },
    next_step=9, window=WINDOW,
    consents={"k": consent("k", Grant.PLAN, WEB1.id, WEB2.id), "k-new": consent("k-new", Grant.RENEW, WEB1.id)},
    runs={LIVE.order.run_id: LIVE, OVER.order.run_id: OVER}, parked=PARKED,
    batch=Batch(calls=CALLS, broken=True, proposed=True, mutated=True, ran_reads=True), operator_since_plan=True,
    hold_proposals=True, declined=frozenset({"x"}), cited=frozenset({OVER.order.run_id}), question=ASKED, waiting=WAIT,
    blocked=BLOCKED, turn=True, turn_acted=True, nudged=True, repeats=("run:1", 2), repeat_nudged=True,
    usage=Usage(iterations=3.0, tokens=500, runs=7, since=at(60.0), warned=frozenset({"runs"})), raises=2,
    model_failures=3, decided="plan 3 was approved by anna", outcome="done", summary="it ran",
)  # fmt: skip
CALM = replace(FULL, parked=None, question=None, waiting=None, blocked=None, batch=Batch(calls=CALLS))
"""Nothing waits for anybody."""
REPLACED = {
    **FULL.steps,
    4: StepState(status=StepStatus.REPLACED),
    5: StepState(status=StepStatus.REPLACED, note="half"),
}
"""The steps of a plan that is live no more: finished ones keep their state."""
ONLY_LIVE = {LIVE.order.run_id: LIVE}


def test_the_full_state_holds_something_for_every_field() -> None:
    """A new field takes its place there, and with that in every row below."""
    empty = State()
    same = {each.name for each in fields(State) if getattr(FULL, each.name) == getattr(empty, each.name)}
    assert same == set()


# ---- one row an event ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """An event, and what it changes in a state."""

    event: ev.Event
    changes: Mapping[str, object] = field(default_factory=dict)
    of: State = FULL


def said(**more: object) -> ev.OperatorSaid:
    return ev.OperatorSaid(**{"text": "hm", "by": "anna", "channel": "web", **more})


def answer(call_id: str, **more: object) -> ev.ToolAnswered:
    return ev.ToolAnswered(**{"call_id": call_id, "name": "run", "text": "{}", **more})


def decided(decision: str, **more: object) -> ev.RunDecided:
    return ev.RunDecided(run_id=PARKED.event.order.run_id, decision=decision, **more)


def started(run_id: str = "r-new", **more: object) -> ev.RunStarted:
    event = ev.RunStarted(
        order=order(run_id), call_id="c-new", target="web1", step=None, risk=CHANGE, effects=(), canonical="do it",
        authority="window:k", admitted="d", check=1, creates=("140",),
    )  # fmt: skip
    return replace(event, **more)


def begun(run_id: str = "r-new", **more: object) -> dict[str, RunState]:
    """The runs once `started(run_id)` is one of them."""
    new = run(run_id, call_id="c-new", step=None, key=f"{WEB1.id}\0do it\0", started_seq=SEQ, check=1, creates=("140",))
    return {**FULL.runs, run_id: replace(new, **more)}


MADE = Entity(id="e-new", kind="lxc", slug="new", name="new")
MAKES = replace(FULL.plan, steps=(*FULL.plan.steps, step(replace(MADE, id=""), planned(LOOK, READ), seq=5)))
"""The plan of the full state, with a step on what it creates."""
MAKES_IT = replace(
    MAKES,
    steps=(MAKES.steps[0], replace(MAKES.steps[1], target_id=MADE.id)),
    scope=(*MAKES.scope, Scope(target_id=MADE.id, slug="new")),
)
"""The same once that exists."""
RUNS_8 = replace(FULL.usage, runs=8)
CHANGES_4 = plan(4, (FIX, CHANGE), (LOOK, READ), first=9)
LOOKS_4 = plan(4, (LOOK, READ), first=9)
NEW_PLAN = {
    "generation": 4, "status": PlanStatus.PROPOSED, "digest": "e", "proposed_at": NOW, "ticked": frozenset(),
    "items": (), "window": None, "runs": ONLY_LIVE, "declined": frozenset(), "cited": frozenset(),
    "operator_since_plan": False, "turn_acted": True, "nudged": False, "usage": Usage(since=NOW), "raises": 0,
}  # fmt: skip
"""What every proposal sets: the counts, the decisions and the write-backs of a plan are its own."""

ROWS: dict[str, Row] = {
    "an opening says mode and home": Row(
        ev.SessionOpened(mode="look", lab=True), {"session_id": "s1", "mode": "look", "lab": True}, State()),
    # messages
    "a message counts as the operator's word and goes on with whatever blocked": Row(
        said(), {"operator_since_plan": True, "hold_proposals": False, "phase": Phase.EXECUTING, "blocked": None},
        replace(CALM, phase=Phase.BLOCKED, blocked=BLOCKED, operator_since_plan=False)),
    "a message that wakes nobody is only the operator's word": Row(
        said(wakes=False), {"operator_since_plan": True, "hold_proposals": False},
        replace(CALM, phase=Phase.BLOCKED, blocked=BLOCKED, operator_since_plan=False)),
    "a message beside a run that waits decides nothing": Row(
        said(), {"operator_since_plan": True, "hold_proposals": False},
        replace(CALM, phase=Phase.AWAITING, parked=PARKED)),
    "a message beside a question answers nothing": Row(
        said(), {"operator_since_plan": True, "hold_proposals": False},
        replace(CALM, phase=Phase.BLOCKED, question=ASKED)),
    "reopening forgets the task and keeps numbers, ledger and runs under way": Row(
        ev.SessionReopened(after="done", generation=3),
        {"phase": Phase.EXECUTING, "goal": "", "outcome": "", "summary": "", "plan": None,
         "status": PlanStatus.CLOSED, "steps": {}, "window": None, "parked": None, "question": None, "waiting": None,
         "blocked": None, "declined": frozenset(), "cited": frozenset(), "hold_proposals": False, "usage": Usage(),
         "raises": 0, "batch": Batch(calls=CALLS, broken=True), "nudged": False, "repeats": ("", 0),
         "repeat_nudged": False, "runs": ONLY_LIVE}, replace(FULL, phase=Phase.DONE)),
    # turns
    "a turn begins without reminders and repeats": Row(
        ev.TurnStarted(wake="message"),
        {"turn": True, "turn_acted": False, "nudged": False, "repeats": ("", 0), "repeat_nudged": False},
        replace(FULL, turn=False)),
    "a turn asks a model that failed again": Row(
        ev.TurnStarted(wake="timer"),
        {"turn_acted": False, "nudged": False, "repeats": ("", 0), "repeat_nudged": False, "blocked": None,
         "phase": Phase.EXECUTING},
        replace(FULL, phase=Phase.BLOCKED, blocked=ev.SessionBlocked(on="model", reason="503"))),
    "a turn ends at rest": Row(ev.TurnEnded(reason="idle"), {"turn": False, "phase": Phase.IDLE}),
    "a turn ends beside a plan that waits": Row(
        ev.TurnEnded(reason="approval"), {"turn": False, "phase": Phase.AWAITING},
        replace(FULL, status=PlanStatus.PROPOSED)),
    "a turn ends in what the session waits for": Row(
        ev.TurnEnded(reason="waiting"), {"turn": False}, replace(FULL, phase=Phase.WAITING)),
    "a response is counted, brings its calls and shows that the model answers": Row(
        ev.AssistantSaid(text="", calls=CALLS[:1], tokens_in=30, tokens_out=4),
        {"batch": Batch(calls=CALLS[:1]), "usage": replace(FULL.usage, tokens=534), "model_failures": 0}),
    # answers to calls
    "an answer is one call less": Row(
        answer("c-a"), {"batch": Batch(calls=CALLS[1:])}, CALM),
    "a refused call breaks the batch": Row(
        answer("c-a", refusal="no_plan"), {"batch": Batch(calls=CALLS[1:], broken=True)}, CALM),
    "the last answer ends an iteration": Row(
        answer("c-a"), {"batch": Batch(), "usage": replace(FULL.usage, iterations=4.0)},
        replace(CALM, batch=Batch(calls=CALLS[:1]))),
    "the last answer ends an iteration of reads": Row(
        answer("c-a"), {"batch": Batch(ran_reads=True), "usage": replace(FULL.usage, iterations=3.25)},
        replace(CALM, batch=Batch(calls=CALLS[:1], ran_reads=True))),
    "the answer to a parked call leaves nothing parked": Row(
        answer("c-parked"), {"parked": None, "batch": replace(FULL.batch, calls=CALLS[:1])}),
    "the same answer again is counted": Row(answer("c-z", seen="run:1"), {"repeats": ("run:1", 3)}),
    "another answer is counted anew": Row(answer("c-z", seen="run:2"), {"repeats": ("run:2", 1)}),
    "a wait ends the counting": Row(answer("c-z", name="wait"), {"repeats": ("", 0)}),
    # plans
    "a goal": Row(ev.GoalSet(goal="another"), {"goal": "another"}),
    "a plan that waits for its approval": Row(
        ev.PlanProposed(plan=CHANGES_4, digest="e", call_id="c-plan"),
        {**NEW_PLAN, "plan": CHANGES_4, "phase": Phase.AWAITING, "next_step": 11,
         "steps": {9: StepState(status=StepStatus.PENDING), 10: StepState(status=StepStatus.PENDING)},
         "batch": replace(CALM.batch, proposed=True, broken=True)},
        replace(CALM, turn_acted=False)),
    "a plan of reads": Row(
        ev.PlanProposed(plan=LOOKS_4, digest="e", call_id="c-plan"),
        {**NEW_PLAN, "plan": LOOKS_4, "phase": Phase.EXECUTING, "next_step": 10,
         "steps": {9: StepState(status=StepStatus.PENDING)}, "batch": replace(CALM.batch, proposed=True)},
        CALM),
    "an accepted plan is counted and worked on": Row(
        ev.PlanAccepted(generation=3),
        {"status": PlanStatus.ACCEPTED, "counted_plans": 3, "phase": Phase.EXECUTING},
        replace(FULL, status=PlanStatus.PROPOSED, phase=Phase.AWAITING)),
    "an approved plan is counted, worked on, and has its window": Row(
        ev.PlanApproved(generation=3, digest="d", consent_id="k-new", items=(2,)),
        {"status": PlanStatus.APPROVED, "items": (2,), "window": OPENED, "phase": Phase.EXECUTING, "blocked": None,
         "counted_plans": 3, "operator_since_plan": False, "decided": "plan 3 was approved by ben"},
        replace(CALM, status=PlanStatus.PROPOSED, phase=Phase.AWAITING, blocked=BLOCKED)),
    "an approved plan leaves a question open": Row(
        ev.PlanApproved(generation=3, digest="d", consent_id="k-new"),
        {"status": PlanStatus.APPROVED, "items": (), "window": OPENED, "blocked": None, "counted_plans": 3,
         "operator_since_plan": False, "decided": "plan 3 was approved by ben"},
        replace(FULL, status=PlanStatus.PROPOSED, phase=Phase.BLOCKED)),
    "a rejected plan rests until the operator writes": Row(
        ev.PlanRejected(generation=3, by="ben"),
        {"status": PlanStatus.REJECTED, "steps": REPLACED, "window": None, "decided": "plan 3 was rejected by ben",
         "phase": Phase.IDLE, "hold_proposals": True}, replace(FULL, phase=Phase.AWAITING, hold_proposals=False)),
    "a plan with changes asked for is worked on": Row(
        ev.PlanRejected(generation=3, by="ben", changes_asked=True),
        {"status": PlanStatus.REJECTED, "steps": REPLACED, "window": None, "decided": "plan 3 was rejected by ben",
         "phase": Phase.EXECUTING}, replace(FULL, phase=Phase.AWAITING)),
    "a closed plan covers no item any more": Row(
        ev.PlanClosed(generation=3, status="closed"),
        {"status": PlanStatus.CLOSED, "steps": REPLACED, "ticked": frozenset(), "items": ()},
        replace(FULL, phase=Phase.AWAITING)),
    "an expired card leaves the session at rest": Row(
        ev.PlanClosed(generation=3, status="expired"),
        {"status": PlanStatus.EXPIRED, "steps": REPLACED, "ticked": frozenset(), "items": (), "phase": Phase.IDLE},
        replace(FULL, phase=Phase.AWAITING)),
    "an expired card hides nothing else that goes on": Row(
        ev.PlanClosed(generation=3, status="expired"),
        {"status": PlanStatus.EXPIRED, "steps": REPLACED, "ticked": frozenset(), "items": ()}),
    "nobody answered": Row(ev.ApprovalUnanswered(generation=3), {"decided": "nobody answered in time"}),
    "a marked step": Row(
        ev.StepMarked(seq=5, status=StepStatus.DONE, note="it runs"),
        {"steps": {**FULL.steps, 5: StepState(status=StepStatus.DONE, note="it runs")}}),
    # consents
    "a consent is kept": Row(
        ev.ConsentGranted(consent=consent("k-run", Grant.RUN, WEB1.id)),
        {"consents": {**FULL.consents, "k-run": consent("k-run", Grant.RUN, WEB1.id)}}),
    "a consent to reopen opens the window": Row(
        ev.ConsentGranted(consent=consent("k-new", Grant.REOPEN, WEB1.id)),
        {"consents": {**FULL.consents, "k-new": consent("k-new", Grant.REOPEN, WEB1.id)}, "window": OPENED,
         "newest": NOW}, replace(FULL, window=None)),
    "a renewed window is a new one": Row(ev.WindowRenewed(consent_id="k-new"), {"window": OPENED}),
    "a ticked item": Row(
        ev.ItemTicked(generation=3, item=2, by="ben", text="destroy 132"),
        {"ticked": frozenset({1, 2}), "decided": "item 2 was ticked by ben"}),
    "ticked snapshots": Row(
        ev.ItemTicked(generation=3, item=0, by="ben", text="snapshot"),
        {"ticked": frozenset({0, 1}), "decided": "the snapshot was ticked by ben"}),
    "a suspended window": Row(ev.WindowSuspended(by="anna"), {"window": replace(WINDOW, suspended=True)}),
    "a closed window": Row(ev.WindowClosed(generation=3, reason="revoked"), {"window": None}),
    "a window closed for one machine": Row(
        ev.WindowClosed(generation=3, reason="identity", target_id=WEB1.id),
        {"window": replace(WINDOW, machines=(WEB2.id,))}),
    "a window closed for its last machine": Row(
        ev.WindowClosed(generation=3, reason="identity", target_id=WEB1.id), {"window": None},
        replace(FULL, window=replace(WINDOW, machines=(WEB1.id,)))),
    "a window closed for a machine that it never had": Row(
        ev.WindowClosed(generation=3, reason="identity", target_id="e-else")),
    "a window closed that is none": Row(
        ev.WindowClosed(generation=3, reason="identity", target_id=WEB1.id), {}, replace(FULL, window=None)),
    # a run that waits for its decision
    "a parked run breaks the batch": Row(
        PARKED.event,
        {"parked": replace(PARKED, at=NOW), "phase": Phase.AWAITING,
         "batch": Batch(calls=CALLS, broken=True, mutated=True)}, CALM),
    "an approved run waits for its start": Row(
        decided("approved", by="ben", consent_id="k-new"),
        {"parked": replace(PARKED, consent=FULL.consents["k-new"]), "phase": Phase.EXECUTING,
         "decided": "run aaaabbbb was approved by ben"}, replace(FULL, phase=Phase.AWAITING)),
    "an approval that no longer held is no refusal": Row(
        decided("void", consent_id="k-new"),
        {"parked": None, "phase": Phase.EXECUTING, "decided": "run aaaabbbb was void"},
        replace(FULL, phase=Phase.AWAITING)),
    "a declined run is not asked again": Row(
        decided("declined", by="ben"),
        {"parked": None, "phase": Phase.EXECUTING, "declined": frozenset({"x", KEY}),
         "decided": "run aaaabbbb was declined by ben"}, replace(FULL, phase=Phase.AWAITING)),
    "a run that nobody answered is not asked again": Row(
        decided("unanswered"),
        {"parked": None, "phase": Phase.EXECUTING, "declined": frozenset({"x", KEY}),
         "decided": "run aaaabbbb was unanswered"}, replace(FULL, phase=Phase.AWAITING)),
    "a run that was stopped is no refusal of the command": Row(
        decided("stopped", by="ben"),
        {"parked": None, "phase": Phase.EXECUTING, "decided": "run aaaabbbb was stopped by ben"},
        replace(FULL, phase=Phase.AWAITING)),
    "a decision where nothing is parked": Row(decided("declined", by="ben"), {}, CALM),
    # runs
    "a started change": Row(
        started(), {"runs": begun(), "turn_acted": True, "usage": RUNS_8, "batch": Batch(calls=CALLS, mutated=True)},
        replace(CALM, turn_acted=False)),
    "a started read": Row(
        started(risk=READ),
        {"runs": begun(risk=READ), "usage": RUNS_8, "batch": Batch(calls=CALLS, ran_reads=True)}, CALM),
    "a probe is nothing the response did": Row(
        started(authority="probe"), {"runs": begun(authority="probe"), "usage": RUNS_8}, CALM),
    "a started run begins its step": Row(
        started(step=7),
        {"runs": begun(step=7), "usage": RUNS_8, "batch": Batch(calls=CALLS, mutated=True),
         "steps": {**FULL.steps, 7: StepState(status=StepStatus.RUNNING)}}, CALM),
    "a started run keeps the note of a step under way": Row(
        started(step=5), {"runs": begun(step=5), "usage": RUNS_8, "batch": Batch(calls=CALLS, mutated=True)}, CALM),
    "a started run of a step that is not the plan's": Row(
        started(step=2), {"runs": begun(step=2), "usage": RUNS_8, "batch": Batch(calls=CALLS, mutated=True)}, CALM),
    "the start of the parked run leaves nothing parked": Row(
        started(PARKED.event.order.run_id, canonical=""),
        {"runs": begun(PARKED.event.order.run_id, key=f"{WEB1.id}\0do aaaabbbbccccdddd\0"), "parked": None,
         "usage": RUNS_8}),
    "another start leaves the parked run": Row(started(), {"runs": begun(), "usage": RUNS_8}),
    "a run that is let go": Row(
        ev.RunDetached(run_id=LIVE.order.run_id, reason="background"),
        {"runs": {**FULL.runs, LIVE.order.run_id: replace(LIVE, detached=True)}}),
    "the end of a run": Row(
        ev.RunFinished(run_id=LIVE.order.run_id, report=RunReport(outcome=Exited(code=3)), passed=False),
        {"runs": {**FULL.runs, LIVE.order.run_id: replace(LIVE, outcome=Exited(code=3), ended_seq=SEQ, passed=False)}}),
    "the end of a run that is history": Row(
        ev.RunFinished(run_id="r-else", report=RunReport(outcome=Exited(code=3)))),
    # what a plan creates
    "what the plan made is a machine of the plan and of its window": Row(
        ev.EntityCreated(generation=3, entity=MADE, run_id=OVER.order.run_id),
        {"plan": MAKES_IT, "window": replace(WINDOW, machines=(*WINDOW.machines, MADE.id))},
        replace(FULL, plan=MAKES)),
    "what the plan made opens no window": Row(
        ev.EntityCreated(generation=3, entity=MADE, run_id=OVER.order.run_id), {"plan": MAKES_IT},
        replace(FULL, plan=MAKES, window=None)),
    "what an earlier plan made is nothing to this one": Row(
        ev.EntityCreated(generation=2, entity=MADE, run_id="r-old"), {}, replace(FULL, plan=MAKES)),
    "what was made for a plan that is history": Row(
        ev.EntityCreated(generation=3, entity=MADE, run_id="r-old"), {}, replace(FULL, plan=None)),
    # facts, questions, waits
    "facts that cite a run": Row(
        ev.FactsWritten(entity_id=WEB1.id, facts=(), run_id=LIVE.order.run_id),
        {"cited": FULL.cited | {LIVE.order.run_id}}),
    "facts that cite none": Row(ev.FactsWritten(entity_id=WEB1.id, facts=())),
    "a question blocks": Row(ASKED, {"question": ASKED, "phase": Phase.BLOCKED}, CALM),
    "an answer goes on, and is the operator's word": Row(
        ev.QuestionAnswered(call_id="c-ask", text="the second", by="anna"),
        {"question": None, "blocked": None, "phase": Phase.EXECUTING, "operator_since_plan": True,
         "hold_proposals": False}, replace(FULL, phase=Phase.BLOCKED, operator_since_plan=False)),
    "a wait": Row(WAIT, {"waiting": WAIT, "phase": Phase.WAITING}, CALM),
    "the end of a wait goes on": Row(
        ev.WaitEnded(call_id="c-wait", by="timer"), {"waiting": None, "phase": Phase.EXECUTING},
        replace(FULL, phase=Phase.WAITING)),
    "the end of a wait does not go on with what is blocked": Row(
        ev.WaitEnded(call_id="c-wait", by="timer"), {"waiting": None}, replace(FULL, phase=Phase.BLOCKED)),
    # reminders, limits, the model
    "a reminder of open steps": Row(ev.Nudged(about="open_steps", text="x"), {"nudged": True},
                                    replace(FULL, nudged=False, repeat_nudged=False)),
    "a reminder of repeats": Row(ev.Nudged(about="repetition", text="x"), {"repeat_nudged": True},
                                 replace(FULL, nudged=False, repeat_nudged=False)),
    "a warning of a limit": Row(
        ev.LimitWarned(limit="tokens", used=8.0, of=10.0),
        {"usage": replace(FULL.usage, warned=frozenset({"runs", "tokens"}))}),
    "what only a person can go on with": Row(
        ev.SessionBlocked(on="nudge", reason="x"),
        {"blocked": ev.SessionBlocked(on="nudge", reason="x"), "phase": Phase.BLOCKED}),
    "a model that fails is counted": Row(
        ev.SessionBlocked(on="model", reason="503"),
        {"blocked": ev.SessionBlocked(on="model", reason="503"), "phase": Phase.BLOCKED, "model_failures": 4}),
    "a raise goes on": Row(
        ev.LimitRaised(by="anna"),
        {"raises": 3, "blocked": None, "phase": Phase.EXECUTING, "usage": replace(FULL.usage, warned=frozenset())},
        replace(FULL, phase=Phase.BLOCKED)),
    "a raise while it waits": Row(
        ev.LimitRaised(by="anna"), {"raises": 3, "blocked": None, "usage": replace(FULL.usage, warned=frozenset())},
        replace(FULL, phase=Phase.WAITING)),
    "a request that is made again": Row(ev.ModelRetried(attempt=1, delay_s=2.0, reason="429")),
    # taught rules have a stream of their own
    "a taught rule": Row(
        ev.RuleTaught(
            rule=TaughtRule(id="t", argv=("x",), targets=(WEB1.id,), risk=READ, by="ada", at_s=0.0), text="teach x")),
    "a removed rule": Row(ev.RuleRemoved(rule_id="t", by="ada")),
    # ends
    **{f"completed as {outcome}": Row(
        ev.SessionCompleted(outcome=outcome, summary="so it is"),
        {"phase": phase, "outcome": outcome, "summary": "so it is", "window": None, "parked": None, "question": None,
         "waiting": None, "blocked": None})
       for outcome, phase in (("done", Phase.DONE), ("nothing_to_do", Phase.DONE), ("failed", Phase.FAILED))},
    "stopped": Row(
        ev.SessionStopped(by="ben", runs="kill"),
        {"phase": Phase.STOPPED, "outcome": "stopped", "window": None, "parked": None, "question": None,
         "waiting": None, "blocked": None, "decided": "stopped by ben"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_an_event_changes_this_and_nothing_else(name: str) -> None:
    row = ROWS[name]
    after = evolve(row.of, ev.Recorded(session_id="s1", seq=SEQ, at=NOW, event=row.event))
    expected = replace(row.of, **{"seq": SEQ, "newest": NOW, **row.changes})
    found = {each.name: getattr(after, each.name) for each in fields(State)}
    assert found == {each.name: getattr(expected, each.name) for each in fields(State)}


def test_every_kind_of_event_has_a_row() -> None:
    missing = {kind.__name__ for kind in ev.Event.__args__} - {type(row.event).__name__ for row in ROWS.values()}
    assert missing == set()


# ---- times and keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "newest"),
    [
        (ev.TurnEnded(reason="idle"), at(100.0)),
        (ev.WindowSuspended(by="anna"), at(100.0)),
        (ev.WindowRenewed(consent_id="k-new"), at(10.0)),
    ],
)
def test_only_a_window_that_opens_is_measured_from_an_earlier_clock(event: ev.Event, newest: object) -> None:
    """What a wrong clock said before does not count against it; every other event leaves the newest time."""
    assert evolve(FULL, ev.Recorded(session_id="s1", seq=SEQ, at=at(10.0), event=event)).newest == newest


def test_commands_with_different_input_are_different_and_no_input_is_empty_input() -> None:
    keys = [run_key("e", "psql", stdin) for stdin in (None, "", "None", "one", "two")]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4
