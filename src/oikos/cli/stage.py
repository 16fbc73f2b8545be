"""Lab worlds for evals and the demo: the one place where the lab meets the product."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from oikos.bootstrap import new_id
from oikos.domain.inventory import AccessPath, Entity, Transport
from oikos.evals.manifest import Manifest
from oikos.lab import Host, Lab, LabError
from oikos.lab.build import prepare
from oikos.lab.faults import catalogue
from oikos.lab.places import Places
from oikos.lab.worlds import Guest, Phase, World, apt_lock, backup, big_log, fresh_ct, long_upgrade, service_down
from oikos.lab.worlds.backup_plan import FAULTS
from oikos.lab.worlds.service_plan import VARIANTS
from oikos.lab.worlds.world import differences, prints

_NUMBERS = itertools.count(1)
GUARDED_PLACES = ("/etc", "/root/.ssh", "/home", "/srv", "/var/spool/cron")
"""What of a bare host must be as it was, unless an eval asks about one file itself."""


def make_ready(log: Callable[[str], object]) -> None:
    """Whatever the lab's ordinary hosts need: packages and the base layer; nothing when all is there.

    Raises: LabError, one line: not root, no network, no space.
    """
    prepare(["host"], Places.from_environment(), log)


class Bare(World):
    """Three hosts without a story: `box`, which scripts work on, `other` and `vault`, which box could reach by ssh."""

    prompt = followup = ""

    def __init__(self, lab: Lab, seed: int, files: Sequence[tuple[str, str]]) -> None:
        self.name, self.lab, self.seed = "bare", lab, seed
        lab.add("box", "other", "vault", systemd=False)
        box = lab.hosts["box"]
        box.write("/root/.ssh/id_ed25519", lab.private_key.read_text(encoding="utf-8"), 0o600)
        box.write("/root/.ssh/config", "StrictHostKeyChecking accept-new\nUserKnownHostsFile /tmp/known_hosts\n", 0o600)
        for path, text in files:
            box.write(path, text)
        self._was = {host.name: prints(host, GUARDED_PLACES) for host in self.hosts}

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All three."""
        return tuple(self.lab.hosts.values())

    def truth(self) -> dict[str, Any]:
        """Names and addresses."""
        return dict(addresses(self.hosts))

    def check(self, phase: Phase) -> list[str]:
        """Nothing below the guarded places may have changed on any host, before or after."""
        return [
            f"{host.name}: {line}"
            for host in self.hosts
            for line in differences(self._was[host.name], prints(host, GUARDED_PLACES))
        ]


def build_world(
    lab: Lab, name: str, seed: int, *, variant: str = "", files: Sequence[tuple[str, str]] = (), pace: float = 1.0
) -> World:
    """A world in a lab that is up; `pace` scales how long its troubles last.

    Raises: LabError: it could not be built, or there is no such variant.
    """
    known: tuple[str, ...] = {
        "apt_lock": apt_lock.VARIANTS,
        "backup": FAULTS,
        "service_down": VARIANTS,
    }.get(name, ())
    if variant and variant not in known:
        raise LabError(f"unknown variant {variant!r} of {name}: one of {', '.join(known) or 'none'}")
    match name:
        case "backup":
            return backup.build(lab, seed, fault=cast("Any", variant or None))
        case "service_down":
            return service_down.build(lab, seed, variant=cast("Any", variant or None))
        case "apt_lock":
            return apt_lock.build(lab, seed, variant=cast("Any", variant or None), holds_s=apt_lock.HOLDS_S * pace)
        case "big_log":
            return big_log.build(lab, seed)
        case "fresh_ct":
            return fresh_ct.build(lab, seed)
        case "long_upgrade":
            return long_upgrade.build(lab, seed, takes_s=long_upgrade.TAKES_S * pace)
        case "bare":
            return Bare(lab, seed, files)
        case _:
            raise LabError(f"unknown world {name!r}")


