"""`mypy --strict`, as make check runs it, refuses a Runner that is called without an Admission from the gate."""

from __future__ import annotations

import os
import re
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

async def attempts(runner: Runner, admission: Admission, order: RunOrder, route: Route, sink: Sink) -> None:
"""
ATTEMPTS = {
    "an admission from the gate": ("admission, order, route, sink", ""),
    "nothing at all": ("order, route, sink", "call-arg"),
    "None": ("None, order, route, sink", "arg-type"),
    "the order itself": ("order, order, route, sink", "arg-type"),
    "a look-alike": ("Stranger(), order, route, sink", "arg-type"),
    "one built by hand": (
        'Admission(object(), kind="run", digest="", target_id="", authority="", seq=0), order, route, sink',
        "arg-type",
    ),
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The error codes mypy gives each attempt."""
    module = tmp_path_factory.mktemp("types") / "attempts.py"
    lines = [f"    await runner.start({arguments})\n" for arguments, _ in ATTEMPTS.values()]
    module.write_text(HEAD + "".join(lines), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--follow-imports=silent", module],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"attempts\.py:(\d+): error: .*\[([a-z-]+)\]", done.stdout)
    first = HEAD.count("\n") + 1
    return {way: {code for line, code in found if int(line) == first + n} for n, way in enumerate(ATTEMPTS)}


@pytest.mark.parametrize("way", ATTEMPTS)
def test_only_an_admission_passes_the_type_check(errors: dict[str, set[str]], way: str) -> None:
    code = ATTEMPTS[way][1]
    assert code in errors[way] if code else errors[way] == set()
