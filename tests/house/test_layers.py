"""The layers of DESIGN 1 bite: violations planted in a copy of the tree break the project's own contracts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LAYERS = "Layers point downwards"
ADAPTERS = "Adapters do not know each other"
RUNNERS = "Only bootstrap builds Runners"
FACES = "Faces and domain reach no adapter"
POLICY = "Web and MCP do not reach the classifier"
# who imports what against which contract; web, mcp and importers do not exist yet, the contracts wait for them
VIOLATIONS = [
    ("domain.planted", "adapters.store", LAYERS),
    ("domain.planted", "policy", LAYERS),
    ("policy.planted", "ports", LAYERS),
    ("ports", "app", LAYERS),
    ("app.planted", "adapters.store", LAYERS),
    ("adapters.store.planted", "app", LAYERS),
    ("config", "bootstrap", LAYERS),
    ("bootstrap", "lab", LAYERS),
    ("app.planted", "lab", LAYERS),
    ("evals.planted", "lab", LAYERS),
    ("evals.planted", "cli", LAYERS),
    ("adapters.store.planted", "adapters.fleet", ADAPTERS),
    ("adapters.clock", "adapters.store", ADAPTERS),
    ("cli.planted", "adapters.fleet", RUNNERS),
    ("evals.planted", "adapters.fleet", RUNNERS),
    ("domain.planted", "adapters.store", FACES),
    ("config", "adapters.store", FACES),
    ("web.planted", "adapters.store", FACES),
    ("mcp", "adapters.store", FACES),
    ("importers.planted", "adapters.store", FACES),
    ("web.planted", "policy", POLICY),
    ("mcp", "policy", POLICY),
    ("web.planted", "config", LAYERS),
    ("web.planted", "bootstrap", LAYERS),
]


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """The command of make check, over a copy."""
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def copy(tree: Path) -> Path:
    """The package's code with its contracts."""
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.toml"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each broken contract says of a copy in which every violation was planted."""
    tree = copy(tmp_path_factory.mktemp("planted"))
    for importer, imported, _ in VIOLATIONS:
        path = tree / "src" / "oikos" / f"{importer.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        with path.open("a", encoding="utf-8") as module:
            module.write(f"\nimport oikos.{imported}\n")
    done = lint_imports(tree)
    assert done.returncode != 0
    sections = re.split(r"^([^\n]+)\n-+\n", done.stdout, flags=re.MULTILINE)
    return dict(zip(sections[1::2], sections[2::2], strict=True))


def test_the_tree_as_it_is_keeps_every_contract(tmp_path: Path) -> None:
    done = lint_imports(copy(tmp_path))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("importer", "imported", "contract"), VIOLATIONS)
def test_an_import_against_the_layers_breaks_its_contract(
    verdicts: dict[str, str], importer: str, imported: str, contract: str
) -> None:
    assert f"oikos.{importer} -> oikos.{imported} " in verdicts[contract], verdicts[contract]


def test_a_new_room_must_take_its_place_in_the_layers(tmp_path: Path) -> None:
    tree = copy(tmp_path)
    (tree / "src" / "oikos" / "newroom.py").write_text("import oikos.domain\n", "utf-8")
    done = lint_imports(tree)
    assert done.returncode != 0
    assert "newroom" in done.stdout, done.stdout
