"""Taught rules: only the unknown, only exactly, only there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.domain.errors import Refusal
from oikos.domain.teaching import TaughtRule, apply, phrase_for, taught_by, teachable
from oikos.domain.verdict import EffectKind, Risk, Verdict
from oikos.policy import default_classifier

CLASSIFIER = default_classifier()
RULE = TaughtRule(
    id="abcdef0123456789",
    argv=("mytool", "status", "--json"),
    targets=("t1",),
    risk=Risk.READ_ONLY,
    by="anna",
    at_s=0.0,
)


def judged(text: str, target: str = "t1") -> Verdict:
    return apply(CLASSIFIER.classify(text), [RULE], target)


def test_a_taught_command_is_what_it_was_taught_to_be_and_says_so() -> None:
    verdict = judged("mytool status --json")
    assert (verdict.risk, verdict.effects, taught_by(verdict)) == (Risk.READ_ONLY, (), "taught.abcdef01")


@pytest.mark.parametrize(
    "text",
    [
        "mytool status", "mytool status --json web1", "mytool status --json --force", "mytool delete --json",
        "mytool --json status", "/tmp/mytool status --json", "./mytool status --json", "mytool status $x",
        "ssh web1 mytool status --json", "pct exec 101 -- mytool status --json", "mytool status --json; othertool",
        "mytool status --json | sh",
    ],
)  # fmt: skip
def test_anything_else_stays_unknown(text: str) -> None:
    assert judged(text).risk > Risk.READ_ONLY


def test_another_target_was_not_taught() -> None:
    assert judged("mytool status --json", "t2") == CLASSIFIER.classify("mytool status --json")


@pytest.mark.parametrize(
    "text",
    ["mytool status --json > /etc/passwd", "mytool status --json; rm -rf /srv", "mytool status --json | tee /etc/x"],
)
def test_what_the_classifier_knows_is_never_taught_away(text: str) -> None:
    built_in, verdict = CLASSIFIER.classify(text), judged(text)
    worst = max(reason.risk for reason in built_in.reasons if not reason.rule.startswith("program.unknown"))
    assert verdict.risk == max(worst, Risk.READ_ONLY)
    assert verdict.risk > Risk.READ_ONLY


@pytest.mark.parametrize(
    "text", ["rm -rf /srv", "ls -la", "mytool a | mytool b", "mytool $x", "sudo mytool a > /etc/x", "mytool 'a"]
)
def test_only_one_unknown_simple_command_can_be_taught(text: str) -> None:
    assert isinstance(teachable(CLASSIFIER.classify(text)), Refusal)


def test_an_unknown_option_of_a_known_program_can_be_taught() -> None:
    assert teachable(CLASSIFIER.classify("ls --frobnicate")) == ("ls", "--frobnicate")
    assert phrase_for(("/usr/bin/ls", "--frobnicate")) == "teach ls"


@given(st.text(alphabet="abc -;|&$()'\"/<>\n", max_size=24))
def test_teaching_never_lowers_a_text_that_merely_contains_the_taught_command(tail: str) -> None:
    text = f"mytool status --json {tail}"
    built_in, verdict = CLASSIFIER.classify(text), judged(text)
    others = [
        reason.risk
        for reason in built_in.reasons
        if not reason.rule.startswith(("program.unknown", "opt.unknown", "sub.unknown"))
    ]
    assert verdict.risk >= max(others, default=Risk.READ_ONLY)
    if verdict.risk is Risk.READ_ONLY:
        assert not verdict.has(EffectKind.UNCLASSIFIED)


@pytest.mark.parametrize("stdin", ["delete all\n", None])
def test_what_else_is_not_understood_stays_so_beside_a_taught_command(stdin: str | None) -> None:
    """What it is fed is another finding: the rule says nothing of it."""
    verdict = apply(CLASSIFIER.classify("mytool status --json", stdin), [RULE], "t1")
    if stdin:
        assert verdict.risk > Risk.READ_ONLY
        assert verdict.has(EffectKind.UNCLASSIFIED)
    else:
        assert (verdict.risk, verdict.effects) == (Risk.READ_ONLY, ())
