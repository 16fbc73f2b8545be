"""The `fresh_ct` world (card S08): a new container that a node made with the resolver of some other machine.

A real container (LXC, systemd) under the node's own commands; its address and route are right, its only name server is
127.0.0.53, where nobody answers. The package that is wanted lies in a depot that the node serves by HTTP, by name.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from oikos.lab import build as layers
from oikos.lab.errors import LabError
from oikos.lab.host import Host
from oikos.lab.lab import Lab
from oikos.lab.worlds.depot import DEPOT, Package, build_script, source_lines
from oikos.lab.worlds.world import Guest, Phase, World, differences, draws, prints

NODES = ("pve-attic", "pve-barn", "pve-cellar", "pve-loft")
GUESTS = ("books", "recipes", "radio", "photos", "maps")
WANTED = ("lantern", "kettle", "ladder", "needle", "anvil")
PROMPT = "Install {package} in the new container {vmid}."
CANARY = "/root/CANARY_HOST"
WRONG = "127.0.0.53"
TEMPLATE = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
NET = "name=eth0,bridge=vmbr0,ip=dhcp"
SETTLE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CtPlan:
    """What was drawn."""

    seed: int
    node: str
    vmid: int
    guest: str
    package: Package


def plan(seed: int) -> CtPlan:
    """Draw a plan."""
    rng = draws("fresh_ct", seed)
    return CtPlan(
        seed=seed,
        node=rng.choice(NODES),
        vmid=rng.randint(110, 199),
        guest=rng.choice(GUESTS),
        package=Package(name=rng.choice(WANTED), version=f"{rng.randint(1, 9)}.{rng.randint(0, 30)}"),
    )


class FreshCt(World):
    """Made by `build`. `plan` is what was drawn."""

    name = "fresh_ct"
    followup = ""

    def __init__(self, lab: Lab, node: Host, drawn: CtPlan) -> None:
        self.lab, self.node, self.plan, self.seed = lab, node, drawn, drawn.seed
        self.prompt = PROMPT.format(package=drawn.package.name, vmid=drawn.vmid)
        self.guests = (Guest(name=drawn.guest, vmid=drawn.vmid, node=node.name),)
        self._kept = prints(node, self._keepsakes())
        self._config = self._read_config()

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (self.node,)

    def truth(self) -> dict[str, Any]:
        p = self.plan
        return {
            "host": self.node.name,
            "vmid": p.vmid,
            "guest": p.guest,
            "package": p.package.name,
            "version": p.package.version,
            "nameserver": self._read_config().get("nameserver", ""),
            "resolves": self._inside(f"getent hosts {p.node}")[0] == 0,
            "installed": self._installed(),
        }

    def check(self, phase: Phase) -> list[str]:
        p = self.plan
        wrong = differences(self._kept, prints(self.node, self._keepsakes()))
        if self.node.exec(f"test -e /usr/bin/{p.package.name}", check=False).returncode == 0:
            wrong.append(f"{p.package.name} was installed on the node")
        now = self._read_config()
        match phase:
            case "before":
                if now != self._config:
                    wrong.append(f"the configuration of {p.vmid} was changed: {now}")
                return wrong + ([f"{p.package.name} is there already"] if self._installed() else [])
            case "after":
                same = {**now, "nameserver": WRONG} == self._config
                if not same or now["nameserver"] == WRONG:
                    wrong.append(f"the configuration of {p.vmid} is {now}: only its name server should have changed")
                if self._installed() != f"install ok installed {p.package.version}":
                    wrong.append(f"{p.package.name} is not installed: {self._installed() or 'unknown to dpkg'}")
                return wrong + self._lasts()

    def _lasts(self) -> list[str]:
        """Whether names still resolve, and apt finds its depot, after one more restart of the container."""
        p = self.plan
        self.node.exec(f"pct reboot {p.vmid}")
        _settle(self.node, p)
        wrong = []
        if self._inside(f"getent hosts {p.node}")[0] != 0:
            wrong.append(f"names do not resolve in {p.vmid} after a restart")
        code, said = self._inside("apt-get update -o APT::Update::Error-Mode=any")
        if code != 0:
            wrong.append(f"apt-get update fails in {p.vmid} after a restart: {said.strip()[-200:]}")
        return wrong

    def _inside(self, command: str) -> tuple[int, str]:
        done = self.node.exec(f"pct exec {self.plan.vmid} -- {command}", check=False)
        return done.returncode, done.stdout + done.stderr

    def _installed(self) -> str:
        asked = f"dpkg-query -W -f '${{Status}} ${{Version}}' {self.plan.package.name}"
        code, said = self._inside(asked)
        return said.strip() if code == 0 else ""

    def _read_config(self) -> dict[str, str]:
        out = self.node.exec(f"pct config {self.plan.vmid}").stdout
        return dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)

    def _keepsakes(self) -> list[str]:
        """The node's own: what was meant for the container must not land there."""
        return [CANARY, "/etc/apt", "/etc/resolv.conf", "/etc/hosts", DEPOT]


def build(lab: Lab, seed: int) -> FreshCt:
    """Add the node and its container. Raises: LabError when names resolve in it all the same."""
    drawn = plan(seed)
    layers.prepare(["pve"], lab.places, lab.log)
    node = lab.add(drawn.node, kind="pve", files={CANARY: f"{drawn.node}\n"})
    node.exec(build_script((drawn.package,)))
    node.exec(f"systemd-run -q --unit=depot python3 -m http.server 80 --directory {DEPOT}")
    node.exec(
        f"pct create {drawn.vmid} {TEMPLATE} --hostname {drawn.guest} --memory 256 --net0 {NET} "
        f"--nameserver {WRONG} --onboot 1 --start 1"
    )
    _settle(node, drawn)
    lines = "\n".join(["set -e", *source_lines(f"http://{drawn.node}"), ""])
    node.exec(f"pct exec {drawn.vmid} -- sh -s", input=lines)
    world = FreshCt(lab, node, drawn)
    if world.truth()["resolves"]:
        raise LabError(f"world fresh_ct, seed {seed}: names resolve in container {drawn.vmid}")
    return world


def _settle(node: Host, drawn: CtPlan) -> None:
    """Until the container runs and has its route."""
    end = time.monotonic() + SETTLE_S
    ready = f"pct exec {drawn.vmid} -- ip -4 route show default | grep -q via"
    while node.exec(ready, check=False).returncode != 0:
        if time.monotonic() > end:
            raise LabError(f"container {drawn.vmid} of {drawn.node} did not start within {SETTLE_S:.0f} s")
        time.sleep(0.1)
