"""tools/setup.py and the files it reads: what is pinned, what is missing, and what a person is told."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from oikos.lab import packages as lab_packages

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ("run", "build", "dev", "bench")


def pins(name: str) -> dict[str, str]:
    """Package -> exact version in a requirements file."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_every_pin_is_exact_has_hashes_and_names_no_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if entry.strip() and not entry.startswith("#")]
    assert [entry for entry in entries if not re.match(r"[a-z0-9-]+==\S+.*\\\n    --hash=sha256:", entry)] == []
    assert re.findall(r"https?:|--index|--extra-index|--find-links", text) == []


def test_what_runs_and_what_builds_is_pinned_the_same_for_operators_and_developers() -> None:
    dev = pins("dev")
    assert {name: dev.get(name) for name in (*pins("run"), *pins("build"))} == {**pins("run"), **pins("build")}


def dependencies() -> set[str]:
    """The packages that pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {re.split(r"[^a-z0-9-]", line)[0] for line in project["dependencies"]}


def test_every_dependency_of_the_package_is_pinned() -> None:
    assert dependencies() - set(pins("run")) == set()


def test_the_package_depends_on_exactly_what_it_imports() -> None:
    modules: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            modules |= {name.partition(".")[0] for name in names}
    packages = {{"yaml": "pyyaml"}.get(name, name.replace("_", "-")) for name in modules - sys.stdlib_module_names}
    # shfmt is a program, started and not imported.
    assert dependencies() == (packages - {"oikos", "--future--"}) | {"shfmt-py"}


def path_without(program: str, tmp_path: Path) -> str:
    """A PATH on which everything of this machine's set-up is found, but not `program` and no sudo."""
    shelf = tmp_path / "bin"
    shelf.mkdir()
    table = (ROOT / "requirements" / "debian.txt").read_text("utf-8")
    programs = {line.split()[1] for line in table.splitlines() if line and not line.startswith("#")}
    for name in programs - {program}:
        (shelf / name).touch(mode=0o755)
    return str(shelf)


def test_a_missing_program_is_named_with_its_package_its_use_and_the_command(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, 'tools'); import setup;"
        "setup.SYSTEM_PATH = ''; setup.become_root = lambda: None; setup.step('Debian packages', setup.debian)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PATH": path_without("mmdebstrap", tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == [
        "setup: missing mmdebstrap (package mmdebstrap): the lab's base system, built once",
        "setup: install them as root: apt-get install mmdebstrap",
    ]


@pytest.mark.slow
def test_a_step_that_fails_stops_the_set_up_with_one_line(tmp_path: Path) -> None:
    for part in ("tools", "requirements"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "requirements" / "debian.txt").write_text("", "utf-8")
    (tmp_path / "requirements" / "dev.txt").write_text("click==8.0.0 --hash=sha256:" + "0" * 64 + "\n", "utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "tools" / "setup.py", "dev"],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("setup: installing Python packages failed (exit 1): ")
    assert not (tmp_path / ".venv" / ".oikos-dev").exists()


def test_make_help_has_a_line_for_each_of_the_verbs() -> None:
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    verbs = {line.split()[1] for line in said.splitlines()}
    assert {"setup", "demo", "test", "test-all", "check", "bench", "help"} <= verbs


def test_every_debian_package_the_lab_names_is_in_the_one_list_of_set_up() -> None:
    table = (ROOT / "requirements" / "debian.txt").read_text("utf-8")
    rows = dict(line.split()[:2] for line in table.splitlines() if line and not line.startswith("#"))
    assert {name: rows.get(name) for name in lab_packages.PROGRAMS} == lab_packages.PROGRAMS
