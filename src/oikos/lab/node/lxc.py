"""The real container underneath: its LXC configuration, its mounts and limits, start, stop and attach."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import sys
from typing import NoReturn

from oikos.lab.node.conf import Conf
from oikos.lab.node.errors import Die
from oikos.lab.node.files import dress
from oikos.lab.node.net import address, keys
from oikos.lab.node.options import properties
from oikos.lab.node.site import BASE, image, run

LENT = "/run/lab-cgroup"


def rootfs(vmid: str) -> str:
    return f"/var/lib/lxc/{vmid}/rootfs"


def running(vmid: str) -> bool:
    out = run("lxc-info", "-n", vmid, "-s", check=False).stdout
    return "RUNNING" in out or "FROZEN" in out


def mount(vmid: str) -> None:
    if not os.path.ismount(rootfs(vmid)):
        os.makedirs(rootfs(vmid), exist_ok=True)
        layers = f"lowerdir={BASE},upperdir={image(vmid)}/upper,workdir={image(vmid)}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, rootfs(vmid))


def unmount(vmid: str) -> None:
    if os.path.ismount(rootfs(vmid)):
        run("umount", "-l", rootfs(vmid), check=False)


def start(conf: Conf) -> None:
    """Raises: Die when it runs already or LXC refuses."""
    vmid = conf.vmid
    if running(vmid):
        raise Die(f"CT {vmid} already running")
    dress(conf)
    _write_config(conf)
    unmount(vmid)
    mount(vmid)
    limit(conf)
    begun = subprocess.run(
        ["lxc-start", "-n", vmid, "-o", f"/var/log/lxc-{vmid}.log", "-l", "WARN"],
        text=True,
        capture_output=True,
        preexec_fn=lambda: _join(vmid),
        check=False,
    )
    if begun.returncode:
        unmount(vmid)
        raise Die(f"startup for container '{vmid}' failed\n{begun.stderr.strip()}")


def stop(conf: Conf, *, kill: bool, timeout_s: int = 30) -> None:
    """Nothing when it does not run. Raises: Die when it is still running in the end."""
    vmid = conf.vmid
    if not running(vmid):
        return
    how = ["-k"] if kill else ["-t", str(timeout_s), "--nokill"]
    ended = run("lxc-stop", "-n", vmid, *how, check=False)
    if running(vmid):
        raise Die(f"command 'lxc-stop -n {vmid}' failed: exit code {ended.returncode}\nCT {vmid} did not stop in time")
    unmount(vmid)
    for place in glob.glob(f"{LENT}/*/ct{vmid}"):
        try:
            os.rmdir(place)
        except OSError:  # a process of it is still on its way out; the next start uses the same cgroup
            continue


def attach(vmid: str, command: list[str]) -> NoReturn:
    """Become the command inside the container. Raises: Die when it does not run."""
    if not running(vmid):
        raise Die(f"container '{vmid}' not running!")
    _join(vmid)
    sys.stdout.flush()
    os.execvp("lxc-attach", ["lxc-attach", "-n", vmid, "--set-var", "HOME=/root", "--", *command])


def limit(conf: Conf) -> None:
    """Memory, processes and cpu, through the v1 controllers the lab lends the node (where it does)."""
    cpus = float(conf.get("cpulimit") or conf.get("cores") or 0)
    knobs = (
        ("memory", "memory.limit_in_bytes", int(conf.get("memory", 512)) << 20),
        ("pids", "pids.max", 4096),
        ("cpu", "cpu.cfs_quota_us", int(cpus * 100_000) or -1),
    )
    for controller, knob, value in knobs:
        if os.path.isdir(f"{LENT}/{controller}"):
            place = f"{LENT}/{controller}/ct{conf.vmid}"
            os.makedirs(place, exist_ok=True)
            with open(f"{place}/{knob}", "w", encoding="ascii") as file:
                file.write(str(value))


def _join(vmid: str) -> None:
    for procs in glob.glob(f"{LENT}/*/ct{vmid}/cgroup.procs"):
        with open(procs, "w", encoding="ascii") as file:
            file.write("0")


def _write_config(conf: Conf) -> None:
    vmid = conf.vmid
    nesting = "nesting=1" in conf.get("features", "")
    access = "rw" if nesting else "mixed"
    lines = [
        "lxc.include = /usr/share/lxc/config/common.conf",
        f"lxc.uts.name = {conf.hostname}",
        f"lxc.rootfs.path = dir:{rootfs(vmid)}",
        f"lxc.mount.auto = proc:{access} sys:{access} cgroup:{access}",
        "lxc.apparmor.profile = unconfined",
        "lxc.tty.max = 2",
        "lxc.environment = TERM=linux",
        "lxc.cap.drop = sys_rawio syslog",
        f"lxc.console.logfile = {image(vmid)}/console.log",
    ]
    if nesting:
        # An overlay cannot hold another overlay's upper directory: Docker's data gets a plain one.
        os.makedirs(f"{image(vmid)}/docker", exist_ok=True)
        lines.append(f"lxc.mount.entry = {image(vmid)}/docker var/lib/docker none bind,create=dir 0 0")
    lines += _network(conf)
    for key in sorted(key for key in conf if re.fullmatch(r"mp\d+", key)):
        point = properties(conf[key], "volume")
        if point["volume"].startswith("/"):
            lines.append(f"lxc.mount.entry = {point['volume']} {point['mp'].lstrip('/')} none bind,create=dir 0 0")
    os.makedirs(rootfs(vmid), exist_ok=True)
    with open(f"/var/lib/lxc/{vmid}/config", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def _network(conf: Conf) -> list[str]:
    lines: list[str] = []
    for index, key in enumerate(keys(conf)):
        net = properties(conf[key])
        own = f"lxc.net.{index}"
        lines += [f"{own}.type = veth", f"{own}.link = {net.get('bridge', 'vmbr0')}"]
        lines += [f"{own}.veth.pair = veth{conf.vmid}i{key[3:]}", f"{own}.name = {net['name']}"]
        lines += [f"{own}.hwaddr = {net['hwaddr']}", f"{own}.flags = up"]
        cidr, gateway = address(conf.vmid, net)
        lines += [f"{own}.ipv4.address = {cidr}"] if cidr else []
        lines += [f"{own}.ipv4.gateway = {gateway}"] if gateway else []
    return lines or ["lxc.net.0.type = empty"]
