"""Starting one host: from a fork to its own PID 1, in namespaces of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import traceback
import uuid
from pathlib import Path

from oikos.lab import cgroups, kernel
from oikos.lab.command import ip_batch
from oikos.lab.errors import LabError
from oikos.lab.network import Network
from oikos.lab.spec import HostSpec

DEV_NODES = (
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
)
NESTING_NODES = (("fuse", 10, 229), ("net/tun", 10, 200))
INIT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CLOSED = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
NO_DEVICES = kernel.MS_NOSUID | kernel.MS_NODEV


def boot(lab: str, network: Network, spec: HostSpec) -> int:
    """Start the host; the pid of its PID 1, a child of the caller (a subreaper). Raises: LabError."""
    _wire(network, spec)
    cgroups.create(lab, spec.name, spec.limits)
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.close(read_end)
        _child(lab, spec, write_end)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        text = answer.read()
    os.waitpid(middle, 0)
    if not text.startswith("PID ") or "ERR" in text:
        cgroups.kill(lab, spec.name)
        raise LabError(f"host {spec.name} did not start: {text.strip()[-600:]}")
    return int(text.split()[1])


def _wire(network: Network, spec: HostSpec) -> None:
    """Network namespace, cable to the lab's bridge, address. A host that reboots finds its links as it left them."""
    if not os.path.exists(f"/run/netns/{spec.netns}"):
        subprocess.run(["ip", "netns", "add", spec.netns], check=True, capture_output=True)
        ip_batch(
            [
                f"link add {spec.port} type veth peer name eth0 netns {spec.netns}",
                f"link set {spec.port} master {network.bridge} up",
            ],
            netns=network.netns,
        )
    lines = ["link set lo up", f"link set eth0 address {network.hardware_address(spec.address)}"]
    if spec.kind == "pve":
        lines += ["link add vmbr0 type bridge", "link set eth0 master vmbr0 up", "link set vmbr0 up"]
        lines += [f"addr add {spec.address}/{network.prefix_length} brd + dev vmbr0"]
    else:
        lines += ["link set eth0 up", f"addr add {spec.address}/{network.prefix_length} brd + dev eth0"]
    ip_batch([*lines, f"route add default via {network.gateway}"], netns=spec.netns, check=False)


def _child(lab: str, spec: HostSpec, answer: int) -> None:
    """The middle process: enters the namespaces, forks PID 1, reports its pid. Never returns."""
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        cgroups.join(lab, spec.name)
        kernel.enter_net(spec.netns)
        _unshare()
        pid = os.fork()
        if pid:
            os.write(answer, f"PID {pid}\n".encode())
            os._exit(0)
        _become_init(spec)
    except BaseException:  # a forked child must never return into the supervisor's loop
        os.write(answer, f"ERR {traceback.format_exc()}".encode())
    finally:
        os._exit(1)


def _unshare() -> None:
    """New namespaces for all but the network; uptime starts at about zero where the kernel has time namespaces."""
    flags = (
        kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWPID | kernel.CLONE_NEWCGROUP
    )
    try:
        kernel.unshare(flags | kernel.CLONE_NEWTIME)
    except OSError:  # CONFIG_TIME_NS is off: the host then shows the machine's uptime
        kernel.unshare(flags)
        return
    uptime_s = int(time.clock_gettime(time.CLOCK_BOOTTIME))
    Path("/proc/self/timens_offsets").write_text(f"boottime {1 - uptime_s} 0\n")


