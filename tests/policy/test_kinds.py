"""Kinds of commands an operator types, each with its class; `above` means anything but a look."""

from __future__ import annotations

import re
from pathlib import Path

from oikos.domain.verdict import Risk
from oikos.policy.classify import Classifier

_ESCAPES = {"t": "\t", "n": "\n"}


def _rows() -> list[tuple[str, str]]:
    lines = (Path(__file__).parent / "kinds.tsv").read_text("utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [
        (label, re.sub(r"\\(.)", lambda found: _ESCAPES.get(found.group(1), found.group(1)), text))
        for label, text in rows
    ]


def test_looks_are_looks(classifier: Classifier) -> None:
    looks = [text for label, text in _rows() if label == "read_only"]
    assert [text for text in looks if classifier.classify(text).risk is not Risk.READ_ONLY] == []
    assert len(looks) > 300


def test_changes_are_changes(classifier: Classifier) -> None:
    rows = [text for label, text in _rows() if label == "config_mutation"]
    assert [text for text in rows if classifier.classify(text).risk is not Risk.CONFIG_MUTATION] == []


def test_destruction_is_destruction(classifier: Classifier) -> None:
    rows = [text for label, text in _rows() if label == "destructive"]
    assert [text for text in rows if classifier.classify(text).risk is not Risk.DESTRUCTIVE] == []


def test_nothing_that_can_change_a_thing_passes_as_a_look(classifier: Classifier) -> None:
    rows = [text for label, text in _rows() if label == "above"]
    assert [text for text in rows if classifier.classify(text).risk is Risk.READ_ONLY] == []
    assert len(rows) > 300
