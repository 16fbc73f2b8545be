"""`pct` verbs that make, change and destroy containers."""

from __future__ import annotations

import os
import re
import shutil

from oikos.lab.node import lxc, net, options, storage
from oikos.lab.node.conf import Conf, locked
from oikos.lab.node.errors import Die, bad_parameter
from oikos.lab.node.files import authorize, dress, new_host_key, new_machine_id
from oikos.lab.node.site import CONFIGS, NAMES, TEMPLATES, image, run, site

DEFAULTS = {"arch": "amd64", "memory": "512", "swap": "512", "ostype": "debian"}


def create(argv: list[str]) -> None:
    (vmid, volume), given = options.parse("create", argv, ("vmid", "ostemplate"))
    options.check("create", given, options.CREATE_ONLY)
    with locked(vmid):
        if os.path.exists(f"{CONFIGS}/{vmid}.conf") and given.get("force") != "1":
            raise Die(f"unable to create CT {vmid} - CT {vmid} already exists on node '{site().node}'")
        template = _template(volume, vmid)
        rootfs = storage.rootfs(vmid, given.get("rootfs") or given.get("storage", storage.TANK.name))
        conf = Conf(vmid)
        net.complete(vmid, given)
        shutil.rmtree(image(vmid), ignore_errors=True)
        for place in ("upper", "work", "snap"):
            os.makedirs(f"{image(vmid)}/{place}")
        print(f"extracting archive '{template}'")
        conf.update(DEFAULTS)
        conf.update({key: value for key, value in given.items() if key not in options.CREATE_ONLY})
        conf.setdefault("hostname", f"CT{vmid}")
        conf["rootfs"] = rootfs
        print("Detected container architecture: amd64")
        print("Creating SSH host key 'ssh_host_ed25519_key' - this may take some time ...")
        print(f"done: {new_host_key(vmid, conf.hostname)} root@{conf.hostname}")
        new_machine_id(vmid)
        authorize(vmid, given.get("ssh-public-keys"))
        conf.save()
        dress(conf)
        if given.get("password"):
            lxc.mount(vmid)
            run("chroot", lxc.rootfs(vmid), "chpasswd", input=f"root:{given['password']}\n")
            lxc.unmount(vmid)
        if given.get("start") == "1":
            lxc.start(conf)


def _template(volume: str, vmid: str) -> str:
    found = re.fullmatch(r"(?:(\w[\w-]*):vztmpl/)?(/?[\w./+-]+)", volume)
    if found is None:
        raise Die(f"unable to create CT {vmid} - unable to parse volume ID '{volume}'")
    if found[1] not in (None, "local"):
        raise Die(f"unable to create CT {vmid} - storage '{found[1]}' does not exist")
    path = found[2] if found[2].startswith("/") else f"{TEMPLATES}/{found[2]}"
    if not os.path.exists(path):
        raise Die(f"unable to create CT {vmid} - volume '{volume}' does not exist")
    return path


def change(argv: list[str]) -> None:
    (vmid,), given = options.parse("set", argv, ("vmid",))
    dropped = [key for key in re.split(r"[,; ]+", given.pop("delete", "")) if key]
    options.check("set", given)
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        net.complete(vmid, given)
        for key in dropped:
            conf.pop(key, None)
        conf.update(given)
        conf.save()
        if lxc.running(vmid):
            lxc.limit(conf)


def resize(argv: list[str]) -> None:
    (vmid, disk, size), _ = options.parse("resize", argv, ("vmid", "disk", "size"))
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        if disk not in conf:
            raise Die(f"disk '{disk}' does not exist")
        wanted = re.fullmatch(r"(\+?)(\d+)G", size)
        if wanted is None:
            raise bad_parameter("size", "value does not match the regex pattern")
        was = int(conf[disk].partition("size=")[2].rstrip("G") or 0)
        total = was + int(wanted[2]) if wanted[1] else int(wanted[2])
        if total < was:
            raise Die("unable to shrink disk size")
        conf[disk] = re.sub(r"size=\d+G", f"size={total}G", conf[disk])
        conf.save()


def destroy(argv: list[str]) -> None:
    (vmid,), given = options.parse("destroy", argv, ("vmid",))
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        if conf.get("protection") == "1":
            raise Die(f"can't remove CT {vmid} - protection mode enabled")
        if lxc.running(vmid):
            if given.get("force") != "1":
                raise Die(f"unable to destroy CT {vmid} - container is running")
            lxc.stop(conf, kill=True)
        lxc.unmount(vmid)
        for place in (image(vmid), f"/var/lib/lxc/{vmid}"):
            shutil.rmtree(place, ignore_errors=True)
        for file in (conf.path, f"{NAMES}/{vmid}"):
            if os.path.exists(file):
                os.unlink(file)
        if given.get("purge") == "1":
            print(f"purging CT {vmid} from related configurations..")


def clone(argv: list[str]) -> None:
    (vmid, new), given = options.parse("clone", argv, ("vmid", "newid"))
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        copy = Conf(new)
        if os.path.exists(copy.path):
            raise Die(f"unable to create CT {new}: config file already exists")
        for place in ("work", "snap"):
            os.makedirs(f"{image(new)}/{place}")
        run("cp", "-a", f"{image(vmid)}/upper", f"{image(new)}/upper")
        copy.update({key: value for key, value in conf.items() if key != "parent"})
        copy["rootfs"] = storage.rootfs(new, conf["rootfs"])
        copy["hostname"] = given.get("hostname", f"{conf.hostname}-clone")
        for key in net.keys(copy):
            copy[key] = re.sub(r",hwaddr=[^,]+", "", copy[key])
        net.complete(new, copy)
        new_machine_id(new)
        copy.save()
        dress(copy)


def unlock(argv: list[str]) -> None:
    (vmid,), _ = options.parse("unlock", argv, ("vmid",))
    conf = Conf.load(vmid)
    conf.pop("lock", None)
    conf.save()
