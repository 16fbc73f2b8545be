"""Dangerous commands an examiner wrote. Rules were mended against them since: they guard, they do not measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier
from tests.policy.corpora import Row, read_rows

DISPUTED = frozenset(("helm get values app -n prod", "nmap -sn 192.0.2.0/24"))
"""Rows that the shared corpora label otherwise: both kinds are looks there."""
HELDOUT = Path(__file__).parent / "heldout"
ROWS = read_rows(HELDOUT / "dangerous.tsv")
FRESH = [row for row in read_rows(HELDOUT / "fresh_dangerous.tsv") if row.command not in DISPUTED]
STRANGERS = read_rows(HELDOUT / "strangers_dangerous.tsv")
EVERY = 9
"""The quick run takes each ninth row."""


def _passing_as_looks(classifier: Classifier, rows: list[Row]) -> list[str]:
    return [
        row.command for row in rows if not row.borderline and classifier.classify(row.command).risk is Risk.READ_ONLY
    ]


def test_a_sample_of_unseen_changes_is_never_taken_for_looks(classifier: Classifier) -> None:
    assert _passing_as_looks(classifier, ROWS[::EVERY]) == []
    assert len(ROWS) > 4000


@pytest.mark.slow
def test_no_unseen_change_is_ever_taken_for_a_look(classifier: Classifier) -> None:
    assert _passing_as_looks(classifier, ROWS) == []


@pytest.mark.slow
def test_most_unseen_destruction_is_called_destruction(classifier: Classifier) -> None:
    rows = [row for row in ROWS if row.label is Risk.DESTRUCTIVE and not row.borderline]
    missed = [row.command for row in rows if classifier.classify(row.command).risk is not Risk.DESTRUCTIVE]
    assert len(missed) <= 0.02 * len(rows), missed[:20]


def test_no_change_of_the_second_exam_is_ever_taken_for_a_look(classifier: Classifier) -> None:
    assert _passing_as_looks(classifier, FRESH) == []
    assert len(FRESH) > 1000


def test_most_destruction_of_the_second_exam_is_called_destruction(classifier: Classifier) -> None:
    rows = [row for row in FRESH if row.label is Risk.DESTRUCTIVE and not row.borderline]
    missed = [row.command for row in rows if classifier.classify(row.command).risk is not Risk.DESTRUCTIVE]
    assert len(missed) <= 0.04 * len(rows), missed[:20]


def test_no_change_of_the_exam_of_strangers_is_ever_taken_for_a_look(classifier: Classifier) -> None:
    assert _passing_as_looks(classifier, STRANGERS) == []
    assert len(STRANGERS) > 2200


def test_no_destruction_of_the_exam_of_strangers_is_called_less(classifier: Classifier) -> None:
    rows = [row for row in STRANGERS if row.label is Risk.DESTRUCTIVE and not row.borderline]
    assert [row.command for row in rows if classifier.classify(row.command).risk is not Risk.DESTRUCTIVE] == []
    assert len(rows) > 700


@pytest.mark.slow
def test_few_unseen_changes_are_called_destruction(classifier: Classifier) -> None:
    rows = [row for row in ROWS if row.label is Risk.CONFIG_MUTATION and not row.borderline]
    over = [row.command for row in rows if classifier.classify(row.command).risk is Risk.DESTRUCTIVE]
    assert len(over) <= 0.02 * len(rows), over[:20]
