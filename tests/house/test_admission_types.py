"""`mypy --strict`, as make check runs it, refuses a Runner that is called without an Admission from the gate."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """\
from __future__ import annotations
from oikos.domain.admission import Admission
from oikos.domain.inventory import Route
from oikos.domain.run import RunOrder
from oikos.ports import Runner, Sink

class Stranger:
    kind = "run"
    digest = target_id = authority = ""
    seq = 0
    def spend(self, *, kind: str, digest: str) -> None: ...

async def bypass(runner: Runner, admission: Admission, order: RunOrder, route: Route, sink: Sink) -> None:
    await runner.start({argument}, order, route, sink)
"""
BYPASSES = {
    "nothing at all": ("order, route, sink) #", "call-arg"),
    "None": ("None", "arg-type"),
    "the order itself": ("order", "arg-type"),
    "a look-alike": ("Stranger()", "arg-type"),
    "one built by hand": (
        'Admission(object(), kind="run", digest="", target_id="", authority="", seq=0)',
        "arg-type",
    ),
}


def mypy(tmp_path: Path, argument: str) -> str:
    """What mypy says of a module that starts a run with `argument`."""
    module = tmp_path / "bypass.py"
    module.write_text(HEAD.format(argument=argument), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--follow-imports=silent", module],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def test_an_admission_from_the_gate_is_accepted(tmp_path: Path) -> None:
    assert "Success" in mypy(tmp_path, "admission")


@pytest.mark.parametrize("bypass", BYPASSES)
def test_a_bypass_does_not_pass_the_type_check(tmp_path: Path, bypass: str) -> None:
    argument, code = BYPASSES[bypass]
    said = mypy(tmp_path, argument)
    assert f"[{code}]" in said, said
