"""What the agent's own calls may do (SPEC §2): goals, proposals, steps, write-backs, waits, completion."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.domain.table_r1_11 import STATES
from tests.domain.world import (
    ANNA,
    CHANGE,
    CHECK,
    FIX,
    LOOK,
    PVE1,
    READ,
    SESSION,
    WEB1,
    WEB2,
    Session,
    at,
    check,
    destroy_plan,
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
from oikos.domain.admission import Admission
from oikos.domain.agent_rules import ACCESS_KEYS, NO_PLAN_DIRECTIVE, open_steps, steers_access
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import admit
from oikos.domain.plan import AfterFailed, PlanStatus, StepStatus
from oikos.domain.run import Exited, NeverStarted, RemoteState, RunOrder, TimedOut, Unknown
from oikos.domain.state import Phase, StepState

DONE = it.Complete(outcome="done", summary="it runs")
FAILED = it.Complete(outcome="failed", summary="tried to restart it; web1 is as before")
NOTHING = it.Complete(outcome="nothing_to_do", summary="it ran all the time")


def answered(session: Session, text: str = "go on, differently") -> Session:
    """The operator writes and the model comes round again."""
    session.must(session.send(text))
    return session.calls()


# ---- set_goal (R2.2) -------------------------------------------------------------------------------------------------


def test_a_goal_is_recorded_and_opens_nothing() -> None:
    session = Session.opened()
    session.must(session.send("fix it"))
    assert session.must(it.SetGoal(goal="  it runs \n")) == (ev.GoalSet(goal="it runs"),)
    assert (session.state.live_plan, session.state.window, session.state.goal) == (None, None, "it runs")
    refusal = session.ask("uptime", verdict("uptime", READ))
    assert isinstance(refusal, Refusal)
    assert refusal.directive == NO_PLAN_DIRECTIVE


@pytest.mark.parametrize("goal", ["", " \n"])
def test_a_goal_says_something(goal: str) -> None:
    assert Session.opened().begin().refuse(it.SetGoal(goal=goal)).code is Code.MALFORMED_CALL


@pytest.mark.parametrize("plan", [look_plan(), fix_plan()])
def test_a_live_plan_holds_its_goal_until_the_operator_writes(plan: it.Propose) -> None:
    session = Session.opened().begin()
    session.must(plan)
    if session.state.phase is Phase.AWAITING:
        session.must(session.approve())
        session.calls()
    refusal = session.refuse(it.SetGoal(goal="another"))
    assert (refusal.code, refusal.text) == (Code.GOAL_LIVE, "Plan 1 is live for the goal: the demo service runs")
    answered(session)
    closing = [ev.PlanClosed(generation=1, status="closed", reason="new goal")]
    if plan == fix_plan():
        closing.append(ev.WindowClosed(generation=1, reason="superseded"))
    assert session.must(it.SetGoal(goal="another")) == (*closing, ev.GoalSet(goal="another"))
    assert session.state.steps[1].status is StepStatus.REPLACED


# ---- propose_plan (R2.3, R2.4, R2.9, R2.10) --------------------------------------------------------------------------


def test_a_plan_needs_a_goal() -> None:
    session = Session.opened()
    session.must(session.send("fix it"))
    assert session.refuse(fix_plan()) == Refusal(
        code=Code.NO_GOAL, text="There is no goal yet.", directive="Call set_goal with one sentence, then propose_plan."
    )


def test_an_empty_plan_is_none() -> None:
    assert Session.opened().begin().refuse(propose()).code is Code.EMPTY_PLAN


def test_a_refused_proposal_takes_no_number() -> None:
    session = Session.opened().begin()
    session.refuse(propose())
    session.must(look_plan())
    session.calls()
    session.refuse(propose())
    session.must(fix_plan("c2"))
    assert [r.event.plan.generation for r in session.records if isinstance(r.event, ev.PlanProposed)] == [1, 2]
    assert session.state.counted_plans == 1
    session.must(session.approve())
    assert session.state.counted_plans == 2


def test_an_approved_plan_is_replaced_only_after_the_operator_said_something() -> None:
    session = Session.opened().approved()
    refusal = session.refuse(fix_plan("c2"))
    assert refusal == Refusal(
        code=Code.PLAN_LIVE,
        text="Plan 1 is approved and under way.",
        directive="Continue it with run and update_plan_step, or use ask_operator; after the operator's next message "
        "a fresh plan may be proposed.",
    )
    answered(session)
    assert session.must(fix_plan("c2"))[:2] == (
        ev.PlanClosed(generation=1, status="superseded", reason="plan 2"),
        ev.WindowClosed(generation=1, reason="superseded"),
    )


def test_the_answer_to_a_question_counts_as_the_operators_word() -> None:
    """R2.9: "only after an operator message or answer"."""
    session = Session.opened().approved().calls("c-ask")
    session.must(it.Ask(call_id="c-ask", kind="text", text="Which disk?"))
    session.must(session.send("the second"))
    session.calls()
    session.must(fix_plan("c2"))


def test_approving_uses_up_what_was_said_before() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    session.must(session.send("what does it do?"))
    session.must(session.approve())
    session.calls()
    assert session.refuse(fix_plan("c2")).code is Code.PLAN_LIVE


def test_a_plan_that_waits_is_replaced_only_after_the_operator_said_something() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    assert session.refuse(fix_plan("c2")).code is Code.AWAITING_OPERATOR
    answered(session)
    assert session.must(look_plan())[0] == ev.PlanClosed(generation=1, status="superseded", reason="plan 2")


def test_a_waiting_plan_is_not_replaced_by_the_turn_it_waits_in() -> None:
    """Should the loop come round without a word of the operator, the pure rule says no by itself."""
    session = Session.opened().begin()
    session.must(fix_plan())
    session.state = replace(session.state, phase=Phase.EXECUTING, batch=replace(session.state.batch, proposed=False))
    assert session.refuse(fix_plan("c2")).text == "Plan 1 waits for the operator's decision."
    assert session.refuse(NOTHING).text == "Plan 1 waits for the operator's decision."


def test_after_a_rejection_nothing_is_proposed_until_the_operator_writes() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    session.must(it.Reject(by=ANNA))
    session.calls()
    assert session.refuse(look_plan()).text == "Plan 1 was rejected."
    answered(session)
    session.must(look_plan())


def test_changes_asked_for_are_an_invitation() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    session.must(it.AskForChanges(text="on web2, please", by=ANNA))
    session.calls()
    session.must(fix_plan("c2"))
    assert session.state.generation == 2


def test_step_numbers_continue_by_position_whatever_was_sent() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    session.calls()
    odd = destroy_plan(condition=AfterFailed(step=1))
    odd = replace(odd, steps=tuple(replace(one, seq=-3) for one in odd.steps))
    (_, proposed) = session.must(odd)
    assert isinstance(proposed, ev.PlanProposed)
    assert [one.seq for one in proposed.plan.steps] == [2, 3]
    marked = proposed.plan.steps[1].commands[0].preauthorise
    assert marked is not None
    assert marked.condition == AfterFailed(step=2)
    assert session.state.next_step == 4


# ---- update_plan_step (R2.5) -----------------------------------------------------------------------------------------


def test_a_step_of_the_live_plan_is_marked() -> None:
    session = Session.opened().approved()
    assert session.must(it.MarkStep(seq=1, status=StepStatus.SKIPPED, note="not needed")) == (
        ev.StepMarked(seq=1, status=StepStatus.SKIPPED, note="not needed"),
    )
    assert session.state.steps == {1: StepState(status=StepStatus.SKIPPED, note="not needed")}


def test_a_run_that_names_a_step_marks_it_running_by_itself() -> None:
    session = Session.opened().approved()
    session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=Exited(code=1))
    assert session.state.steps[1] == StepState(status=StepStatus.RUNNING)
    session.mark(1, StepStatus.FAILED, "no")
    session.run(FIX, verdict(FIX, CHANGE), step=1)
    assert session.state.steps[1] == StepState(status=StepStatus.RUNNING)


@pytest.mark.parametrize(
    ("seq", "code", "text"),
    [
        (1, Code.STEP_CLOSED, "Step 1 belongs to a closed generation."),
        (3, Code.UNKNOWN_STEP, "Step 3 does not exist."),
        (0, Code.UNKNOWN_STEP, "Step 0 does not exist."),
        (-1, Code.UNKNOWN_STEP, "Step -1 does not exist."),
    ],
)
def test_other_steps_are_not_marked(seq: int, code: Code, text: str) -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    session.calls()
    session.must(fix_plan("c2"))
    session.must(session.approve())
    refusal = session.refuse(it.MarkStep(seq=seq, status=StepStatus.DONE))
    assert refusal == Refusal(code=code, text=text, directive="The live plan's steps are 2.")


def test_only_closing_a_plan_replaces_its_steps() -> None:
    assert (
        Session.opened().approved().refuse(it.MarkStep(seq=1, status=StepStatus.REPLACED)).code is Code.MALFORMED_CALL
    )


def test_without_a_live_plan_no_step_is_marked() -> None:
    assert Session.opened().begin().refuse(it.MarkStep(seq=1, status=StepStatus.DONE)).code is Code.NO_PLAN


def test_a_step_of_a_plan_that_waits_is_not_marked() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    answered(session)
    assert session.refuse(it.MarkStep(seq=1, status=StepStatus.DONE)).code is Code.AWAITING_OPERATOR


# ---- update_entity_attributes (R2.1, R6.2) ---------------------------------------------------------------------------


def write(run_id: str, key: str = "demo.state") -> it.WriteFacts:
    return it.WriteFacts(entity_id=WEB1.id, facts=(fact(run_id, key=key),), run_id=run_id)


def test_a_write_back_cites_a_finished_run_of_this_plan() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    run_id = session.run(LOOK, verdict(LOOK, READ))
    assert session.must(write(run_id)) == (ev.FactsWritten(entity_id=WEB1.id, facts=(fact(run_id),), run_id=run_id),)
    assert session.state.cited == {run_id}


@pytest.mark.parametrize("key", [*sorted(ACCESS_KEYS), "Address", " user "])
def test_how_a_machine_is_reached_is_never_written_by_the_model(key: str) -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    refusal = session.refuse(write(session.run(LOOK, verdict(LOOK, READ)), key=key))
    assert refusal.code is Code.NEEDS_OPERATOR
    assert key in refusal.text


def test_a_run_of_an_earlier_plan_or_none_is_not_cited() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    question = session.question(LOOK, verdict(LOOK, READ))
    session.start(question, admit(question))
    assert session.refuse(write(question.order.run_id)).code is Code.RUN_STILL_RUNNING
    session.calls()
    session.must(look_plan("c2"))
    session.finish(question.order.run_id, Exited(code=0))
    assert session.refuse(write(question.order.run_id)).code is Code.UNKNOWN_RUN
    assert session.refuse(write("r99")).code is Code.UNKNOWN_RUN
    assert session.refuse(write("")).code is Code.UNKNOWN_RUN


def test_without_a_plan_nothing_is_written_back() -> None:
    session = STATES["done"]()
    run_id = next(iter(session.state.runs))
    session.must(session.send("and now?"))
    assert session.refuse(write(run_id)).code is Code.UNKNOWN_RUN


def test_a_run_that_never_started_shows_nothing_to_write_back() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    assert (
        session.refuse(write(session.run(LOOK, verdict(LOOK, READ), outcome=NeverStarted(reason="x")))).code
        is Code.UNKNOWN_RUN
    )


# ---- wait (R1.5, R2) -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (10.0, 10.0),
        (3600.0, 3600.0),
        (3600.1, 3600.0),
        (1e12, 3600.0),
        (-5.0, 0.0),
        (math.inf, 3600.0),
        (math.nan, 0.0),
    ],
)
def test_a_wait_is_at_most_an_hour_and_at_least_nothing(asked: float, given: float) -> None:
    session = Session.opened().approved().calls("c-wait")
    assert session.must(it.Wait(call_id="c-wait", seconds=asked, reason="settle")) == (
        ev.WaitBegun(call_id="c-wait", until=at(given), seconds=given, reason="settle"),
    )
    assert session.phase == "waiting"


def test_a_wait_names_a_run_that_still_runs() -> None:
    session = Session.opened().approved()
    done = session.run(FIX, verdict(FIX, CHANGE))
    assert session.refuse(it.Wait(call_id="w", seconds=1, reason="x", run_id="r99")).code is Code.UNKNOWN_RUN
    assert "finished already" in session.refuse(it.Wait(call_id="w", seconds=1, reason="x", run_id=done)).text


def test_a_question_blocks_the_session() -> None:
    session = Session.opened().begin().calls("c-ask")
    asked = ev.QuestionAsked(call_id="c-ask", kind="choice", text="Which?", choices=("a", "b"), secret_name="")
    assert session.must(it.Ask(call_id="c-ask", kind="choice", text="Which?", choices=("a", "b"))) == (asked,)
    assert (session.phase, session.state.question, session.state.waits_for) == ("blocked", asked, "question: Which?")


# ---- a late call of the model moves nothing (R1.12) ------------------------------------------------------------------

CALLS = [it.SetGoal(goal="x"), fix_plan(), it.MarkStep(seq=1, status=StepStatus.DONE),
         it.Ask(call_id="c", kind="text", text="?"),
         it.Wait(call_id="c", seconds=1.0, reason="x"), NOTHING]  # fmt: skip


@pytest.mark.parametrize("state", [name for name in STATES if name.split("-")[0] in ("awaiting", "waiting", "blocked")])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: type(call).__name__)
def test_while_the_session_waits_no_call_moves_it(state: str, call: it.AgentIntent) -> None:
    """A response that was under way when a person halted, or a client that calls while its call is unanswered."""
    session = STATES[state]()
    assert session.refuse(call).code is Code.AWAITING_OPERATOR


def test_what_a_run_showed_may_be_written_back_while_the_session_waits() -> None:
    session = STATES["executing"]()
    run_id = session.run(FIX, verdict(FIX, CHANGE))
    session.must(session.send("stop"))
    session.must(write(run_id))


@pytest.mark.parametrize("state", ["done", "failed", "stopped"])
@pytest.mark.parametrize("call", [*CALLS, write("r1")], ids=lambda call: type(call).__name__)
def test_an_ended_session_answers_that_it_is_over(state: str, call: it.AgentIntent) -> None:
    refusal = STATES[state]().refuse(call)
    again = isinstance(call, it.Complete) and state != "stopped"
    assert refusal.code is (Code.COMPLETED_ALREADY if again else Code.SESSION_OVER)


# ---- complete_task (R2.6, R2.7) --------------------------------------------------------------------------------------


def fixed() -> tuple[Session, str]:
    """Everything that `done` wants: the step done, the check passed after the last change, a write-back."""
    session = Session.opened().approved()
    run_id = session.run(FIX, verdict(FIX, CHANGE), step=1)
    session.mark(1, StepStatus.DONE)
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.write_back(run_id)
    return session, run_id


def test_done_with_everything_in_place() -> None:
    session, run_id = fixed()
    assert session.must(replace(DONE, evidence=(run_id,))) == (
        ev.PlanClosed(generation=1, status="closed", reason="completed"),
        ev.WindowClosed(generation=1, reason="completed"),
        ev.SessionCompleted(outcome="done", summary="it runs", evidence=(run_id,)),
    )
    assert (session.phase, session.state.outcome, session.state.summary) == ("done", "done", "it runs")


def test_a_question_answered_from_the_inventory_needs_no_plan_and_no_write_back() -> None:
    session = Session.opened().begin("list all containers")
    assert session.must(DONE) == (ev.SessionCompleted(outcome="done", summary="it runs"),)


@pytest.mark.parametrize("outcome", ["", "success", "DONE", "approved"])
def test_an_outcome_is_one_of_three(outcome: str) -> None:
    """An outcome that no rule knows must not slip past the rules for `done`."""
    assert Session.opened().approved().refuse(it.Complete(outcome=outcome, summary="x")).code is Code.MALFORMED_CALL


def test_without_a_goal_nothing_is_completed() -> None:
    session = Session.opened()
    session.must(session.send("hello"))
    assert session.refuse(DONE).code is Code.NO_GOAL


@pytest.mark.parametrize("complete", [DONE, FAILED, NOTHING], ids=lambda c: c.outcome)
def test_not_while_a_run_of_this_plan_still_runs(complete: it.Complete) -> None:
    session, _ = fixed()
    question = session.question("uptime", verdict("uptime", READ))
    session.start(question, admit(question))
    refusal = session.refuse(complete)
    assert (refusal.code, refusal.text) == (Code.RUN_STILL_RUNNING, f"Still running: {question.order.run_id}.")


def test_a_run_left_over_from_an_earlier_plan_holds_up_nothing() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    question = session.question("uptime", verdict("uptime", READ))
    session.start(question, admit(question))
    session.calls()
    session.must(look_plan("c2"))
    run_id = session.run(LOOK, verdict(LOOK, READ), step=2)
    session.mark(2, StepStatus.DONE)
    session.write_back(run_id)
    session.must(DONE)


def test_a_probe_that_still_runs_is_no_run_of_the_plan() -> None:
    session, _ = fixed()
    probe = session.question("probe", verdict("probe", READ)).order
    session.record(
        ev.RunStarted(
            order=probe, call_id="", target="web1", step=None, risk=READ, effects=(), canonical="probe",
            authority="probe", admitted=WEB1.id,
        )
    )  # fmt: skip
    session.must(DONE)


@pytest.mark.parametrize("complete", [DONE, FAILED, NOTHING], ids=lambda c: c.outcome)
@pytest.mark.parametrize("status", [StepStatus.PENDING, StepStatus.RUNNING])
def test_every_step_is_closed(complete: it.Complete, status: StepStatus) -> None:
    session, _ = fixed()
    session.mark(1, status)
    assert session.refuse(complete) == Refusal(
        code=Code.STEPS_OPEN,
        text="Open steps: 1.",
        directive="Do them, or mark each done, failed or skipped with update_plan_step and a note.",
    )


@pytest.mark.parametrize(("status", "complete"), [(StepStatus.SKIPPED, DONE), (StepStatus.FAILED, FAILED)])
def test_a_step_that_was_not_done_says_why(status: StepStatus, complete: it.Complete) -> None:
    session, _ = fixed()
    session.mark(1, status, "  ")
    assert session.refuse(complete).code is Code.NO_NOTE
    session.mark(1, status, "it was running already")
    session.must(complete)


@pytest.mark.parametrize("complete", [DONE, FAILED, NOTHING], ids=lambda c: c.outcome)
def test_what_was_learned_is_written_back(complete: it.Complete) -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    session.run(LOOK, verdict(LOOK, READ), step=1)
    session.mark(1, StepStatus.DONE)
    assert session.refuse(complete).code is Code.NO_WRITE_BACK


def test_where_nothing_could_be_reached_there_is_nothing_to_write_back() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    session.run(LOOK, verdict(LOOK, READ), step=1, outcome=NeverStarted(reason="no route"))
    session.mark(1, StepStatus.FAILED, "web1 does not answer")
    session.must(FAILED)
    assert session.phase == "failed"


def test_a_write_back_of_an_earlier_plan_does_not_count() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    session.write_back(session.run(LOOK, verdict(LOOK, READ), step=1))
    session.calls()
    session.must(look_plan("c2"))
    session.run(LOOK, verdict(LOOK, READ), step=2)
    session.mark(2, StepStatus.DONE)
    assert session.refuse(DONE).code is Code.NO_WRITE_BACK


def test_evidence_names_runs_of_this_plan() -> None:
    session, _ = fixed()
    refusal = session.refuse(replace(DONE, evidence=("r99", "x")))
    assert (refusal.code, refusal.text) == (Code.UNKNOWN_RUN, "Evidence names no run of this plan: r99, x.")


# -- done


def test_a_plan_that_changes_something_has_a_check() -> None:
    session = Session.opened().approved(propose(step(WEB1, planned(FIX, CHANGE))))
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1))
    session.mark(1, StepStatus.DONE)
    assert session.refuse(DONE).code is Code.NO_CHECK
    session.must(replace(FAILED, summary="nothing proves it; web1 was restarted"))


def test_a_plan_of_reads_under_which_something_was_changed_has_a_check_too() -> None:
    """A guarded read is approved, and inside its window a change can be improvised."""
    session = Session.opened().approved(
        propose(
            step(WEB1, planned(LOOK, READ, effects=(STATES["awaiting-run-guarded"]().state.parked.event.effects[0],)))
        )
    )
    session.write_back(session.run("mkdir /x", verdict("mkdir /x", CHANGE), step=1))
    session.mark(1, StepStatus.DONE)
    assert session.refuse(DONE).code is Code.NO_CHECK


@pytest.mark.parametrize(
    ("passed", "position", "refused"),
    [(True, 0, False), (False, 0, True), (None, 0, True), (True, None, True), (True, 1, True)],
)
def test_each_check_passes_in_a_run_of_its_own(passed: bool | None, position: int | None, refused: bool) -> None:
    session = Session.opened().approved()
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1))
    session.mark(1, StepStatus.DONE)
    session.run(CHECK, verdict(CHECK, READ), check=position, passed=passed)
    if not refused:
        session.must(DONE)
        return
    assert session.refuse(DONE) == Refusal(
        code=Code.CHECK_NOT_PASSED,
        text="Check 1 has not passed since the last change: `systemctl is-active demo` on web1.",
        directive="Run exactly that command on that target; if it does not show what is expected, go on repairing.",
    )


def test_every_check_counts_not_only_one() -> None:
    session = Session.opened().approved(
        propose(step(WEB1, planned(FIX, CHANGE)), checks=(check(), check(command="true")))
    )
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1))
    session.mark(1, StepStatus.DONE)
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    assert session.refuse(DONE).text.startswith("Check 2 has not passed")
    session.run("true", verdict("true", READ), check=1, passed=True)
    session.must(DONE)


def test_a_check_of_a_plan_of_reads_passes_too() -> None:
    session = Session.opened().begin()
    session.must(replace(look_plan(), checks=(check(),)))
    session.write_back(session.run(LOOK, verdict(LOOK, READ), step=1))
    session.mark(1, StepStatus.DONE)
    assert session.refuse(DONE).code is Code.CHECK_NOT_PASSED


@pytest.mark.parametrize("outcome", [Exited(code=0), Exited(code=1), Unknown(reason="x")])
def test_a_check_from_before_the_last_change_proves_nothing(outcome: object) -> None:
    session, _ = fixed()
    session.run("mkdir /x", verdict("mkdir /x", CHANGE), outcome=outcome)
    assert session.refuse(DONE).code is Code.CHECK_NOT_PASSED
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.must(DONE)


def test_a_change_that_provably_never_started_takes_nothing_back() -> None:
    session, _ = fixed()
    session.run("mkdir /x", verdict("mkdir /x", CHANGE), outcome=NeverStarted(reason="x"))
    session.must(DONE)


def test_a_check_that_began_while_a_change_still_ran_proves_nothing() -> None:
    session, _ = fixed()
    change = session.question("mkdir /x", verdict("mkdir /x", CHANGE))
    session.start(change, admit(change))
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.finish(change.order.run_id, Exited(code=0))
    assert session.refuse(DONE).code is Code.CHECK_NOT_PASSED


def test_a_change_of_an_earlier_plan_that_ends_late_makes_the_check_worthless() -> None:
    """ "The last mutation" is the last one of all: the safe reading."""
    session = Session.opened().approved()
    change = session.question("mkdir /x", verdict("mkdir /x", CHANGE))
    session.start(change, admit(change))
    answered(session)
    session.must(fix_plan("c2"))
    session.must(session.approve())
    session.calls()
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=2))
    session.mark(2, StepStatus.DONE)
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    assert session.refuse(DONE) == Refusal(
        code=Code.RUN_STILL_RUNNING,
        text=f"A change still runs, or was not proven dead: {change.order.run_id[:8]}.",
        directive="Use wait with a run that goes on, run the checks again, then complete. One that outlived its time "
        "limit stays unproven: complete as failed, or ask the operator.",
    )
    session.finish(change.order.run_id, Exited(code=0))
    assert session.refuse(DONE).code is Code.CHECK_NOT_PASSED
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.must(DONE)


def test_a_failed_step_is_made_good_by_a_later_run_of_the_same_step() -> None:
    session = Session.opened().approved()
    run_id = session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "did not start")
    session.write_back(run_id)
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    assert session.refuse(DONE) == Refusal(
        code=Code.STEP_FAILED,
        text="Step 1 failed and no later run of it succeeded.",
        directive="Make it succeed, or complete as failed.",
    )
    session.run("mkdir /x", verdict("mkdir /x", CHANGE))
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    assert session.refuse(DONE).code is Code.STEP_FAILED
    session.run(FIX, verdict(FIX, CHANGE), step=1)
    session.mark(1, StepStatus.FAILED, "the first time")
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    session.must(DONE)


def test_a_success_before_the_failure_makes_nothing_good() -> None:
    session = Session.opened().approved()
    run_id = session.run(FIX, verdict(FIX, CHANGE), step=1)
    session.run("systemctl status demo", verdict("x", READ), step=1, outcome=Exited(code=3))
    session.mark(1, StepStatus.FAILED, "fell over again")
    session.write_back(run_id)
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    assert session.refuse(DONE).code is Code.STEP_FAILED


def test_nothing_to_do_is_not_said_after_a_change_that_proves_nothing() -> None:
    session = Session.opened().approved(propose(step(WEB1, planned(FIX, CHANGE))))
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1))
    session.mark(1, StepStatus.DONE)
    assert session.refuse(NOTHING).code is Code.NO_CHECK


def test_nothing_to_do_needs_no_check_where_nothing_was_changed() -> None:
    session = Session.opened().approved()
    session.write_back(session.run(LOOK, verdict(LOOK, READ), step=1))
    session.mark(1, StepStatus.SKIPPED, "it runs already")
    session.must(NOTHING)
    assert (session.phase, session.state.outcome) == ("done", "nothing_to_do")


# -- failed


def test_a_failure_says_what_was_tried_and_the_state_of_each_touched_target() -> None:
    session = Session.opened().approved(propose(step(WEB1, planned(FIX, CHANGE)), on=(WEB1, WEB2)))
    run_id = session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=Exited(code=1))
    session.run(FIX, verdict(FIX, CHANGE), target=WEB2, outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "did not start")
    session.write_back(run_id)
    refusal = session.refuse(it.Complete(outcome="failed", summary="tried it on web1"))
    assert (refusal.code, refusal.text) == (
        Code.NO_NOTE,
        "A failure needs a note: what was tried and the state of web2.",
    )
    session.must(it.Complete(outcome="failed", summary="web1 and web2 are down"))
    assert session.phase == "failed"


def test_a_failure_without_a_word_is_refused() -> None:
    assert Session.opened().begin().refuse(it.Complete(outcome="failed", summary=" ")).text == (
        "A failure needs a note: what was tried."
    )


def test_a_rejected_plan_can_end_as_failed_and_not_as_done() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    session.must(it.Reject(by=ANNA))
    answered(session, "then leave it")
    assert session.refuse(DONE).code is Code.CHECK_NOT_PASSED
    session.must(FAILED)


def test_a_plan_nobody_approved_is_closed_by_completing_after_the_operators_word() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    answered(session, "never mind, just tell me")
    assert session.must(NOTHING) == (
        ev.PlanClosed(generation=1, status="closed", reason="completed"),
        ev.SessionCompleted(outcome="nothing_to_do", summary="it ran all the time"),
    )


# ---- open steps, for the nudge ---------------------------------------------------------------------------------------


def test_open_steps_are_those_of_the_plan_under_way() -> None:
    session = Session.opened().begin()
    assert open_steps(session.state) == ()
    plan = propose(step(WEB1, planned(FIX, CHANGE)), step(WEB1, planned("b", CHANGE)), step(WEB1, planned("c", CHANGE)))
    session.must(plan)
    assert open_steps(session.state) == ()
    session.must(session.approve())
    session.mark(1, StepStatus.DONE).mark(3, StepStatus.RUNNING)
    assert open_steps(session.state) == (2, 3)
    session.must(session.send("stop"))
    session.must(it.Stop(by=ANNA))
    assert open_steps(session.state) == ()


# ---- time (R3.8) -----------------------------------------------------------------------------------------------------


def test_a_plan_card_that_nobody_answers_expires_and_says_so() -> None:
    session = STATES["awaiting-plan"]()
    assert session.must(it.Tick(), now=at(24 * 3600)) == ()
    assert session.must(it.Tick(), now=at(24 * 3600 + 1)) == (
        ev.ApprovalUnanswered(generation=1),
        ev.PlanClosed(generation=1, status="expired", reason="nobody answered"),
    )
    assert (session.phase, session.state.status, session.state.decided) == (
        "idle",
        PlanStatus.EXPIRED,
        "nobody answered in time",
    )
    assert "nobody answered in time" in session.refuse(session.approve(), now=at(24 * 3600 + 2)).text


@pytest.mark.parametrize("state", ["blocked-proposed", "executing-proposed"])
def test_an_expiring_card_does_not_hide_what_else_goes_on(state: str) -> None:
    session = STATES[state]()
    before = session.phase
    session.must(it.Tick(), now=at(24 * 3600 + 1))
    assert (session.phase, session.state.status) == (before, PlanStatus.EXPIRED)


@pytest.mark.parametrize(("seconds", "ends"), [(599.0, False), (600.0, True)])
def test_a_wait_ends_by_the_timer(seconds: float, ends: bool) -> None:
    session = STATES["waiting"]()
    events = session.must(it.Tick(), now=at(seconds))
    assert bool(events) is ends
    assert session.phase == ("executing" if ends else "waiting")
    if ends:
        assert events[0] == ev.WaitEnded(call_id="c-wait", by="timer")
        assert session.state.waiting is None


def test_a_wait_for_a_run_ends_with_the_run() -> None:
    session = STATES["waiting"]()
    session.finish(session.state.running[0].order.run_id, Exited(code=0))
    assert session.must(it.Tick())[0] == ev.WaitEnded(call_id="c-wait", by="run")
    assert session.must(it.Tick()) == ()


def test_a_wait_for_time_alone_is_not_ended_by_a_run() -> None:
    session = STATES["executing"]().calls("c-wait")
    session.must(it.Wait(call_id="c-wait", seconds=60.0, reason="settle"))
    assert session.must(it.Tick()) == ()


@pytest.mark.parametrize("running", [True, False])
def test_a_text_only_reply_over_live_runs_waits_for_the_last_of_them(running: bool) -> None:
    """Such a wait answers no call (R5.6)."""
    session = STATES["executing"]()
    question = session.question(FIX, verdict(FIX, CHANGE))
    session.start(question, admit(question))
    session.must(it.Wait(call_id="", seconds=3600.0, reason="runs are live"))
    if not running:
        session.finish(question.order.run_id, Exited(code=0))
    assert session.must(it.Tick()) == (() if running else (ev.WaitEnded(call_id="", by="run"),))


def test_nothing_runs_out_in_a_session_at_rest() -> None:
    for name in ("idle", "done", "failed", "stopped"):
        assert STATES[name]().must(it.Tick(), now=at(1e7)) == ()


def test_an_admission_still_needs_the_window_when_the_step_was_marked_done() -> None:
    session = Session.opened().approved()
    session.mark(1, StepStatus.DONE)
    assert isinstance(session.ask("mkdir /x", verdict("mkdir /x", CHANGE), step=1), Admission)


def test_a_failure_names_the_machine_itself_and_not_one_whose_name_begins_so() -> None:
    session = Session.opened().approved()
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=Exited(code=1)))
    session.mark(1, StepStatus.FAILED, "no")
    refusal = session.refuse(replace(FAILED, summary="web10 and my-web1 were never touched"))
    assert refusal.text == "A failure needs a note: what was tried and the state of web1."
    session.must(replace(FAILED, summary="tried once; web1: as before"))


def test_a_step_that_is_called_failed_after_its_run_exited_0_is_not_made_good_by_that_run() -> None:
    session = Session.opened().approved()
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1))
    session.mark(1, StepStatus.FAILED, "it exits 0 and does not run")
    session.run("mkdir /x", verdict("mkdir /x", CHANGE))
    session.run(CHECK, verdict(CHECK, READ), check=0, passed=True)
    assert session.refuse(DONE).code is Code.STEP_FAILED


def test_evidence_is_of_the_plan_that_is_completed() -> None:
    """A run of an earlier plan that still goes on is known to the session, and proves nothing now."""
    session = Session.opened().approved()
    question = session.question("tail -f /x", verdict("tail -f /x", READ))
    session.start(question, admit(question))
    answered(session)
    session.must(fix_plan("c2"))
    session.must(session.approve())
    session.calls()
    old = question.order.run_id
    refusal = session.refuse(it.Complete(outcome="nothing_to_do", summary="so it is", evidence=(old,)))
    assert (refusal.code, refusal.text) == (Code.UNKNOWN_RUN, f"Evidence names no run of this plan: {old}.")


@pytest.mark.parametrize(
    ("remote", "accepted"),
    [(RemoteState.KILLED, True), (RemoteState.RUNNING, False), (RemoteState.UNKNOWN, False)],
)
def test_done_wants_a_change_that_timed_out_to_be_dead(remote: RemoteState, accepted: bool) -> None:
    session = Session.opened().approved()
    session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=TimedOut(deadline="total", remote=remote))
    session.write_back(session.run(CHECK, verdict(CHECK, READ), check=0, passed=True))
    session.mark(1, StepStatus.DONE)
    decision = session.do(DONE)
    assert isinstance(decision, Refusal) is not accepted
    if isinstance(decision, Refusal):
        assert decision.code is Code.RUN_STILL_RUNNING


def test_a_failure_says_nothing_of_the_node_that_only_took_a_snapshot() -> None:
    session = Session.opened().approved()
    order = RunOrder(run_id="snap", session_id=SESSION, generation=1, target_id=PVE1.id, command="pct snapshot 131 x")
    started = ev.RunStarted(
        order=order, call_id="", target="pve1", step=None, risk=CHANGE, effects=(), canonical=order.command,
        authority="snapshot:k", admitted=order.digest(),
    )  # fmt: skip
    session.record(started).finish("snap", Exited(code=0))
    session.write_back(session.run(FIX, verdict(FIX, CHANGE), step=1, outcome=Exited(code=1)))
    session.mark(1, StepStatus.FAILED, "no")
    session.must(FAILED)


@pytest.mark.parametrize(
    ("key", "steers"),
    [
        ("port", True), (" Port ", True), ("ssh.port", True), ("ssh:port", True), ("a.b:User", True),
        ("host_key", True), ("listen_port", False), ("port.open", False), ("address_book", False), ("", False),
    ],
)  # fmt: skip
def test_an_attribute_steers_the_way_in_by_the_last_part_of_its_name(key: str, steers: bool) -> None:
    assert steers_access(key) is steers
