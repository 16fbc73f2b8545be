"""One session, told in order: a question, its evidence, a follow-up, one approval, a failure and its repair."""

from __future__ import annotations

from dataclasses import replace

from tests.domain.world import (
    ANNA,
    CHANGE,
    READ,
    SESSION,
    WEB1,
    Session,
    at,
    fact,
    planned,
    propose,
    scope,
    step,
    verdict,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.consent import Channel, Consent, Grant, Window
from oikos.domain.gate import admit
from oikos.domain.plan import Check, Plan, PlanStatus, StepStatus
from oikos.domain.run import Exited, RunOrder, RunReport
from oikos.domain.session import Phase, fold
from oikos.domain.state import StepState

LOG = "tail -n 5 /var/log/backup/runs.jsonl"
EDIT = "sed -i s/old/new/ /etc/backup/repos.conf"
REPAIR = "mkdir -p /etc/backup"
RERUN = "backup run repos"
SHOWS = "backup status repos"


def test_a_session_from_the_first_question_to_the_repaired_job() -> None:
    # Anna asks. Nomos takes the session up, says what the goal is, and looks for a way.
    session = Session.opened()
    asked = session.must(session.send("when did the last backup run?"))
    assert asked == (ev.OperatorSaid(text="when did the last backup run?", by="anna", channel="web"),)
    session.record(ev.TurnStarted(wake="message")).calls("c-goal")
    assert session.must(it.SetGoal(goal="say when the backup ran")) == (ev.GoalSet(goal="say when the backup ran"),)

    # A plan that only looks asks nobody: it is accepted at once, as generation 1.
    looking = propose(step(WEB1, planned(LOG, READ), title="Read the log"), call_id="c-plan1")
    plan1 = Plan(generation=1, goal="say when the backup ran", steps=looking.steps, scope=scope(WEB1))
    proposed = session.must(looking)
    assert proposed == (
        ev.PlanProposed(plan=plan1, digest=plan1.digest(), call_id="c-plan1"),
        ev.PlanAccepted(generation=1),
    )
    assert session.state.phase is Phase.EXECUTING

    # The log is read; the authority of a read is that it is one.
    session.calls("c-run1")
    question = session.question(LOG, verdict(LOG, READ), step=1, call_id="c-run1")
    order = RunOrder(run_id="r2", session_id=SESSION, generation=1, target_id=WEB1.id, command=LOG)
    assert question.order == order
    assert session.start(question, admit(question)) == ev.RunStarted(
        order=order, call_id="c-run1", target="web1", step=1, risk=READ, effects=(), canonical=LOG,
        authority="read_only", admitted=order.digest(),
    )  # fmt: skip
    session.pass_s(1).finish("r2", Exited(code=0))

    # What was learned is written back, citing the run, and the question is answered with it.
    wrote = session.must(it.WriteFacts(entity_id=WEB1.id, facts=(fact("r2"),), run_id="r2"))
    assert wrote == (ev.FactsWritten(entity_id=WEB1.id, facts=(fact("r2"),), run_id="r2"),)
    marked = session.must(it.MarkStep(seq=1, status=StepStatus.DONE))
    assert marked == (ev.StepMarked(seq=1, status=StepStatus.DONE),)
    completed = session.must(it.Complete(outcome="done", summary="at 03:10, repos failed", evidence=("r2",)))
    assert completed == (
        ev.PlanClosed(generation=1, status="closed", reason="completed"),
        ev.SessionCompleted(outcome="done", summary="at 03:10, repos failed", evidence=("r2",)),
    )
    session.record(ev.TurnEnded(reason="completed"))
    assert session.state.phase is Phase.DONE

    # The follow-up reopens the same session. The old goal is gone; its generation stays in the log.
    session.pass_s(60)
    follow_up = session.must(session.send("now fix the repos job"))
    assert follow_up == (
        ev.SessionReopened(after="done", generation=1),
        ev.OperatorSaid(text="now fix the repos job", by="anna", channel="web"),
    )
    assert (session.state.phase, session.state.goal, session.state.plan) == (Phase.EXECUTING, "", None)
    session.record(ev.TurnStarted(wake="message")).calls("c-goal2")
    session.must(it.SetGoal(goal="the repos job succeeds"))

    # Generation 2 changes something, so it waits. Its steps go on counting where the first plan ended.
    shows = Check(target="web1", target_id=WEB1.id, command=SHOWS, expect_text="ok")
    fixing = propose(
        step(WEB1, planned(EDIT, CHANGE), title="Correct the path"),
        step(WEB1, planned(RERUN, CHANGE), title="Run it again"),
        checks=(shows,),
        call_id="c-plan2",
    )
    steps2 = tuple(replace(one, seq=one.seq + 1) for one in fixing.steps)
    plan2 = Plan(generation=2, goal="the repos job succeeds", steps=steps2, checks=(shows,), scope=scope(WEB1))
    assert session.must(fixing) == (ev.PlanProposed(plan=plan2, digest=plan2.digest(), call_id="c-plan2"),)
    session.record(ev.TurnEnded(reason="approval"))
    assert session.state.phase is Phase.AWAITING

    # Anna approves, once.
    session.pass_s(30)
    approval = session.must(session.approve(consent_id="k"))
    consent = Consent(
        id="k", grant=Grant.PLAN, session_id=SESSION, generation=2, digest=plan2.digest(), machines=(WEB1.id,),
        duration_s=1800.0, at=at(91), by="anna", channel=Channel.WEB,
    )  # fmt: skip
    assert approval == (
        ev.ConsentGranted(consent=consent),
        ev.PlanApproved(generation=2, digest=plan2.digest(), consent_id="k"),
    )
    assert session.state.window == Window(
        consent_id="k", generation=2, machines=(WEB1.id,), opened=at(91), duration_s=1800.0, by="anna"
    )

    # The first change meets a failure; a failure closes nothing.
    session.record(ev.TurnStarted(wake="decision")).calls("c-run2")
    question = session.question(EDIT, verdict(EDIT, CHANGE), step=2, call_id="c-run2")
    assert session.start(question, admit(question)).authority == "window:k"
    session.pass_s(1).finish(question.order.run_id, Exited(code=4))
    assert session.state.window is not None

    # Nobody planned the repair, and nobody is asked: it is an ordinary change on a machine of the plan.
    session.calls("c-run3")
    repair = session.question(REPAIR, verdict(REPAIR, CHANGE), step=2, call_id="c-run3")
    assert session.start(repair, admit(repair)).authority == "window:k"
    session.pass_s(1).finish(repair.order.run_id, Exited(code=0))
    session.calls("c-run4").run(EDIT, verdict(EDIT, CHANGE), step=2)
    session.mark(2, StepStatus.DONE, "the directory was missing")
    rerun = session.calls("c-run5").run(RERUN, verdict(RERUN, CHANGE), step=3)
    session.mark(3, StepStatus.DONE)

    # Done means proven: the check runs after the last change, and its run is written back.
    session.calls("c-run6").run(SHOWS, verdict(SHOWS, READ), check=0, passed=True)
    session.write_back(rerun)
    end = session.must(it.Complete(outcome="done", summary="the job runs", evidence=(rerun,)))
    assert end == (
        ev.PlanClosed(generation=2, status="closed", reason="completed"),
        ev.WindowClosed(generation=2, reason="completed"),
        ev.SessionCompleted(outcome="done", summary="the job runs", evidence=(rerun,)),
    )

    # The window is gone with the task, both plans counted, and the log alone tells all of it again.
    state = session.state
    assert (state.phase, state.generation, state.counted_plans, state.window) == (Phase.DONE, 2, 2, None)
    assert state.steps == {
        2: StepState(status=StepStatus.DONE, note="the directory was missing"),
        3: StepState(status=StepStatus.DONE),
    }
    assert not isinstance(
        session.ask(REPAIR, verdict(REPAIR, CHANGE), order=replace(repair.order, run_id="late")), Admission
    )
    assert fold(session.records) == state
    assert [record.seq for record in session.records] == list(range(1, len(session.records) + 1))
    assert [record.event.plan for record in session.records if isinstance(record.event, ev.PlanProposed)] == [
        plan1,
        plan2,
    ]
    operator_ticks = [r.event for r in session.records if isinstance(r.event, ev.ConsentGranted)]
    assert operator_ticks == [ev.ConsentGranted(consent=consent)]


def test_look_then_fix_needs_no_message_in_between() -> None:
    """R2.9: an accepted plan may be replaced by the agent itself; only the fix asks."""
    session = Session.opened().begin("what is wrong with the backup? fix it")
    session.must(propose(step(WEB1, planned(LOG, READ), title="Look")))
    session.calls("c").run(LOG, verdict(LOG, READ), step=1)
    session.calls("c2")
    events = session.must(propose(step(WEB1, planned(EDIT, CHANGE), title="Fix"), call_id="c2"))
    assert [type(event) for event in events] == [ev.PlanClosed, ev.PlanProposed]
    assert events[0] == ev.PlanClosed(generation=1, status="superseded", reason="plan 2")
    assert (session.state.status, session.state.phase) == (PlanStatus.PROPOSED, Phase.AWAITING)


def test_a_report_of_a_run_is_kept_whole_by_the_fold() -> None:
    session = Session.opened().begin()
    session.must(propose(step(WEB1, planned(LOG, READ), title="Look")))
    run_id = session.run(LOG, verdict(LOG, READ), outcome=Exited(code=3))
    run = session.state.runs[run_id]
    assert (run.outcome, run.ok, run.running, run.mutated) == (Exited(code=3), False, False, False)
    assert RunReport(outcome=Exited(code=3)).outcome == run.outcome


def test_anna_is_named_in_what_the_second_approver_hears() -> None:
    """Two approvers at once: the second is told who decided (R1.11, THREATS T10)."""
    session = Session.opened().begin()
    session.must(propose(step(WEB1, planned(EDIT, CHANGE), title="Fix")))
    first, second = session.approve(by=ANNA), session.approve(by=replace(ANNA, id="ben"))
    session.must(first)
    assert "plan 1 was approved by anna" in session.refuse(second).text
