"""The order of the gate's questions (SPEC R3.1): of two reasons to say no, the earlier one is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from tests.domain.world import CHANGE, READ, WEB1, Session, verdict, with_entities

from oikos.domain.admission import Admission
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsApproval, Question, admit
from oikos.domain.inventory import AmbiguousName, Mode, UnknownName
from oikos.domain.plan import PlanStatus
from oikos.domain.state import Phase
from oikos.domain.verdict import Effect, EffectKind

COMMAND = "touch /srv/x"


def admissible() -> Question:
    """An improvised change inside an open window, tried once before with another command."""
    session = Session.opened().approved()
    session.run(COMMAND, verdict(COMMAND, CHANGE), rerun="first")
    return session.question(COMMAND, verdict(COMMAND, CHANGE), rerun="again, on purpose")


def in_state(q: Question, **changes: object) -> Question:
    return replace(q, state=replace(q.state, **changes))


def in_mode(q: Question, mode: Mode) -> Question:
    entity = replace(WEB1, mode=mode)
    return replace(q, target=entity if q.target == WEB1 else q.target, inventory=with_entities(entity, of=q.inventory))


def with_effect(q: Question, kind: EffectKind) -> Question:
    return replace(q, verdict=replace(q.verdict, effects=(*q.verdict.effects, Effect(kind=kind))))


def declined(q: Question) -> Question:
    return in_state(q, declined=frozenset(run.key for run in q.state.runs.values()))


Breaker = Callable[[Question], Question]
CONDITIONS: dict[str, tuple[Breaker, Code | str]] = {
    "session live": (lambda q: in_state(q, phase=Phase.STOPPED), Code.SESSION_OVER),
    "goal set": (lambda q: in_state(q, goal=""), Code.NO_GOAL),
    "plan live": (lambda q: in_state(q, status=PlanStatus.CLOSED), Code.NO_PLAN),
    "plan of this order": (lambda q: replace(q, order=replace(q.order, generation=7)), Code.STALE_GENERATION),
    "plan approved": (
        lambda q: q if q.state.status is PlanStatus.CLOSED else in_state(q, status=PlanStatus.PROPOSED),
        Code.AWAITING_OPERATOR,
    ),
    "step of the plan": (lambda q: replace(q, request=replace(q.request, step=9)), Code.UNKNOWN_STEP),
    "target known": (lambda q: replace(q, target=UnknownName(name="web9")), Code.UNKNOWN_TARGET),
    "order is the request": (lambda q: replace(q, order=replace(q.order, stdin="other")), Code.INTERNAL),
    "target not locked": (lambda q: in_mode(q, Mode.LOCKED), Code.TARGET_LOCKED),
    "session may change": (lambda q: in_state(q, mode="look"), Code.LOOK_ONLY_SESSION),
    "not interactive": (lambda q: with_effect(q, EffectKind.INTERACTIVE), Code.INTERACTIVE),
    "not declined": (declined, Code.DECLINED),
    "no duplicate": (lambda q: replace(q, request=replace(q.request, rerun=" ")), Code.DUPLICATE),
    "effects covered": (lambda q: with_effect(q, EffectKind.PRIVILEGE), "Not in the approved plan, and beyond"),
    "window open": (lambda q: in_state(q, window=None), "The window has ended."),
}


def why(q: Question) -> Code | str:
    outcome = admit(q)
    if isinstance(outcome, Refusal):
        return outcome.code
    assert isinstance(outcome, NeedsApproval), outcome
    return outcome.why


def test_with_every_condition_met_it_is_admitted() -> None:
    outcome = admit(admissible())
    assert isinstance(outcome, Admission)
    assert outcome.authority.startswith("window:")


@pytest.mark.parametrize("name", CONDITIONS)
def test_each_condition_alone_is_enough_for_a_no(name: str) -> None:
    break_it, expected = CONDITIONS[name]
    assert str(why(break_it(admissible()))).startswith(str(expected))


@pytest.mark.parametrize(("earlier", "later"), list(combinations(CONDITIONS, 2)))
def test_of_two_reasons_the_earlier_is_given(earlier: str, later: str) -> None:
    first, expected = CONDITIONS[earlier]
    second, _ = CONDITIONS[later]
    assert str(why(first(second(admissible())))).startswith(str(expected))


def test_the_plan_is_asked_for_before_reading_is_easy() -> None:
    """R3.1: checked before the read-only fast path. Without a plan not even a read runs (R2.8)."""
    session = Session.opened().begin()
    refusal = session.ask("uptime", verdict("uptime", READ))
    assert refusal == Refusal(
        code=Code.NO_PLAN,
        text="There is no plan.",
        directive="No plan for this session. Call set_goal, then propose_plan, before run; even read-only work needs a "
        "one-step plan.",
    )


def test_an_ambiguous_target_is_a_question_not_a_guess() -> None:
    q = replace(admissible(), target=AmbiguousName(name="web", slugs=("web1", "web2")))
    refusal = admit(q)
    assert isinstance(refusal, Refusal)
    assert refusal == Refusal(
        code=Code.AMBIGUOUS_TARGET,
        text="web could be web1 or web2.",
        directive="Use the full name, or ask the operator which one is meant.",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (UnknownName(name="web9", near=("web1", "web2")), "There is no target web9. Known targets: web1, web2."),
        (UnknownName(name="web9"), "There is no target web9. No target is configured."),
    ],
)
def test_an_unknown_target_says_what_there_is(name: UnknownName, text: str) -> None:
    refusal = admit(replace(admissible(), target=name))
    assert refusal == Refusal(code=Code.UNKNOWN_TARGET, text=text, directive="Use list_entities to see what there is.")
