"""Which process a lab belongs to: when that process is gone, so may the lab be."""

from __future__ import annotations

import os
from pathlib import Path

FILE = "owner"


def claim(state: Path) -> None:
    """The lab in this directory belongs to the calling process."""
    (state / FILE).write_text(_identity(os.getpid()), encoding="ascii")


def is_gone(state: Path) -> bool:
    """Whether the lab had an owner and that process has ended. A lab without an owner stays until it is taken down."""
    try:
        said = (state / FILE).read_text(encoding="ascii")
    except OSError:  # nobody's, or taken down meanwhile
        return False
    return bool(said) and said != _identity(int(said.split()[0]))


def _identity(pid: int) -> str:
    """Pid and start time (proc(5), stat field 22), so that a reused pid is another process; empty when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return f"{pid} {stat.rpartition(')')[2].split()[19]}"
