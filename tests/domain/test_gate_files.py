"""A command that runs a file: approved as bytes, asked again once the file may differ (security/THREATS T6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import CHANGE, READ, WEB1, WEB2, Session, effect, planned, propose, step, verdict

from oikos.domain.admission import Admission
from oikos.domain.gate import NeedsApproval, Outcome, admit
from oikos.domain.plan import PlannedCommand
from oikos.domain.run import Exited, NeverStarted
from oikos.domain.scripts import RUNS_A_FILE, Script, drift
from oikos.domain.verdict import EffectKind, Reason, Verdict

RUN = "sh /srv/job.sh"
UNKNOWN = effect(EffectKind.UNCLASSIFIED)


def runs_a_file(rule: str = "exec.file") -> Verdict:
    said = verdict(RUN, CHANGE, effects=(UNKNOWN,))
    return replace(said, reasons=(Reason(rule=rule, risk=CHANGE, span=(0, 2), text="It runs a file."),))


def session() -> Session:
    plan = propose(
        step(WEB1, planned(RUN, CHANGE, effects=(UNKNOWN,)), planned("mkdir /srv/a", CHANGE)),
        step(WEB2, planned("mkdir /srv/b", CHANGE)), on=(WEB1, WEB2),
    )  # fmt: skip
    return Session.opened().approved(plan)


def ask(s: Session, rule: str = "exec.file") -> Outcome:
    return s.ask(RUN, runs_a_file(rule), target=WEB1)


@pytest.mark.parametrize("rule", RUNS_A_FILE)
def test_an_improvised_change_of_the_target_has_it_asked_again(rule: str) -> None:
    s = session()
    assert isinstance(ask(s, rule), Admission)
    s.run("tee /srv/job.sh", verdict("tee /srv/job.sh", CHANGE), target=WEB1)
    assert isinstance(ask(s, rule), NeedsApproval)


def test_changes_that_the_plan_holds_or_elsewhere_or_that_never_began_do_not() -> None:
    s = session()
    s.run("mkdir /srv/a", verdict("mkdir /srv/a", CHANGE), target=WEB1)
    s.run("mkdir /srv/other", verdict("mkdir /srv/other", CHANGE), target=WEB2)
    s.run("touch /x", verdict("touch /x", CHANGE), target=WEB1, outcome=NeverStarted(reason="unreachable"))
    assert isinstance(ask(s), Admission)


def test_a_command_that_runs_no_file_keeps_its_declaration() -> None:
    s = session()
    s.run("tee /srv/x", verdict("tee /srv/x", CHANGE), target=WEB1)
    assert isinstance(ask(s, "some.other"), Admission)


def test_a_change_that_the_plan_holds_is_told_by_its_input_too() -> None:
    plan = propose(step(WEB1, planned(RUN, CHANGE, effects=(UNKNOWN,)), planned("tee /srv/a", CHANGE, stdin="x\n")))
    s = Session.opened().approved(plan)
    s.run("tee /srv/a", verdict("tee /srv/a", CHANGE), stdin="x\n")
    assert isinstance(ask(s), Admission)
    s.run("tee /srv/a", verdict("tee /srv/a", CHANGE), stdin="y\n")
    assert isinstance(ask(s), NeedsApproval)


# ---- a file that the plan holds by its hash --------------------------------------------------------------------------

JOB = "/srv/job.sh"
HELD = (Script(path=JOB, sha256="a" * 64),)
OTHER = (Script(path=JOB, sha256="b" * 64),)
SH = planned(RUN, CHANGE, effects=(UNKNOWN,), scripts=HELD)
WRITE = planned("tee /srv/job.sh", CHANGE, stdin="ls\n")
SEE = planned("cat /srv/job.sh", READ)
MAKE = planned("mkdir /srv/a", CHANGE)


def planning(*commands: PlannedCommand) -> Session:
    return Session.opened().approved(propose(step(WEB1, *commands)))


def ran(s: Session, *commands: PlannedCommand) -> Session:
    """The commands, each run to its end; the file holds what was approved."""
    for command in commands:
        said = runs_a_file() if command == SH else verdict(command.text, command.risk)
        question = replace(s.question(command.text, said, stdin=command.stdin), scripts=HELD)
        s.finish(s.start(question, admit(question)).order.run_id, Exited(code=0))
    return s


def start(s: Session, **more: object) -> Outcome:
    """Ask for the job, whose file is another one now."""
    return admit(replace(s.question(RUN, runs_a_file(), rerun="again", **more), scripts=OTHER))


ASKED = NeedsApproval(why=drift(HELD, OTHER), effects=(UNKNOWN,))


def test_the_hash_of_a_command_with_input_is_compared_too() -> None:
    s = planning(replace(SH, stdin="y\n"))
    assert start(s, stdin="y\n") == ASKED


@pytest.mark.parametrize("before", [(), (SEE,), (SH,), (MAKE,)])
def test_the_file_may_be_another_once_a_change_of_the_plan_wrote_it(before: tuple[PlannedCommand, ...]) -> None:
    s = ran(planning(*before, WRITE, SH), *before)
    assert start(s) == ASKED
    assert isinstance(start(ran(s, WRITE)), Admission)


def test_a_change_of_an_earlier_plan_wrote_it_for_that_plan() -> None:
    s = ran(planning(WRITE, SH), WRITE)
    s.must(s.send("once more"))
    s.calls()
    s.must(propose(step(WEB1, WRITE, SH), call_id="c2"))
    s.must(s.approve())
    s.calls()
    assert start(s) == ASKED
