"""What the model is told when a call of its own is refused (SPEC R2.8): code, text and directive, whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.domain.table_r1_11 import STATES
from tests.domain.world import (
    ANNA,
    CHANGE,
    CHECK,
    DAY_S,
    FIX,
    LOOK,
    READ,
    SESSION,
    WEB1,
    WEB2,
    Session,
    at,
    check,
    fact,
    fix_plan,
    look_plan,
    planned,
    propose,
    step,
    verdict,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.agent_rules import NO_PLAN_DIRECTIVE, session_over
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import admit
from oikos.domain.inventory import Entity
from oikos.domain.plan import StepStatus
from oikos.domain.run import Exited, NeverStarted, RunOrder
from oikos.domain.state import Phase

Build = Callable[[], Session]

RUN = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
"""As long as real ids are: people and models are told the first eight."""
DONE = it.Complete(outcome="done", summary="it runs")


def begun() -> Session:
    return Session.opened().begin()


def greeted() -> Session:
    """A message, and no goal yet."""
    session = Session.opened()
    session.must(session.send("hello"))
    return session


def looking(*finished: str, running: tuple[str, ...] = ()) -> Session:
    """Under an accepted plan of one look: runs that ended with 0, and runs that have not ended."""
    session = begun()
    session.must(look_plan())
    for run_id in (*finished, *running):
        order = RunOrder(run_id=run_id, session_id=SESSION, generation=1, target_id=WEB1.id, command=LOOK)
        question = session.question(LOOK, verdict(LOOK, READ), order=order)
        session.start(question, admit(question))
        if run_id in finished:
            session.finish(run_id, Exited(code=0))
    return session


def answered(plan: it.Propose) -> Session:
    """A plan waits, and the operator wrote meanwhile."""
    session = begun()
    session.must(plan)
    session.must(session.send("what does it do?"))
    return session.calls()


def overtaken(plan: it.Propose) -> Session:
    """The loop comes round while a plan waits, without a word of the operator: the rules say no by themselves."""
    session = begun()
    session.must(plan)
    session.state = replace(session.state, phase=Phase.EXECUTING, batch=replace(session.state.batch, proposed=False))
    return session


def rejected() -> Session:
    session = begun()
    session.must(fix_plan())
    session.must(it.Reject(by=ANNA))
    return session.calls()


def mutated() -> Session:
    """The response has changed something already, under a plan that the operator's word lets go."""
    session = Session.opened().approved()
    session.must(session.send("another way, please"))
    session.calls("c-run").run(FIX, verdict(FIX, CHANGE))
    return session


def left_running(*run_ids: str) -> Session:
    """Changes that go on from an earlier plan; of the newest, a look, everything is done."""
    session = Session.opened().approved()
    for run_id in run_ids:
        command = f"mkdir /srv/{run_id[:8]}"
        order = RunOrder(run_id=run_id, session_id=SESSION, generation=1, target_id=WEB1.id, command=command)
        question = session.question(command, verdict(command, CHANGE), order=order)
        session.start(question, admit(question))
    session.must(session.send("look first"))
    session.calls()
    session.must(look_plan("c2"))
    session.write_back(session.run(LOOK, verdict(LOOK, READ), step=2))
    return session.mark(2, StepStatus.DONE)


def changed(*targets: Entity) -> Session:
    """Changes on some machines of an approved plan without a check, written back, its step done."""
    session = Session.opened().approved(propose(step(WEB1, planned(FIX, CHANGE)), on=(WEB1, WEB2)))
    for target in targets:
        session.write_back(session.run(FIX, verdict(FIX, CHANGE), target=target))
    return session.mark(1, StepStatus.DONE)


def marked(*statuses: StepStatus) -> Session:
    """An approved plan whose steps stand so, without a note."""
    session = Session.opened().approved(propose(*(step(WEB1, planned(FIX, CHANGE)) for _ in statuses)))
    for number, status in enumerate(statuses, start=1):
        session.mark(number, status)
    return session


