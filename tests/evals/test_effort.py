"""What completed tasks asked of the operator, counted from the record."""

from __future__ import annotations

from dataclasses import replace

from oikos.domain import events as ev
from oikos.evals.trial import Effort, Trial, effort, helps
from tests.evals.trials import approved, both, changed, completed, opened, proposed, reopened, said, trial

ASKED = (proposed(), *approved(), *changed("r1"), completed())
AGAIN = (said(), reopened(), proposed(2, seq=2), *approved(2), *changed("r2", generation=2), completed())
LOOKED = (said(), reopened(), proposed(2, seq=2), completed())


def helped(made: Trial, *ticks: int) -> Trial:
    """The trial with so many ticks in its turns."""
    turns = tuple(replace(turn, ticks=count) for turn, count in zip(made.turns, ticks, strict=True))
    return replace(made, turns=turns)


def test_each_completed_turn_is_a_task_with_its_own_first_approval() -> None:
    assert effort(trial((opened(), said(), *ASKED))) == Effort(tasks=1, approvals=1, ticks=0)
    assert effort(trial((opened(), said(), *ASKED), AGAIN)) == Effort(tasks=2, approvals=2, ticks=0)
    assert effort(trial((opened(), said(), *ASKED), LOOKED)) == Effort(tasks=2, approvals=1, ticks=0)
    assert effort(both((opened(), said(), *ASKED), (opened(), said(), *ASKED))) == Effort(tasks=2, approvals=2)


def test_further_approvals_and_pushes_are_ticks_of_the_task_they_were_given_for() -> None:
    twice = (opened(), said(), proposed(), *approved(), *approved(), *changed("r1"), completed())
    assert effort(trial(twice)) == Effort(tasks=1, approvals=2, ticks=1)
    assert effort(helped(trial(twice, AGAIN), 2, 1)) == Effort(tasks=2, approvals=3, ticks=4)


def test_what_came_before_belongs_to_the_task_that_is_completed_at_last_and_to_no_other_session() -> None:
    unfinished = trial((opened(), said(), proposed()), ASKED[1:])
    assert effort(helped(unfinished, 1, 0)) == Effort(tasks=1, approvals=1, ticks=1)
    never = both((opened(), said(), proposed(), *approved()), (opened(), said(), *ASKED))
    assert effort(helped(never, 3, 0)) == Effort(tasks=1, approvals=1, ticks=0)


def test_an_act_that_granted_consent_or_said_no_is_no_help() -> None:
    def count(*act: ev.Event) -> int:
        """Of an act, whose events share their instant, after two others."""
        made = trial((opened(), said(), *act)).turns[0]
        at = made.records[-1].at
        records = tuple(replace(record, at=at) if record.seq > 2 else record for record in made.records)
        return helps(records, "s", [("s", made.state.seq)])

    def message(reading: str) -> ev.Event:
        return ev.OperatorSaid(text="hm", by="script", channel="script", reading=reading)

    assert count(message("comment")) == 1
    assert count(message("assent")) == 1, "an assent that opened nothing"
    assert count(message("assent"), *approved()) == 0
    assert count(message("refusal")) == 0
    assert count(message("halt")) == 0
    assert count(ev.LimitRaised(by="script")) == 1


def test_acts_of_another_session_are_counted_with_it() -> None:
    made = trial((opened(), said())).turns[0]
    assert helps(made.records, "s", [("t", 2)]) == 0
    assert helps(made.records, "s", [("s", 2), ("s", 9)]) == 1
