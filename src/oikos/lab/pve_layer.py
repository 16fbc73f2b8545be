"""The stand-in for a Proxmox VE node: what the `pve` layer gets over LXC, and what each node is told about its lab."""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path

from oikos.lab import tree

SHIM = "/usr/lib/lab-pve"
COMMANDS = ("pct", "pveam", "pvesh", "pveversion", "pvesm", "qm")
GUESTS = """[Unit]
Description=PVE guests
After=network.target ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/pct lab-startall
ExecStop=/usr/sbin/pct lab-stopall
TimeoutStopSec=60
KillMode=none

[Install]
WantedBy=multi-user.target
"""
TEMPLATE = "debian-12-standard_12.7-1_amd64.tar.zst"
WANTS = "/etc/systemd/system/multi-user.target.wants"


def dress(root: Path) -> None:
    """Directories and units of a node, and its commands; LXC's own networking and the resolver are switched off."""
    for place in ("etc/pve/lxc", "var/lib/vz/template/cache", "var/lib/vz/images", "var/lib/vz/dump"):
        tree.directory(root, place)
    tree.write(root, "/etc/systemd/system/pve-guests.service", GUESTS)
    for unit in ("lxc.service", "lxc-net.service", "systemd-resolved.service"):
        for wanted in (root / "etc/systemd/system").glob(f"*.wants/{unit}"):
            wanted.unlink()
        tree.link(root, f"/etc/systemd/system/{unit}", "/dev/null")
    tree.link(root, f"{WANTS}/pve-guests.service", "../pve-guests.service")


def furnish(upper: Path, *, node: str, subnet: int, gateway: str, prefix_length: int, public_key: Path) -> None:
    """What one node's own upper directory gets: the shim's code, its lab's addresses, the lab's key, a template.

    The shim is copied per node and not kept in the layer, so a change to it needs no new layer.
    """
    place = tree.directory(upper, f"{SHIM}/oikos/lab/node")
    for file in resources.files("oikos.lab").joinpath("node").iterdir():
        if file.name.endswith(".py"):
            (place / file.name).write_bytes(file.read_bytes())
    launcher = (
        "#!/usr/bin/python3 -IB\n"
        "import sys\n"
        f"sys.path.insert(0, {SHIM!r})\n"
        "from oikos.lab.node.main import main\n"
        "sys.exit(main(sys.argv))\n"
    )
    for command in COMMANDS:
        tree.write(upper, f"/usr/sbin/{command}", launcher, 0o755)
    told = {"n": subnet, "gateway": gateway, "prefixlen": prefix_length, "node": node}
    tree.write(upper, "/etc/pve/lab.json", json.dumps(told))
    shutil.copy(public_key, upper / "etc/pve/lab-key.pub")
    tree.write(upper, f"/var/lib/vz/template/cache/{TEMPLATE}", "lab template: /var/lib/vz/lab-base\n")
