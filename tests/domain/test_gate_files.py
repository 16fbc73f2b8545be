"""A command that runs a file: approved as bytes, asked again once the file may differ (security/THREATS T6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import CHANGE, WEB1, WEB2, Session, effect, planned, propose, step, verdict

from oikos.domain.admission import Admission
from oikos.domain.gate import NeedsApproval, Outcome
from oikos.domain.run import NeverStarted
from oikos.domain.scripts import RUNS_A_FILE
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
