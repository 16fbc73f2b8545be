"""`pct` verbs that start, stop and enter containers."""

from __future__ import annotations

import sys

from oikos.lab.node import lxc, options
from oikos.lab.node.conf import Conf, locked
from oikos.lab.node.errors import Die
from oikos.lab.node.site import run, vmids


def start(argv: list[str]) -> None:
    (vmid,), _ = options.parse("start", argv, ("vmid",))
    with locked(vmid):
        lxc.start(Conf.load(vmid).unlocked())


def stop(argv: list[str]) -> None:
    (vmid,), _ = options.parse("stop", argv, ("vmid",))
    with locked(vmid):
        lxc.stop(_up(vmid), kill=True)


def shutdown(argv: list[str]) -> None:
    (vmid,), given = options.parse("shutdown", argv, ("vmid",))
    with locked(vmid):
        conf = _up(vmid)
        try:
            lxc.stop(conf, kill=False, timeout_s=int(given.get("timeout", "60")))
        except Die:
            if given.get("forceStop") != "1":
                raise
            lxc.stop(conf, kill=True)


def reboot(argv: list[str]) -> None:
    (vmid,), given = options.parse("reboot", argv, ("vmid",))
    with locked(vmid):
        conf = Conf.load(vmid).unlocked()
        lxc.stop(conf, kill=False, timeout_s=int(given.get("timeout", "60")))
        lxc.start(conf)


def suspend(argv: list[str]) -> None:
    (vmid,), _ = options.parse("suspend", argv, ("vmid",))
    Conf.load(vmid).unlocked()
    run("lxc-freeze", "-n", vmid)


def resume(argv: list[str]) -> None:
    (vmid,), _ = options.parse("resume", argv, ("vmid",))
    Conf.load(vmid)
    run("lxc-unfreeze", "-n", vmid)


def execute(argv: list[str]) -> None:
    if not argv:
        raise Die("400 not enough arguments\npct exec <vmid> [<extra-args>] [OPTIONS]")
    vmid, rest = argv[0], argv[1:]
    while rest and rest[0].startswith("--keep-env"):
        rest = rest[1:]
    if rest[:1] == ["--"]:
        rest = rest[1:]
    if not rest:
        raise Die("missing command")
    Conf.load(vmid)
    lxc.attach(vmid, rest)


def enter(argv: list[str]) -> None:
    (vmid,), _ = options.parse("enter", argv, ("vmid",))
    Conf.load(vmid)
    lxc.attach(vmid, ["/bin/bash", "-l"])


def start_all(_: list[str]) -> None:
    """For the node's boot: containers with onboot; one that fails does not hold up the rest."""
    for vmid in vmids():
        conf = Conf.load(vmid)
        if conf.get("onboot") == "1" and not lxc.running(vmid):
            try:
                lxc.start(conf)
            except Die as refusal:
                print(refusal, file=sys.stderr)


def stop_all(_: list[str]) -> None:
    """For the node's shutdown."""
    for vmid in vmids():
        if lxc.running(vmid):
            run("lxc-stop", "-n", vmid, "-t", "5", check=False)


def _up(vmid: str) -> Conf:
    conf = Conf.load(vmid).unlocked()
    if not lxc.running(vmid):
        raise Die(f"CT {vmid} not running")
    return conf
