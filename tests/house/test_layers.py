"""The layers of DESIGN 1 bite: each planted violation fails `lint-imports` with the project's own contracts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# room made or extended, the forbidden import, the contract that must break
VIOLATIONS = [
    ("domain/gate.py", "import oikos.adapters.store", "Layers point downwards"),
    ("domain/session.py", "import oikos.policy", "Layers point downwards"),
    ("policy/words.py", "import oikos.ports", "Layers point downwards"),
    ("ports.py", "import oikos.app", "Layers point downwards"),
    ("app/execute.py", "import oikos.adapters.store", "Layers point downwards"),
    ("adapters/store/sql.py", "import oikos.app", "Layers point downwards"),
    ("config.py", "import oikos.bootstrap", "Layers point downwards"),
    ("bootstrap.py", "import oikos.lab", "Layers point downwards"),
    ("app/nomos.py", "import oikos.lab", "Layers point downwards"),
    ("adapters/store/sql.py", "import oikos.adapters.fleet", "Adapters do not know each other"),
    ("cli/fleet.py", "import oikos.adapters.fleet", "Only bootstrap builds Runners"),
    ("evals/harness.py", "import oikos.adapters.fleet", "Only bootstrap builds Runners"),
    # Rooms that do not exist yet: the contracts wait for them.
    ("web/app.py", "import oikos.adapters.store", "Faces and domain reach no adapter"),
    ("web/app.py", "import oikos.policy", "Web and MCP do not reach the classifier"),
    ("web/app.py", "import oikos.config", "Layers point downwards"),
    ("mcp.py", "import oikos.adapters.store", "Faces and domain reach no adapter"),
    ("mcp.py", "import oikos.policy", "Web and MCP do not reach the classifier"),
    ("importers/ansible.py", "import oikos.adapters.store", "Faces and domain reach no adapter"),
    ("newroom.py", "import oikos.domain", "Layers point downwards"),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package with its contracts, to plant violations in."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    """The command of make check, over the copy."""
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree / "src"), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def plant(tree: Path, module: str, line: str) -> None:
    """Adds an import to a module of the copy, making module and packages where they are missing."""
    path = tree / "src" / "oikos" / module
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / "__init__.py").touch()
    before = path.read_text("utf-8") if path.exists() else ""
    path.write_text(f"{before}\n{line}\n", "utf-8")


def test_the_tree_as_it_is_keeps_every_contract(tree: Path) -> None:
    done = lint_imports(tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("module", "line", "contract"), VIOLATIONS)
def test_a_planted_import_against_the_layers_fails_the_check(tree: Path, module: str, line: str, contract: str) -> None:
    plant(tree, module, line)
    done = lint_imports(tree)
    assert done.returncode != 0, done.stdout
    assert f"{contract} BROKEN" in done.stdout, done.stdout
