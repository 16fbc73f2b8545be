"""The storages of a node: what a container's volume is called on each, and which can hold snapshots."""

from __future__ import annotations

import re
from dataclasses import dataclass

from oikos.lab.node.errors import Die, bad_parameter

DEFAULT_DISK_G = "4"


@dataclass(frozen=True, slots=True)
class Storage:
    """`volume` is a volume's name with {vmid} in it."""

    name: str
    kind: str
    volume: str
    snapshots: bool


LOCAL = Storage("local", "dir", "{vmid}/vm-{vmid}-disk-0.raw", False)
TANK = Storage("tank", "zfspool", "subvol-{vmid}-disk-0", True)
STORAGES = {storage.name: storage for storage in (LOCAL, TANK)}


def find(name: str) -> Storage:
    """Raises: Die when there is none of that name."""
    if name not in STORAGES:
        raise Die(f"storage '{name}' does not exist")
    return STORAGES[name]


def rootfs(vmid: str, wanted: str) -> str:
    """`storage`, `storage:8` or `storage:…,size=8G` -> the form the configuration keeps. Raises: Die."""
    found = re.match(r"([\w-]+)(?::(?:[^,:]*,size=)?(\d+))?", wanted)
    if found is None:
        raise bad_parameter("rootfs", f"unable to parse volume ID '{wanted}'")
    storage = find(found[1])
    return f"{storage.name}:{storage.volume.format(vmid=vmid)},size={found[2] or DEFAULT_DISK_G}G"


def of(volume: str) -> Storage:
    """The storage of a configuration's `rootfs`."""
    return find(volume.partition(":")[0])
