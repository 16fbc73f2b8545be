from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from oikos import data
from oikos.adapters.model.runbook_file import load_runbooks
from oikos.domain.errors import ConfigError

CASES = yaml.safe_load((Path(__file__).parent / "malformed_runbooks.yaml").read_text())


@pytest.mark.parametrize("row", CASES["cases"], ids=lambda row: row["expected"][:70])
def test_a_malformed_runbook_says_file_line_and_what_was_expected(tmp_path: Path, row: dict[str, str]) -> None:
    good = CASES["good"]
    assert row["replace"] in good
    text = good.replace(row["replace"], row["by"], 1)
    (tmp_path / "mill.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_runbooks(tmp_path)
    assert str(caught.value).removeprefix(f"{tmp_path}/") == row["expected"]


def test_the_good_one_is_good_and_a_second_of_its_name_is_not(tmp_path: Path) -> None:
    (tmp_path / "mill.yaml").write_text(CASES["good"])
    assert [book.name for book in load_runbooks(tmp_path)] == ["mill"]
    (tmp_path / "other.yaml").write_text(CASES["good"])
    with pytest.raises(ConfigError, match=r"other\.yaml:1: .* expected a name of its own; 'mill' is taken"):
        load_runbooks(tmp_path)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere is no directory"):
        load_runbooks(tmp_path / "nowhere")


def test_the_shipped_set_is_whole() -> None:
    names = [book.name for book in load_runbooks(data.path("runbooks"))]
    known = "backup, container-package, container-upgrade, inventory, night, package, service-down"
    assert names == known.split(", ")