def _become_init(spec: HostSpec) -> None:
    """Runs as PID 1 of the new host: builds its view of the world, then becomes its init."""
    root = f"{spec.dir}/root"
    os.umask(0o022)
    kernel.private_mounts()
    socket.sethostname(spec.name)
    layers = f"lowerdir={':'.join(spec.lower)},upperdir={spec.upper},workdir={spec.store}/work"
    kernel.mount("overlay", root, "overlay", 0, layers)
    _kernel_files(root, Path(spec.dir) / "boot_id")
    kernel.mount("tmpfs", f"{root}/tmp", "tmpfs", NO_DEVICES, "mode=1777,size=256m")
    _devices(root, Path(spec.dir) / "console.log", nesting=spec.kind in ("pve", "docker"))
    for bound in spec.binds:
        os.makedirs(root + bound.target, exist_ok=True)
        kernel.bind(bound.source, root + bound.target, readonly=bound.readonly)
    if spec.kind == "pve":
        _lend_controllers(root)
    os.chdir(root)
    os.mkdir("run/.old")
    kernel.pivot_root(".", "run/.old")
    os.chdir("/")
    kernel.umount("/run/.old")
    os.rmdir("/run/.old")
    kernel.drop_caps()
    console = os.open("/dev/console", os.O_RDWR | os.O_APPEND)
    null = os.open("/dev/null", os.O_RDONLY)
    for source, target in ((null, 0), (console, 1), (console, 2)):
        os.dup2(source, target)
    os.closerange(3, 1024)
    os.execve(spec.init[0], list(spec.init), {"container": "oikos-lab", "PATH": INIT_PATH, "TERM": "linux"})


def _kernel_files(root: str, boot_id: Path) -> None:
    """/proc, /sys, cgroups and /run; /proc/sys is read-only but for the network's part, which is the host's own."""
    kernel.mount("proc", f"{root}/proc", "proc", CLOSED)
    kernel.mount("sysfs", f"{root}/sys", "sysfs", CLOSED)
    kernel.bind(f"{root}/sys", f"{root}/sys", readonly=True)
    kernel.mount("cgroup2", f"{root}/sys/fs/cgroup", "cgroup2", CLOSED)
    kernel.mount("tmpfs", f"{root}/run", "tmpfs", NO_DEVICES, "mode=755,size=64m")
    os.mkdir(f"{root}/run/p")
    kernel.mount("proc", f"{root}/run/p", "proc")
    kernel.bind(f"{root}/proc/sys", f"{root}/proc/sys", readonly=True)
    kernel.bind(f"{root}/run/p/sys/net", f"{root}/proc/sys/net")
    boot_id.write_text(f"{uuid.uuid4()}\n")
    kernel.bind(str(boot_id), f"{root}/proc/sys/kernel/random/boot_id", readonly=True)
    kernel.umount(f"{root}/run/p")
    os.rmdir(f"{root}/run/p")
    os.makedirs(f"{root}/run/lock", exist_ok=True)


def _devices(root: str, console: Path, *, nesting: bool) -> None:
    kernel.mount("tmpfs", f"{root}/dev", "tmpfs", kernel.MS_NOSUID, "mode=755,size=1m")
    os.mkdir(f"{root}/dev/net")
    os.umask(0)
    for name, major, minor in DEV_NODES + (NESTING_NODES if nesting else ()):
        os.mknod(f"{root}/dev/{name}", 0o20666, os.makedev(major, minor))
    os.umask(0o022)
    for directory in ("pts", "shm"):
        os.mkdir(f"{root}/dev/{directory}")
    terminals = "newinstance,ptmxmode=0666,mode=620,gid=5"
    kernel.mount("devpts", f"{root}/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, terminals)
    kernel.mount("tmpfs", f"{root}/dev/shm", "tmpfs", NO_DEVICES, "mode=1777,size=64m")
    os.symlink("pts/ptmx", f"{root}/dev/ptmx")
    os.symlink("/proc/self/fd", f"{root}/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{root}/dev/{name}")
    console.touch()
    Path(f"{root}/dev/console").touch()
    kernel.bind(str(console), f"{root}/dev/console")


def _lend_controllers(root: str) -> None:
    """The v1 controllers a node needs to limit its own containers."""
    for controller in cgroups.v1_roots():
        if controller in ("memory", "pids", "cpu", "freezer"):
            place = f"{root}/run/lab-cgroup/{controller}"
            os.makedirs(place)
            kernel.mount("cgroup", place, "cgroup", 0, controller)
