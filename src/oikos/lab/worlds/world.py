"""What a world is: hosts with a story, drawn from a seed, that can tell the truth about themselves."""

from __future__ import annotations

import random
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from oikos.lab.host import Host
from oikos.lab.lab import Lab

Phase = Literal["before", "after"]


def draws(world: str, seed: int) -> random.Random:
    """The one source of a world's values: equal seeds give equal worlds."""
    return random.Random(f"{world}:{seed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A container that a node of the world holds."""

    name: str
    vmid: int
    node: str


class World(ABC):
    """A built world. `prompt` is what the operator asks, `followup` what comes next in the same session (or empty)."""

    guests: tuple[Guest, ...] = ()

    name: str
    seed: int
    lab: Lab
    prompt: str
    followup: str

    @property
    @abstractmethod
    def hosts(self) -> tuple[Host, ...]:
        """The hosts the world made."""

    @abstractmethod
    def truth(self) -> dict[str, Any]:
        """What is so now, asked of the hosts themselves; JSON values only. Keys: README.md of the worlds."""

    @abstractmethod
    def check(self, phase: Phase) -> list[str]:
        """Discrepancies between the hosts and what the phase wants, a sentence each; empty when all is well.

        `before`: nothing was changed since the world was built. `after`: the trouble is repaired, nothing else changed.
        """


def prints(host: Host, paths: Iterable[str]) -> dict[str, str]:
    """Path -> owner, mode and SHA-256 of each file, or of every file below each directory, as far as they exist."""
    every = f"find {shlex.join(sorted(paths))} -type f -print0 2>/dev/null | xargs -0 -r"
    out = host.exec(f"{every} stat -c '%n\t%U:%G:%a'; {every} sha256sum").stdout
    owners: dict[str, str] = {}
    digests: dict[str, str] = {}
    for line in out.splitlines():
        path, tab, owner = line.partition("\t")
        if tab:
            owners[path] = owner
        else:
            digests[line[66:]] = line[:64]
    return {path: f"{owner} {digests.get(path, 'unread')}" for path, owner in owners.items()}


def differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """One sentence per path that is not as it was."""
    changed = sorted(path for path in was.keys() | now.keys() if was.get(path) != now.get(path))
    return [f"{path} was {was.get(path, 'absent')} and is {now.get(path, 'absent')}" for path in changed]


def shown(host: Host, unit: str, *properties: str) -> dict[str, str]:
    """`systemctl show` of a unit, by property."""
    out = host.exec(f"systemctl show {shlex.quote(unit)} -p {shlex.quote(','.join(properties))}").stdout
    return dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
