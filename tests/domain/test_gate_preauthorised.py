"""What a ticked item admits (SPEC R3.4): this command, on this object, under its condition, so often, so long."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    ANNA,
    CHANGE,
    DESTROY,
    DESTROY_131,
    DESTROY_CMD,
    FIX,
    PVE1,
    READ,
    WEB1,
    Session,
    action,
    at,
    destroy_plan,
    effect,
    planned,
    propose,
    step,
    verdict,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.gate import NeedsTypedConfirmation, Outcome
from oikos.domain.plan import AfterFailed, StepStatus
from oikos.domain.run import Exited, Lost, NeverStarted, RemoteState, RunOutcome, Signalled, TimedOut, Unknown
from oikos.domain.verdict import Action, EffectKind, NamedObject, Risk

SAID = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,))
PHRASES = {"items": (1,), "phrases": ("destroy 131",)}


def ticked(**pre: object) -> Session:
    """A plan approved by consent `k` with its destructive item ticked."""
    return Session.opened().approved(destroy_plan(**pre), consent_id="k", **PHRASES)


def destroy(session: Session, **more: object) -> Outcome:
    said = more.pop("said", SAID)
    return session.ask(more.pop("command", DESTROY_CMD), said, **{"target": PVE1, **more})


def held(outcome: Outcome) -> bool:
    """Whether the pre-authorisation admitted; otherwise the phrase is asked."""
    if isinstance(outcome, Admission):
        assert outcome.authority == "preauthorised:k:1"
        return True
    assert isinstance(outcome, NeedsTypedConfirmation), outcome
    return False


def test_a_ticked_item_runs_without_asking() -> None:
    assert held(destroy(ticked()))


def test_an_item_that_was_not_ticked_asks() -> None:
    assert not held(destroy(Session.opened().approved(destroy_plan())))


def test_an_item_ticked_before_the_approval_counts() -> None:
    session = Session.opened().begin()
    session.must(destroy_plan())
    session.must(session.confirm("destroy 131", by=ANNA, consent_id="t"))
    session.must(session.approve(consent_id="k"))
    session.calls()
    assert held(destroy(session))


def test_an_assent_in_chat_covers_no_item_not_even_a_ticked_one() -> None:
    session = Session.opened().begin()
    session.must(destroy_plan())
    session.must(session.confirm("destroy 131", by=ANNA, consent_id="t"))
    session.must(session.send("go"))
    session.calls()
    assert not held(destroy(session))


# ---- the same command on the same object -----------------------------------------------------------------------------


def test_quoting_and_blanks_do_not_matter() -> None:
    assert held(destroy(ticked(), command="pct  destroy '131'", said=SAID))


@pytest.mark.parametrize(
    "change",
    [
        {"command": "pct destroy 132", "said": verdict("pct destroy 132", DESTROY, objects=(DESTROY_131,))},
        {"said": verdict(DESTROY_CMD, DESTROY, objects=(replace(DESTROY_131, name="132"),))},
        {"said": verdict(DESTROY_CMD, DESTROY, objects=(replace(DESTROY_131, kind="volume"),))},
        {"said": verdict(DESTROY_CMD, DESTROY)},
        {"said": verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,), canonical="")},
        {"stdin": "y\n"},
    ],
    ids=["argv", "object name", "object kind", "no object", "not parsed", "stdin"],
)
def test_another_command_object_or_input_asks(change: dict[str, object]) -> None:
    assert not held(destroy(ticked(), **change))


def test_an_unparsed_item_covers_nothing() -> None:
    item = planned("??", DESTROY, canonical="", preauthorise=destroy_plan().steps[1].commands[0].preauthorise)
    session = Session.opened().approved(propose(step(PVE1, item), on=(PVE1,)), consent_id="k", **PHRASES)
    assert not held(destroy(session, command="??", said=verdict("??", DESTROY, objects=(DESTROY_131,), canonical="")))


def test_another_machine_asks() -> None:
    plan = destroy_plan()
    session = Session.opened().approved(
        replace(plan, scope=(*plan.scope, *propose(on=(WEB1,)).scope)), consent_id="k", **PHRASES
    )
    assert held(destroy(session))
    assert not held(destroy(session, target=WEB1))


def test_a_command_that_destroys_more_than_its_object_asks_for_all_of_it() -> None:
    other = NamedObject(kind="volume", name="vm-131-disk-0", verb="delete", risk=DESTROY)
    asked = destroy(ticked(), said=verdict(DESTROY_CMD, DESTROY, objects=(other, DESTROY_131)))
    assert not held(asked)
    assert isinstance(asked, NeedsTypedConfirmation)
    assert asked.phrase == "delete vm-131-disk-0 and 1 more"


@pytest.mark.parametrize(
    "actions",
    [
        (action(DESTROY_CMD, DESTROY), action("rm -rf /srv", DESTROY)),
        (replace(action(DESTROY_CMD, DESTROY), argv=("pct", "destroy", "131", None)),),
    ],
)
def test_nor_where_only_the_shell_knows_what_else_it_destroys(actions: tuple[Action, ...]) -> None:
    said = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,), actions=actions)
    assert not held(destroy(ticked(), said=said))


@pytest.mark.parametrize(
    ("risks", "phrase"),
    [
        ((DESTROY,), "destroy 131"),
        ((CHANGE, DESTROY, READ), "destroy 131"),
        ((DESTROY, CHANGE, DESTROY, DESTROY), "destroy 131 and 2 more"),
    ],
)
def test_the_phrase_counts_what_the_command_destroys_and_nothing_else(risks: tuple[Risk, ...], phrase: str) -> None:
    """Also where one of them names no object."""
    actions = [action(f"do {number}", risk) for number, risk in enumerate(risks)]
    said = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,), actions=actions)
    asked = destroy(Session.opened().approved(destroy_plan()), said=said)
    assert asked == NeedsTypedConfirmation(why="It is destructive.", phrase=phrase)


def test_a_guarded_effect_wants_the_very_bytes_that_were_approved() -> None:
    """R3.5 says "declared literally": the same argv in other bytes is not enough when an effect is guarded."""
    said = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,), effects=(effect(EffectKind.IRREVERSIBLE, "131"),))
    assert held(destroy(ticked(), said=said))
    assert not held(destroy(ticked(), command="pct  destroy 131", said=said))


def test_an_item_on_a_machine_that_is_not_in_the_plans_scope_asks() -> None:
    plan = replace(destroy_plan(), scope=propose(on=(WEB1,)).scope)
    session = Session.opened().approved(plan, consent_id="k", **PHRASES)
    assert not held(destroy(session, command="pct  destroy 131"))


# ---- uses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (Exited(code=0), False),
        (Exited(code=1), False),
        (Signalled(signal=9), False),
        (TimedOut(deadline="total", remote=RemoteState.KILLED), False),
        (Lost(reason="x"), False),
        (Unknown(reason="x"), False),
        (NeverStarted(reason="x"), True),
        (None, False),
    ],
)
def test_a_use_is_counted_at_the_start_and_refunded_only_for_a_proven_never_started(
    outcome: RunOutcome | None, left: bool
) -> None:
    session = ticked()
    question = session.question(DESTROY_CMD, SAID, target=PVE1)
    session.start(question, destroy(session, order=question.order))
    if outcome is not None:
        session.finish(question.order.run_id, outcome)
    assert held(destroy(session, rerun="again")) is left


def test_uses_are_as_many_as_were_granted() -> None:
    session = ticked(max_uses=2)
    for _ in range(2):
        session.run(DESTROY_CMD, SAID, target=PVE1, outcome=Exited(code=1))
    assert not held(destroy(session))


def test_after_an_unknown_outcome_a_person_decides_about_a_repeat() -> None:
    """DESIGN §3: "destructive ones need the operator before any repeat", also where uses are left."""
    session = ticked(max_uses=2)
    session.run(DESTROY_CMD, SAID, target=PVE1, outcome=Unknown(reason="spool lost"))
    assert not held(destroy(session))


def test_a_run_that_was_confirmed_by_phrase_uses_up_nothing() -> None:
    session = ticked(max_uses=1)
    session.must(it.Revoke(by=ANNA))
    session.calls("c-run")
    question = session.question(DESTROY_CMD, SAID, target=PVE1)
    session.park(question, destroy(session, order=question.order))
    session.must(session.confirm("destroy 131", by=ANNA, consent_id="t"))
    parked = session.state.parked
    assert parked is not None
    approved = session.question(DESTROY_CMD, SAID, target=PVE1, order=question.order, approval=parked.consent)
    outcome = session.ask(DESTROY_CMD, SAID, target=PVE1, order=question.order, approval=parked.consent)
    assert isinstance(outcome, Admission)
    assert outcome.authority == "approval:t"
    session.start(approved, outcome)
    session.finish(question.order.run_id, Exited(code=1))
    window = ticked().state.window
    session.state = replace(session.state, window=window)
    assert held(destroy(session))


# ---- the condition ---------------------------------------------------------------------------------------------------


def failing_first() -> Session:
    """The item may run only after step 1 (`systemctl restart demo`) has failed."""
    return ticked(condition=AfterFailed(step=1))


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [
        (Exited(code=1), True),
        (Signalled(signal=11), True),
        (TimedOut(deadline="total", remote=RemoteState.KILLED), True),
        (Exited(code=0), False),
        (NeverStarted(reason="x"), False),
        (Lost(reason="x"), False),
        (Unknown(reason="x"), False),
    ],
)
def test_the_condition_holds_only_after_the_step_really_failed(outcome: RunOutcome, failed: bool) -> None:
    session = failing_first()
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=1, outcome=outcome)
    session.mark(1, StepStatus.FAILED, "it does not start")
    assert held(destroy(session)) is failed


def test_the_models_word_alone_fails_no_step() -> None:
    """`update_plan_step` is the model's claim; a condition that guards destruction wants the run that shows it."""
    session = failing_first().mark(1, StepStatus.FAILED, "believe me")
    assert not held(destroy(session))


