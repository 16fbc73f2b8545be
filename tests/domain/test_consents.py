"""Who may consent, to what, until when, and how often (SPEC R3.6 – R3.8, security/THREATS T3 – T5, T10)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.table_r1_11 import STATES
from tests.domain.world import (
    ANNA,
    BEN,
    CHANGE,
    DAY_S,
    DESTROY,
    DESTROY_131,
    FIX,
    OTTO,
    PIPE,
    PVE1,
    SCRIPT,
    VERA,
    Session,
    at,
    destroy_plan,
    fix_plan,
    planned,
    propose,
    step,
    verdict,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.consent import Channel, Grant, Principal, Role
from oikos.domain.errors import Code, Refusal
from oikos.domain.plan import PreAuthorisation, StepStatus
from oikos.domain.verdict import NamedObject


def waiting_plan(**opened: bool) -> Session:
    session = Session.opened(**opened).begin()
    session.must(destroy_plan())
    return session


# ---- who -------------------------------------------------------------------------------------------------------------

NOBODY: dict[str, tuple[Principal, Code]] = {
    "an operator": (OTTO, Code.NOT_APPROVER),
    "a viewer": (VERA, Code.NOT_APPROVER),
    "a pipe into the command line": (PIPE, Code.NO_TERMINAL),
    "a chat over standard input": (replace(PIPE, channel=Channel.CHAT), Code.NO_TERMINAL),
    "a script outside the lab": (SCRIPT, Code.NOT_APPROVER),
    "an admin behind a pipe": (replace(PIPE, role=Role.ADMIN), Code.NO_TERMINAL),
}
CONSENTS = {
    "approve": (waiting_plan, lambda s, by: s.approve(by)),
    "confirm an item": (waiting_plan, lambda s, by: s.confirm("destroy 131", by=by, consent_id="k")),
    "approve a run": (STATES["awaiting-run"], lambda s, by: s.approve_run(by)),
    "confirm a run": (
        STATES["awaiting-run-destructive"],
        lambda s, by: s.confirm("destroy 131", by=by, consent_id="k"),
    ),
}


@pytest.mark.parametrize("way", CONSENTS)
@pytest.mark.parametrize("who", NOBODY)
def test_who_may_not_consent_is_refused(who: str, way: str) -> None:
    by, code = NOBODY[who]
    build, intent = CONSENTS[way]
    session = build()
    assert session.refuse(intent(session, by)).code is code


@pytest.mark.parametrize("who", [name for name in NOBODY if name != "a viewer"])
@pytest.mark.parametrize("state", ["awaiting-plan", "awaiting-run"])
def test_the_assent_of_who_may_not_consent_decides_nothing_and_says_what_waits(who: str, state: str) -> None:
    by, _ = NOBODY[who]
    session = STATES[state]()
    decision = session.do(session.send("go", by))
    assert decision.events == (
        ev.OperatorSaid(text="go", by=by.id, channel=by.channel, reading="clarify", wakes=False),
    )
    assert "Still waiting: " in decision.notice
    assert session.phase == "awaiting_approval"


@pytest.mark.parametrize("who", [name for name in NOBODY if name != "a viewer"])
def test_the_assent_of_who_may_not_consent_renews_nothing(who: str) -> None:
    by, _ = NOBODY[who]
    session = STATES["executing"]()
    before = session.state.window
    assert session.must(session.send("go", by)) == (ev.OperatorSaid(text="go", by=by.id, channel=by.channel),)
    assert session.state.window == before


@pytest.mark.parametrize("role", [Role.APPROVER, Role.ADMIN])
@pytest.mark.parametrize("channel", [Channel.WEB, Channel.API, Channel.TICKET, Channel.CLI, Channel.CHAT])
def test_an_approver_consents_over_every_channel_and_the_ledger_names_it(channel: Channel, role: Role) -> None:
    session = waiting_plan()
    granted, _ = session.must(session.approve(Principal(id="p", role=role, channel=channel)))
    assert isinstance(granted, ev.ConsentGranted)
    assert (granted.consent.by, granted.consent.channel) == ("p", channel)


def test_a_request_without_a_terminal_may_consent_where_it_was_signed_in() -> None:
    session = waiting_plan()
    session.must(session.approve(replace(ANNA, attended=False)))


def test_a_script_decides_only_in_a_home_made_by_the_lab() -> None:
    session = waiting_plan(lab=True)
    session.must(session.approve(SCRIPT))


def test_roles_include_the_ones_before_them() -> None:
    assert [role.rank for role in Role] == [0, 1, 2, 3]
    assert [Principal(id="p", role=role, channel=Channel.WEB).may_approve for role in Role] == [
        False,
        False,
        True,
        True,
    ]


def test_an_operator_may_refuse_revoke_and_stop() -> None:
    """Saying no needs no more than the role operator."""
    for intent in (it.Reject(by=OTTO), it.Stop(by=OTTO), it.AskForChanges(text="x", by=OTTO)):
        waiting_plan().must(intent)
    STATES["executing"]().must(it.Revoke(by=OTTO))


def test_a_viewer_hears_why() -> None:
    assert waiting_plan().refuse(session_stop(VERA)) == Refusal(
        code=Code.NOT_APPROVER, text="vera is a viewer and cannot act on a session; ask an admin."
    )


def session_stop(by: Principal) -> it.Stop:
    return it.Stop(by=by)


# ---- to what ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("generation", [0, 2, 7])
def test_another_generation_is_not_what_waits(generation: int) -> None:
    refusal = waiting_plan().refuse(waiting_plan().approve(generation=generation))
    assert refusal.code is Code.STALE_GENERATION
    assert (
        refusal.text
        == f"Plan {generation} is not the plan that waits: the session is awaiting_approval, generation 1. Look again."
    )


def test_the_answer_to_a_stale_approval_names_who_decided() -> None:
    session = STATES["executing"]()
    refusal = session.refuse(session.approve(generation=7))
    assert refusal.text == (
        "Plan 7 is not the plan that waits: the session is executing, generation 1; plan 1 was approved by anna. "
        "Look again."
    )


def test_an_equal_digest_in_another_generation_is_no_consent() -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    first = session.approve()
    session.must(it.AskForChanges(text="hm", by=ANNA))
    session.calls()
    session.must(fix_plan("c2"))
    assert session.state.digest == first.digest
    assert session.refuse(first).code is Code.STALE_GENERATION
    assert session.do(session.send("go", shown_generation=1, shown_digest=first.digest)).events[0].reading == "clarify"
    assert session.state.window is None


def test_a_digest_that_is_not_the_plans_is_refused_and_both_are_named() -> None:
    session = waiting_plan()
    refusal = session.refuse(session.approve(digest="0123456789"))
    assert refusal == Refusal(
        code=Code.STALE_DIGEST,
        text=f"Plan 1 is not the one that was shown (shown 01234567, now {session.state.digest[:8]}): look at the "
        "difference and decide again.",
    )


@pytest.mark.parametrize(
    "shown", [{"shown_generation": None}, {"shown_generation": 2}, {"shown_digest": ""}, {"shown_digest": "old"}]
)
def test_an_assent_to_what_was_not_shown_decides_nothing(shown: dict[str, object]) -> None:
    session = waiting_plan()
    decision = session.do(session.send("go", **shown))
    assert decision.notice.startswith("The plan that waits is not the one that was shown")
    assert session.state.consents == {}


def test_an_assent_to_another_run_than_was_shown_decides_nothing() -> None:
    session = STATES["awaiting-run"]()
    decision = session.do(session.send("go", shown_digest="another"))
    assert decision.notice.startswith("The run that waits is not the one that was shown")
    assert session.state.awaiting_run


def test_a_destructive_run_is_named_with_its_phrase_when_the_grammar_lets_an_assent_through() -> None:
    """The grammar already clarifies; the rule does not rely on it."""
    session = STATES["awaiting-run-destructive"]()
    decision = session.do(session.send("go"))
    assert session.state.awaiting_run
    assert "Still waiting: run" in decision.notice


def test_a_consent_binds_session_generation_digest_items_machines_and_time() -> None:
    session = waiting_plan().pass_s(5.0)
    granted, approved = session.must(
        session.approve(BEN, items=(1,), phrases=("destroy 131",), duration_s=3600.0, text="typed", consent_id="k")
    )
    assert isinstance(granted, ev.ConsentGranted)
    consent = granted.consent
    assert (consent.id, consent.grant, consent.session_id, consent.generation, consent.digest) == (
        "k", Grant.PLAN, "s1", 1, session.state.digest,
    )  # fmt: skip
    assert (consent.machines, consent.items, consent.duration_s, consent.at, consent.text) == (
        (PVE1.id,), (1,), 3600.0, at(5), "typed",
    )  # fmt: skip
    assert approved == ev.PlanApproved(generation=1, digest=session.state.digest, consent_id="k", items=(1,))


@pytest.mark.parametrize("duration_s", [0.0, 1.0, 1799.0, 14401.0, 1e9, -1800.0])
def test_a_window_lasts_one_of_three_times(duration_s: float) -> None:
    refusal = waiting_plan().refuse(waiting_plan().approve(duration_s=duration_s))
    assert refusal == Refusal(code=Code.WRONG_STATE, text="A window lasts one of 30, 60, 240 minutes.")


# ---- destructive items -----------------------------------------------------------------------------------------------


def twins() -> Session:
    """Two destructive items with one phrase, on a node and again."""
    first = planned(
        "pct destroy 131", DESTROY, objects=(DESTROY_131,), preauthorise=PreAuthorisation(object=DESTROY_131)
    )
    second = replace(first, text="pct destroy 131 --purge", canonical="pct destroy 131 --purge")
    session = Session.opened().begin()
    session.must(propose(step(PVE1, first), step(PVE1, second), on=(PVE1,)))
    return session


@pytest.mark.parametrize("phrases", [(), ("",), ("destroy 132",), ("Destroy 131",), ("destroy",)])
def test_an_item_without_its_phrase_is_not_ticked(phrases: tuple[str, ...]) -> None:
    refusal = waiting_plan().refuse(waiting_plan().approve(items=(1,), phrases=phrases))
    assert refusal == Refusal(code=Code.WRONG_PHRASE, text="Item 1 is destructive: type `destroy 131` to allow it.")


@pytest.mark.parametrize("item", [0, -1, 2])
def test_an_item_that_is_not_there_is_refused(item: int) -> None:
    refusal = waiting_plan().refuse(waiting_plan().approve(items=(item,), phrases=("destroy 131",)))
    assert refusal == Refusal(code=Code.WRONG_PHRASE, text=f"Plan 1 has no destructive item {item}.")


def test_one_typing_ticks_one_item_also_where_two_have_the_same_phrase() -> None:
    session = twins()
    assert session.refuse(session.approve(items=(1, 2), phrases=("destroy 131",))).text.startswith(
        "Item 2 is destructive"
    )
    session.must(session.approve(items=(2, 1), phrases=("destroy 131", " destroy 131 ")))
    assert session.state.items == (1, 2)


def test_typing_the_phrase_again_ticks_the_next_item() -> None:
    session = twins()
    session.must(session.confirm("destroy 131", by=ANNA, consent_id="a"))
    session.must(session.confirm(" destroy 131", by=BEN, consent_id="b"))
    assert session.state.ticked == {1, 2}
    assert session.state.decided == "item 2 was ticked by ben"
    refusal = session.refuse(session.confirm("destroy 131", by=ANNA, consent_id="c"))
    assert refusal == Refusal(
        code=Code.WRONG_PHRASE, text="No destructive item of plan 1 has the phrase `destroy 131`."
    )
    session.must(session.approve())
    assert session.state.items == (1, 2)


def test_a_phrase_of_no_item_ticks_nothing() -> None:
    assert (session := waiting_plan()).refuse(session.confirm("yes")).code is Code.WRONG_PHRASE


def test_a_phrase_ticks_only_the_plan_that_was_shown() -> None:
    session = waiting_plan()
    refusal = session.refuse(replace(session.confirm("destroy 131"), digest="0" * 64))
    assert refusal.code is Code.STALE_DIGEST
    assert session.state.ticked == frozenset()


def test_a_tick_belongs_to_its_generation() -> None:
    session = waiting_plan()
    session.must(session.confirm("destroy 131", by=ANNA, consent_id="a"))
    session.must(it.AskForChanges(text="hm", by=ANNA))
    session.calls()
    session.must(destroy_plan("c2"))
    assert session.state.ticked == frozenset()
    session.must(session.approve())
    assert session.state.items == ()


def test_an_approval_without_items_is_the_default() -> None:
    session = waiting_plan()
    session.must(session.approve())
    assert session.state.items == ()


# ---- until when ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "decidable"), [(DAY_S, True), (DAY_S + 0.1, False)])
def test_a_plan_card_is_decidable_for_a_day(seconds: float, decidable: bool) -> None:
    session = waiting_plan()
    if decidable:
        session.must(session.approve(), now=at(seconds))
    else:
        assert session.refuse(session.approve(), now=at(seconds)).code is Code.EXPIRED


@pytest.mark.parametrize("state", ["awaiting-plan", "awaiting-run"])
@pytest.mark.parametrize(("seconds", "counts"), [(1800.0, True), (1800.1, False)])
def test_an_assent_counts_for_half_an_hour_after_its_display(state: str, seconds: float, counts: bool) -> None:
    session = STATES[state]()
    granted_before = set(session.state.consents)
    decision = session.do(session.send("go"), now=at(seconds))
    assert bool(set(session.state.consents) - granted_before) is counts
    if not counts:
        assert decision.notice.startswith("It was shown more than 30 minutes ago")


@pytest.mark.parametrize("intent", ["approve", "assent"])
def test_a_clock_that_cannot_be_proven_consents_to_nothing(intent: str) -> None:
    """Another boot and an earlier wall clock: the age of the card is unknown."""
    session = waiting_plan()
    now = at(-10, boot="boot-2")
    if intent == "approve":
        assert session.refuse(session.approve(), now=now).code is Code.EXPIRED
    else:
        session.do(session.send("go"), now=now)
        assert session.state.consents == {}


# ---- once ------------------------------------------------------------------------------------------------------------


def test_of_two_approvers_at_once_one_grants_and_the_other_hears_who() -> None:
    session = waiting_plan()
    first, second = session.approve(ANNA), session.approve(BEN)
    session.must(first)
    refusal = session.refuse(second)
    assert refusal.text == (
        "Cannot approve plan 1: the session is executing, generation 1; plan 1 was approved by anna. "
        "A message to the session goes on from here."
    )
    assert len([r for r in session.records if isinstance(r.event, ev.ConsentGranted)]) == 1


def test_of_an_approval_and_a_rejection_the_first_decides() -> None:
    session = waiting_plan()
    late = session.approve(BEN)
    session.must(it.Reject(by=ANNA))
    assert "plan 1 was rejected by anna" in session.refuse(late).text


def test_a_run_is_decided_once() -> None:
    session = STATES["awaiting-run"]()
    late = session.approve_run(BEN)
    session.must(it.Reject(by=ANNA))
    assert "was declined by anna" in session.refuse(late).text


def test_a_role_that_was_lost_closes_the_window() -> None:
    session = STATES["executing"]()
    assert session.must(it.Revoke(by=ANNA, reason="role")) == (ev.WindowClosed(generation=1, reason="role"),)


# ---- messages --------------------------------------------------------------------------------------------------------


def test_a_secret_is_answered_only_by_its_reference() -> None:
    session = STATES["blocked-secret"]()
    assert session.refuse(session.send("hunter2")).code is Code.NEEDS_OPERATOR
    events = session.must(session.send("{{secret:db}}", answer_is_stored=True))
    assert events[0] == ev.QuestionAnswered(call_id="c-ask", text="{{secret:db}}", by="anna")
    assert session.phase == "executing"


def test_an_assent_answers_a_secret_no_more_than_a_word() -> None:
    session = STATES["blocked-secret"]()
    assert session.refuse(session.send("yes")).code is Code.NEEDS_OPERATOR


def test_stopping_says_whether_runs_are_killed() -> None:
    session = STATES["waiting"]()
    assert session.must(it.Stop(by=BEN))[-1] == ev.SessionStopped(by="ben", runs="kill")
    assert session.state.decided == "stopped by ben"
    assert session.state.running, "its outcome is still to come"


def test_a_follow_up_works_any_number_of_times() -> None:
    session = STATES["done"]()
    for number in range(1, 4):
        session.must(session.send(f"and again, {number}"))
        session.calls()
        session.must(it.SetGoal(goal="again"))
        session.must(fix_plan(f"c{number}"))
        session.must(session.approve())
        session.calls()
        assert session.state.generation == number + 1
        run_id = session.run(FIX, verdict(FIX, CHANGE), step=number + 1)
        session.mark(number + 1, StepStatus.DONE)
        session.run("systemctl is-active demo", verdict("x", CHANGE.READ_ONLY), check=0, passed=True)
        session.write_back(run_id)
        session.must(it.Complete(outcome="done", summary="again"))


def test_reopening_closes_a_plan_that_is_still_live() -> None:
    """Cannot come about by `complete_task` or Stop, which close it; the rule does not rely on that."""
    session = STATES["executing"]()
    session.state = replace(session.state, phase=STATES["done"]().state.phase)
    assert session.must(session.send("and now?"))[:3] == (
        ev.PlanClosed(generation=1, status="closed", reason="reopened"),
        ev.WindowClosed(generation=1, reason="reopened"),
        ev.SessionReopened(after="done", generation=1),
    )


def test_a_phrase_of_a_thing_without_a_verb_is_still_typed() -> None:
    thing = NamedObject(kind="dataset", name="tank/old", risk=DESTROY)
    assert PreAuthorisation(object=thing).phrase == "confirm old"
