"""What the gate admits, parks and refuses, rule by rule (SPEC R3.2 – R3.5, R3.9 – R3.13)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    ANNA,
    CHANGE,
    CT131,
    DESTROY,
    DESTROY_131,
    DESTROY_CMD,
    FIX,
    LOOK,
    NAS,
    PVE1,
    READ,
    WEB1,
    WEB2,
    Session,
    destroy_plan,
    effect,
    fix_plan,
    look_plan,
    planned,
    propose,
    step,
    verdict,
    with_entities,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsApproval, NeedsTypedConfirmation, Outcome, admit, admit_probe
from oikos.domain.inventory import Mode
from oikos.domain.plan import GUARDED, Creates, PlanStatus
from oikos.domain.run import Exited, Lost, NeverStarted, RemoteState, RunOutcome, TimedOut, Unknown
from oikos.domain.verdict import EffectKind, NamedObject


def authority(outcome: Outcome) -> str:
    assert isinstance(outcome, Admission), outcome
    return outcome.authority


def code(outcome: Outcome) -> Code:
    assert isinstance(outcome, Refusal), outcome
    return outcome.code


def looking() -> Session:
    """A session whose plan only looks."""
    session = Session.opened().begin()
    session.must(look_plan())
    return session.calls()


# ---- R3.1, R3.2: reads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", ["proposed", "accepted", "approved", "approved, window ended", "approved, suspended"]
)
def test_a_read_runs_under_any_live_plan_with_or_without_a_window(status: str) -> None:
    if status == "accepted":
        session = looking()
    else:
        session = Session.opened().begin()
        session.must(fix_plan())
        if status != "proposed":
            session.must(session.approve())
        session.must(session.send("well?"))
        if status.endswith("ended"):
            session.must(it.Revoke(by=ANNA))
        if status.endswith("suspended"):
            session.record(ev.WindowSuspended(by="anna"))
        session.calls()
    assert authority(session.ask("uptime", verdict("uptime", READ))) == "read_only"


@pytest.mark.parametrize("status", [PlanStatus.REJECTED, PlanStatus.EXPIRED, PlanStatus.SUPERSEDED, PlanStatus.CLOSED])
def test_a_plan_that_is_not_live_admits_nothing(status: PlanStatus) -> None:
    session = Session.opened().approved()
    session.state = replace(session.state, status=status)
    assert code(session.ask("uptime", verdict("uptime", READ))) is Code.NO_PLAN


@pytest.mark.parametrize("risk", [CHANGE, DESTROY])
def test_a_plan_that_waits_admits_only_reads(risk: object) -> None:
    session = Session.opened().begin()
    session.must(fix_plan())
    assert code(session.ask(FIX, verdict(FIX, risk))) is Code.AWAITING_OPERATOR


@pytest.mark.parametrize("risk", [CHANGE, DESTROY])
def test_an_accepted_plan_admits_only_reads_and_says_how_to_go_on(risk: object) -> None:
    refusal = looking().ask(FIX, verdict(FIX, risk))
    assert code(refusal) is Code.NO_PLAN
    assert refusal.directive == "Propose a plan that contains the change; it may replace this one at once."


@pytest.mark.parametrize("kind", sorted(GUARDED))
def test_a_read_with_a_guarded_effect_is_no_read_to_an_accepted_plan(kind: EffectKind) -> None:
    """R3.2 says "without guarded effect"; nothing was approved, so there is nobody to ask: a new plan asks."""
    refusal = looking().ask("cat /etc/shadow", verdict("cat /etc/shadow", READ, effects=(effect(kind, "x"),)))
    assert refusal == Refusal(
        code=Code.OUT_OF_SCOPE,
        text=f"The command has effects the plan was not approved for: {kind.value} of x.",
        directive="Propose a plan that contains exactly this command, so that the operator can approve it.",
    )


# ---- R1.2: not in one breath with its plan ---------------------------------------------------------------------------


def test_one_response_may_not_both_propose_and_change() -> None:
    session = Session.opened().begin().calls("c1", "c2")
    session.must(fix_plan("c1"))
    session.must(session.approve())
    assert code(session.ask(FIX, verdict(FIX, CHANGE))) is Code.PROPOSE_AND_RUN
    assert authority(session.ask("uptime", verdict("uptime", READ))) == "read_only"
    session.calls("c3")
    assert authority(session.ask(FIX, verdict(FIX, CHANGE))).startswith("window:")


def test_one_response_may_not_both_change_and_propose() -> None:
    session = Session.opened().approved().calls("c1", "c2")
    session.run(FIX, verdict(FIX, CHANGE), call_id="c1")
    session.must(session.send("now something else"))
    assert session.refuse(fix_plan("c2")).code is Code.PROPOSE_AND_RUN
    session.calls("c3")
    session.must(fix_plan("c3"))


def test_one_response_may_not_park_a_run_and_propose() -> None:
    session = Session.opened().approved().calls("c-run", "c2")
    said = verdict("useradd eve", CHANGE, effects=(effect(EffectKind.PRIVILEGE, "eve"),))
    question = session.question("useradd eve", said)
    session.park(question, admit(question))
    session.must(it.AskForChanges(text="no, another way", by=ANNA))
    assert session.refuse(fix_plan("c2")).code is Code.PROPOSE_AND_RUN


# ---- R2.5, R2.3: steps and what does not exist yet -------------------------------------------------------------------


def test_a_step_of_a_closed_generation_cannot_be_run() -> None:
    session = looking()
    session.must(fix_plan("c2"))
    session.must(session.approve())
    session.calls()
    assert code(session.ask(FIX, verdict(FIX, CHANGE), step=1)) is Code.STEP_CLOSED
    assert code(session.ask(FIX, verdict(FIX, CHANGE), step=3)) is Code.UNKNOWN_STEP
    assert code(session.ask(FIX, verdict(FIX, CHANGE), step=0)) is Code.UNKNOWN_STEP
    assert authority(session.ask(FIX, verdict(FIX, CHANGE), step=2)).startswith("window:")


def test_what_a_plan_creates_cannot_be_used_before_it_exists() -> None:
    session = Session.opened().begin()
    creates = (Creates(name="newbox", kind="lxc", on_target_id=PVE1.id),)
    session.must(replace(propose(step(PVE1, planned(FIX, CHANGE)), on=(PVE1,)), creates=creates))
    session.must(session.approve())
    session.calls()
    newbox = replace(WEB1, slug="newbox")
    assert code(session.ask("uptime", verdict("uptime", READ), target=newbox)) is Code.NOT_CREATED_YET
    other = replace(WEB1, slug="otherbox")
    assert code(session.ask("uptime", verdict("uptime", READ), target=other)) is Code.UNKNOWN_TARGET


# ---- R3.3: changes inside and outside the window ---------------------------------------------------------------------


@pytest.mark.parametrize("command", [FIX, "mkdir -p /srv/x"])
def test_inside_the_window_any_ordinary_change_runs_declared_or_improvised(command: str) -> None:
    session = Session.opened().approved(consent_id="k")
    assert authority(session.ask(command, verdict(command, CHANGE))) == "window:k"


def test_on_a_machine_outside_the_plan_a_change_is_asked() -> None:
    outcome = Session.opened().approved().ask(FIX, verdict(FIX, CHANGE), target=WEB2)
    assert outcome == NeedsApproval(why="Out of scope: web2 is not a machine of plan 1.")


def test_on_a_machine_outside_an_approved_plan_a_read_is_asked() -> None:
    """R3.5: "a machine that is not in scope … is asked or refused"; under an approved plan there is someone to ask."""
    outcome = Session.opened().approved().ask("uptime", verdict("uptime", READ), target=WEB2)
    assert outcome == NeedsApproval(why="Out of scope: web2 is not a machine of plan 1.")


def test_on_a_machine_outside_an_accepted_plan_a_read_is_refused() -> None:
    refusal = looking().ask("uptime", verdict("uptime", READ), target=WEB2)
    assert refusal == Refusal(
        code=Code.OUT_OF_SCOPE,
        text="Out of scope: web2 is not a machine of plan 1.",
        directive="Propose a plan that names the machine as a target.",
    )


def test_on_a_machine_outside_the_plan_a_destructive_command_wants_the_phrase_and_says_so() -> None:
    outcome = Session.opened().approved().ask(DESTROY_CMD, verdict(DESTROY_CMD, DESTROY), target=WEB2)
    assert outcome == NeedsTypedConfirmation(
        why="Out of scope: web2 is not a machine of plan 1. It is destructive.", phrase="change web2"
    )


# ---- R3.4: the phrase ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "phrase"),
    [
        (DESTROY_131, "destroy 131"),
        (NamedObject(kind="file", name="/srv/data/old/", risk=DESTROY, verb="delete"), "delete old"),
        (NamedObject(kind="file", name="/", risk=DESTROY, verb="delete"), "delete /"),
        (NamedObject(kind="dataset", name="tank/media@monday", risk=DESTROY), "confirm media@monday"),
        (NamedObject(kind="guest", name="131", risk=CHANGE, verb="stop"), "change web1"),
        (NamedObject(kind="guest", name="", risk=DESTROY, verb="destroy"), "change web1"),
    ],
)
def test_the_phrase_is_verb_and_short_name(thing: NamedObject, phrase: str) -> None:
    outcome = Session.opened().approved().ask("x", verdict("x", DESTROY, objects=(thing,)))
    assert outcome == NeedsTypedConfirmation(why="It is destructive.", phrase=phrase)


def test_a_confirmation_lists_the_guarded_effects_it_would_allow() -> None:
    effects = (effect(EffectKind.IRREVERSIBLE), effect(EffectKind.EGRESS, "evil.example"))
    outcome = Session.opened().approved().ask("x", verdict("x", DESTROY, effects=effects))
    assert outcome == NeedsTypedConfirmation(why="It is destructive.", phrase="change web1", effects=effects)


def test_an_effect_without_an_object_is_named_alone() -> None:
    outcome = Session.opened().approved().ask("x", verdict("x", CHANGE, effects=(effect(EffectKind.UNCLASSIFIED),)))
    assert isinstance(outcome, NeedsApproval)
    assert outcome.why == "Not in the approved plan, and beyond what a window covers: unclassified."


def test_an_open_window_covers_nothing_destructive() -> None:
    session = Session.opened().approved(fix_plan())
    assert isinstance(session.ask("rm -rf /srv", verdict("rm -rf /srv", DESTROY)), NeedsTypedConfirmation)


def test_a_destructive_verdict_without_a_reason_still_says_why() -> None:
    said = replace(verdict("x", DESTROY), reasons=())
    outcome = Session.opened().approved().ask("x", said)
    assert outcome == NeedsTypedConfirmation(why="The command is destructive.", phrase="change web1")


# ---- R3.5: guarded effects -------------------------------------------------------------------------------------------

GUARDED_FIX = "useradd demo"


@pytest.mark.parametrize("kind", sorted(GUARDED))
def test_a_guarded_effect_parks_an_improvised_command_inside_the_window(kind: EffectKind) -> None:
    effects = (effect(kind, "demo"),)
    outcome = Session.opened().approved().ask(GUARDED_FIX, verdict(GUARDED_FIX, CHANGE, effects=effects))
    assert outcome == NeedsApproval(
        why=f"Not in the approved plan, and beyond what a window covers: {kind.value} of demo.", effects=effects
    )


@pytest.mark.parametrize("risk", [READ, CHANGE])
@pytest.mark.parametrize("kind", sorted(GUARDED))
def test_a_guarded_effect_is_admitted_where_the_approved_plan_declares_the_very_bytes(
    kind: EffectKind, risk: object
) -> None:
    effects = (effect(kind, "demo"),)
    session = Session.opened().approved(
        propose(step(WEB1, planned(GUARDED_FIX, risk, effects=effects))), consent_id="k"
    )
    assert authority(session.ask(GUARDED_FIX, verdict(GUARDED_FIX, risk, effects=effects))) == "window:k"


@pytest.mark.parametrize(
    ("command", "target", "stdin"),
    [
        (GUARDED_FIX + " ", WEB1, None),
        ("useradd  demo", WEB1, None),
        (GUARDED_FIX, WEB2, None),
        (GUARDED_FIX, WEB1, "x"),
    ],
)
def test_declared_means_these_bytes_on_this_machine_with_this_input(
    command: str, target: object, stdin: str | None
) -> None:
    effects = (effect(EffectKind.PRIVILEGE, "demo"),)
    plan = propose(step(WEB1, planned(GUARDED_FIX, CHANGE, effects=effects)), on=(WEB1, WEB2))
    outcome = (
        Session.opened()
        .approved(plan)
        .ask(command, verdict(command, CHANGE, effects=effects, canonical=GUARDED_FIX), target=target, stdin=stdin)
    )
    assert isinstance(outcome, NeedsApproval)
    assert outcome.effects == effects


def test_a_guarded_read_of_an_approved_plan_still_needs_its_window() -> None:
    effects = (effect(EffectKind.SENSITIVE, "/etc/shadow"),)
    session = Session.opened().approved(propose(step(WEB1, planned("cat /etc/shadow", READ, effects=effects))))
    session.must(it.Revoke(by=ANNA))
    outcome = session.ask("cat /etc/shadow", verdict("cat /etc/shadow", READ, effects=effects))
    assert outcome == NeedsApproval(why="The window has ended.", offers_reopen=True)


@pytest.mark.parametrize(
    ("thing", "admitted"), [("demo", True), ("web1", True), ("nightly", True), ("postgres", False), ("", False)]
)
def test_an_outage_is_guarded_unless_a_step_names_its_object(thing: str, admitted: bool) -> None:
    """The command `systemctl restart demo`, the target web1 or the title of the step name it."""
    session = Session.opened().approved(propose(step(WEB1, planned(FIX, CHANGE), title="Repair the nightly job")))
    effects = (effect(EffectKind.OUTAGE, thing),)
    outcome = session.ask("systemctl stop x", verdict("systemctl stop x", CHANGE, effects=effects))
    assert isinstance(outcome, Admission) is admitted
    if not admitted:
        assert isinstance(outcome, NeedsApproval)
        assert outcome.effects == effects


def test_an_outage_names_its_object_as_a_word_and_not_as_a_part_of_one() -> None:
    """`db` is not named by a step that restarts `mydb2`: the safe reading of "names"."""
    session = Session.opened().approved(
        propose(step(WEB1, planned("systemctl restart mydb2", CHANGE), title="Restart"))
    )
    effects = (effect(EffectKind.OUTAGE, "db"),)
    assert isinstance(
        session.ask("systemctl stop db", verdict("systemctl stop db", CHANGE, effects=effects)), NeedsApproval
    )


@pytest.mark.parametrize("word", ["db,", "(db)", '"db"', "db.service", "tank/db"])
def test_an_outage_object_is_found_between_punctuation(word: str) -> None:
    session = Session.opened().approved(propose(step(WEB1, planned(FIX, CHANGE), title=f"Restart {word} now")))
    effects = (effect(EffectKind.OUTAGE, "db"),)
    assert authority(session.ask("systemctl stop db", verdict("systemctl stop db", CHANGE, effects=effects)))


def test_every_effect_is_guarded_named_or_refused() -> None:
    assert set(EffectKind) == {*GUARDED, EffectKind.OUTAGE, EffectKind.INTERACTIVE}


# ---- R3.9: modes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("risk", [READ, CHANGE, DESTROY])
def test_nothing_runs_on_a_locked_target(risk: object) -> None:
    session = Session.opened().approved(fix_plan())
    session.inventory = with_entities(replace(WEB1, mode=Mode.LOCKED))
    refusal = session.ask(FIX, verdict(FIX, risk))
    assert refusal == Refusal(
        code=Code.TARGET_LOCKED,
        text="web1 is locked: nothing runs on it, not even inside another command.",
        directive="Leave it alone; only an admin can change its mode.",
    )


def test_a_target_in_mode_look_is_read_and_never_changed() -> None:
    session = Session.opened().approved(propose(step(NAS, planned(FIX, CHANGE)), on=(NAS,)))
    assert authority(session.ask("uptime", verdict("uptime", READ), target=NAS)) == "read_only"
    assert code(session.ask(FIX, verdict(FIX, CHANGE), target=NAS)) is Code.TARGET_LOOK_ONLY
    assert code(session.ask("rm x", verdict("rm x", DESTROY), target=NAS)) is Code.TARGET_LOOK_ONLY


def test_the_mode_at_admission_counts() -> None:
    session = Session.opened().approved()
    assert authority(session.ask(FIX, verdict(FIX, CHANGE)))
    session.inventory = with_entities(replace(WEB1, mode=Mode.LOOK))
    assert code(session.ask(FIX, verdict(FIX, CHANGE))) is Code.TARGET_LOOK_ONLY


def test_a_session_opened_to_look_accepts_no_plan_above_reading() -> None:
    session = Session.opened(mode="look").begin()
    assert session.refuse(fix_plan()).code is Code.LOOK_ONLY_SESSION
    session.must(look_plan())
    session.calls()
    assert authority(session.ask(LOOK, verdict(LOOK, READ))) == "read_only"


def test_a_look_session_changes_nothing_even_with_a_window() -> None:
    session = Session.opened().approved()
    session.state = replace(session.state, mode="look")
    assert code(session.ask(FIX, verdict(FIX, CHANGE))) is Code.LOOK_ONLY_SESSION


def test_a_target_without_a_way_in_is_refused() -> None:
    session = Session.opened().approved()
    session.inventory = with_entities(replace(WEB1, access=None))
    assert code(session.ask("uptime", verdict("uptime", READ))) is Code.NO_ACCESS


# ---- R3.10: duplicates -----------------------------------------------------------------------------------------------

KILLED = TimedOut(deadline="total", remote=RemoteState.KILLED)


@pytest.mark.parametrize(
    ("outcome", "how"),
    [
        (Exited(code=0), "already succeeded"),
        (None, "is still running"),
        (TimedOut(deadline="total", remote=RemoteState.RUNNING), "is still running"),
        (TimedOut(deadline="total", remote=RemoteState.UNKNOWN), "is still running"),
    ],
)
def test_a_change_that_succeeded_or_still_runs_is_not_repeated(outcome: RunOutcome | None, how: str) -> None:
    """A time limit that did not provably kill the command leaves it running: the safe reading of "still running"."""
    session = Session.opened().approved()
    question = session.question(FIX, verdict(FIX, CHANGE))
    session.start(question, admit(question))
    if outcome is not None:
        session.finish(question.order.run_id, outcome)
    refusal = session.ask(FIX, verdict(FIX, CHANGE))
    assert refusal == Refusal(
        code=Code.DUPLICATE,
        text=f"The same command {how} on web1: run {question.order.run_id}.",
        directive="Read that run with read_output; to repeat it on purpose pass rerun with a reason.",
    )
    assert authority(session.ask(FIX, verdict(FIX, CHANGE), rerun="it fell over again"))


@pytest.mark.parametrize(
    "outcome", [Exited(code=1), NeverStarted(reason="x"), Lost(reason="x"), Unknown(reason="x"), KILLED]
)
def test_a_change_that_did_not_succeed_may_be_tried_again(outcome: RunOutcome) -> None:
    session = Session.opened().approved()
    session.run(FIX, verdict(FIX, CHANGE), outcome=outcome)
    assert authority(session.ask(FIX, verdict(FIX, CHANGE)))


@pytest.mark.parametrize(
    "other",
    [
        {"said": verdict("x", CHANGE, canonical="other")},
        {"stdin": "y\n"},
        {"target": WEB2},
        {"said": verdict(FIX, READ)},
    ],
)
def test_another_command_input_or_machine_and_a_read_are_no_duplicates(other: dict[str, object]) -> None:
    plan = propose(step(WEB1, planned(FIX, CHANGE)), step(WEB2, planned(FIX, CHANGE)), on=(WEB1, WEB2))
    session = Session.opened().approved(plan)
    session.run(FIX, verdict(FIX, CHANGE))
    assert authority(session.ask(FIX, **{"said": verdict(FIX, CHANGE), **other}))


def test_a_duplicate_is_seen_through_quoting_and_blanks() -> None:
    session = Session.opened().approved()
    session.run(FIX, verdict(FIX, CHANGE))
    spelled = "systemctl   'restart' demo"
    assert code(session.ask(spelled, verdict(spelled, CHANGE, canonical=FIX))) is Code.DUPLICATE


def test_a_duplicate_is_seen_where_nothing_could_be_parsed() -> None:
    session = Session.opened().approved()
    session.run("while", verdict("while", CHANGE, canonical=""))
    assert code(session.ask("while", verdict("while", CHANGE, canonical=""))) is Code.DUPLICATE


def test_a_run_of_an_earlier_generation_is_no_duplicate_even_while_it_runs() -> None:
    session = Session.opened().approved()
    question = session.question(FIX, verdict(FIX, CHANGE))
    session.start(question, admit(question))
    session.must(session.send("do it differently"))
    session.calls()
    session.must(fix_plan("c2"))
    session.must(session.approve())
    session.calls()
    assert session.state.running
    assert authority(session.ask(FIX, verdict(FIX, CHANGE)))


def test_no_run_id_is_admitted_twice() -> None:
    session = Session.opened().approved()
    question = session.question(FIX, verdict(FIX, CHANGE), rerun="x")
    session.start(question, admit(question))
    again = session.question(FIX, verdict(FIX, CHANGE), rerun="x", order=question.order)
    assert code(admit(again)) is Code.INTERNAL


@pytest.mark.parametrize(
    "change",
    [{"session_id": "s2"}, {"target_id": WEB2.id}, {"command": "reboot"}, {"stdin": "y"}],
)
def test_an_order_that_is_not_what_was_asked_starts_nothing(change: dict[str, object]) -> None:
    """What is executed is what was classified: a caller's defect fails closed."""
    question = Session.opened().approved().question(FIX, verdict(FIX, CHANGE))
    assert code(admit(replace(question, order=replace(question.order, **change)))) is Code.INTERNAL