def test_a_failing_command_that_the_approver_never_read_fails_no_step() -> None:
    session = failing_first()
    session.run("false", verdict("false", READ), target=PVE1, step=1, outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "see")
    assert not held(destroy(session))


def test_a_step_that_failed_and_then_succeeded_has_not_failed() -> None:
    session = failing_first()
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=1, outcome=Exited(code=1))
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=1)
    session.mark(1, StepStatus.FAILED, "once")
    assert not held(destroy(session))


def test_a_failed_run_without_the_mark_is_not_yet_a_failed_step() -> None:
    session = failing_first()
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=1, outcome=Exited(code=1))
    assert not held(destroy(session))


def test_a_failed_run_of_another_step_is_not_this_step() -> None:
    session = failing_first()
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=2, outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "no")
    assert not held(destroy(session))


def test_any_run_can_fail_a_step_that_named_no_command() -> None:
    plan = destroy_plan(condition=AfterFailed(step=1))
    plan = replace(plan, steps=(replace(plan.steps[0], commands=()), plan.steps[1]))
    session = Session.opened().approved(plan, consent_id="k", **PHRASES)
    session.run("fsck -n", verdict("fsck -n", READ), target=PVE1, step=1, outcome=Exited(code=4))
    session.mark(1, StepStatus.FAILED, "damaged")
    assert held(destroy(session))


