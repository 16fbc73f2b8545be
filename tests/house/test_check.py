"""make check fails, and says which check, when a violation is planted in a copy of the tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BYPASS = """
async def bypass(runner: "Runner", order: "RunOrder", route: "Route", sink: "Sink") -> None:
    await runner.start(order, order, route, sink)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what make check reads."""
    for part in ("src", "tools"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def check(tree: Path, *names: str) -> subprocess.CompletedProcess[str]:
    """The command behind make check, for some of its checks."""
    argv = [sys.executable, tree / "tools" / "check.py", *names]
    return subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=False)


def append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text("utf-8") if path.exists() else "") + text, "utf-8")


@pytest.mark.parametrize("room", ["web", "domain"])
def test_an_import_of_an_adapter_fails_make_check(tree: Path, room: str) -> None:
    assert check(tree, "layers").returncode == 0
    append(tree / "src" / "oikos" / room / "__init__.py", "\nimport oikos.adapters.store\n")
    done = check(tree, "layers")
    assert done.returncode != 0
    assert "Layers point downwards BROKEN" in done.stdout or "reach no adapter BROKEN" in done.stdout, done.stdout
    assert done.stdout.endswith("check: failed: layers\n"), done.stdout


@pytest.mark.slow
def test_a_runner_called_without_an_admission_fails_make_check(tree: Path) -> None:
    append(tree / "src" / "oikos" / "ports.py", BYPASS)
    done = check(tree, "types")
    assert done.returncode != 0
    assert 'Argument 1 to "start" of "Runner" has incompatible type "RunOrder"' in done.stdout, done.stdout


def test_a_check_that_does_not_exist_is_named(tree: Path) -> None:
    done = check(tree, "spelling")
    assert (done.returncode, done.stdout) == (
        1,
        "check: no check is called spelling; there are: style, format, layers, rules, types\n",
    )
