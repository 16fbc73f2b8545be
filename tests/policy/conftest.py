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
    """Every well-formed row of the shared corpora; a set of our own stands in where they are absent."""
    folder = corpora_folder()
    files = sorted(folder.glob("corpus_*.tsv")) if folder else [Path(__file__).parent / "rows.tsv"]
    rows = [row for file in files for row in read_rows(file)]
    assert rows, f"no rows in {[os.fspath(file) for file in files]}"
    return rows
