"""A parked run and its one approval (SPEC R3.3, R3.8): exactly these bytes, once, within 10 minutes, judged again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    ANNA,
    CHANGE,
    DAY_S,
    DESTROY,
    DESTROY_131,
    DESTROY_CMD,
    FIX,
    PVE1,
    READ,
    WEB1,
    Session,
    at,
    destroy_plan,
    effect,
    verdict,
    with_entities,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.consent import RUN_APPROVAL_S, Consent
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsApproval, NeedsTypedConfirmation, Outcome, Question, admit
from oikos.domain.instant import Instant
from oikos.domain.inventory import Mode
from oikos.domain.plan import PlanStatus
from oikos.domain.run import Exited
from oikos.domain.verdict import EffectKind, NamedObject

COMMAND = "useradd eve"
PRIVILEGE = (effect(EffectKind.PRIVILEGE, "eve"),)
SAID = verdict(COMMAND, CHANGE, effects=PRIVILEGE)
RM_SAID = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,))


def asked(session: Session, command: str = COMMAND, said: object = SAID, **more: object) -> Question:
    """Park a run on its card."""
    session.calls("c-run")
    question = session.question(command, said, **more)
    session.park(question, admit(question))
    return question


def approved_run(session: Session, **more: object) -> Question:
    """Approve the parked run: what the application asks the gate then."""
    parked = session.state.parked
    assert parked is not None
    session.must(session.approve_run(consent_id="a", **more))
    return again(session)


def again(session: Session) -> Question:
    parked = session.state.parked
    assert parked is not None
    event = parked.event
    said = RM_SAID if event.risk is DESTROY else SAID
    target = PVE1 if event.target == "pve1" else WEB1
    return session.question(event.order.command, said, target=target, order=event.order, approval=parked.consent)


def authority(outcome: Outcome) -> str:
    assert isinstance(outcome, Admission), outcome
    return outcome.authority


def test_an_approval_admits_exactly_the_run_that_was_asked() -> None:
    session = Session.opened().approved()
    first = asked(session)
    question = approved_run(session)
    assert question.order == first.order
    assert authority(admit(question)) == "approval:a"


def test_the_start_may_carry_the_instant_after_which_the_approval_is_dead() -> None:
    """`not_after` is set by the approval itself, so it is no part of what was shown."""
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    assert authority(admit(replace(question, order=replace(question.order, not_after_s=1.0)))) == "approval:a"


def test_it_admits_once() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    session.start(question, admit(question))
    session.finish(question.order.run_id, Exited(code=1))
    refusal = admit(replace(question, state=session.state))
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.INTERNAL
    other = session.question(COMMAND, SAID, approval=question.approval)
    assert isinstance(admit(other), NeedsApproval)


@pytest.mark.parametrize(("seconds", "admitted"), [(0.0, True), (RUN_APPROVAL_S, True), (RUN_APPROVAL_S + 0.01, False)])
def test_it_admits_within_ten_minutes(seconds: float, admitted: bool) -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    assert isinstance(admit(replace(question, now=at(seconds))), Admission) is admitted


@pytest.mark.parametrize(
    "now",
    [
        at(10, boot_s=RUN_APPROVAL_S + 1),
        at(RUN_APPROVAL_S + 1, boot_s=10),
        at(-1, boot="boot-2"),
        at(-3, boot_s=1),
    ],
    ids=["boot clock", "wall clock", "another boot, before it", "wall clock set back"],
)
def test_by_either_clock(now: Instant) -> None:
    session = Session.opened().approved()
    asked(session)
    assert isinstance(admit(replace(approved_run(session), now=now)), NeedsApproval)


def test_a_clock_set_back_across_a_boot_does_not_refresh_an_approval() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    session.record(ev.TurnStarted(wake="restart"), now=at(900))
    assert isinstance(admit(replace(question, state=session.state, now=at(300, boot="boot-2"))), NeedsApproval)


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "other"},
        {"digest": "other"},
        {"generation": 2},
        {"session_id": "s2"},
        {"id": "b"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_consent_that_is_not_this_runs_admits_nothing(change: dict[str, object]) -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    assert question.approval is not None
    forged: Consent = replace(question.approval, **change)
    assert isinstance(admit(replace(question, approval=forged)), NeedsApproval)
    parked = session.state.parked
    assert parked is not None
    if change != {"id": "b"}:
        held = replace(session.state, parked=replace(parked, consent=forged))
        assert isinstance(admit(replace(question, approval=forged, state=held)), NeedsApproval)


def test_a_consent_for_another_parked_run_admits_nothing() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    swapped = replace(question.order, run_id="r-swapped")
    assert isinstance(admit(replace(question, order=swapped)), NeedsApproval)


def test_without_its_consent_a_parked_run_is_asked_again() -> None:
    session = Session.opened().approved()
    asked(session)
    assert isinstance(admit(again(session)), NeedsApproval)
    session.must(session.approve_run())
    assert isinstance(admit(replace(again(session), approval=None)), NeedsApproval)


def test_a_consent_with_nothing_parked_admits_nothing() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    assert isinstance(admit(replace(question, state=replace(session.state, parked=None))), NeedsApproval)


# ---- judged again by the gate at that moment -------------------------------------------------------------------------


def test_a_target_that_was_locked_meanwhile_is_locked() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    locked = replace(WEB1, mode=Mode.LOCKED)
    refusal = admit(replace(question, target=locked, inventory=with_entities(locked)))
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.TARGET_LOCKED


def test_a_plan_that_was_closed_meanwhile_admits_nothing() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    refusal = admit(replace(question, state=replace(session.state, status=PlanStatus.CLOSED)))
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.NO_PLAN


def test_an_approval_of_an_earlier_generation_is_refused() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    later = replace(session.state, generation=2)
    refusal = admit(replace(question, state=later))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.text) == (
        Code.STALE_GENERATION,
        "The command was asked under plan 1; plan 2 is the newest now.",
    )


def test_a_command_judged_worse_than_when_it_was_asked_is_asked_again() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    more = (*PRIVILEGE, effect(EffectKind.EGRESS, "evil.example"))
    outcome = admit(replace(question, verdict=replace(SAID, effects=more)))
    assert outcome == NeedsApproval(
        why="Not in the approved plan, and beyond what a window covers: privilege of eve, egress of evil.example.",
        effects=more,
    )
    worse = replace(SAID, risk=DESTROY, objects=(DESTROY_131,))
    assert isinstance(admit(replace(question, verdict=worse)), NeedsTypedConfirmation)


def test_a_guarded_read_judged_a_change_is_asked_again() -> None:
    session = Session.opened().approved()
    read = replace(SAID, risk=READ)
    asked(session, said=read)
    question = replace(approved_run(session), verdict=read)
    assert authority(admit(question)) == "approval:a"
    assert isinstance(admit(replace(question, verdict=SAID)), NeedsApproval)


def test_a_command_judged_milder_is_still_the_one_that_was_approved() -> None:
    session = Session.opened().approved()
    asked(session)
    question = approved_run(session)
    assert authority(admit(replace(question, verdict=replace(SAID, effects=())))) == "approval:a"


def test_an_approval_needs_no_window() -> None:
    session = Session.opened().approved()
    asked(session)
    session.must(it.Revoke(by=ANNA))
    assert authority(admit(approved_run(session))) == "approval:a"


def test_a_halt_holds_back_what_was_approved_before_it_and_a_resume_lets_it_go() -> None:
    """R1.8: nothing more starts until Resume; the approval's ten minutes run on."""
    session = Session.opened().approved()
    asked(session)
    session.must(session.approve_run(consent_id="a"))
    session.must(session.send("stop"))
    assert isinstance(admit(again(session)), NeedsApproval)
    session.must(session.send("go"))
    assert authority(admit(again(session))) == "approval:a"


