"""`pct` verbs about snapshots: a copy of the container's own files and a section of its configuration."""

from __future__ import annotations

import os
import re
import shutil
import time

from oikos.lab.node import lxc, options
from oikos.lab.node.conf import Conf, locked
from oikos.lab.node.errors import Die, bad_parameter
from oikos.lab.node.site import image, run

BOTH = ("vmid", "snapname")


def snapshot(argv: list[str]) -> None:
    (vmid, name), given = options.parse("snapshot", argv, BOTH)
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]+", name) is None:
        raise bad_parameter("snapname", f"invalid format - invalid configuration ID '{name}'")
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        if name in conf.snapshots:
            raise Die(f"snapshot name '{name}' already used")
        frozen = lxc.running(vmid)
        if frozen:
            run("lxc-freeze", "-n", vmid)
        try:
            run("cp", "-a", f"{image(vmid)}/upper", f"{image(vmid)}/snap/{name}")
        finally:
            if frozen:
                run("lxc-unfreeze", "-n", vmid)
        section = {key: value for key, value in conf.items() if key != "description"}
        section["snaptime"] = str(int(time.time()))
        if given.get("description"):
            section["description"] = given["description"]
        conf.snapshots[name] = section
        conf["parent"] = name
        conf.save()


def rollback(argv: list[str]) -> None:
    (vmid, name), given = options.parse("rollback", argv, BOTH)
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        section = conf.snapshot(name)
        lxc.stop(conf, kill=True)
        for place in ("upper", "work"):
            shutil.rmtree(f"{image(vmid)}/{place}")
        os.mkdir(f"{image(vmid)}/work")
        run("cp", "-a", f"{image(vmid)}/snap/{name}", f"{image(vmid)}/upper")
        back = Conf(vmid)
        back.update({key: value for key, value in section.items() if key not in ("snaptime", "description")})
        back["parent"] = name
        back.snapshots = conf.snapshots
        back.save()
        if given.get("start") == "1":
            lxc.start(back)


def delete(argv: list[str]) -> None:
    (vmid, name), _ = options.parse("delsnapshot", argv, BOTH)
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        gone = conf.snapshot(name)
        shutil.rmtree(f"{image(vmid)}/snap/{name}", ignore_errors=True)
        del conf.snapshots[name]
        for section in (conf, *conf.snapshots.values()):
            if section.get("parent") == name:
                del section["parent"]
                if "parent" in gone:
                    section["parent"] = gone["parent"]
        conf.save()


def listing(argv: list[str]) -> None:
    (vmid,), _ = options.parse("listsnapshot", argv, ("vmid",))
    conf = Conf.load(vmid)
    by_time = sorted(conf.snapshots.items(), key=lambda item: int(item[1].get("snaptime", "0")))
    for depth, (name, section) in enumerate(by_time):
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(section.get("snaptime", "0"))))
        print(f"{' ' * depth}`-> {name:<20} {when:<22} {section.get('description', 'no-description')}")
    print(f"{' ' * len(by_time)}`-> {'current':<20} {'':<22} You are here!")
