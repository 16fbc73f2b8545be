"""What the lab told this node about itself, and where things are on it."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import subprocess
from dataclasses import dataclass

from oikos.lab.node.errors import Die

CONFIGS = "/etc/pve/lxc"
IMAGES = "/var/lib/vz/images"
TEMPLATES = "/var/lib/vz/template/cache"
BASE = "/var/lib/vz/lab-base"
NAMES = "/etc/pve/lab"
LAB_KEY = "/etc/pve/lab-key.pub"


@dataclass(frozen=True, slots=True)
class Site:
    """10.n.0.0/prefixlen is the lab's subnet."""

    n: int
    gateway: str
    prefixlen: int
    node: str

    def lease(self, vmid: str) -> str:
        """The fixed address that ip=dhcp gets here, as CIDR."""
        number = int(vmid)
        return f"10.{self.n}.{2 + number // 250 % 250}.{number % 250 + 1}/{self.prefixlen}"


def site() -> Site:
    with open("/etc/pve/lab.json", encoding="utf-8") as file:
        return Site(**json.load(file))


def image(vmid: str) -> str:
    """Where a container's own files are: upper, work, snap."""
    return f"{IMAGES}/{vmid}"


def vmids() -> list[str]:
    """Every container, by number."""
    found = (re.fullmatch(r"(\d+)\.conf", os.path.basename(path)) for path in glob.glob(f"{CONFIGS}/*.conf"))
    return sorted((name[1] for name in found if name), key=int)


def run(*argv: str, check: bool = True, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Raises: Die when the command fails and `check` is set."""
    done = subprocess.run(argv, text=True, capture_output=True, input=input, check=False)
    if check and done.returncode:
        raise Die(f"command '{shlex.join(argv)}' failed: exit code {done.returncode}\n{done.stderr.strip()}")
    return done
