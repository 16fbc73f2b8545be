"""The other commands of a node, as far as an agent looks at them: pveam, pvesm, pvesh, pveversion, qm."""

from __future__ import annotations

import glob
import json
import os

from oikos.lab.node import lxc
from oikos.lab.node.conf import Conf
from oikos.lab.node.errors import Die
from oikos.lab.node.site import BASE, IMAGES, TEMPLATES, site, vmids
from oikos.lab.node.storage import STORAGES

KNOWN_TEMPLATES = ("debian-12-standard_12.7-1_amd64.tar.zst", "debian-12-standard_12.2-1_amd64.tar.zst")
PVEAM_USAGE = "USAGE: pveam <COMMAND> [ARGS] [OPTIONS]\n       pveam available|download|list|update"


def pveam(argv: list[str]) -> None:
    match argv:
        case ["available", *_]:
            for template in KNOWN_TEMPLATES:
                print(f"{'system':<16}{template}")
        case ["list", *_]:
            print(f"{'NAME':<60} {'SIZE':<6}")
            for path in sorted(glob.glob(f"{TEMPLATES}/*")):
                print(f"{'local:vztmpl/' + os.path.basename(path):<60} 120.29MB")
        case ["download", _, template, *_]:
            if template not in KNOWN_TEMPLATES:
                raise Die(f"400 Parameter verification failed.\ntemplate: no such template '{template}'")
            print(f"downloading {template} to {TEMPLATES}/{template}")
            with open(f"{TEMPLATES}/{template}", "w", encoding="utf-8") as file:
                file.write(f"lab template: {BASE}\n")
            print("TASK OK")
        case ["update", *_]:
            print("update successful")
        case _:
            raise Die(f"ERROR: no command specified\n{PVEAM_USAGE}")


def pvesm(argv: list[str]) -> None:
    if argv[:1] != ["status"]:
        raise Die("ERROR: the lab node answers 'pvesm status' only")
    stat = os.statvfs(IMAGES)
    total, free = (blocks * stat.f_frsize // 1024 for blocks in (stat.f_blocks, stat.f_bavail))
    print(f"{'Name':<12} {'Type':>10} {'Status':>10} {'Total':>15} {'Used':>15} {'Available':>15} {'%':>8}")
    share = 100 * (total - free) / total
    for storage in STORAGES.values():
        own = f"{storage.name:<12} {storage.kind:>10} {'active':>10}"
        print(f"{own} {total:>15} {total - free:>15} {free:>15} {share:>7.2f}%")


def pvesh(argv: list[str]) -> None:
    if argv[:1] != ["get"] or len(argv) < 2:
        raise Die("pvesh: the lab node answers 'get' only")
    node = site().node
    guests = [
        {
            "vmid": int(vmid),
            "node": node,
            "type": "lxc",
            "status": "running" if lxc.running(vmid) else "stopped",
            "name": Conf.load(vmid).hostname,
        }
        for vmid in vmids()
    ]
    own = {"node": node, "status": "online"}
    taken = set(vmids())
    answers: dict[str, object] = {
        "/nodes": [own],
        "/cluster/resources": [*guests, {**own, "type": "node"}],
        f"/nodes/{node}/lxc": guests,
        "/cluster/nextid": next(number for number in range(100, 1000) if str(number) not in taken),
    }
    path = argv[1].rstrip("/")
    if path not in answers:
        raise Die(f"No '{argv[0]}' handler defined for '{argv[1]}'")
    print(json.dumps(answers[path]))


def pveversion(_: list[str]) -> None:
    print(f"pve-manager/8.2.4/lab (running kernel: {os.uname().release})")


def qm(argv: list[str]) -> None:
    if argv[:1] != ["list"]:
        raise Die("the lab node has no virtual machines")