# ---- R3.11, R3.12 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("advice", "directive"), [("top -bn1", "top -bn1"), ("", "Use a non-interactive form of it.")])
def test_an_interactive_program_is_refused_with_the_other_way(advice: str, directive: str) -> None:
    said = verdict("top", READ, effects=(effect(EffectKind.INTERACTIVE),), advice=advice)
    refusal = looking().ask("top", said)
    assert refusal == Refusal(
        code=Code.INTERACTIVE, text="The command is interactive; nobody sits at its terminal.", directive=directive
    )


@pytest.mark.parametrize("risk", [READ, CHANGE])
@pytest.mark.parametrize("canonical", [GUARDED_FIX, ""])
def test_a_declined_command_is_not_asked_again_in_this_generation(risk: object, canonical: str) -> None:
    """A guarded read is asked like a change, so declining it holds like one."""
    session = Session.opened().approved().calls("c-run")
    said = verdict(GUARDED_FIX, risk, effects=(effect(EffectKind.PRIVILEGE, "demo"),), canonical=canonical)
    question = session.question(GUARDED_FIX, said)
    session.park(question, admit(question))
    session.must(it.Reject(by=ANNA))
    session.calls()
    refusal = session.ask(GUARDED_FIX, said, rerun="please")
    assert refusal == Refusal(
        code=Code.DECLINED,
        text="The operator declined this command in this plan.",
        directive="Take another way, or complete as failed.",
    )
    session.must(session.send("try the other way"))
    session.must(fix_plan("c9"))
    session.must(session.approve())
    session.calls()
    assert isinstance(session.ask(GUARDED_FIX, said), NeedsApproval)


