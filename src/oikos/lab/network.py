"""The lab's private network: its subnet, its bridge, and the guard that keeps its addresses on this machine."""

from __future__ import annotations

import fcntl
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from oikos.lab.command import ip_batch, run
from oikos.lab.errors import LabError

SUBNETS = range(77, 128)
GUARD_METRIC = 1000000
#: Many systemds need more inotify instances than a fresh kernel gives.
KNOBS = (("fs/inotify/max_user_instances", 65536), ("fs/inotify/max_user_watches", 524288))


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """10.N.0.0/16: the gateway on the bridge is .0.1, this machine is .0.2, hosts start at .1.1."""

    lab: str
    number: int
    prefix_length: int = 16
    bridge: str = "br0"

    @property
    def netns(self) -> str:
        """The lab's own network namespace, where the bridge and the gateway are."""
        return f"olab-{self.lab}"

    @property
    def subnet(self) -> str:
        return f"10.{self.number}.0.0/{self.prefix_length}"

    @property
    def gateway(self) -> str:
        return f"10.{self.number}.0.1"

    @property
    def machine(self) -> str:
        """This machine's own address in the lab."""
        return f"10.{self.number}.0.2"

    def host(self, index: int) -> str:
        """The address of the index-th host, from 1."""
        return f"10.{self.number}.{1 + index // 250}.{index % 250 + (1 if index >= 250 else 0)}"

    @staticmethod
    def hardware_address(address: str) -> str:
        """The MAC address that goes with an IP address: a new host at an old address is found at once."""
        return "02:6f:" + ":".join(f"{int(part):02x}" for part in address.split("."))

    def save(self, state: Path) -> None:
        (state / "lab.json").write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, state: Path) -> Network:
        """Raises: LabError when there is no such lab."""
        try:
            return cls(**json.loads((state / "lab.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise LabError(f"no lab {state.name!r} is up: start one with `oikos lab up`") from None

    def raise_up(self) -> None:
        """Guard route, bridge, and the link between this machine and the lab. Raises: LabError."""
        for knob, least in KNOBS:
            file = Path("/proc/sys") / knob
            if int(file.read_text()) < least:
                file.write_text(str(least))
        # Lab addresses may never leave this machine: the guard is there before the link and outlives it.
        ip_batch([f"route replace unreachable {self.subnet} metric {GUARD_METRIC}"])
        run(["ip", "netns", "add", self.netns])
        bridge = [f"link add {self.bridge} type bridge", f"link set {self.bridge} up"]
        ip_batch(
            ["link set lo up", *bridge, f"addr add {self.gateway}/{self.prefix_length} brd + dev {self.bridge}"],
            netns=self.netns,
        )
        link = f"olab{self.number}"
        ip_batch(
            [
                f"link add {link} type veth peer name up0 netns {self.netns}",
                f"addr add {self.machine}/{self.prefix_length} brd + dev {link}",
                f"link set {link} up",
            ]
        )
        ip_batch([f"link set up0 master {self.bridge} up"], netns=self.netns)


def claim(lab: str, state_root: Path) -> Network:
    """A subnet that no other lab and no route of this machine uses; kept by a file in the lab's directory.

    Raises: LabError when all are taken.
    """
    with (state_root / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        seen = run(["ip", "-4", "route", "show"]).stdout + run(["ip", "-4", "addr", "show"]).stdout
        taken = {int(file.read_text()) for file in state_root.glob("*/subnet")}
        for number in SUBNETS:
            routed = re.search(rf"^(?!unreachable ).*\b10\.{number}\.\d", seen, re.MULTILINE)
            if number not in taken and routed is None:
                (state_root / lab / "subnet").write_text(str(number))
                return Network(lab=lab, number=number)
    raise LabError("no free subnet between 10.77.0.0/16 and 10.127.0.0/16: take a lab down with `oikos lab down --all`")


def namespaces(lab: str = "") -> list[str]:
    """Network namespaces left by a lab (or by any), also after a crash."""
    if not os.path.isdir("/run/netns"):
        return []
    names = sorted(os.listdir("/run/netns"))
    if not lab:
        return [name for name in names if name.startswith("olab-")]
    return [name for name in names if name == f"olab-{lab}" or name.startswith(f"olab-{lab}-")]


def remove_guards() -> None:
    """Drop guard routes of labs that are gone; they are left in place on purpose otherwise."""
    for line in run(["ip", "-4", "route", "show", "type", "unreachable"]).stdout.splitlines():
        found = re.match(rf"unreachable (10\.\d+\.0\.0/16) metric {GUARD_METRIC}", line)
        if found:
            run(["ip", "route", "del", "unreachable", found[1], "metric", str(GUARD_METRIC)], check=False)
