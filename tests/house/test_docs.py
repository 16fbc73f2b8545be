"""The docs name what exists: links lead somewhere, and docs/where.md sends nobody into the void."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
WHERE = (ROOT / "docs" / "where.md").read_text("utf-8")
ROWS = [line.split("|")[2] for line in WHERE.splitlines() if line.startswith("| ") and "go to |" not in line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("row", ROWS)
def test_every_place_that_where_names_exists(row: str) -> None:
    names = re.findall(r"`([^`\[]*[./][^`]*)`", row)
    globs = {name: name[1:] if name.startswith("/") else f"src/oikos/{name}" for name in names}
    assert [name for name, glob in globs.items() if not any(ROOT.glob(glob.rstrip("/")))] == []


def test_every_decision_is_listed_and_says_its_state() -> None:
    index = (ROOT / "docs" / "adr" / "README.md").read_text("utf-8")
    pages = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert [page.name for page in pages if f"({page.name})" not in index] == []
    parts = ("\nState: ", "\n## Context\n", "\n## Decision\n", "\n## Rejected\n", "\n## Consequences\n")
    assert [page.name for page in pages if not all(part in page.read_text("utf-8") for part in parts)] == []