def test_an_approved_repetition_is_not_refused_as_a_duplicate() -> None:
    """While it was parked the same command succeeded; who approved it was asked about this run."""
    session = Session.opened().approved()
    done = session.run(FIX, verdict(FIX, CHANGE))
    session.must(it.Revoke(by=ANNA))
    asked(session, FIX, verdict(FIX, CHANGE), rerun="again")
    session.must(session.approve_run(consent_id="a"))
    parked = session.state.parked
    assert parked is not None
    question = session.question(FIX, verdict(FIX, CHANGE), order=parked.event.order, approval=parked.consent)
    assert authority(admit(question)) == "approval:a"
    refusal = admit(replace(question, now=at(3600)))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, done in refusal.text) == (Code.DUPLICATE, True)


# ---- destructive: the phrase -----------------------------------------------------------------------------------------


def confirmable() -> Session:
    session = Session.opened().approved(destroy_plan())
    asked(session, DESTROY_CMD, RM_SAID, target=PVE1)
    return session


def test_the_typed_phrase_admits_once() -> None:
    session = confirmable()
    session.must(session.confirm("  destroy 131 ", by=ANNA, consent_id="a"))
    assert authority(admit(again(session))) == "approval:a"


@pytest.mark.parametrize(
    "phrase", ["", "destroy", "destroy 132", "Destroy 131", "yes", "destroy  131", "destroy 131 "[:-2]]
)
def test_nothing_but_the_phrase_confirms(phrase: str) -> None:
    refusal = (session := confirmable()).refuse(session.confirm(phrase))
    assert refusal == Refusal(
        code=Code.WRONG_PHRASE, text="That phrase does not confirm the waiting run: type `destroy 131`."
    )


def test_the_phrase_confirms_only_the_run_that_was_shown() -> None:
    """Two commands can have one phrase: `rm a` and `rm a; rm -r b` are both `delete a`."""
    session = confirmable()
    shown = replace(session.confirm("destroy 131"), digest="0" * 64)
    assert session.refuse(shown) == Refusal(
        code=Code.STALE_DIGEST, text="The run that waits is not the one that was shown: look again."
    )


