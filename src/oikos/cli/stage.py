"""Lab worlds for evals and the demo: the one place where the lab meets the product."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from oikos.bootstrap import new_id
from oikos.domain.inventory import AccessPath, Entity, Transport
from oikos.lab import Host, Lab
from oikos.lab.build import prepare
from oikos.lab.places import Places
from oikos.lab.worlds import Phase, World, build

_NUMBERS = itertools.count(1)


def make_ready(log: Callable[[str], object]) -> None:
    """Whatever the lab's ordinary hosts need: packages and the base layer; nothing when all is there.

    Raises: LabError, one line: not root, no network, no space.
    """
    prepare(["host"], Places.from_environment(), log)


class LabScene:
    """One world in a lab of its own."""

    def __init__(self, name: str, seed: int) -> None:
        self._lab = Lab(f"o{os.getpid() % 0xFFFFF:x}{next(_NUMBERS) % 100:02d}")
        self._lab.up(owned=True)
        try:
            self._world: World = build(name, self._lab, seed=seed)
        except BaseException:
            self._lab.down()
            raise
        self.entities: Sequence[Entity] = tuple(entity_of(self._lab, host) for host in self._world.hosts)

    @property
    def seed(self) -> int:
        """What its values were drawn from."""
        return self._world.seed

    @property
    def prompt(self) -> str:
        """What its operator asks."""
        return self._world.prompt

    @property
    def followup(self) -> str:
        """What its operator asks next."""
        return self._world.followup

    def truth(self) -> Mapping[str, object]:
        """Asked of the hosts themselves."""
        return self._world.truth()

    def check(self, phase: str) -> Sequence[str]:
        """Discrepancies from `before` or `after`."""
        return self._world.check(cast("Phase", phase))

    def shell(self, host: str, command: str) -> tuple[int, str]:
        """At the console of a host; `*` is the world's only one."""
        name = next(iter(self._lab.hosts)) if host == "*" else host
        done = self._lab.hosts[name].exec(command, check=False)
        return done.returncode, done.stdout

    def close(self) -> None:
        """Take the lab down."""
        self._lab.down()


def entity_of(lab: Lab, host: Host) -> Entity:
    """A lab host as the inventory knows it, its host keys enrolled from the host's own files."""
    access = AccessPath(
        transport=Transport.SSH, address=host.address, user="root", key=str(lab.private_key), host_keys=tuple(host.host_keys())
    )
    kind = "node" if host.kind == "pve" else "host"
    return Entity(id=new_id(), kind=kind, slug=host.name, access=access, lab=True)
