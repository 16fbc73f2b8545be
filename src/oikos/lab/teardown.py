"""Taking a lab away, whatever became of it: by cgroup, mount prefix and namespace name, known to no process."""

from __future__ import annotations

import shutil
from pathlib import Path

from oikos.lab import cgroups, network, owner
from oikos.lab.command import run
from oikos.lab.errors import LabError

#: Host name -> address, for the lab's DNS. A directory that has it is a lab's, and no other is ever removed.
MARKER = "hosts.d"


def take_down(lab: str, state: Path) -> None:
    """End every process, then remove mounts, namespaces, cgroups and the state directory. Nothing when there is none.

    Raises: LabError when the directory is not a lab's, or something outside keeps it.
    """
    if state.exists() and any(state.iterdir()) and not (state / MARKER).is_dir():
        raise LabError(f"{state} is there and is no lab's: choose another lab name, or set OIKOS_LAB_STATE")
    cgroups.end_all(lab)
    points = [line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    for point in sorted((p for p in points if p.startswith(f"{state}/")), reverse=True):
        run(["umount", "-l", point], check=False)
    for namespace in network.namespaces(lab):
        run(["ip", "netns", "del", namespace], check=False)
    cgroups.remove(lab)
    _remove(state)


def abandoned(root: Path) -> list[Path]:
    """State directories of labs whose owner was killed."""
    return sorted(file.parent for file in root.glob(f"*/{owner.FILE}") if owner.is_gone(file.parent))


def _remove(state: Path) -> None:
    """The marker goes last, so that an interrupted removal can be taken up again."""
    for place in state.iterdir() if state.exists() else ():
        if place.is_dir() and place.name != MARKER:
            shutil.rmtree(place, ignore_errors=True)
    # Somebody else may be taking the same dead lab down: what matters is that it is gone.
    shutil.rmtree(state, ignore_errors=True)
    if state.exists():
        raise LabError(f"cannot remove {state}: see what keeps it with `findmnt` and `lsof +D {state}`")
