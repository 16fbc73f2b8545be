"""One classifier for the whole suite, and the shared corpora where they are present."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oikos.policy import default_classifier
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import Knowledge, load
from tests.policy.corpora import Row, corpora_folder, read_rows


@pytest.fixture(scope="session")
def classifier() -> Classifier:
    """The classifier with the packaged rules."""
    return default_classifier()


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    """The packaged rules."""
    return load()


@pytest.fixture(scope="session")
def corpora() -> list[Row]:
    """Every well-formed row of the shared corpora; where they are absent the examiners' rows stand in."""
    folder = corpora_folder()
    own = Path(__file__).parent / "heldout"
    files = (
        sorted(folder.glob("corpus_*.tsv"))
        if folder
        else [own / f"{name}.tsv" for name in ("adversarial", "destructive", "mutation", "readonly")]
    )
    rows = [row for file in files for row in read_rows(file) if folder or not row.borderline]
    assert rows, f"no rows in {[os.fspath(file) for file in files]}"
    return rows
