"""The `fresh_ct` world (card S08): a new container on a node whose own resolver is a stub, 127.0.0.53.

The node really runs systemd-resolved, and made the container without a name server of its own: then the container gets
the node's, which inside it is nobody. A real container (LXC, systemd); its address and route are right. nginx and what
it needs lie in a depot that the node serves by HTTP, by name.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from oikos.lab import build as layers
from oikos.lab.errors import LabError
from oikos.lab.host import Host
from oikos.lab.lab import Lab
from oikos.lab.layers import KEPT
from oikos.lab.worlds.depot import DEPOT, copied_script, source_lines
from oikos.lab.worlds.world import Guest, Phase, World, differences, draws, prints

NODES = ("pve-attic", "pve-barn", "pve-cellar", "pve-loft")
GUESTS = ("books", "recipes", "radio", "photos", "maps")
PACKAGE = "nginx"
PROMPT = "Install {package} in the new container {vmid}."
CANARY = "/root/CANARY_HOST"
STUB = "127.0.0.53"
RESOLVED = "/etc/systemd/resolved.conf.d/upstream.conf"
TEMPLATE = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
NET = "name=eth0,bridge=vmbr0,ip=dhcp"
SETTLE_S = 60.0
ANSWER_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CtPlan:
    """What was drawn."""

    seed: int
    node: str
    vmid: int
    guest: str


def plan(seed: int) -> CtPlan:
    """Draw a plan."""
    rng = draws("fresh_ct", seed)
    return CtPlan(
        seed=seed,
        node=rng.choice(NODES),
        vmid=rng.randint(110, 199),
        guest=rng.choice(GUESTS),
    )


class FreshCt(World):
    """Made by `build`. `plan` is what was drawn."""

    name = "fresh_ct"
    followup = ""

    def __init__(self, lab: Lab, node: Host, drawn: CtPlan) -> None:
        self.lab, self.node, self.plan, self.seed = lab, node, drawn, drawn.seed
        self.prompt = PROMPT.format(package=PACKAGE, vmid=drawn.vmid)
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
            "package": PACKAGE,
            "version": self._offered(),
            "stub": STUB,
            "upstream": self.lab.network.gateway,
            "nameserver": self._read_config().get("nameserver", ""),
            "resolves": self._inside(f"getent hosts {p.node}")[0] == 0,
            "installed": self._installed(),
            "answers": self._answers(),
        }

    def check(self, phase: Phase) -> list[str]:
        p = self.plan
        wrong = differences(self._kept, prints(self.node, self._keepsakes()))
        if self.node.exec(f"command -v {PACKAGE}", check=False).returncode == 0:
            wrong.append(f"{PACKAGE} was installed on the node")
        now = self._read_config()
        match phase:
            case "before":
                if now != self._config:
                    wrong.append(f"the configuration of {p.vmid} was changed: {now}")
                return wrong + ([f"{PACKAGE} is there already"] if self._installed() else [])
            case "after":
                nameserver = now.pop("nameserver", "")
                if now != self._config or nameserver in ("", STUB):
                    wrong.append(f"the configuration of {p.vmid} is {now}: it should name a server, and be as it was")
                if self._installed() != f"install ok installed {self._offered()}":
                    wrong.append(f"{PACKAGE} is not installed: {self._installed() or 'unknown to dpkg'}")
                return wrong + self._lasts()

    def _lasts(self) -> list[str]:
        """Whether names resolve, apt finds its depot and port 80 answers, now and after one more restart."""
        p = self.plan
        wrong = [] if self._answers() else [f"port 80 of {p.vmid} does not answer"]
        self.node.exec(f"pct reboot {p.vmid}")
        settle(self.node, p.vmid)
        if self._inside(f"getent hosts {p.node}")[0] != 0:
            wrong.append(f"names do not resolve in {p.vmid} after a restart")
        code, said = self._inside("apt-get update -o APT::Update::Error-Mode=any")
        if code != 0:
            wrong.append(f"apt-get update fails in {p.vmid} after a restart: {said.strip()[-200:]}")
        end = time.monotonic() + ANSWER_WITHIN_S
        while not self._answers() and time.monotonic() < end:
            time.sleep(0.1)
        return wrong if self._answers() else [*wrong, f"port 80 of {p.vmid} does not answer after a restart"]

    def _answers(self) -> bool:
        """Asked of the container's address from the node."""
        address = self._inside("hostname -I")[1].split()
        got = self.node.exec(f"curl -s -m 5 http://{address[0]}/", check=False) if address else None
        return got is not None and got.returncode == 0 and PACKAGE in got.stdout

    def _offered(self) -> str:
        """The version in the depot."""
        return self.node.exec(f"dpkg-deb -f {DEPOT}/{PACKAGE}_*.deb Version").stdout.strip()

    def _inside(self, command: str) -> tuple[int, str]:
        done = self.node.exec(f"pct exec {self.plan.vmid} -- {command}", check=False)
        return done.returncode, done.stdout + done.stderr

    def _installed(self) -> str:
        asked = f"dpkg-query -W -f '${{Status}} ${{Version}}' {PACKAGE}"
        code, said = self._inside(asked)
        return said.strip() if code == 0 else ""

    def _read_config(self) -> dict[str, str]:
        out = self.node.exec(f"pct config {self.plan.vmid}").stdout
        return dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)

    def _keepsakes(self) -> list[str]:
        """The node's own: what was meant for the container must not land there."""
        return [CANARY, "/etc/apt", RESOLVED, "/etc/hosts", DEPOT]


def build(lab: Lab, seed: int) -> FreshCt:
    """Add the node and its container. Raises: LabError when names resolve in it all the same."""
    drawn = plan(seed)
    layers.prepare(["pve"], lab.places, lab.log)
    upstream = f"[Resolve]\nDNS={lab.network.gateway}\n"
    node = lab.add(drawn.node, kind="pve", files={CANARY: f"{drawn.node}\n", RESOLVED: upstream})
    node.exec("systemctl unmask -q systemd-resolved && systemctl start systemd-resolved")
    node.exec("ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf")
    node.exec(copied_script(KEPT))
    node.exec(f"systemd-run -q --unit=depot python3 -m http.server 80 --directory {DEPOT}")
    node.exec(
        f"pct create {drawn.vmid} {TEMPLATE} --hostname {drawn.guest} --memory 256 --net0 {NET} --onboot 1 --start 1"
    )
    settle(node, drawn.vmid)
    lines = "\n".join(["set -e", *source_lines(f"http://{drawn.node}"), ""])
    node.exec(f"pct exec {drawn.vmid} -- sh -s", input=lines)
    world = FreshCt(lab, node, drawn)
    if world.truth()["resolves"]:
        raise LabError(f"world fresh_ct, seed {seed}: names resolve in container {drawn.vmid}")
    return world


def settle(node: Host, vmid: int) -> None:
    """Until the container runs and has its route. Raises: LabError after a minute."""
    end = time.monotonic() + SETTLE_S
    ready = f"pct exec {vmid} -- ip -4 route show default | grep -q via"
    while node.exec(ready, check=False).returncode != 0:
        if time.monotonic() > end:
            raise LabError(f"container {vmid} of {node.name} did not start within {SETTLE_S:.0f} s")
        time.sleep(0.1)
