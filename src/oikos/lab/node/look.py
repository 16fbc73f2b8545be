"""`pct` verbs that look: list, status, config, df; and copying single files in and out."""

from __future__ import annotations

import shlex
import subprocess

from oikos.lab.node import lxc, options
from oikos.lab.node.conf import Conf
from oikos.lab.node.errors import Die
from oikos.lab.node.site import image, run, vmids


def listing(_: list[str]) -> None:
    rows = []
    for vmid in vmids():
        conf = Conf.load(vmid)
        rows.append((vmid, "running" if lxc.running(vmid) else "stopped", conf.get("lock", ""), conf.hostname))
    for row in [("VMID", "Status", "Lock", "Name"), *rows] if rows else []:
        print("{:<10} {:<10} {:<12} {:<20}".format(*row))


def status(argv: list[str]) -> None:
    (vmid,), _ = options.parse("status", argv, ("vmid",))
    Conf.load(vmid)
    print(f"status: {'running' if lxc.running(vmid) else 'stopped'}")


def config(argv: list[str]) -> None:
    (vmid,), given = options.parse("config", argv, ("vmid",))
    conf = Conf.load(vmid)
    section: dict[str, str] = conf.snapshot(given["snapshot"]) if "snapshot" in given else conf
    for key, value in sorted(section.items()):
        shown = "".join(f"{line}%0A" for line in value.split("\n")) if key == "description" else value
        print(f"{key}: {shown}")


def df(argv: list[str]) -> None:
    (vmid,), _ = options.parse("df", argv, ("vmid",))
    volume = Conf.load(vmid)["rootfs"]
    total = float(volume.partition("size=")[2].rstrip("G") or 0)
    used = int(run("du", "-sm", f"{image(vmid)}/upper").stdout.split()[0]) / 1024
    print("MP     Volume                         Size   Used  Avail   Use%  Path")
    name = volume.split(",")[0]
    print(f"rootfs {name:<28} {total:.1f}G  {used:.1f}G  {total - used:.1f}G  {used / total:.1f}  /")


def push(argv: list[str]) -> None:
    (vmid, source, target), given = options.parse("push", argv, ("vmid", "file", "destination"))
    Conf.load(vmid)
    mode = f" && chmod {shlex.quote(given['perms'])} {shlex.quote(target)}" if "perms" in given else ""
    with open(source, "rb") as file:
        _copy(vmid, ["sh", "-c", f"cat > {shlex.quote(target)}{mode}"], stdin=file.fileno())


def pull(argv: list[str]) -> None:
    (vmid, source, target), _ = options.parse("pull", argv, ("vmid", "path", "destination"))
    Conf.load(vmid)
    with open(target, "wb") as file:
        _copy(vmid, ["cat", source], stdout=file.fileno())


def _copy(vmid: str, command: list[str], *, stdin: int | None = None, stdout: int | None = None) -> None:
    argv = ["lxc-attach", "-n", vmid, "--", *command]
    done = subprocess.run(argv, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Die(f"failed to copy: {done.stderr.strip()}")
