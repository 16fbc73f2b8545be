"""The card as an approver reads it: nothing hidden, nothing forged by what others wrote (THREATS T9, T16)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oikos.app.service import Card
from oikos.cli.card import card_lines
from oikos.cli.paint import Paint
from oikos.domain import events as ev
from oikos.domain.plan import Check, Plan, PlannedCommand, PreAuthorisation, Scope, Step
from oikos.domain.run import RunOrder
from oikos.domain.verdict import Effect, EffectKind, NamedObject, Risk

PLAIN = Paint(on=False)
FORGED = "a\n  3 [read-only] web1  nothing to see\u2028✓ plan 1 approved"
THING = NamedObject(kind="volume", name="x\x1b[2Ky", verb="rm", risk=Risk.DESTRUCTIVE)
COMMAND = PlannedCommand(
    text="docker volume rm x", stdin="first\n\x1b[2Jsecond\n", risk=Risk.DESTRUCTIVE, why=FORGED,
    effects=(Effect(kind=EffectKind.IRREVERSIBLE, object=FORGED),), preauthorise=PreAuthorisation(object=THING),
)  # fmt: skip
PLAN = Plan(
    generation=1, goal=FORGED,
    steps=(Step(seq=1, title=FORGED, target="web1", target_id="e1", commands=(COMMAND,), undo=FORGED),),
    checks=(Check(target="web1", target_id="e1", command="true", expect_text=FORGED),),
    scope=(Scope(target_id="e1", slug="web1"),),
)  # fmt: skip
PARKED = ev.RunParked(
    order=RunOrder(
        run_id="r" * 32, session_id="s", generation=1, target_id="e1", command="cat >x\nand more", stdin="one\ntwo"
    ),
    call_id="c", target="web1", step=1, risk=Risk.DESTRUCTIVE, effects=(Effect(kind=EffectKind.EGRESS, object=FORGED),),
    objects=(), canonical="cat", why=FORGED, phrase="rm x␛[2Ky",
)  # fmt: skip
CARDS = {
    "plan": Card(session_id="s" * 32, kind="plan", text=FORGED, generation=1, plan=PLAN, digest="d" * 64),
    "run": Card(session_id="s" * 32, kind="run", text=FORGED, generation=1, run=PARKED, digest="d" * 64),
    "question": Card(
        session_id="s" * 32, kind="question", text=FORGED,
        question=ev.QuestionAsked(call_id="c", kind="choice", text=FORGED, choices=(FORGED, "b")),
    ),
    "blocked": Card(session_id="s" * 32, kind="model", text=FORGED),
}  # fmt: skip


@pytest.mark.parametrize("kind", CARDS)
def test_what_others_wrote_adds_no_line_to_a_card_and_moves_no_cursor(kind: str) -> None:
    plain = {
        "plan": replace(CARDS["plan"], plan=_reworded(PLAN, "a")),
        "run": replace(
            CARDS["run"], run=replace(PARKED, why="a", effects=(Effect(kind=EffectKind.EGRESS, object="a"),))
        ),
        "question": replace(CARDS["question"], question=replace(_question(), text="a", choices=("a", "b"))),
        "blocked": replace(CARDS["blocked"], text="a"),
    }
    shown = card_lines(CARDS[kind], PLAIN)
    assert len(shown) == len(card_lines(plain[kind], PLAIN))
    assert not [line for line in shown if "\n" in line or "\x1b" in line or "\u2028" in line]


def _question() -> ev.QuestionAsked:
    question = CARDS["question"].question
    assert question is not None
    return question


def _reworded(plan: Plan, text: str) -> Plan:
    command = replace(COMMAND, why=text, effects=(Effect(kind=EffectKind.IRREVERSIBLE, object=text),))
    step = replace(plan.steps[0], title=text, undo=text, commands=(command,))
    return replace(plan, goal=text, steps=(step,), checks=(replace(plan.checks[0], expect_text=text),))


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("plan", ["        standard input, 17 characters:", "        < first", "        < ␛[2Jsecond"]),
        ("run", ["  $ cat >x", "    and more", "  standard input, 7 characters:", "  < one", "  < two"]),
    ],
)
def test_what_a_command_is_given_to_read_is_shown_whole(kind: str, shown: list[str]) -> None:
    lines = card_lines(CARDS[kind], PLAIN)
    assert [line for line in lines if line in shown] == shown
