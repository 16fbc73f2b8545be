"""Faults of a host's disk: full, or small and full."""

from __future__ import annotations

import shlex
import uuid

from oikos.lab.faults.target import FaultTarget

#: A host without a disk of its own shares the machine's: filling that would be a fault of the machine.
MOST_KIB = 20_000_000


class DiskFaults(FaultTarget):
    """Mixed into Host."""

    def disk_small(self, path: str, limit: str = "8m", *, fill: bool = True) -> None:
        """Put a small filesystem on `path`, its content kept; full if asked."""
        where = shlex.quote(path)
        self.exec(
            f"set -e; mkdir -p {where}; rm -rf /run/.keep; cp -a {where} /run/.keep; "
            f"mount -t tmpfs -o size={shlex.quote(limit)},mode=755 tmpfs {where}; "
            f"cp -a /run/.keep/. {where}/; rm -rf /run/.keep"
        )
        if fill:
            self.disk_fill(path)

    def disk_fill(self, path: str = "/", *, leave_kib: int = 0) -> str:
        """Fill the filesystem that holds `path` with one big file; its name.

        Raises: LabError when the host has no disk of its own.
        """
        name = f"{path.rstrip('/')}/.core.{uuid.uuid4().hex[:6]}"
        file = shlex.quote(name)
        self.exec(
            f"free=$(df -P -B1024 {shlex.quote(path)} | awk 'NR==2{{print $4}}'); "
            f"[ $free -gt {MOST_KIB} ] && {{ echo 'the host has no disk of its own' >&2; exit 9; }}; "
            f"n=$((free-{leave_kib})); fallocate -l ${{n}}K {file} 2>/dev/null || "
            f"dd if=/dev/zero of={file} bs=64k count=$((n/64+1)) 2>/dev/null || true"
        )
        return name