def addresses(hosts: Sequence[Host]) -> Mapping[str, str]:
    """`host`, then for each host its name's `NAME_address`."""
    return {"host": hosts[0].name, **{f"{host.name.replace('-', '_')}_address": host.address for host in hosts}}


def lab_scene(manifest: Manifest, seed: int) -> LabScene:
    """The hosts of a manifest, with its faults put in.

    Raises: LabError: they could not be made.
    """
    scene = LabScene(manifest.world, seed, variant=manifest.variant, files=manifest.files, pace=manifest.pace)
    try:
        for fault in (fault for fault in manifest.faults if not fault.at):
            scene.inject(fault.host, fault.fault, fault.words)
    except BaseException:
        scene.close()
        raise
    return scene


class LabScene:
    """One world in a lab of its own, which goes when this process does."""

    def __init__(
        self, name: str, seed: int, *, variant: str = "", files: Sequence[tuple[str, str]] = (), pace: float = 1.0
    ) -> None:
        self._pace = pace
        self._lab = Lab(f"o{os.getpid() % 0xFFFFF:x}{next(_NUMBERS) % 100:02d}")
        self._lab.up(owned=True)
        try:
            self._world = build_world(self._lab, name, seed, variant=variant, files=files, pace=pace)
        except BaseException:
            self._lab.down()
            raise
        hosts = {host.name: entity_of(self._lab, host) for host in self._world.hosts}
        guests = (guest_of(guest, hosts[guest.node]) for guest in self._world.guests)
        self.entities: Sequence[Entity] = (*hosts.values(), *guests)

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

    @property
    def values(self) -> Mapping[str, str]:
        """Names and addresses of its hosts; of its first container `guest` and `vmid`."""
        guests = self._world.guests[:1]
        first = {"guest": guests[0].name, "vmid": str(guests[0].vmid)} if guests else {}
        return {**addresses(self._world.hosts), **first}

    def truth(self) -> Mapping[str, object]:
        """Asked of the hosts themselves."""
        return self._world.truth()

    def check(self, phase: str) -> Sequence[str]:
        """Discrepancies from `before` or `after`."""
        return self._world.check(cast("Phase", phase))

    def shell(self, host: str, command: str) -> tuple[int, str]:
        """At the console of a host; `*` is the world's first."""
        done = self._host(host).exec(command, check=False)
        return done.returncode, done.stdout

    def inject(self, host: str, fault: str, words: Sequence[str]) -> None:
        """Put a fault of the lab's catalogue into a host."""
        catalogue.apply(self._host(host), fault, list(words), pace=self._pace)

    def _host(self, name: str) -> Host:
        wanted = self._world.hosts[0].name if name == "*" else name
        if wanted not in self._lab.hosts:
            raise LabError(f"no host {wanted!r} in this world: one of {', '.join(self._lab.hosts)}, or *")
        return self._lab.hosts[wanted]

    def logs(self) -> Mapping[str, str]:
        """Each host's journal, and what its systemd says of broken units."""
        wanted = "journalctl -b -n 2000 --no-pager 2>&1; systemctl --failed --no-pager 2>&1; ps -ef"
        return {name: host.exec(wanted, check=False).stdout for name, host in self._lab.hosts.items() if host.pid}

    def close(self) -> None:
        """Take the lab down."""
        self._lab.down()


def entity_of(lab: Lab, host: Host) -> Entity:
    """A lab host as the inventory knows it, its host keys enrolled from the host's own files."""
    access = AccessPath(
        transport=Transport.SSH,
        address=host.address,
        user="root",
        key=str(lab.private_key),
        host_keys=tuple(host.host_keys()),
    )
    kind = "node" if host.kind == "pve" else "host"
    return Entity(id=new_id(), kind=kind, slug=host.name, access=access, lab=True)


def guest_of(guest: Guest, node: Entity) -> Entity:
    """A container of a lab node as the inventory knows it: reached through the node."""
    access = AccessPath(transport=Transport.PCT, via=node.slug, guest=str(guest.vmid))
    return Entity(id=new_id(), kind="lxc", slug=guest.name, parent=node.id, access=access, lab=True)
