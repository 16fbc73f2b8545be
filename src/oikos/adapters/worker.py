"""Which processes of a home are alive: each holds a lock on a file of its own for as long as it lives.

A lock is let go by the kernel when its process dies, however it dies, and kept while it is merely stopped. So a lock
that can be taken proves a death, where an old time stamp or a process id would only suggest one (durable/NOTES).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path


class Worker:
    """This process's lock."""

    def __init__(self, directory: Path, owner: str) -> None:
        self._directory = directory
        self._path = directory / owner
        directory.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def dead(self) -> Sequence[str]:
        """Owners that left without giving their lock back; their files are removed by `forget`."""
        found: list[str] = []
        for path in sorted(self._directory.iterdir()):
            if path == self._path:
                continue
            try:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.append(path.name)
            except BlockingIOError:
                pass
            finally:
                os.close(fd)
        return found

    def forget(self, owner: str) -> None:
        """A dead owner's leases are free: its file may go."""
        (self._directory / owner).unlink(missing_ok=True)

    def close(self) -> None:
        """Leave in good order."""
        self._path.unlink(missing_ok=True)
        os.close(self._fd)
