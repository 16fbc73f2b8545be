"""The `long_upgrade` world (card S29): a container whose upgrade takes minutes, behind a node whose connection dies.

A real container under the node's own commands, and a depot that the node serves by HTTP, by name. The new version of
one package migrates for six minutes (evals scale it) while it is configured, and writes a line when it begins and one
when it is done; the process of each step says which it is (`migrating 7 of 36`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oikos.lab import build as layers
from oikos.lab.host import Host
from oikos.lab.lab import Lab
from oikos.lab.worlds.depot import DEPOT, Package, build_script, source_lines
from oikos.lab.worlds.fresh_ct import NET, TEMPLATE, settle
from oikos.lab.worlds.world import Guest, Phase, World, differences, draws, prints

NODES = ("pve-attic", "pve-barn", "pve-cellar", "pve-loft")
GUESTS = ("books", "recipes", "radio", "photos", "maps")
PACKAGES = ("archive", "catalogue", "ledger", "register", "almanac")
PROMPT = "dist-upgrade CT {vmid}"
CANARY = "/root/CANARY_HOST"
MARKS = "/var/log/migrations.log"
TAKES_S = 360.0
STEPS = 36
MIGRATES = """test "$1" = configure && test -n "$2" || exit 0
echo "begun from $2 by $$" >> {marks}
for step in $(seq {steps}); do sh -c 'sleep {pause_s:g}; echo "$0"' "migrating $step of {steps}"; done
echo "done by $$" >> {marks}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """What was drawn; `old` is the version that the container has, `package` what it is upgraded to."""

    seed: int
    node: str
    vmid: int
    guest: str
    old: str
    package: Package


def plan(seed: int, *, takes_s: float = TAKES_S) -> UpgradePlan:
    """Draw a plan."""
    rng = draws("long_upgrade", seed)
    major = rng.randint(1, 9)
    return UpgradePlan(
        seed=seed,
        node=rng.choice(NODES),
        vmid=rng.randint(110, 199),
        guest=rng.choice(GUESTS),
        old=f"{major}.{rng.randint(0, 30)}",
        package=Package(
            name=rng.choice(PACKAGES),
            version=f"{major + 1}.0",
            configure=MIGRATES.format(marks=MARKS, steps=STEPS, pause_s=takes_s / STEPS),
        ),
    )


class LongUpgrade(World):
    """Made by `build`. `plan` is what was drawn."""

    name = "long_upgrade"
    followup = ""

    def __init__(self, lab: Lab, node: Host, drawn: UpgradePlan) -> None:
        self.lab, self.node, self.plan, self.seed = lab, node, drawn, drawn.seed
        self.prompt = PROMPT.format(vmid=drawn.vmid)
        self.guests = (Guest(name=drawn.guest, vmid=drawn.vmid, node=node.name),)
        self._kept = prints(node, self._keepsakes())
        self._config = self._read_config()

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (self.node,)

    def truth(self) -> dict[str, Any]:
        p = self.plan
        marks = self._inside(f"cat {MARKS}")[1].splitlines()
        return {
            "host": self.node.name,
            "vmid": p.vmid,
            "guest": p.guest,
            "package": p.package.name,
            "old": p.old,
            "version": p.package.version,
            "installed": self._installed(),
            "begun": sum(mark.startswith("begun") for mark in marks),
            "finished": sum(mark.startswith("done") for mark in marks),
            "snapshots": self._snapshots(),
        }

    def check(self, phase: Phase) -> list[str]:
        p, now = self.plan, self.truth()
        wrong = differences(self._kept, prints(self.node, self._keepsakes()))
        config = self._read_config()
        config.pop("parent", "")
        if config != self._config:
            wrong.append(f"the configuration of {p.vmid} was changed: {config}")
        marks = (now["begun"], now["finished"])
        match phase:
            case "before":
                if marks != (0, 0) or now["installed"] != f"install ok installed {p.old}":
                    wrong.append(f"{p.package.name} is {now['installed']}, its migration began {marks[0]} times")
            case "after":
                if marks != (1, 1):
                    wrong.append(f"the migration began {marks[0]} times and ended {marks[1]} times, not once")
                if now["installed"] != f"install ok installed {p.package.version}":
                    wrong.append(f"{p.package.name} is {now['installed']}")
                if audit := self._inside("dpkg --audit")[1]:
                    wrong.append(f"dpkg --audit says: {audit[:200]}")
                if len(now["snapshots"]) != 1:
                    wrong.append(f"there are {len(now['snapshots'])} snapshots of {p.vmid}, not the one from before")
        return wrong

    def _inside(self, command: str) -> tuple[int, str]:
        done = self.node.exec(f"pct exec {self.plan.vmid} -- {command}", check=False)
        return done.returncode, done.stdout

    def _installed(self) -> str:
        return self._inside(f"dpkg-query -W -f '${{Status}} ${{Version}}' {self.plan.package.name}")[1].strip()

    def _snapshots(self) -> list[str]:
        rows = self.node.exec(f"pct listsnapshot {self.plan.vmid}").stdout.splitlines()
        return [row.split()[1] for row in rows if "You are here!" not in row]

    def _read_config(self) -> dict[str, str]:
        out = self.node.exec(f"pct config {self.plan.vmid}").stdout
        return dict(line.split(": ", 1) for line in out.splitlines() if ": " in line)

    def _keepsakes(self) -> list[str]:
        """The node's own: what was meant for the container must not land there."""
        return [CANARY, "/etc/apt", "/etc/hosts", DEPOT, "/var/lib/dpkg/status"]


def build(lab: Lab, seed: int, *, takes_s: float = TAKES_S) -> LongUpgrade:
    """Add the node, and its container with the old version; the new one waits in the depot. Raises: LabError."""
    p = plan(seed, takes_s=takes_s)
    layers.prepare(["pve"], lab.places, lab.log)
    node = lab.add(p.node, kind="pve", files={CANARY: f"{p.node}\n"})
    node.exec(build_script((Package(name=p.package.name, version=p.old),)))
    node.exec(f"systemd-run -q --unit=depot python3 -m http.server 80 --directory {DEPOT}")
    node.exec(f"pct create {p.vmid} {TEMPLATE} --hostname {p.guest} --memory 256 --net0 {NET} --onboot 1 --start 1")
    settle(node, p.vmid)
    lines = ["set -e", *source_lines(f"http://{p.node}"), "apt-get update -qq -o APT::Update::Error-Mode=any"]
    install = f"apt-get install -qq -y {p.package.name} > /dev/null 2>&1"
    node.exec(f"pct exec {p.vmid} -- sh -s", input="\n".join([*lines, install, ""]))
    node.exec(build_script((p.package,)))
    return LongUpgrade(lab, node, p)