def test_a_phrase_for_another_object_is_no_confirmation_when_judged_again() -> None:
    session = confirmable()
    session.must(session.confirm("destroy 131", by=ANNA, consent_id="a"))
    other = replace(RM_SAID, objects=(NamedObject(kind="guest", name="132", risk=DESTROY, verb="destroy"),))
    assert admit(replace(again(session), verdict=other)) == NeedsTypedConfirmation(
        why="It is destructive.", phrase="destroy 132"
    )


# ---- cards expire ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confirm", [False, True])
@pytest.mark.parametrize(("seconds", "decidable"), [(DAY_S, True), (DAY_S + 0.01, False)])
def test_a_parked_run_is_decidable_for_a_day(seconds: float, decidable: bool, confirm: bool) -> None:
    if confirm:
        session = confirmable()
        intent = session.confirm("destroy 131", by=ANNA, consent_id="a")
    else:
        session = Session.opened().approved()
        asked(session)
        intent = session.approve_run()
    if decidable:
        session.must(intent, now=at(seconds))
    else:
        assert session.refuse(intent, now=at(seconds)).code is Code.EXPIRED


def test_silence_is_never_consent() -> None:
    """R3.8: after a day an explicit event says that nobody answered, and the call is answered so."""
    session = Session.opened().approved()
    question = asked(session)
    assert session.must(it.Tick(), now=at(1000)) == ()
    events = session.must(it.Tick(), now=at(DAY_S + 1))
    assert [type(event) for event in events] == [ev.WindowClosed, ev.ApprovalUnanswered, ev.RunDecided, ev.ToolAnswered]
    assert events[1] == ev.ApprovalUnanswered(generation=1, run_id=question.order.run_id)
    assert events[2] == ev.RunDecided(run_id=question.order.run_id, decision="unanswered")
    assert session.state.parked is None
    assert session.phase == "executing"
    session.calls()
    refusal = session.ask(COMMAND, SAID)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.DECLINED


def test_an_approval_that_is_void_does_not_forbid_the_command() -> None:
    """The application drops an approval that the gate did not honour; nobody declined the command."""
    session = Session.opened().approved()
    question = asked(session)
    session.must(session.approve_run(consent_id="a"))
    session.record(
        ev.RunDecided(run_id=question.order.run_id, decision="void", consent_id="a"),
        ev.ToolAnswered(call_id="c-run", name="run", text="{}", refusal="expired"),
    )
    assert session.state.parked is None
    session.calls()
    assert isinstance(session.ask(COMMAND, SAID), NeedsApproval)


def test_an_answered_call_leaves_nothing_parked() -> None:
    session = Session.opened().approved()
    asked(session)
    session.must(session.approve_run())
    session.record(ev.ToolAnswered(call_id="other", name="run", text="{}"))
    assert session.state.parked is not None
    session.record(ev.ToolAnswered(call_id="c-run", name="run", text="{}", refusal="target_locked"))
    assert session.state.parked is None


# ---- run and reopen --------------------------------------------------------------------------------------------------


def test_run_and_reopen_opens_the_window_again_from_now() -> None:
    session = Session.opened().approved().pass_s(2000.0)
    session.must(it.Tick())
    asked(session, FIX, verdict(FIX, CHANGE))
    session.must(session.approve_run(consent_id="a", reopen_s=3600.0))
    assert session.state.window is not None
    assert (session.state.window.opened, session.state.window.duration_s) == (at(2000), 3600.0)
    outcome = session.ask("mkdir /x", verdict("mkdir /x", CHANGE), now=at(2000 + 3599))
    assert authority(outcome) == "window:a"


@pytest.mark.parametrize("reopen_s", [1.0, 86400.0, -1.0])
def test_a_window_reopens_only_for_one_of_the_offered_times(reopen_s: float) -> None:
    session = Session.opened().approved().pass_s(2000.0)
    session.must(it.Tick())
    asked(session, FIX, verdict(FIX, CHANGE))
    assert session.refuse(session.approve_run(reopen_s=reopen_s)).code is Code.WRONG_STATE


def test_approving_a_guarded_run_reopens_nothing() -> None:
    session = Session.opened().approved()
    session.must(it.Revoke(by=ANNA))
    asked(session)
    assert session.refuse(session.approve_run(reopen_s=1800.0)).code is Code.WRONG_STATE
    session.must(session.approve_run())
    assert session.state.window is None


def test_a_stale_digest_or_another_run_is_not_what_was_shown() -> None:
    session = Session.opened().approved()
    asked(session)
    assert session.refuse(session.approve_run(digest="old")).code is Code.STALE_DIGEST
    assert session.refuse(session.approve_run(run_id="other")).code is Code.WRONG_STATE
