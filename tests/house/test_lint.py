"""Every house rule bites where it should and nowhere else; the cases are the table in rules.toml."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CASES = tomllib.loads((Path(__file__).parent / "rules.toml").read_text("utf-8"))["case"]


@pytest.fixture(scope="session")
def lint() -> ModuleType:
    """tools/lint.py as a module."""
    spec = importlib.util.spec_from_file_location("house_lint", ROOT / "tools" / "lint.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["house_lint"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}-{case['name'].replace(' ', '-')}")
def test_a_rule_finds_what_it_forbids_and_passes_what_it_allows(lint: ModuleType, case: dict[str, str]) -> None:
    # Words that would break a rule in this very table are written with a ~ inside.
    source = case["source"].replace("~", "")
    found = {finding.rule for finding in lint.lint(case["path"], source)}
    assert found == (set() if case.get("ok") else {case["rule"]})


def test_every_rule_has_a_case_it_bites_and_one_it_passes(lint: ModuleType) -> None:
    bites = {case["rule"] for case in CASES if not case.get("ok")}
    passes = {case["rule"] for case in CASES if case.get("ok")}
    assert (bites, passes) == (set(lint.RULES), set(lint.RULES))


def test_a_planted_finding_fails_the_command_and_names_the_line(tmp_path: Path) -> None:
    room = tmp_path / "src" / "oikos" / "app"
    room.mkdir(parents=True)
    (room / "nomos.py").write_text("import time\n\n\ndef now() -> float:\n    return time.time()\n", "utf-8")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "lint.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("src/oikos/app/nomos.py:5: clock: time.time (")
