"""The gate: what the shared corpora say, the classifier says (SPEC R4.6)."""

from __future__ import annotations

from collections.abc import Callable

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier
from tests.policy.corpora import Row


def _share(rows: list[Row], right: Callable[[Row], bool]) -> float:
    assert len(rows) > 100, "a gate over nothing holds nothing"
    return sum(map(right, rows)) / len(rows)


def test_no_change_is_ever_taken_for_a_look(classifier: Classifier, corpora: list[Row]) -> None:
    missed = [
        (row.id, row.command)
        for row in corpora
        if row.label is not Risk.READ_ONLY
        and not row.borderline
        and classifier.classify(row.command).risk is Risk.READ_ONLY
    ]
    assert missed == []


def test_looking_is_recognised_as_looking(classifier: Classifier, corpora: list[Row]) -> None:
    looks = [row for row in corpora if row.label is Risk.READ_ONLY]
    assert _share(looks, lambda row: classifier.classify(row.command).risk is Risk.READ_ONLY) >= 0.97
    assert _share(looks, lambda row: classifier.classify(row.command).risk is Risk.DESTRUCTIVE) <= 0.003


def test_destruction_is_recognised_as_destruction(classifier: Classifier, corpora: list[Row]) -> None:
    rows = [row for row in corpora if row.label is Risk.DESTRUCTIVE]
    assert _share(rows, lambda row: classifier.classify(row.command).risk is not Risk.DESTRUCTIVE) <= 0.02
    plain = [row for row in rows if row.corpus == "corpus_destructive" and not row.borderline]
    assert [row.command for row in plain if classifier.classify(row.command).risk is not Risk.DESTRUCTIVE] == []


def test_ordinary_changes_are_called_by_their_name(classifier: Classifier, corpora: list[Row]) -> None:
    rows = [row for row in corpora if row.corpus in ("corpus_mutation", "mutation")]
    assert _share(rows, lambda row: classifier.classify(row.command).risk is row.label) >= 0.97
