"""What an operator is told (SPEC R1.11, R3.6, R3.7): every answer whole, and which of two things an action means."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.domain.table_r1_11 import STATES
from tests.domain.world import (
    ANNA,
    CHANGE,
    DAY_S,
    DESTROY,
    DESTROY_131,
    FIX,
    HOUR_S,
    OTTO,
    PIPE,
    PVE1,
    SCRIPT,
    SESSION,
    WEB1,
    WEB2,
    Session,
    check,
    destroy_plan,
    effect,
    fix_plan,
    planned,
    propose,
    step,
    verdict,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.consent import Grant
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsApproval, admit
from oikos.domain.plan import PreAuthorisation, Snapshot, Step
from oikos.domain.run import RunOrder
from oikos.domain.session import Decided
from oikos.domain.verdict import EffectKind, NamedObject, Verdict

Build = Callable[[], Session]
Act = Callable[[Session], it.OperatorIntent]

RUN = "0123456789abcdef0123456789abcdef"
"""As long as real ids are: people are shown the first eight."""


def parked(command: str = "useradd eve", said: Verdict | None = None) -> Session:
    """A run waits for a decision, under an open window."""
    session = Session.opened().approved(duration_s=4 * HOUR_S).calls("c-run")
    said = said or verdict(command, CHANGE, effects=(effect(EffectKind.PRIVILEGE, "eve"),))
    order = RunOrder(run_id=RUN, session_id=SESSION, generation=1, target_id=WEB1.id, command=command)
    question = session.question(command, said, order=order)
    session.park(question, admit(question))
    return session


def parked_destructive() -> Session:
    return parked("rm -r /srv", verdict("rm -r /srv", DESTROY, objects=(DESTROY_131,)))


def waiting_proposed() -> Session:
    """A comment woke the model while its plan waits, and it waits for something else."""
    session = STATES["executing-proposed"]().calls("c-wait")
    session.must(it.Wait(call_id="c-wait", seconds=60.0, reason="settle"))
    return session


def keeping() -> Session:
    """A plan waits that offers to keep two guests."""
    offers = tuple(
        Snapshot(target_id=f"e-{name}", target=name, node_id=PVE1.id, node="pve1", tool="pct", guest=guest)
        for name, guest in (("paperless", "131"), ("vault", "140"))
    )
    session = Session.opened().begin()
    session.must(replace(fix_plan(), snapshots=offers))
    return session


def later(build: Build, seconds: float) -> Build:
    return lambda: build().pass_s(seconds)


# ---- a no, and the way on --------------------------------------------------------------------------------------------

GO_ON = "A message to the session goes on from here."
IS_DONE = f"the session is done, generation 1; plan 1 was approved by anna. {GO_ON}"
NO_ROLE = "otto does not hold the role approver; ask someone who does."
NO_TERMINAL = "Consent needs a terminal: run `oikos approve` at one, or use an approver token."
NO_LAB = "An operator script can decide only in a home made by the lab."

REFUSED: dict[str, tuple[Build, Act, Code, str]] = {
    # what cannot be done in a state: the action, the state, the generation, who decided
    "approve in an ended session": (
        STATES["done"], lambda s: s.approve(), Code.SESSION_OVER, f"Cannot approve plan 1: {IS_DONE}"),
    "approve a run in an ended session": (
        STATES["done"], lambda s: s.approve_run(run_id=RUN), Code.SESSION_OVER,
        f"Cannot approve run 01234567: {IS_DONE}"),
    "confirm in an ended session": (
        STATES["done"], lambda s: s.confirm("x"), Code.SESSION_OVER, f"Cannot confirm: {IS_DONE}"),
    "ask for changes in an ended session": (
        STATES["done"], lambda _: it.AskForChanges(text="x", by=ANNA), Code.SESSION_OVER,
        f"Cannot ask for changes: {IS_DONE}"),
    "reject in an ended session": (
        STATES["done"], lambda _: it.Reject(by=ANNA), Code.SESSION_OVER, f"Cannot reject: {IS_DONE}"),
    "revoke in an ended session": (
        STATES["done"], lambda _: it.Revoke(by=ANNA), Code.SESSION_OVER,
        f"Cannot revoke: no window is open: {IS_DONE}"),
    "stop an ended session": (
        STATES["done"], lambda _: it.Stop(by=ANNA), Code.SESSION_OVER, f"Cannot stop: {IS_DONE}"),
    "raise the limits of an ended session": (
        STATES["done"], lambda _: it.Raise(by=ANNA), Code.SESSION_OVER, f"Cannot raise the limits: {IS_DONE}"),
    "reject where nothing was ever proposed": (
        STATES["idle"], lambda _: it.Reject(by=ANNA), Code.WRONG_STATE,
        f"Cannot reject: the session is idle. {GO_ON}"),
    # who may not consent
    "approve without the role": (STATES["awaiting-plan"], lambda s: s.approve(OTTO), Code.NOT_APPROVER, NO_ROLE),
    "approve through a pipe": (STATES["awaiting-plan"], lambda s: s.approve(PIPE), Code.NO_TERMINAL, NO_TERMINAL),
    "approve by a script": (STATES["awaiting-plan"], lambda s: s.approve(SCRIPT), Code.NOT_APPROVER, NO_LAB),
    # too late
    "approve a plan from yesterday": (
        later(STATES["awaiting-plan"], DAY_S + 1), lambda s: s.approve(), Code.EXPIRED,
        "Plan 1 was proposed more than 24 h ago: ask for a new one."),
    "approve a run from yesterday": (
        later(parked, DAY_S + 1), lambda s: s.approve_run(), Code.EXPIRED,
        "The run has waited for more than 24 h: decline it, Nomos will look again."),
    "confirm a run from yesterday": (
        later(parked_destructive, DAY_S + 1), lambda s: s.confirm("destroy 131"), Code.EXPIRED,
        "The run has waited for more than 24 h: decline it, Nomos will look again."),
    # not what was shown, or not so
    "approve a run that was not shown": (
        parked, lambda s: s.approve_run(digest="old"), Code.STALE_DIGEST,
        "The run that waits is not the one that was shown: look again."),
    "confirm a run that was not shown": (
        parked_destructive, lambda s: replace(s.confirm("destroy 131"), digest="old"), Code.STALE_DIGEST,
        "The run that waits is not the one that was shown: look again."),
    "approve a destructive run with a click": (
        parked_destructive, lambda s: s.approve_run(), Code.WRONG_PHRASE,
        "The run is destructive: type `destroy 131` to confirm it."),
    "confirm a destructive run with another phrase": (
        parked_destructive, lambda s: s.confirm("destroy 132"), Code.WRONG_PHRASE,
        "That phrase does not confirm the waiting run: type `destroy 131`."),
    "confirm a run that has no phrase": (
        parked, lambda s: s.confirm("destroy 131"), Code.WRONG_PHRASE,
        "That phrase does not confirm the waiting run: approve it without a phrase."),
    "reopen with a run that does not offer it": (
        parked, lambda s: s.approve_run(reopen_s=1800.0), Code.WRONG_STATE,
        "This run does not offer to reopen the window: approve just the run."),
    "reopen for an odd time": (
        STATES["awaiting-run-reopen"], lambda s: s.approve_run(reopen_s=60.0), Code.WRONG_STATE,
        "This run does not offer to reopen the window: approve just the run."),
    # messages
    "answer a secret in the conversation": (
        STATES["blocked-secret"], lambda s: s.send("hunter2"), Code.NEEDS_OPERATOR,
        "The question asks for the secret db: give it with `oikos answer`, so that it is stored and never becomes "
        "part of the conversation."),
    "assent to a stopped session": (
        STATES["stopped"], lambda s: s.send("go"), Code.NOTHING_PENDING,
        "Nothing is pending: the session was stopped. Say what you want done."),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_who_is_refused_hears_the_thing_the_cause_and_the_way_on(name: str) -> None:
    build, act, code, text = REFUSED[name]
    session = build()
    assert session.refuse(act(session)) == Refusal(code=code, text=text)


def test_a_phrase_for_another_plan_than_was_shown_names_both() -> None:
    session = STATES["awaiting-plan"]()
    assert session.refuse(replace(session.confirm("destroy 131"), digest="0123456789")) == Refusal(
        code=Code.STALE_DIGEST,
        text=f"Plan 1 is not the one that was shown (shown 01234567, now {session.state.digest[:8]}): look at the "
        "difference and decide again.",
    )


# ---- a yes, and what it did ------------------------------------------------------------------------------------------

GUARDED = "run 01234567 on web1: Not in the approved plan, and beyond what a window covers: privilege of eve."
PLAN_1 = "plan 1: the demo service runs"

TOLD: dict[str, tuple[Build, Act, str]] = {
    # an assent that decides nothing says why, and what waits
    "go, by who may not consent": (
        STATES["awaiting-plan"], lambda s: s.send("go", OTTO), f"{NO_ROLE} Still waiting: {PLAN_1}"),
    "go, for a run, by who may not consent": (
        parked, lambda s: s.send("go", OTTO), f"{NO_ROLE} Still waiting: {GUARDED}"),
    "go, for a window, by who may not consent": (STATES["executing"], lambda s: s.send("go", OTTO), NO_ROLE),
    "go, while it waits, by who may not consent": (STATES["waiting"], lambda s: s.send("go", PIPE), NO_TERMINAL),
    "go, for what goes beyond the plan": (
        parked, lambda s: s.send("go"),
        f"Its effects go beyond the plan: approve it on its card. Still waiting: {GUARDED}"),
    "go, for what is destructive": (
        parked_destructive, lambda s: s.send("go"),
        "A destructive run is never approved in chat: type `destroy 131`. "
        "Still waiting: run 01234567 on web1: It is destructive."),
    "go, too late": (
        later(STATES["awaiting-plan"], 1801.0), lambda s: s.send("go"),
        f"It was shown more than 30 minutes ago: look again and approve it on its card. Still waiting: {PLAN_1}"),
    "go, for one machine of the plan": (
        STATES["awaiting-plan"], lambda s: s.send("yes, but only pve1"),
        "It assents on a condition, to a part, or to something more. A plan is approved whole, not for pve1. "
        f"Nothing was approved. Still waiting: {PLAN_1}"),
    "go, for a part, while it waits for something else": (
        waiting_proposed, lambda s: s.send("yes, but only step 1"),
        "It assents on a condition, to a part, or to something more. "
        f"Nothing was approved. Still waiting: {PLAN_1}"),
    "go, for a part, where nothing waits": (STATES["executing"], lambda s: s.send("yes, but only step 1"), ""),
    # an assent that decides
    "go, with a window of half an hour": (STATES["executing"], lambda s: s.send("go"), "Window renewed for 30 min."),
    "go, with a window of four hours": (
        lambda: Session.opened().approved(duration_s=4 * HOUR_S), lambda s: s.send("go"),
        "Window renewed for 240 min."),
    "go, to a limit": (STATES["blocked-limit"], lambda s: s.send("go"), "Limits raised; going on."),
    # the other ways
    "a message, while a plan waits": (
        STATES["awaiting-plan"], lambda s: s.send("and the disk?"), "Plan 1 is still waiting for your decision."),
    "a message, while a run waits": (
        parked, lambda s: s.send("and the disk?"),
        f"Noted; Nomos sees it with your decision. Still waiting: {GUARDED}"),
    "no, to a plan": (STATES["awaiting-plan"], lambda s: s.send("no"), "Plan 1 rejected; write to go on."),
    "no, to a run": (parked, lambda s: s.send("no"), "Declined."),
    "no, to an ended session": (STATES["done"], lambda s: s.send("no"), "Noted; the session stays done."),
    "no, to a blocked session": (
        STATES["blocked-limit"], lambda s: s.send("no"), "Noted; still blocked: 40 iterations are used"),
    "stop, while it works": (
        STATES["executing"], lambda s: s.send("stop"),
        "Suspended: nothing more starts. Stop it, or say go to resume."),
    "stop, to a blocked session": (
        STATES["blocked-limit"], lambda s: s.send("stop"), "Suspended; still blocked: 40 iterations are used"),
    "stop, to an ended session": (STATES["done"], lambda s: s.send("stop"), "Noted; the session stays done."),
    "approve a run": (parked, lambda s: s.approve_run(), "Run 01234567 approved, once."),
    "confirm a run": (parked_destructive, lambda s: s.confirm("destroy 131"), "Run 01234567 approved, once."),
    "confirm an item": (
        STATES["awaiting-plan"], lambda s: s.confirm("destroy 131"), "Item 1 ticked; approve the plan to allow it."),
    "confirm the snapshots": (
        keeping, lambda s: s.confirm("snapshot"),
        "A snapshot comes before the first change; approve the plan to go on."),
    "approve with the snapshots": (
        keeping, lambda s: s.approve(snapshot=True),
        "Plan 1 approved; window 30 min on web1. A snapshot of paperless, vault comes before the first change."),
    "reject a plan": (STATES["awaiting-plan"], lambda _: it.Reject(by=ANNA), "Plan 1 rejected; write to go on."),
    "reject a run": (parked, lambda _: it.Reject(by=ANNA), "Declined."),
    "revoke": (
        STATES["executing"], lambda _: it.Revoke(by=ANNA),
        "Window closed; running commands go on, the next change will ask."),
    "stop": (STATES["executing"], lambda _: it.Stop(by=ANNA), "Stopped."),
    "raise, while it works": (STATES["executing"], lambda _: it.Raise(by=ANNA), "Limits raised."),
    "raise, at a limit": (STATES["blocked-limit"], lambda _: it.Raise(by=ANNA), "Limits raised; going on."),
}  # fmt: skip


@pytest.mark.parametrize("name", TOLD)
def test_who_acts_hears_in_one_line_what_that_did(name: str) -> None:
    build, act, notice = TOLD[name]
    session = build()
    decision = session.do(act(session))
    assert not isinstance(decision, Refusal)
    assert decision.notice == notice


def test_an_approval_says_for_how_long_and_on_which_machines() -> None:
    session = Session.opened().begin()
    session.must(propose(step(WEB1, planned(FIX, CHANGE)), checks=(check(),), on=(WEB1, WEB2)))
    decision = session.do(session.approve(duration_s=4 * HOUR_S))
    assert not isinstance(decision, Refusal)
    assert "Plan 1 approved; window 240 min on web1, web2" in decision.notice


# ---- which of two things an action means -----------------------------------------------------------------------------


def granted(session: Session, intent: it.OperatorIntent) -> list[Grant]:
    return [event.consent.grant for event in session.must(intent) if isinstance(event, ev.ConsentGranted)]


def test_an_assent_at_rest_is_a_message_though_a_window_is_open() -> None:
    session = STATES["idle-with-window"]()
    assert session.must(session.send("go")) == (ev.OperatorSaid(text="go", by="anna", channel="web"),)


@pytest.mark.parametrize(("left_s", "grants"), [(0.5, [Grant.RENEW]), (0.0, [])])
def test_a_window_is_renewed_up_to_its_last_moment(left_s: float, grants: list[Grant]) -> None:
    session = STATES["executing"]().pass_s(1800.0 - left_s)
    assert granted(session, session.send("go")) == grants


def test_an_assent_is_for_the_plan_that_waits_and_not_for_a_run_that_was_approved_already() -> None:
    session = STATES["executing-run-approved"]()
    session.must(session.send("another way, please"))
    session.calls().must(fix_plan("c2"))
    assert session.state.parked is not None
    assert granted(session, session.send("go")) == [Grant.PLAN]


def test_the_half_hour_of_an_assent_to_a_run_begins_when_the_run_is_shown() -> None:
    session = Session.opened().approved(duration_s=4 * HOUR_S).pass_s(2 * HOUR_S).calls("c-run")
    said = verdict(FIX, CHANGE)
    question = session.question(FIX, said, target=WEB2)
    session.park(question, admit(question))
    assert granted(session.pass_s(1800.0), session.send("go")) == [Grant.RUN]


def test_a_plan_is_not_approved_while_its_session_waits_for_something_else() -> None:
    """R1.11, the column waiting."""
    session = waiting_proposed()
    assert session.refuse(session.approve()).code is Code.WRONG_STATE


@pytest.mark.parametrize(
    "intent",
    [
        it.AskForChanges(text="x", by=ANNA),
        it.Reject(by=ANNA),
        it.Confirm(phrase="destroy 131", digest="x", by=ANNA, consent_id="k"),
    ],
    ids=lambda intent: type(intent).__name__,
)
def test_a_run_that_was_approved_is_decided_no_more(intent: it.OperatorIntent) -> None:
    """It waits for its start only: Revoke and Stop are what is left."""
    assert STATES["executing-run-approved"]().refuse(intent).code is Code.WRONG_STATE


def test_a_phrase_ticks_nothing_of_a_plan_that_was_closed_under_the_card() -> None:
    session = STATES["awaiting-plan"]()
    session.record(ev.PlanClosed(generation=1, status="superseded"))
    assert session.refuse(session.confirm("destroy 131")).code is Code.WRONG_STATE


@pytest.mark.parametrize(
    ("items", "phrases", "missing"),
    [
        ((1,), ("destroy 131",), ""),
        ((2,), ("destroy 132",), ""),
        ((1, 2), ("destroy 132", "destroy 131"), ""),
        ((1,), ("destroy 132",), "Item 1 is destructive: type `destroy 131` to allow it."),
        ((2,), ("destroy 131",), "Item 2 is destructive: type `destroy 132` to allow it."),
    ],
)
def test_each_item_has_its_own_phrase(items: tuple[int, ...], phrases: tuple[str, ...], missing: str) -> None:
    def destroy(number: str) -> Step:
        thing = NamedObject(kind="guest", name=number, risk=DESTROY, verb="destroy")
        text = f"pct destroy {number}"
        return step(PVE1, planned(text, DESTROY, objects=(thing,), preauthorise=PreAuthorisation(object=thing)))

    session = Session.opened().begin()
    session.must(propose(destroy("131"), destroy("132"), on=(PVE1,)))
    intent = session.approve(items=items, phrases=phrases)
    if missing:
        assert session.refuse(intent) == Refusal(code=Code.WRONG_PHRASE, text=missing)
    else:
        session.must(intent)
        assert session.state.items == items


# ---- words reach the model as they were written ----------------------------------------------------------------------

WRITTEN = "die zweite Größe, 二番目"


def told(events: tuple[ev.Event, ...]) -> str:
    (answer,) = [event for event in events if isinstance(event, ev.ToolAnswered)]
    return answer.text


def test_an_answer_reaches_the_model_letter_by_letter() -> None:
    session = STATES["blocked"]()
    assert told(session.must(session.send(WRITTEN))) == f'{{"answer": "{WRITTEN}"}}'


def test_the_reason_of_a_no_reaches_the_model_letter_by_letter() -> None:
    text = told(parked().must(it.Reject(by=ANNA, reason=WRITTEN)))
    assert WRITTEN in text
    assert json.loads(text)["comment"] == WRITTEN


@pytest.mark.parametrize("text", ["look at the log first", "go on please"])
def test_a_message_ends_a_wait_also_where_the_session_was_blocked_since(text: str) -> None:
    """The wait's call is unanswered: a model is never asked with a call that is (SPEC R1.12)."""
    session = Session.opened().approved().calls("c-wait")
    session.must(it.Wait(call_id="c-wait", seconds=60.0, reason="it starts"))
    session.record(ev.SessionBlocked(on="internal", reason="a defect ended the turn"))
    ended, told, *_ = session.must(session.send(text))
    assert ended == ev.WaitEnded(call_id="c-wait", by="message")
    assert isinstance(told, ev.ToolAnswered)
    assert (session.phase, session.state.waiting) == ("executing", None)
    assert session.state.batch.calls == ()


def test_go_on_renews_no_machine_that_was_closed_for_its_identity() -> None:
    both = propose(step(WEB1, planned(FIX, CHANGE)), step(WEB2, planned(FIX, CHANGE)), on=(WEB1, WEB2))
    session = Session.opened().approved(both)
    session.record(ev.WindowClosed(generation=1, reason="identity", target_id=WEB1.id))
    session.must(session.send("go on"))
    window = session.state.window
    assert window is not None
    assert window.machines == (WEB2.id,)
    assert isinstance(session.ask(FIX, verdict(FIX, CHANGE), target=WEB1), NeedsApproval)
    assert isinstance(session.ask(FIX, verdict(FIX, CHANGE), target=WEB2), Admission)


def test_who_ticked_an_item_and_then_says_go_is_told_that_a_message_covers_none() -> None:
    session = Session.opened().begin()
    session.must(destroy_plan())
    session.must(session.confirm("destroy 131"))
    decision = session.do(session.send("go"))
    assert isinstance(decision, Decided)
    told = "A message covers no destructive item: what was ticked will ask for its phrase again."
    assert decision.notice.endswith(told)
