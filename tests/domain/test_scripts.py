"""Which files a command runs, how they are read, and what a drift does at the gate (security/THREATS T6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    BEN,
    CHANGE,
    CT140,
    DESTROY,
    SESSION,
    WEB1,
    WEB2,
    Session,
    effect,
    onward,
    planned,
    propose,
    step,
    verdict,
)  # fmt: skip

from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsApproval, NeedsTypedConfirmation, Outcome, admit, admit_reading
from oikos.domain.plan import PreAuthorisation
from oikos.domain.run import RunOrder
from oikos.domain.scripts import Script, drift, names, read, reading, runs_a_file, scripts_of
from oikos.domain.verdict import Action, EffectKind, Hop, NamedObject, Reason, Risk, Verdict
from oikos.policy import default_classifier

A, B = "a" * 64, "b" * 64
JOB = "/srv/job.sh"
RUN = f"sh {JOB}"
UNKNOWN = effect(EffectKind.UNCLASSIFIED)
HELD = (Script(path=JOB, sha256=A),)
OTHER = (Script(path=JOB, sha256=B),)


def said(
    command: str,
    word: str,
    *,
    rule: str = "exec.file",
    risk: Risk = CHANGE,
    place: tuple[Hop, ...] = (),
    **more: object,
) -> Verdict:
    """A verdict whose finding is the words `word` of the command; one action for each part between `&&`."""
    first = command.index(word)
    actions: list[Action] = []
    start = 0
    for part in command.split(" && "):
        argv = tuple(part.split())
        actions.append(Action(argv=argv, place=place, risk=risk, span=(start, start + len(part))))
        start += len(part) + 4
    reason = Reason(rule=rule, risk=risk, span=(first, first + len(word)), text="It runs a file.")
    return replace(verdict(command, risk, effects=(UNKNOWN,), actions=actions, **more), reasons=(reason,))


@pytest.mark.parametrize(
    ("command", "word", "rule", "paths"),
    [
        ("sh /srv/job.sh", "/srv/job.sh", "exec.file", ("/srv/job.sh",)),
        ("sh '/srv/a b.sh'", "'/srv/a b.sh'", "exec.file", ("/srv/a b.sh",)),
        (". /etc/env.sh", ". /etc/env.sh", "shell.source", ("/etc/env.sh",)),
        ("source", "source", "shell.source", ()),
        ("/usr/local/bin/fix", "/usr/local/bin/fix", "program.unknown", ("/usr/local/bin/fix",)),
        ("fix --now", "fix", "program.unknown", ()),
        ("sh job.sh", "job.sh", "exec.file", ("job.sh",)),
        ("cd /srv && ./job.sh", "./job.sh", "program.path", ("/srv/./job.sh",)),
        ("cd / && ./job.sh", "./job.sh", "program.path", ("/./job.sh",)),
        ("cd /srv && sh /job.sh", "/job.sh", "exec.file", ("/job.sh",)),
        ("cd srv && sh job.sh", "job.sh", "exec.file", ()),
        ("cd && sh job.sh", "job.sh", "exec.file", ()),
        ("cd /a && cd /b && sh job.sh", "job.sh", "exec.file", ()),
        ("pushd /a && popd && sh job.sh", "job.sh", "exec.file", ()),
        (". job.sh", ". job.sh", "shell.source", ()),
        ("cd /srv/x/../y && sh job.sh", "job.sh", "exec.file", ()),
        ("sh $JOB", "$JOB", "exec.file", ()),
        ("sh ~/job.sh", "~/job.sh", "exec.file", ()),
        ("sh /srv/*.sh", "/srv/*.sh", "exec.file", ()),
        ("sh /srv/job.sh 'it", "'it", "exec.file", ()),
        ("sh a b", "a b", "exec.file", ()),
        ("cat /srv/job.sh", "/srv/job.sh", "file.read", ()),
    ],
)
def test_the_files_a_command_runs_are_those_its_text_names(
    command: str, word: str, rule: str, paths: tuple[str, ...]
) -> None:
    assert scripts_of(command, said(command, word, rule=rule)) == paths


def test_a_file_on_an_inner_machine_or_of_no_action_is_not_one_of_the_target() -> None:
    assert scripts_of(RUN, said(RUN, JOB, place=(onward("web2"),))) == ()
    assert scripts_of(RUN, replace(said(RUN, JOB), actions=())) == ()
    unknown_words = replace(said("cd x && sh job.sh", "job.sh").actions[0], argv=("cd", None))
    assert scripts_of("sh job.sh", replace(said("sh job.sh", "job.sh"), actions=(
        unknown_words, *said("sh job.sh", "job.sh").actions))) == ()  # fmt: skip
    silent = replace(unknown_words, argv=())
    assert scripts_of("sh job.sh", replace(said("sh job.sh", "job.sh"), actions=(
        silent, *said("sh job.sh", "job.sh").actions))) == ("job.sh",)  # fmt: skip


def test_a_file_named_twice_is_one() -> None:
    once = said(RUN, JOB)
    assert scripts_of(RUN, replace(once, reasons=once.reasons * 2)) == (JOB,)


@pytest.mark.parametrize(("rule", "runs"), [("exec.file", True), ("program.unknown", False)])
def test_whether_the_effect_lies_in_a_file_is_what_the_classifier_says(rule: str, runs: bool) -> None:
    assert runs_a_file(said(RUN, JOB, rule=rule)) is runs


def test_the_read_quotes_its_paths_and_answers_line_by_line() -> None:
    paths = ("/a", "/b c; rm -rf /")
    assert reading(paths) == (
        "test -f /a && sha256sum < /a || echo -\n"
        "test -f '/b c; rm -rf /' && sha256sum < '/b c; rm -rf /' || echo -"
    )  # fmt: skip
    assert read(paths, f"{A}  -\n-\n") == (Script(path="/a", sha256=A), Script(path="/b c; rm -rf /"))


@pytest.mark.parametrize("output", ["", f"{A}  -\n", f"{A}\n{A}\n{A}\n"])
def test_a_read_that_does_not_answer_for_every_file_answers_for_none(output: str) -> None:
    assert read(("/a", "/b"), output) == (Script(path="/a"), Script(path="/b"))


def test_what_is_no_hash_was_not_read() -> None:
    assert read(("/a",), "a" * 63) == (Script(path="/a"),)
    assert read(("/a",), "A" * 64) == (Script(path="/a"),)


def test_a_drift_is_said_with_both_hashes() -> None:
    assert drift(HELD, HELD) == ""
    assert drift((), OTHER) == ""
    assert drift((Script(path=JOB),), OTHER) == "", "not read then: nothing to compare"
    changed = f"The script {JOB} changed since it was approved (was {A[:12]}, now it "
    assert drift(HELD, OTHER) == f"{changed}is {B[:12]})."
    assert drift(HELD, ()) == f"{changed}cannot be read)."
    assert drift(HELD, (Script(path=JOB),)) == f"{changed}cannot be read)."
    first = Script(path="/first", sha256=B)
    assert drift((first, *HELD), (first, *OTHER)) == drift(HELD, OTHER)


# ---- the gate --------------------------------------------------------------------------------------------------------


def session(*, scripts: tuple[Script, ...] = HELD, **more: object) -> Session:
    command = planned(RUN, CHANGE, effects=(UNKNOWN,), scripts=scripts, **more)
    return Session.opened().approved(propose(step(WEB1, command), on=(WEB1,)))


def ask(s: Session, now: tuple[Script, ...], judged: Verdict | None = None) -> Outcome:
    return admit(replace(s.question(RUN, judged or said(RUN, JOB)), scripts=now))


def test_a_declared_script_runs_as_it_was_approved_and_asks_once_it_is_another() -> None:
    s = session()
    assert isinstance(ask(s, HELD), Admission)
    assert ask(s, OTHER) == NeedsApproval(why=drift(HELD, OTHER), effects=(UNKNOWN,))
    assert ask(s, ()) == NeedsApproval(why=drift(HELD, ()), effects=(UNKNOWN,))


def test_a_drift_asks_also_where_a_taught_rule_left_no_guarded_effect() -> None:
    judged = replace(said(RUN, JOB), effects=())
    assert ask(session(), OTHER, judged) == NeedsApproval(why=drift(HELD, OTHER))
    assert isinstance(ask(session(), HELD, judged), Admission)


def test_a_script_that_was_not_read_falls_to_the_rule_for_files_that_may_differ() -> None:
    s = session(scripts=(Script(path=JOB),))
    assert isinstance(ask(s, OTHER), Admission)
    s.run("tee /srv/job.sh", verdict("tee /srv/job.sh", CHANGE))
    assert isinstance(ask(s, OTHER), NeedsApproval)


def test_a_program_called_by_its_path_falls_to_that_rule_too() -> None:
    command = "/opt/fix"
    judged = said(command, command, rule="program.unknown")
    s = Session.opened().approved(propose(step(WEB1, planned(command, CHANGE, effects=(UNKNOWN,))), on=(WEB1,)))
    assert isinstance(s.ask(command, judged), Admission)
    s.run("tee /opt/fix", verdict("tee /opt/fix", CHANGE))
    assert isinstance(s.ask(command, judged), NeedsApproval)


def test_an_unread_occurrence_of_a_command_does_not_cancel_the_hash_of_another() -> None:
    once = planned(RUN, CHANGE, effects=(UNKNOWN,), scripts=HELD)
    again = replace(once, scripts=(Script(path=JOB),))
    s = Session.opened().approved(propose(step(WEB1, once, again), on=(WEB1,)))
    assert ask(s, OTHER) == NeedsApproval(why=drift(HELD, OTHER), effects=(UNKNOWN,))


def test_a_drifted_script_uses_no_preauthorisation() -> None:
    thing = NamedObject(kind="guest", name="131", risk=DESTROY, verb="destroy")
    judged = said(RUN, JOB, risk=DESTROY, objects=(thing,))
    command = planned(
        RUN, DESTROY, effects=(UNKNOWN,), scripts=HELD, objects=(thing,), preauthorise=PreAuthorisation(object=thing)
    )
    plan = propose(step(WEB1, command), on=(WEB1,))
    s = Session.opened().approved(plan, items=(1,), phrases=("destroy 131",))
    assert isinstance(ask(s, HELD, judged), Admission)
    asked = ask(s, OTHER, judged)
    assert asked == NeedsTypedConfirmation(
        why=f"{drift(HELD, OTHER)} It runs a file.", phrase="destroy 131", effects=(UNKNOWN,)
    )


def test_an_approved_run_starts_only_what_it_ran_when_it_was_asked() -> None:
    s = session()
    question = replace(s.question(RUN, said(RUN, JOB)), scripts=OTHER)
    asked = admit(question)
    assert isinstance(asked, NeedsApproval)
    s.calls("c-run").park(question, asked)
    s.must(s.approve_run(BEN))
    parked = s.state.parked
    assert parked is not None
    again = replace(question, state=s.state, approval=parked.consent)
    assert isinstance(admit(again), Admission)
    assert isinstance(admit(replace(again, scripts=())), NeedsApproval)
    assert isinstance(admit(replace(again, scripts=(Script(path=JOB, sha256="c" * 64),))), NeedsApproval)


# ---- the read --------------------------------------------------------------------------------------------------------


def order(**change: object) -> RunOrder:
    made = RunOrder(
        run_id="r1", session_id=SESSION, generation=0, target_id=WEB1.id, command=reading((JOB,)), supervised=False
    )
    return replace(made, **change)


def test_the_read_is_admitted_as_a_probe_for_exactly_its_own_bytes() -> None:
    state = Session.opened().begin().state
    admitted = admit_reading(state, WEB1, order(), (JOB,))
    assert isinstance(admitted, Admission)
    assert (admitted.kind, admitted.authority, admitted.digest) == ("run", "probe", order().digest())
    assert (admitted.target_id, admitted.seq) == (WEB1.id, state.seq)


@pytest.mark.parametrize(
    "changed",
    [
        order(command="cat /etc/shadow"), order(stdin="x"), order(supervised=True), order(target_id=WEB2.id),
        order(session_id="another"),
    ],
    ids=["bytes", "stdin", "supervised", "target", "session"],
)  # fmt: skip
def test_anything_else_is_not_the_read(changed: RunOrder) -> None:
    refusal = admit_reading(Session.opened().begin().state, WEB1, changed, (JOB,))
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.INTERNAL


def test_nothing_is_read_on_a_locked_target_or_after_the_end() -> None:
    s = Session.opened().begin()
    locked = admit_reading(s.state, CT140, order(target_id=CT140.id), (JOB,))
    assert isinstance(locked, Refusal)
    assert locked.code is Code.TARGET_LOCKED
    s.must(it.Stop(by=BEN))
    over = admit_reading(s.state, WEB1, order(), (JOB,))
    assert isinstance(over, Refusal)
    assert over.code is Code.SESSION_OVER


CLASSIFIER = default_classifier()


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("sudo sh /srv/job.sh", (JOB,)),
        ("sh -c 'sh job.sh'", ("job.sh",)),
        ("cd /srv && sudo sh job.sh", (JOB,)),
        ("sh job.sh; cd /srv", ()),
        ("(cd /srv; ls) && sh job.sh", ()),
        ("false && cd /srv; sh job.sh", ()),
        ("cd /srv | true; sh job.sh", ()),
        ("echo $(cd /srv); sh job.sh", ()),
        ("env -C /srv sh job.sh", ()),
        ("sudo -D /srv sh job.sh", ()),
        ("sudo -i sh job.sh", ()),
        ("sudo -R /mnt sh /srv/job.sh", ()),
        ("su - app -c 'sh job.sh'", ()),
        ("systemd-run --working-directory=/srv sh job.sh", ()),
        ('sh -c "sh \\"/srv/my job.sh\\""', ()),
    ],
)  # fmt: skip
def test_a_place_that_the_text_does_not_settle_gives_no_path(command: str, paths: tuple[str, ...]) -> None:
    """A wrong path would show the hash of another file on the card."""
    assert scripts_of(command, CLASSIFIER.classify(command)) == paths


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("cp /tmp/x /srv/job.sh", True),
        ("echo ls >/srv/job.sh", True),
        ("cd /srv && sed -i s/a/b/ job.sh", True),
        ("touch /srv/x # see job.sh", False),
        ("touch /srv/job.sh.done", False),
        ("touch /srv/prejob.sh", False),
        ("echo 'torn /srv/job.sh", False),
    ],
)
def test_a_command_names_a_file_by_a_word_of_its_own(text: str, named: bool) -> None:
    assert names(text, JOB) is named


WRITE = "cp /tmp/new /srv/job.sh"


@pytest.mark.parametrize("ran", [False, True])
def test_only_a_change_of_the_plan_that_has_run_lets_its_file_be_another(ran: bool) -> None:
    job = planned(RUN, CHANGE, effects=(UNKNOWN,), scripts=HELD)
    s = Session.opened().approved(propose(step(WEB1, planned(WRITE, CHANGE), job)))
    if ran:
        s.run(WRITE, verdict(WRITE, CHANGE))
    assert isinstance(ask(s, OTHER), Admission) is ran


def test_neither_a_look_nor_a_change_elsewhere_lets_the_file_be_another() -> None:
    look = f"cat {JOB}"
    job = planned(RUN, CHANGE, effects=(UNKNOWN,), scripts=HELD)
    there = step(WEB2, planned(WRITE, CHANGE))
    s = Session.opened().approved(propose(there, step(WEB1, planned(WRITE, CHANGE), job), on=(WEB1, WEB2)))
    s.run(look, verdict(look, Risk.READ_ONLY))
    s.run(WRITE, verdict(WRITE, CHANGE), target=WEB2)
    assert ask(s, OTHER) == NeedsApproval(why=drift(HELD, OTHER), effects=(UNKNOWN,))