@pytest.mark.parametrize("number", [0, -1, 9])
def test_a_condition_on_a_step_that_is_not_there_never_holds(number: int) -> None:
    assert not held(destroy(ticked(condition=AfterFailed(step=number))))


def test_the_condition_moves_with_the_numbers_of_a_later_generation() -> None:
    session = Session.opened().begin()
    session.must(propose(step(PVE1, planned("uptime", READ)), on=(PVE1,)))
    session.calls()
    session.must(destroy_plan(condition=AfterFailed(step=1)))
    session.must(session.approve(consent_id="k", **PHRASES))
    session.calls()
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=2, outcome=Exited(code=1))
    session.mark(2, StepStatus.FAILED, "no")
    assert held(destroy(session))


# ---- the window ------------------------------------------------------------------------------------------------------


def test_without_the_window_the_phrase_is_asked() -> None:
    session = ticked()
    session.must(it.Revoke(by=ANNA))
    assert not held(destroy(session))


def test_a_suspended_window_holds_nothing() -> None:
    assert not held(destroy(ticked().record(ev.WindowSuspended(by="anna"))))


@pytest.mark.parametrize(("seconds", "holds"), [(1799, True), (1800, False)])
def test_a_renewed_window_does_not_lengthen_what_was_typed_for(seconds: float, holds: bool) -> None:
    """R3.7: chat assent never covers destructive items; so a renewal by chat keeps only their own time."""
    session = ticked().pass_s(900.0)
    session.must(session.send("go"))
    assert held(destroy(session, now=at(seconds))) is holds


