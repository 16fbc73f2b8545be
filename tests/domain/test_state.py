"""The fold (SPEC R1.1, R1.3 – R1.7, R1.12): what each event does to the state that the rules read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.table_r1_11 import STATES
from tests.domain.world import ANNA, CHANGE, FIX, LOOK, READ, SESSION, WEB1, Session, at, fix_plan, look_plan, verdict

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.consent import Window
from oikos.domain.errors import Code, ModelError, Refusal
from oikos.domain.instant import Instant
from oikos.domain.plan import PlanStatus, StepStatus
from oikos.domain.run import (
    Exited,
    Lost,
    NeverStarted,
    RemoteState,
    RunOutcome,
    RunReport,
    Signalled,
    TimedOut,
    Unknown,
    describe,
    succeeded,
)
from oikos.domain.session import State, fold
from oikos.domain.state import Batch, Usage, run_key
from oikos.domain.verdict import Effect, EffectKind, Risk, Verdict


def answer(call_id: str, **more: object) -> ev.ToolAnswered:
    return ev.ToolAnswered(**{"call_id": call_id, "name": "run", "text": "{}", **more})


# ---- the log ---------------------------------------------------------------------------------------------------------


def test_a_session_is_the_fold_of_its_events() -> None:
    session = STATES["done"]()
    assert fold(session.records) == session.state
    assert fold(session.records[5:], fold(session.records[:5])) == session.state
    assert (session.state.session_id, session.state.seq) == (SESSION, len(session.records))
    assert fold(()) == State()


def test_opening_says_mode_and_home() -> None:
    state = Session.opened(mode="look", lab=True).state
    assert (state.mode, state.lab, state.phase, state.due) == ("look", True, "idle", False)


def test_the_newest_time_never_goes_back() -> None:
    session = Session.opened().record(ev.TurnStarted(wake="message"), now=at(50))
    assert session.record(ev.TurnEnded(reason="idle"), now=at(40)).state.newest == at(50)
    later = at(50, boot="boot-2")
    assert session.record(ev.TurnStarted(wake="timer"), now=later).state.newest == later


def test_only_an_executing_session_is_due() -> None:
    assert {name for name, build in STATES.items() if build().state.due} == {
        name for name in STATES if name.startswith("executing")
    }


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("awaiting-plan", "plan 1: the demo service runs"),
        (
            "awaiting-run-guarded",
            "run r3 on web1: Not in the approved plan, and beyond what a window covers: privilege of eve.",
        ),
        ("blocked", "question: Which disk?"),
        ("blocked-limit", "40 iterations are used"),
        ("blocked-proposed", "plan 1: the demo service runs"),
        ("executing", ""),
        ("executing-run-approved", ""),
    ],
)
def test_a_session_says_what_it_waits_for(state: str, words: str) -> None:
    assert STATES[state]().state.waits_for == words


# ---- turns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "after"),
    [
        ("executing", "idle"), ("executing-proposed", "awaiting_approval"), ("awaiting-plan", "awaiting_approval"),
        ("awaiting-run", "awaiting_approval"), ("waiting", "waiting"), ("blocked", "blocked"), ("done", "done"),
        ("failed", "failed"), ("stopped", "stopped"), ("idle", "idle"),
    ],
)  # fmt: skip
def test_the_end_of_a_turn_leaves_what_the_session_waits_for(state: str, after: str) -> None:
    session = STATES[state]().record(ev.TurnEnded(reason="x"))
    assert (session.phase, session.state.turn) == (after, False)


def test_a_turn_begins_with_a_clean_slate_for_nudges_and_repeats() -> None:
    session = STATES["executing"]().calls("a").record(answer("a", seen="x"))
    session.record(ev.Nudged(about="open_steps", text="x"), ev.Nudged(about="repetition", text="x"))
    assert (session.state.nudged, session.state.repeat_nudged, session.state.repeats) == (True, True, ("x", 1))
    session.record(ev.TurnStarted(wake="message"))
    state = session.state
    assert (state.turn, state.turn_acted, state.nudged, state.repeat_nudged, state.repeats) == (
        True,
        False,
        False,
        False,
        ("", 0),
    )


def test_a_turn_asks_a_provider_that_was_down_again_and_unblocks_nothing_else() -> None:
    session = STATES["executing"]().record(ev.SessionBlocked(on="model", reason="503", retry_at=at(60)))
    assert session.record(ev.TurnStarted(wake="timer")).phase == "executing"
    for name in ("blocked", "blocked-limit", "blocked-halted", "blocked-nudge"):
        assert STATES[name]().record(ev.TurnStarted(wake="timer")).phase == "blocked"


def test_proposing_or_running_is_acting() -> None:
    session = Session.opened().begin()
    assert not session.state.turn_acted
    session.must(look_plan())
    assert session.state.turn_acted
    session.record(ev.TurnStarted(wake="timer"))
    session.run(LOOK, verdict(LOOK, READ))
    assert session.state.turn_acted


# ---- responses and their calls ---------------------------------------------------------------------------------------


def test_a_response_counts_its_tokens_and_brings_its_calls() -> None:
    session = STATES["executing"]()
    calls = (ev.ToolCall(id="a", name="run", arguments="{}"), ev.ToolCall(id="b", name="run", arguments="{}"))
    session.record(ev.AssistantSaid(text="", calls=calls, tokens_in=100, tokens_out=20))
    session.record(ev.AssistantSaid(text="", calls=calls, tokens_in=1, tokens_out=2))
    assert session.state.batch == Batch(calls=calls)
    assert session.state.usage.tokens == 123


def test_a_refused_or_parked_call_breaks_the_batch() -> None:
    session = STATES["executing"]().calls("a", "b")
    session.record(answer("a"))
    assert not session.state.batch.broken
    session.record(answer("b", refusal="no_plan"))
    assert session.state.batch.broken
    assert STATES["awaiting-run"]().state.batch.broken
    session.calls("c").record(answer("c"))
    assert not session.state.batch.broken


def test_a_proposal_that_waits_breaks_the_batch_and_an_accepted_one_does_not() -> None:
    """R1.2: a call that parks ends the batch."""
    for plan, broken in ((fix_plan(), True), (look_plan(), False)):
        session = Session.opened().begin().calls("c1", "c2")
        session.must(plan)
        assert (session.state.batch.broken, session.state.batch.proposed) == (broken, True)


@pytest.mark.parametrize(
    ("runs", "weight"),
    [
        (("read",), 0.25),
        (("read", "read"), 0.25),
        (("change",), 1.0),
        (("read", "change"), 1.0),
        ((), 1.0),
        (("probe",), 1.0),
    ],
)
def test_an_iteration_of_reads_only_counts_a_quarter(runs: tuple[str, ...], weight: float) -> None:
    session = STATES["executing"]()
    before = session.state.usage.iterations
    calls = [f"c{n}" for n in range(len(runs) or 1)]
    session.calls(*calls)
    for number, kind in enumerate(runs):
        risk = CHANGE if kind == "change" else READ
        question = session.question(f"cmd {number}", verdict(f"cmd {number}", risk))
        authority = "probe" if kind == "probe" else "x"
        session.record(
            ev.RunStarted(
                order=question.order, call_id=calls[number], target="web1", step=None, risk=risk, effects=(),
                canonical="", authority=authority, admitted="",
            )
        )  # fmt: skip
    for call in calls:
        session.record(answer(call))
    assert session.state.usage.iterations - before == weight


def test_an_answer_to_no_open_call_is_no_iteration() -> None:
    session = STATES["executing"]().calls("a").record(answer("a"))
    used = session.state.usage.iterations
    assert session.record(answer("a"), answer("z")).state.usage.iterations == used


def test_runs_and_their_budget_begin_anew_with_a_plan() -> None:
    session = STATES["executing"]()
    session.run(FIX, verdict(FIX, CHANGE))
    session.record(ev.LimitWarned(limit="runs", used=160, of=200))
    assert (session.state.usage.runs, session.state.usage.warned) == (1, {"runs"})
    session.must(it.Raise(by=ANNA))
    assert (session.state.raises, session.state.usage.warned) == (1, frozenset())
    session.must(session.send("once more"))
    session.calls().pass_s(9.0).must(fix_plan("c2"))
    assert (session.state.usage, session.state.raises) == (Usage(since=at(9)), 0)


def test_the_same_call_with_the_same_result_is_counted() -> None:
    session = STATES["executing"]()
    for number in range(3):
        session.calls(f"c{number}").record(answer(f"c{number}", seen="same"))
    assert session.state.repeats == ("same", 3)
    session.calls("d").record(answer("d", seen="other"))
    assert session.state.repeats == ("other", 1)
    session.calls("e").record(answer("e"))
    assert session.state.repeats == ("other", 1)
    session.calls("f").record(answer("f", name="wait"))
    assert session.state.repeats == ("", 0), "separated by a wait it is polling"


def test_a_retried_model_request_changes_nothing() -> None:
    session = STATES["executing"]()
    before = session.state
    session.record(ev.ModelRetried(attempt=1, delay_s=2.0, reason="429"))
    assert replace(session.state, seq=before.seq) == before


# ---- reopening -------------------------------------------------------------------------------------------------------


def test_reopening_forgets_the_old_task_and_keeps_numbers_ledger_and_live_runs() -> None:
    session = STATES["waiting"]()
    session.must(it.Stop(by=ANNA))
    run_id = session.state.running[0].order.run_id
    before = session.state
    session.must(session.send("go on from where you were"))
    state = session.state
    assert (state.phase, state.goal, state.outcome, state.summary, state.plan) == ("executing", "", "", "", None)
    assert (state.status, dict(state.steps), state.usage) == (PlanStatus.CLOSED, {}, Usage())
    assert (state.generation, state.next_step, state.consents) == (before.generation, before.next_step, before.consents)
    assert set(state.runs) == {run_id}, "a disowned run is still known"
    session.finish(run_id, Exited(code=0))
    assert session.state.runs[run_id].ok


def test_calls_that_an_end_cut_off_are_still_to_be_answered_and_none_is_carried_out() -> None:
    """R1.12: no model request is made while a tool call is unanswered."""
    session = STATES["executing"]().calls("a", "b")
    session.must(it.Stop(by=ANNA))
    session.must(session.send("try again"))
    assert (len(session.state.batch.calls), session.state.batch.broken) == (2, True)
    session.record(answer("a"), answer("b"))
    assert session.state.batch.calls == ()
    assert STATES["done"]().state.batch.broken is False


def test_finished_steps_keep_their_state_when_a_plan_is_superseded() -> None:
    session = Session.opened().begin()
    session.must(look_plan())
    session.run(LOOK, verdict(LOOK, READ), step=1)
    session.mark(1, StepStatus.DONE, "seen")
    session.record(ev.PlanClosed(generation=1, status="superseded", reason="plan 2"))
    assert session.state.steps[1].status is StepStatus.DONE
    again = STATES["executing"]().mark(1, StepStatus.RUNNING, "half")
    again.must(it.Stop(by=ANNA))
    assert (again.state.steps[1].status, again.state.steps[1].note) == (StepStatus.REPLACED, "half")


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_run_goes_from_start_to_end_and_may_be_let_go_between() -> None:
    session = STATES["waiting"]()
    (run,) = session.state.running
    assert (run.running, run.ok, run.detached, run.ended_seq) == (True, False, False, None)
    session.record(ev.RunDetached(run_id=run.order.run_id, reason="background"))
    assert session.state.runs[run.order.run_id].detached
    session.finish(run.order.run_id, Exited(code=0), passed=True)
    ended = session.state.runs[run.order.run_id]
    assert (ended.running, ended.ok, ended.passed, ended.ended_seq) == (False, True, True, session.state.seq)


def test_the_outcome_of_a_run_that_is_history_changes_nothing() -> None:
    session = STATES["executing"]()
    before = session.state
    session.finish("r-unknown", Exited(code=0))
    assert replace(session.state, seq=before.seq) == before


def test_a_decision_where_nothing_is_parked_changes_nothing() -> None:
    session = STATES["executing"]()
    before = session.state
    session.record(ev.RunDecided(run_id="r9", decision="declined", by="anna"))
    assert replace(session.state, seq=before.seq) == before


def test_a_probe_does_not_use_up_a_parked_run() -> None:
    session = STATES["executing-run-approved"]()
    session.run("uptime", verdict("uptime", READ))
    assert session.state.parked is not None


def test_suspending_without_a_window_changes_nothing() -> None:
    assert STATES["idle"]().record(ev.WindowSuspended(by="anna")).state.window is None


def test_halting_is_one_of_several_reasons_to_be_blocked() -> None:
    assert {name for name, build in STATES.items() if build().state.halted} == {"blocked-halted"}


@pytest.mark.parametrize(
    ("risk", "outcome", "mutated"),
    [
        (READ, Exited(code=0), False), (CHANGE, Exited(code=1), True), (CHANGE, None, True),
        (CHANGE, Unknown(reason="x"), True),
        (CHANGE, NeverStarted(reason="x"), False),
    ],
)  # fmt: skip
def test_what_may_have_changed_something(risk: Risk, outcome: RunOutcome | None, mutated: bool) -> None:
    session = STATES["executing"]()
    run_id = session.run("x", verdict("x", risk))
    assert replace(session.state.runs[run_id], outcome=outcome).mutated is mutated


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("a", "b", None), ("a", "b", "x")),
        (("a", "b", None), ("b", "a", None)),
        (("a", "b c", None), ("a b", "c", None)),
    ],
)
def test_different_commands_have_different_keys(
    one: tuple[str, str, str | None], two: tuple[str, str, str | None]
) -> None:
    assert run_key(*one) != run_key(*two)
    assert run_key(*one) == run_key(*one)


def test_a_written_fact_without_a_run_is_no_citation() -> None:
    session = STATES["executing"]()
    session.record(ev.FactsWritten(entity_id=WEB1.id, facts=()))
    assert session.state.cited == frozenset()


# ---- small words -----------------------------------------------------------------------------------------------------

OUTCOMES: list[tuple[RunOutcome, str, bool]] = [
    (Exited(code=0), "exit 0", True),
    (Exited(code=3), "exit 3", False),
    (Signalled(signal=9), "signal 9", False),
    (Signalled(signal=15, reason="cancelled"), "signal 15 (cancelled)", False),
    (TimedOut(deadline="idle", remote=RemoteState.KILLED), "timed out (idle); remote process killed", False),
    (NeverStarted(reason="no route"), "never started (no route)", False),
    (Lost(reason="reset"), "connection lost (reset); it was a read and may be asked again", False),
    (Unknown(reason="rebooted"), "outcome unknown (rebooted)", False),
]


@pytest.mark.parametrize(("outcome", "words", "ok"), OUTCOMES)
def test_every_outcome_has_its_words(outcome: RunOutcome, words: str, ok: bool) -> None:
    assert (describe(outcome), succeeded(outcome)) == (words, ok)
    assert RunReport(outcome=outcome).outcome is outcome


def test_a_refusal_tells_the_model_what_to_do_next() -> None:
    assert (
        Refusal(code=Code.NO_PLAN, text="There is no plan.", directive="Propose one.").for_model()
        == "There is no plan. Propose one."
    )
    assert Refusal(code=Code.NO_PLAN, text="There is no plan.").for_model() == "There is no plan."


def test_a_models_failure_says_whether_to_try_again() -> None:
    error = ModelError("busy", retryable=True, retry_after_s=3.0)
    assert (str(error), error.retryable, error.retry_after_s) == ("busy", True, 3.0)


def test_risks_are_ordered_from_harmless_to_destructive() -> None:
    low, middle, high = Risk
    assert (low < middle < high, high > middle > low, low <= low, high >= high, middle <= low, low >= middle) == (
        True, True, True, True, False, False,
    )  # fmt: skip
    assert max(Risk) is Risk.DESTRUCTIVE
    assert [risk.rank for risk in Risk] == [0, 1, 2]


def test_a_verdict_knows_its_effects() -> None:
    said = Verdict(risk=Risk.READ_ONLY, effects=(Effect(kind=EffectKind.EGRESS),))
    assert (said.has(EffectKind.EGRESS), said.has(EffectKind.SELF)) == (True, False)


@pytest.mark.parametrize(
    ("now", "elapsed_s"),
    [
        (at(60), 60.0),
        (at(60, boot_s=90), 90.0),
        (at(90, boot_s=60), 90.0),
        (at(-60, boot_s=5), 5.0),
        (at(60, boot="boot-2", boot_s=9e9), 60.0),
        (at(-60, boot="boot-2", boot_s=9e9), -60.0),
    ],
)
def test_elapsed_is_what_the_further_clock_says(now: Instant, elapsed_s: float) -> None:
    assert now.elapsed_since(at(0)) == elapsed_s


def test_without_a_boot_id_only_the_wall_clock_counts() -> None:
    assert at(60, boot="", boot_s=900).elapsed_since(at(0, boot="", boot_s=0)) == 60.0


@pytest.mark.parametrize(
    ("now", "left_s"),
    [
        (at(0), 100.0),
        (at(99), 1.0),
        (at(100), 0.0),
        (at(101), 0.0),
        (at(-1, boot="boot-2"), 0.0),
        (at(-1, boot_s=1), 99.0),
    ],
)
def test_a_window_knows_what_is_left_of_it(now: Instant, left_s: float) -> None:
    window = Window(consent_id="k", generation=1, machines=(), opened=at(0), duration_s=100.0, by="anna")
    assert window.remaining_s(now) == left_s
    assert window.open(now) is (left_s > 0)
    assert not replace(window, suspended=True).open(now)