def write(run_id: str, *keys: str) -> it.WriteFacts:
    facts = tuple(fact(run_id, key=key) for key in keys or ("demo.state",))
    return it.WriteFacts(entity_id=WEB1.id, facts=facts, run_id=run_id)


def waits(run_id: str) -> it.Wait:
    return it.Wait(call_id="c-wait", seconds=60.0, reason="x", run_id=run_id)


def no(code: Code, text: str, directive: str) -> Refusal:
    return Refusal(code=code, text=text, directive=directive)


WAIT_FOR_IT = no(Code.AWAITING_OPERATOR, "Plan 1 waits for the operator's decision.", "Wait for it.")
OVER = "Do nothing more; the operator's next message reopens the session."
NO_RUN = no(
    Code.UNKNOWN_RUN,
    "A write-back cites the run that showed it; this id is no run of the current plan.",
    "Pass `run` with the id of a run of this plan whose output shows the value.",
)
BARE = "Say why with update_plan_step and a note."
CLOSE = "Do them, or mark each done, failed or skipped with update_plan_step and a note."
TOUCHED = "Say in the summary what was tried and in which state each touched target is."

REFUSED: dict[str, tuple[Build, it.AgentIntent, Refusal]] = {
    # the session does not go on by a call of the model
    "while a plan waits": (
        STATES["awaiting-plan"], it.SetGoal(goal="x"),
        no(Code.AWAITING_OPERATOR, "The session is awaiting_approval: plan 1: the demo service runs.",
           "Wait for the operator's decision or for the wait to end.")),
    "while it waits": (
        STATES["waiting"], it.SetGoal(goal="x"),
        no(Code.AWAITING_OPERATOR, "The session is waiting: it waits.",
           "Wait for the operator's decision or for the wait to end.")),
    "completing twice": (
        STATES["done"], DONE,
        no(Code.COMPLETED_ALREADY, "The task was completed already in this turn.",
           "Say nothing more; the operator's next message reopens the session.")),
    "completing after a failure": (
        STATES["failed"], DONE,
        no(Code.COMPLETED_ALREADY, "The task was completed already in this turn.",
           "Say nothing more; the operator's next message reopens the session.")),
    "completing what was stopped": (
        STATES["stopped"], DONE, no(Code.SESSION_OVER, "The session is stopped.", OVER)),
    "a goal after the end": (
        STATES["done"], it.SetGoal(goal="x"), no(Code.SESSION_OVER, "The session is done.", OVER)),
    # set_goal
    "an empty goal": (
        begun, it.SetGoal(goal=" \n"),
        no(Code.MALFORMED_CALL, "The goal is empty.", "State the goal in one sentence.")),
    "another goal under a live plan": (
        looking, it.SetGoal(goal="x"),
        no(Code.GOAL_LIVE, "Plan 1 is live for the goal: the demo service runs",
           "Go on with that plan. A new goal needs a new message of the operator, or complete_task first.")),
    # propose_plan
    "a plan without a goal": (
        greeted, fix_plan(),
        no(Code.NO_GOAL, "There is no goal yet.", "Call set_goal with one sentence, then propose_plan.")),
    "a plan without a step": (
        begun, propose(),
        no(Code.EMPTY_PLAN, "The plan has no steps.", "Propose at least one step with its target and commands.")),
    "a change in a session that may only look": (
        lambda: Session.opened(mode="look").begin(), fix_plan(),
        no(Code.LOOK_ONLY_SESSION, "This session may only look: no plan above read-only is accepted.",
           "Propose read-only steps, or complete_task saying what would have to change.")),
    "a plan after a rejection": (
        rejected, look_plan(),
        no(Code.AWAITING_OPERATOR, "Plan 1 was rejected.",
           "Wait for the operator's next message before you propose again.")),
    "a plan beside one that waits": (lambda: overtaken(fix_plan()), look_plan(), WAIT_FOR_IT),
    "a plan beside a change": (
        mutated, fix_plan("c2"),
        no(Code.PROPOSE_AND_RUN, "One response may not both propose a plan and run something that is not read-only.",
           "Propose the plan alone; run its steps in later responses.")),
    # update_plan_step
    "a step replaced by hand": (
        STATES["executing"], it.MarkStep(seq=1, status=StepStatus.REPLACED),
        no(Code.MALFORMED_CALL, "A step becomes `replaced` only when its plan is.", "Use done, failed or skipped.")),
    "a step of a plan that waits": (
        lambda: answered(fix_plan()), it.MarkStep(seq=1, status=StepStatus.DONE), WAIT_FOR_IT),
    "a step without a plan": (
        begun, it.MarkStep(seq=1, status=StepStatus.DONE),
        no(Code.NO_PLAN, "There is no live plan.", NO_PLAN_DIRECTIVE)),
    "a step that is not there": (
        lambda: marked(StepStatus.PENDING, StepStatus.PENDING), it.MarkStep(seq=9, status=StepStatus.DONE),
        no(Code.UNKNOWN_STEP, "Step 9 does not exist.", "The live plan's steps are 1, 2.")),
    # update_entity_attributes
    "facts about the way in": (
        lambda: looking(RUN), write(RUN, "user", "demo.state", "Port", "net.eth0.key ", "port.open"),
        no(Code.NEEDS_OPERATOR, "Port, net.eth0.key , user: how a machine is reached is written by operators only.",
           "Tell the operator what you found, with ask_operator or in the summary; do not write it.")),
    "facts without a run": (lambda: looking(RUN), write(""), NO_RUN),
    "facts of a run that nobody knows": (lambda: looking(RUN), write(OTHER), NO_RUN),
    "facts of a run that still runs": (
        lambda: looking(running=(RUN,)), write(RUN),
        no(Code.RUN_STILL_RUNNING, "Run 01234567 has not finished.", "Wait for it, then write back.")),
    # wait
    "a wait for a run that nobody knows": (
        looking, waits(RUN),
        no(Code.UNKNOWN_RUN, "There is no run 01234567.", "Name a run of this session.")),
    "a wait for a run that is over": (
        lambda: looking(RUN), waits(RUN),
        no(Code.UNKNOWN_RUN, "Run 01234567 has finished already.", "Read it with read_output.")),
    # complete_task
    "an outcome of its own": (
        begun, it.Complete(outcome="success", summary="x"),
        no(Code.MALFORMED_CALL, "'success' is no outcome.", "Use done, failed or nothing_to_do.")),
    "an end without a goal": (
        greeted, DONE, no(Code.NO_GOAL, "There is no goal to complete.", "Call set_goal first.")),
    "an end while runs are under way": (
        lambda: looking(running=(RUN, OTHER)), DONE,
        no(Code.RUN_STILL_RUNNING, "Still running: 01234567, fedcba98.",
           "Use wait, read the result, then complete.")),
    "an end while a plan waits": (lambda: overtaken(fix_plan()), DONE, WAIT_FOR_IT),
    "an end with evidence that nobody knows": (
        lambda: looking(RUN), replace(DONE, evidence=(RUN, OTHER, "x")),
        no(Code.UNKNOWN_RUN, f"Evidence names no run of this plan: {OTHER}, x.",
           "Give the ids of runs of this plan, or none.")),
    "an end with open steps": (
        lambda: marked(StepStatus.RUNNING, StepStatus.DONE, StepStatus.PENDING), DONE,
        no(Code.STEPS_OPEN, "Open steps: 1, 3.", CLOSE)),
    "an end without a word about what was not done": (
        lambda: marked(StepStatus.SKIPPED, StepStatus.DONE, StepStatus.FAILED), DONE,
        no(Code.NO_NOTE, "Steps 1, 3 were skipped or failed without a note.", BARE)),
    "an end without a write-back": (
        lambda: looking(RUN).mark(1, StepStatus.DONE), DONE,
        no(Code.NO_WRITE_BACK, "Nothing of what was learned is in the inventory yet.",
           "Call update_entity_attributes citing a run of this plan, then complete_task.")),
    "done, with a change and no check": (
        lambda: changed(WEB1), DONE,
        no(Code.NO_CHECK, "The plan changes something and has no check.",
           "Nothing proves the goal: complete as failed, or ask the operator for leave to propose a plan with "
           "checks.")),
    "done, while changes of an earlier plan go on": (
        lambda: left_running(RUN, OTHER), DONE,
        no(Code.RUN_STILL_RUNNING, "A change still runs, or was not proven dead: 01234567, fedcba98.",
           "Use wait with a run that goes on, run the checks again, then complete. One that outlived its time limit "
           "stays unproven: complete as failed, or ask the operator.")),
    "failed, without a word about what was touched": (
        lambda: changed(WEB2, WEB1), it.Complete(outcome="failed", summary="tried it twice"),
        no(Code.NO_NOTE, "A failure needs a note: what was tried and the state of web1, web2.", TOUCHED)),
    "failed, without a word": (
        begun, it.Complete(outcome="failed", summary=" "),
        no(Code.NO_NOTE, "A failure needs a note: what was tried.", TOUCHED)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_call_says_why_and_what_to_do_next(name: str) -> None:
    build, intent, refusal = REFUSED[name]
    assert build().refuse(intent) == refusal


@pytest.mark.parametrize("state", ["done", "failed", "stopped"])
def test_only_completing_again_is_told_that_it_was_completed(state: str) -> None:
    """The gate asks with the same words for a run."""
    assert session_over(STATES[state]().state).code is Code.SESSION_OVER


# ---- at the edges ----------------------------------------------------------------------------------------------------


def test_done_under_a_plan_of_reads_whose_check_passed() -> None:
    session = begun()
    session.must(replace(look_plan(), checks=(check(),)))
    session.write_back(session.run(LOOK, verdict(LOOK, READ), step=1))
    session.mark(1, StepStatus.DONE)
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.must(DONE)
    assert session.phase == "done"


@pytest.mark.parametrize(("left_s", "reason"), [(0.5, ""), (0.0, "expired")])
def test_a_window_is_open_to_its_last_moment(left_s: float, reason: str) -> None:
    events = STATES["executing"]().must(it.Tick(), now=at(1800.0 - left_s))
    assert events == ((ev.WindowClosed(generation=1, reason=reason),) if reason else ())


def test_a_parked_run_that_nobody_answers_is_told_to_the_model_and_to_people() -> None:
    session = STATES["awaiting-run"]()
    assert session.state.parked is not None
    run_id = session.state.parked.event.order.run_id
    session.record(ev.WindowClosed(generation=1, reason="expired"))
    assert session.must(it.Tick(), now=at(DAY_S)) == ()
    told = {"refused": "declined", "text": "Nobody answered within 24 hours.", "do": "Complete as failed, or ask."}
    assert session.must(it.Tick(), now=at(DAY_S + 0.5)) == (
        ev.ApprovalUnanswered(generation=1, run_id=run_id),
        ev.RunDecided(run_id=run_id, decision="unanswered"),
        ev.ToolAnswered(call_id="c-run", name="run", text=json.dumps(told), refusal="declined"),
    )
    assert (session.phase, session.state.parked) == ("executing", None)


def test_what_runs_out_at_one_moment_ends_together() -> None:
    session = STATES["executing"]().calls("c-wait")
    session.must(it.Wait(call_id="c-wait", seconds=1800.0, reason="settle"))
    events = session.must(it.Tick(), now=at(1800.0))
    assert events[:2] == (ev.WindowClosed(generation=1, reason="expired"), ev.WaitEnded(call_id="c-wait", by="timer"))
    assert session.phase == "executing"


def test_a_failed_step_without_a_run_that_began_is_not_made_good() -> None:
    session = Session.opened().approved()
    session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=NeverStarted(reason="no route"))
    session.mark(1, StepStatus.FAILED, "web1 does not answer")
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.write_back(next(run_id for run_id, run in session.state.runs.items() if run.check == 0))
    assert session.refuse(DONE) == no(
        Code.STEP_FAILED, "Step 1 failed and no later run of it succeeded.", "Make it succeed, or complete as failed."
    )