def test_a_ticked_item_of_an_earlier_generation_is_history() -> None:
    session = ticked()
    session.must(session.send("again, please"))
    session.calls()
    session.must(destroy_plan("c2"))
    session.must(session.approve())
    session.calls()
    assert not held(destroy(session))


def test_the_second_approved_plan_is_held_by_its_own_consent() -> None:
    session = ticked()
    session.must(session.send("again, please"))
    session.calls()
    session.must(destroy_plan("c2"))
    session.must(session.approve(consent_id="k2", **PHRASES))
    session.calls()
    outcome = destroy(session)
    assert isinstance(outcome, Admission)
    assert outcome.authority == "preauthorised:k2:1"


def test_each_item_is_looked_at_and_not_only_the_first() -> None:
    """One was not ticked, one is another command: the third holds."""
    marked = destroy_plan().steps[1].commands[0]
    first = replace(marked, text="pct destroy 131 --purge", canonical="pct destroy 131 --purge")
    plan = propose(
        step(PVE1, first), step(PVE1, replace(first, text="x", canonical="x")), step(PVE1, marked), on=(PVE1,)
    )
    session = Session.opened().approved(plan, items=(2, 3), phrases=("destroy 131", "destroy 131"), consent_id="k")
    outcome = destroy(session)
    assert isinstance(outcome, Admission)
    assert outcome.authority == "preauthorised:k:3"


def with_input(**pre: object) -> Session:
    """Both the step that has to fail and the item read something."""
    plan = destroy_plan(condition=AfterFailed(step=1), **pre)
    fix = replace(plan.steps[0].commands[0], stdin="y\n", canonical="")
    item = replace(plan.steps[1].commands[0], stdin="yes\n")
    steps = (replace(plan.steps[0], commands=(fix,)), replace(plan.steps[1], commands=(item,)))
    return Session.opened().approved(replace(plan, steps=steps), consent_id="k", **PHRASES)


def test_the_failed_command_is_told_by_its_input_too() -> None:
    session = with_input()
    session.run(FIX, verdict(FIX, CHANGE, canonical=""), target=PVE1, step=1, stdin="y\n", outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "no")
    assert held(destroy(session, stdin="yes\n"))


@pytest.mark.parametrize("outcome", [Exited(code=1), Unknown(reason="x")])
def test_a_use_is_told_by_its_input_too(outcome: RunOutcome) -> None:
    session = with_input()
    session.run(FIX, verdict(FIX, CHANGE, canonical=""), target=PVE1, step=1, stdin="y\n", outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "no")
    session.run(DESTROY_CMD, SAID, target=PVE1, stdin="yes\n", outcome=outcome)
    assert not held(destroy(session, stdin="yes\n"))


@pytest.mark.parametrize(("outcome", "left"), [(Exited(code=1), True), (Unknown(reason="x"), False)])
def test_the_command_whose_outcome_is_unknown_is_told_by_its_input_too(outcome: RunOutcome, left: bool) -> None:
    session = with_input(max_uses=2)
    session.run(FIX, verdict(FIX, CHANGE, canonical=""), target=PVE1, step=1, stdin="y\n", outcome=Exited(code=1))
    session.mark(1, StepStatus.FAILED, "no")
    session.run(DESTROY_CMD, SAID, target=PVE1, stdin="yes\n", outcome=outcome)
    assert held(destroy(session, stdin="yes\n")) is left


def test_the_command_whose_outcome_is_unknown_is_the_same_however_it_is_quoted() -> None:
    session = ticked(max_uses=2)
    session.run(DESTROY_CMD, SAID, target=PVE1, outcome=Unknown(reason="spool lost"))
    assert not held(destroy(session, command="pct  destroy '131'", said=SAID))


def test_a_window_without_the_consent_that_ticked_holds_nothing() -> None:
    """Cannot come about by events; should it, the gate still asks."""
    session = ticked()
    session.state = replace(session.state, consents={})
    assert not held(destroy(session))
