"""Running one of the machine's own programs, with a LabError that says what failed."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from oikos.lab.errors import LabError


def run(
    argv: Sequence[str],
    *,
    check: bool = True,
    input: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run to the end with captured text output.

    Raises: LabError when the program is missing, or fails and `check` is set.
    """
    try:
        done = subprocess.run(argv, text=True, capture_output=True, input=input, env=env, cwd=cwd, check=False)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is not installed: `oikos lab build` as root installs what the lab needs") from None
    if check and done.returncode:
        why = done.stderr.strip() or done.stdout.strip()
        raise LabError(f"{shlex.join(argv)}: exit {done.returncode}: {why[-600:]}")
    return done


def ip_batch(lines: Iterable[str], *, netns: str | None = None, check: bool = True) -> None:
    """Several `ip` commands in one process, one a line; a failing line does not stop the rest. Raises: LabError."""
    where = ["-n", netns] if netns else []
    run(["ip", *where, "-force", "-batch", "-"], check=check, input="".join(f"{line}\n" for line in lines))
