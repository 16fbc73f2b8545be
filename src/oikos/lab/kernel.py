"""System calls for namespaces and mounts that Python 3.11 has no function for (ctypes over libc)."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

CLONE_NEWTIME = 0x00000080
CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_CHILD_SUBREAPER = 36
PR_CAPBSET_DROP = 24

PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

#: Capabilities no lab host has: the clock, modules, disks and kernel log belong to the machine (linux/capability.h).
FORBIDDEN_CAPS = {
    "sys_module": 16,
    "sys_rawio": 17,
    "sys_time": 25,
    "mac_override": 32,
    "mac_admin": 33,
    "syslog": 34,
    "wake_alarm": 35,
    "block_suspend": 36,
    "perfmon": 38,
    "bpf": 39,
    "checkpoint_restore": 40,
}


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        err = ctypes.get_errno()
        raise OSError(err, f"{what}: {os.strerror(err)}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones. Raises: OSError."""
    _check(_libc().unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


def setns(fd: int, kind: int = 0) -> None:
    """Enter the namespace behind an open file. Raises: OSError."""
    _check(_libc().setns(ctypes.c_int(fd), ctypes.c_int(kind)), "setns")


def enter_net(name: str) -> None:
    """Enter a named network namespace (`ip netns`). Raises: OSError."""
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        setns(fd, CLONE_NEWNET)
    finally:
        os.close(fd)


def in_net(name: str, make: Callable[[], T]) -> T:
    """The result of `make()`, called inside a named network namespace; sockets made there stay there.

    For single-threaded callers: the whole thread is moved and moved back.
    """
    here = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter_net(name)
        try:
            return make()
        finally:
            setns(here, CLONE_NEWNET)
    finally:
        os.close(here)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2). Raises: OSError naming source, target and data."""
    result = _libc().mount(_bytes(source), _bytes(target), _bytes(kind), ctypes.c_ulong(flags), _bytes(data))
    _check(result, f"mount {source} on {target} ({kind}, {data})")


def private_mounts() -> None:
    """Stop mounts made from here on from reaching other namespaces."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def bind(source: str, target: str, *, readonly: bool = False) -> None:
    """Show `source` also at `target`. Raises: OSError."""
    mount(source, target, None, MS_BIND)
    if readonly:
        mount(source, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY)


def umount(path: str) -> None:
    """Detach a mount, even a busy one. Raises: OSError."""
    _check(_libc().umount2(path.encode(), ctypes.c_int(MNT_DETACH)), f"umount {path}")


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2). Raises: OSError."""
    _check(_libc().syscall(PIVOT_ROOT[platform.machine()], new.encode(), old.encode()), f"pivot_root {new}")


def become_subreaper() -> None:
    """Adopt the orphans of this process's descendants."""
    _libc().prctl(ctypes.c_int(PR_SET_CHILD_SUBREAPER), ctypes.c_ulong(1), 0, 0, 0)


def drop_caps() -> None:
    """Give up FORBIDDEN_CAPS for this process and all it starts."""
    libc = _libc()
    for number in FORBIDDEN_CAPS.values():
        libc.prctl(ctypes.c_int(PR_CAPBSET_DROP), ctypes.c_ulong(number), 0, 0, 0)