# ---- R3.13: Oikos itself ---------------------------------------------------------------------------------------------


def test_a_command_on_oikos_itself_is_never_preauthorised() -> None:
    """Even where an approver ticked it: self always wants the phrase at that moment."""
    session = Session.opened().begin()
    session.must(destroy_plan())
    session.must(session.approve(items=(1,), phrases=("destroy 131",)))
    session.calls()
    said = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,), effects=(effect(EffectKind.SELF, "oikos"),))
    assert isinstance(session.ask(DESTROY_CMD, said, target=PVE1), NeedsTypedConfirmation)


# ---- the probe -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.LOOK])
def test_a_probe_is_admitted_without_a_plan(mode: Mode) -> None:
    session = Session.opened()
    admission = admit_probe(session.state, replace(CT131, mode=mode))
    assert isinstance(admission, Admission)
    assert (admission.kind, admission.digest, admission.target_id, admission.authority, admission.seq) == (
        "probe", CT131.id, CT131.id, "probe", session.state.seq,
    )  # fmt: skip


def test_a_probe_is_refused_on_a_locked_target() -> None:
    refusal = admit_probe(Session.opened().state, replace(CT131, mode=Mode.LOCKED))
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.TARGET_LOCKED


def test_an_admission_names_order_target_and_the_seq_the_gate_saw() -> None:
    session = Session.opened().approved()
    question = session.question(FIX, verdict(FIX, CHANGE))
    admission = admit(question)
    assert isinstance(admission, Admission)
    assert (admission.kind, admission.digest, admission.target_id, admission.seq) == (
        "run", question.order.digest(), WEB1.id, session.state.seq,
    )  # fmt: skip
