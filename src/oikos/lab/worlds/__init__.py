"""Worlds: hosts with a story, for scenarios and evals. `build("backup", lab, seed=7)`; what is where: README.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from oikos.lab.errors import LabError
from oikos.lab.lab import Lab
from oikos.lab.worlds import apt_lock, backup, big_log, fresh_ct, long_upgrade, service_down
from oikos.lab.worlds.world import Guest, Phase, World

__all__ = ["WORLDS", "Builder", "Guest", "Phase", "World", "build"]


class Builder(Protocol):
    """Adds a world's hosts to a lab that is up."""

    def __call__(self, lab: Lab, seed: int) -> World: ...


WORLDS: Mapping[str, Builder] = {
    "apt_lock": apt_lock.build,
    "backup": backup.build,
    "big_log": big_log.build,
    "fresh_ct": fresh_ct.build,
    "long_upgrade": long_upgrade.build,
    "service_down": service_down.build,
}


def build(name: str, lab: Lab, *, seed: int) -> World:
    """Build a world by name. Raises: LabError listing the worlds, or saying why it could not be built."""
    if name not in WORLDS:
        raise LabError(f"unknown world {name!r}: one of {', '.join(sorted(WORLDS))}")
    return WORLDS[name](lab, seed)
