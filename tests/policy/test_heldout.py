"""Commands written down before the rules were looked at: how often looking is recognised as looking."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier
from tests.policy.corpora import Row, read_rows

HELDOUT = Path(__file__).parent / "heldout"
AIMED = frozenset(("help-dryrun", "runbook"))
"""Kinds of rows that were aimed at weaknesses already seen; the others are a breadth sample."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for row in read_rows(HELDOUT / "readonly.tsv") if not row.borderline]


@pytest.fixture(scope="module")
def verdicts(classifier: Classifier, rows: list[Row]) -> dict[str, Risk]:
    return {row.id: classifier.classify(row.command).risk for row in rows}


def _share(rows: list[Row], verdicts: dict[str, Risk]) -> float:
    return Counter(verdicts[row.id] for row in rows)[Risk.READ_ONLY] / len(rows)


def test_looking_is_recognised_in_a_breadth_sample(rows: list[Row], verdicts: dict[str, Risk]) -> None:
    sample = [row for row in rows if row.kind not in AIMED]
    assert len(sample) > 1900
    assert _share(sample, verdicts) >= 0.98


def test_looking_is_recognised_where_it_is_hard_to_tell(rows: list[Row], verdicts: dict[str, Risk]) -> None:
    hard = [row for row in rows if row.kind in AIMED]
    assert len(hard) > 400
    assert _share(hard, verdicts) >= 0.96


def test_looking_is_recognised_in_the_second_exam(classifier: Classifier) -> None:
    exam = [row for row in read_rows(HELDOUT / "fresh_readonly.tsv") if not row.borderline]
    told = {row.id: classifier.classify(row.command).risk for row in exam}
    assert len(exam) > 650
    assert _share(exam, told) >= 0.95
    assert [row.command for row in exam if told[row.id] is Risk.DESTRUCTIVE] == []


def test_looking_is_recognised_in_the_exam_of_strangers(classifier: Classifier) -> None:
    exam = [row for row in read_rows(HELDOUT / "strangers_readonly.tsv") if not row.borderline]
    told = {row.id: classifier.classify(row.command).risk for row in exam}
    assert len(exam) > 1800
    assert _share(exam, told) >= 0.98
    assert [row.command for row in exam if told[row.id] is Risk.DESTRUCTIVE] == []


def test_looking_is_never_taken_for_destruction(rows: list[Row], verdicts: dict[str, Risk]) -> None:
    assert [row.command for row in rows if verdicts[row.id] is Risk.DESTRUCTIVE] == []
