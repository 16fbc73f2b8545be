"""`pct` verbs about snapshots: a copy of the container's own files and a section of its configuration."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping

from oikos.lab.node import lxc, options, storage
from oikos.lab.node.conf import Conf, locked
from oikos.lab.node.errors import Die, bad_parameter
from oikos.lab.node.site import image, run

BOTH = ("vmid", "snapname")
LONGEST_NAME = 40
RESERVED = ("current", "vzdump")
NOT_COPIED = ("description", "lock", "snaptime", "snapstate")


def snapshot(argv: list[str]) -> None:
    """The container is `locked (snapshot)` while its files are copied, and stays so when this is killed."""
    (vmid, name), given = options.parse("snapshot", argv, BOTH)
    _check_name(name)
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        if name in conf.snapshots:
            raise Die(f"snapshot name '{name}' already used")
        if not storage.of(conf["rootfs"]).snapshots:
            raise Die("snapshot feature is not available")
        section = {**_settings(conf), "snaptime": str(int(time.time())), "snapstate": "prepare"}
        if given.get("description"):
            section["description"] = given["description"]
        conf.snapshots[name] = section
        conf["lock"] = "snapshot"
        conf.save()
    try:
        _copy(vmid, name)
    except Die:
        print("snapshot create failed: starting cleanup")
        _forget(vmid, name)
        raise
    with locked(vmid):
        conf = Conf.load(vmid)
        del conf["lock"]
        del conf.snapshots[name]["snapstate"]
        conf["parent"] = name
        conf.save()


def rollback(argv: list[str]) -> None:
    """Kills the container when it runs; it stays stopped without `--start 1`."""
    (vmid, name), given = options.parse("rollback", argv, BOTH)
    with locked(vmid):
        conf = Conf.load(vmid)
        section = conf.snapshot(name)
        if name != next(reversed(conf.snapshots)):
            volume = conf["rootfs"].partition(":")[2].partition(",")[0]
            raise Die(f"can't rollback, '{name}' is not most recent snapshot on '{volume}'")
        if "snapstate" in section:
            raise Die(f"unable to rollback to incomplete snapshot (snapstate = {section['snapstate']})")
        lxc.stop(conf.unlocked(), kill=True)
        conf["lock"] = "rollback"
        conf.save()
    for place in ("upper", "work"):
        shutil.rmtree(f"{image(vmid)}/{place}")
    os.mkdir(f"{image(vmid)}/work")
    run("cp", "-a", f"{image(vmid)}/snap/{name}", f"{image(vmid)}/upper")
    with locked(vmid):
        back = Conf(vmid)
        back.update(_settings(section))
        back.update({key: conf[key] for key in ("description",) if key in conf})
        back["parent"] = name
        back.snapshots = conf.snapshots
        back.save()
        if given.get("start") == "1":
            lxc.start(back)


def delete(argv: list[str]) -> None:
    (vmid, name), _ = options.parse("delsnapshot", argv, BOTH)
    with locked(vmid):
        conf = Conf.load(vmid)
        conf.snapshot(name)["snapstate"] = "delete"
        conf.unlocked()["lock"] = "snapshot-delete"
        conf.save()
    _forget(vmid, name)


def listing(argv: list[str]) -> None:
    """As a real node prints it: a tree by parent, siblings by age, the present state last and without a time."""
    (vmid,), _ = options.parse("listsnapshot", argv, ("vmid",))
    conf = Conf.load(vmid)
    now = {"parent": conf.get("parent", ""), "description": "You are here!"}
    every: dict[str, Mapping[str, str]] = {**conf.snapshots, "current": now}
    roots = [name for name, section in every.items() if section.get("parent") not in every]
    _print_tree(every, roots, "`->")


def _print_tree(every: Mapping[str, Mapping[str, str]], names: Iterable[str], prefix: str) -> None:
    for name in sorted(names, key=lambda name: (name == "current", _age(every[name]))):
        section = every[name]
        when = time.strftime("%F %T", time.localtime(_age(section))) if "snaptime" in section else ""
        note = section.get("description", "no-description").partition("\n")[0]
        print(f"{prefix} {name:<{30 - len(prefix)}} {when:<23} {note}")
        _print_tree(every, [child for child, own in every.items() if own.get("parent") == name], f" {prefix}")


def _check_name(name: str) -> None:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]+", name) is None:
        raise bad_parameter("snapname", f"invalid format - invalid configuration ID '{name}'")
    if len(name) > LONGEST_NAME:
        raise bad_parameter("snapname", f"value may only be {LONGEST_NAME} characters long")
    if name in RESERVED:
        raise Die(f"unable to use snapshot name '{name}' (reserved name)")


def _settings(section: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in section.items() if key not in NOT_COPIED}


def _age(section: Mapping[str, str]) -> int:
    return int(section.get("snaptime", "0"))


def _copy(vmid: str, name: str) -> None:
    """A running container is frozen meanwhile."""
    frozen = lxc.running(vmid)
    if frozen:
        run("lxc-freeze", "-n", vmid)
    try:
        run("cp", "-a", f"{image(vmid)}/upper", f"{image(vmid)}/snap/{name}")
    finally:
        if frozen:
            run("lxc-unfreeze", "-n", vmid)


def _forget(vmid: str, name: str) -> None:
    """Its files, its section and the lock; what had it as parent gets its parent."""
    shutil.rmtree(f"{image(vmid)}/snap/{name}", ignore_errors=True)
    with locked(vmid):
        conf = Conf.load(vmid)
        gone = conf.snapshots.pop(name)
        for section in (conf, *conf.snapshots.values()):
            if section.get("parent") == name:
                del section["parent"]
                if "parent" in gone:
                    section["parent"] = gone["parent"]
        conf.pop("lock", None)
        conf.save()
