"""What a start loads: heavy libraries only where something needs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("sqlalchemy", "alembic", "asyncssh", "mcp", "pydantic_ai", "asyncio", "yaml", "structlog")

HELP = """
import sys
from oikos.cli import main
sys.argv = ["oikos", "--help"]
try:
    main()
except SystemExit:
    pass
"""

LOCAL = """
import asyncio
import os
from oikos.bootstrap import open_oikos
from oikos.config import load

async def start():
    async with open_oikos(load()) as oikos:
        await oikos.fleet.inventory()

asyncio.run(start())
"""


CONFIG = """
[model]
kind = "provider"
name = "m"
base_url = "http://localhost:1/v1"

[targets.here]
transport = "local"
"""


def loaded(program: str, home: Path) -> set[str]:
    """The modules that a program leaves behind, asked of the interpreter that ran it."""
    tail = "\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))\n"
    done = subprocess.run(
        [sys.executable, "-c", program + tail], env={"PATH": "/usr/bin:/bin", "OIKOS_HOME": str(home)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", HEAVY)
def test_help_does_not_load(module: str, tmp_path: Path) -> None:
    assert module not in loaded(HELP, tmp_path)


def test_help_touches_no_home(tmp_path: Path) -> None:
    loaded(HELP, tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_a_fleet_without_ssh_never_loads_the_ssh_library(tmp_path: Path) -> None:
    (tmp_path / "oikos.toml").write_text(CONFIG, encoding="utf-8")
    modules = loaded(LOCAL, tmp_path)
    assert "oikos.adapters.fleet.runner" in modules, "the application was built"
    assert modules.isdisjoint({"asyncssh", "sqlalchemy", "mcp", "pydantic_ai", "yaml", "structlog", "oikos.lab"})
    assert "oikos.policy.classify" not in modules, "loaded when the first command is judged"
