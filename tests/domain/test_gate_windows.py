"""When a window admits and when it does not (SPEC R3.3, R3.6, DESIGN §6.5, security/THREATS T30)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import ANNA, CHANGE, WEB1, WEB2, Session, at, fix_plan, planned, propose, step, verdict

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.consent import WINDOW_CHOICES_S
from oikos.domain.gate import NeedsApproval, Outcome
from oikos.domain.instant import Instant

IMPROVISED = "mkdir -p /srv/x"
ENDED = NeedsApproval(why="The window has ended.", offers_reopen=True)


def change(session: Session, now: Instant | None = None) -> Outcome:
    return session.ask(IMPROVISED, verdict(IMPROVISED, CHANGE), now=now)


def admitted(outcome: Outcome) -> bool:
    assert isinstance(outcome, Admission) or outcome == ENDED, outcome
    return isinstance(outcome, Admission)


@pytest.mark.parametrize("duration_s", WINDOW_CHOICES_S)
def test_a_window_lasts_as_long_as_it_was_granted_and_not_a_second_more(duration_s: float) -> None:
    session = Session.opened().approved(duration_s=duration_s)
    assert admitted(change(session, at(duration_s - 0.01)))
    assert not admitted(change(session, at(duration_s)))


@pytest.mark.parametrize(
    ("now", "open_"),
    [
        (at(1790), True),
        (at(1790, boot_s=10), True),
        (at(1800, boot_s=10), False),  # the wall clock was set forward: the earlier end counts
        (at(10, boot_s=1800), False),  # it was set back, or stood still: boot time goes on
        (at(-1, boot_s=5), True),  # disorder between processes, on the same boot
        (at(-3, boot_s=5), False),  # behind the newest event: no window is open
        (at(10, boot="boot-2", boot_s=-990), True),
        (at(1799, boot="boot-2", boot_s=-990), True),
        (at(1800, boot="boot-2", boot_s=-990), False),
        (at(-0.01, boot="boot-2", boot_s=5), False),  # another boot and behind: nothing can be proven
        (at(10, boot=""), True),
        (at(-0.01, boot=""), False),
    ],
)
def test_a_window_ends_at_the_earlier_of_both_clocks(now: Instant, open_: bool) -> None:
    assert admitted(change(Session.opened().approved(), now)) is open_


def test_a_reboot_and_a_clock_set_back_do_not_reopen_a_window() -> None:
    """The newest event was 20 minutes in; a wall clock behind it closes the window, though it was opened before."""
    session = Session.opened().approved().pass_s(1200.0)
    session.record(ev.TurnStarted(wake="timer"))
    assert not admitted(change(session, at(600, boot="boot-2", boot_s=0)))
    assert admitted(change(session, at(1200, boot="boot-2", boot_s=0)))


def test_after_the_clock_was_set_right_a_new_consent_opens_a_window() -> None:
    """What a wrong clock said before does not count against a consent that is given now."""
    session = Session.opened().begin()
    session.must(fix_plan())
    session.now_s = -5 * 3600
    session.must(session.approve(), now=at(session.now_s, boot_s=60))
    session.record(ev.AssistantSaid(text=""), now=at(session.now_s + 1, boot_s=61))
    assert admitted(change(session, at(session.now_s + 30, boot_s=90)))
    assert not admitted(change(session, at(session.now_s + 30, boot_s=1860)))


def test_a_clock_is_set_back_when_it_is_behind_the_newest_event() -> None:
    state = Session.opened().record(ev.TurnStarted(wake="timer"), now=at(1000)).state
    told = {
        now: state.clock_set_back(now) for now in (at(997), at(998), at(999, boot="boot-2"), at(1000, boot="boot-2"))
    }
    assert list(told.values()) == [True, False, True, False]
    assert not replace(state, newest=None).clock_set_back(at(-1e9))


def test_a_clock_behind_closes_the_window_by_an_event() -> None:
    session = Session.opened().approved().pass_s(1200.0)
    session.record(ev.TurnStarted(wake="timer"))
    assert session.must(it.Tick(), now=at(600, boot="boot-2")) == (ev.WindowClosed(generation=1, reason="clock"),)


def test_an_expired_window_is_closed_by_an_event_and_admits_nothing_before_it() -> None:
    session = Session.opened().approved().pass_s(1800.0)
    assert not admitted(change(session))
    assert session.must(it.Tick()) == (ev.WindowClosed(generation=1, reason="expired"),)
    assert not admitted(change(session))


def test_a_suspended_window_admits_no_change_and_offers_no_reopening() -> None:
    session = Session.opened().approved().record(ev.WindowSuspended(by="anna"))
    assert change(session) == NeedsApproval(why="The window is suspended.")


def test_a_revoked_window_admits_no_change() -> None:
    session = Session.opened().approved()
    session.must(it.Revoke(by=ANNA))
    assert not admitted(change(session))


def test_a_window_of_another_generation_admits_nothing() -> None:
    """Cannot come about by events; should it, the gate still says no."""
    session = Session.opened().approved()
    assert session.state.window is not None
    session.state = replace(session.state, window=replace(session.state.window, generation=0))
    assert not admitted(change(session))


def test_a_window_covers_the_machines_of_its_consent_only() -> None:
    session = Session.opened().approved(
        propose(step(WEB1, planned("a", CHANGE)), step(WEB2, planned("b", CHANGE)), on=(WEB1, WEB2))
    )
    assert session.state.window is not None
    session.state = replace(session.state, window=replace(session.state.window, machines=(WEB2.id,)))
    assert not admitted(change(session))


def test_an_assent_renews_a_window_from_now() -> None:
    session = Session.opened().approved().pass_s(1700.0)
    session.must(session.send("go", consent_id="k2"))
    outcome = change(session, at(1700 + 1799))
    assert isinstance(outcome, Admission)
    assert outcome.authority == "window:k2"
    assert not admitted(change(session, at(1700 + 1800)))


@pytest.mark.parametrize("now", [at(1800), at(600, boot="boot-2")])
def test_an_assent_does_not_renew_what_has_ended_or_cannot_be_proven_open(now: Instant) -> None:
    session = Session.opened().approved().record(ev.TurnStarted(wake="timer"), now=at(1200))
    assert session.must(session.send("go"), now=now) == (ev.OperatorSaid(text="go", by="anna", channel="web"),)


def test_resuming_after_a_halt_opens_the_suspended_window() -> None:
    session = Session.opened().approved()
    session.must(session.send("stop"))
    assert change(session) == NeedsApproval(why="The window is suspended.")
    session.must(session.send("go"))
    assert admitted(change(session))
    assert session.phase == "executing"


def test_a_comment_after_a_halt_resumes_the_turn_and_not_the_window() -> None:
    session = Session.opened().approved()
    session.must(session.send("stop"))
    session.must(session.send("what did you do so far?"))
    assert session.phase == "executing"
    assert change(session) == NeedsApproval(why="The window is suspended.")


@pytest.mark.parametrize("end", ["complete", "new goal", "proposal", "stop", "reopen"])
def test_what_ends_a_plan_ends_its_window(end: str) -> None:
    session = Session.opened().approved()
    session.must(session.send("something else"))
    session.calls()
    match end:
        case "new goal":
            session.must(it.SetGoal(goal="another"))
        case "proposal":
            session.must(fix_plan("c2"))
        case "stop":
            session.must(it.Stop(by=ANNA))
        case "complete" | "reopen":
            session.record(ev.StepMarked(seq=1, status="skipped", note="not needed"))
            session.must(it.Complete(outcome="nothing_to_do", summary="it was fine"))
            if end == "reopen":
                session.must(session.send("and now?"))
    assert session.state.window is None
    assert not isinstance(change(session), Admission)
