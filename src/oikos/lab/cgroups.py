"""Cgroups of lab hosts, on a hybrid machine (v1 controllers beside v2) or a pure v2 one.

Cleaning up by cgroup also works after every process that knew about the lab was killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from oikos.lab.errors import LabError

ROOT = Path("/sys/fs/cgroup")
PREFIX = "oikos-lab"
CONTROLLERS = ("memory", "pids", "devices", "freezer", "cpu", "cpuacct")
DEFAULT_PIDS = 4096
#: null, zero, full, random, urandom, tty, console, ptmx, pts, tun, fuse; every node may be made, few may be opened.
DEVICES = (
    "c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", "c 5:0 rwm",
    "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm", "c 10:200 rwm", "c 10:229 rwm",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one host; None means the lab's default (no limit; 4096 processes)."""

    memory_bytes: int | None = None
    pids: int | None = None
    cpus: float | None = None


def unified_root() -> Path:
    """Where the v2 hierarchy is mounted. Raises: LabError."""
    for place in (ROOT / "unified", ROOT):
        if (place / "cgroup.controllers").exists():
            return place
    raise LabError("no cgroup v2 hierarchy is mounted below /sys/fs/cgroup: the lab cannot run on this machine")


def v1_roots() -> dict[str, Path]:
    """The v1 hierarchies by controller; none on a pure v2 machine."""
    if unified_root() == ROOT:
        return {}
    return {c: ROOT / c for c in CONTROLLERS if (ROOT / c / "cgroup.procs").exists()}


def top(lab: str, host: str = "") -> Path:
    """The v2 cgroup of a lab, or of one of its hosts."""
    return unified_root() / PREFIX / lab / host


def _v1(lab: str, host: str) -> dict[str, Path]:
    return {c: place / PREFIX / lab / host for c, place in v1_roots().items()}


def create(lab: str, host: str, limits: Limits) -> None:
    """Make the host's cgroups with its limits and device fence."""
    top(lab, host).mkdir(parents=True, exist_ok=True)
    v1 = _v1(lab, host)
    for controller, place in v1.items():
        fresh = not place.exists()
        place.mkdir(parents=True, exist_ok=True)
        if controller == "devices" and fresh:
            (place / "devices.deny").write_text("a")
            for rule in DEVICES:
                (place / "devices.allow").write_text(rule)
    if not v1:
        _enable_v2(top(lab, host))
    set_limits(lab, host, limits)


def set_limits(lab: str, host: str, limits: Limits) -> None:
    """Change the limits of a host, running or not."""
    v1, v2 = _v1(lab, host), top(lab, host)
    pids = str(limits.pids or DEFAULT_PIDS)
    if v1:
        quota = str(int(limits.cpus * 100_000)) if limits.cpus else "-1"
        knobs = [
            (v1.get("memory"), "memory.limit_in_bytes", str(limits.memory_bytes or -1)),
            (v1.get("pids"), "pids.max", pids),
            (v1.get("cpu"), "cpu.cfs_quota_us", quota),
        ]
    else:
        quota = f"{int(limits.cpus * 100_000)} 100000" if limits.cpus else "max"
        knobs = [(v2, "memory.max", str(limits.memory_bytes or "max")), (v2, "pids.max", pids), (v2, "cpu.max", quota)]
    for place, knob, value in knobs:
        if place is not None and (place / knob).exists():
            (place / knob).write_text(value)


def _enable_v2(place: Path) -> None:
    """Hand the controllers down to a host's v2 cgroup, as far as the machine lets us."""
    for parent in (place.parents[2], place.parents[1], place.parents[0]):
        for controller in ("memory", "pids", "cpu"):
            try:
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            except OSError:  # not delegated here: the host then runs without this limit
                continue


def join(lab: str, host: str, *, leaf: str = "") -> None:
    """Move the calling process into the host's cgroups.

    Once systemd owns the top of the host's v2 tree, processes from outside use a leaf of their own.
    """
    v2 = top(lab, host) / leaf
    v2.mkdir(exist_ok=True)
    for place in (v2, *_v1(lab, host).values()):
        fd = os.open(place / "cgroup.procs", os.O_WRONLY)
        try:
            os.write(fd, b"0")
        finally:
            os.close(fd)


def kill(lab: str, host: str = "") -> None:
    """Kill every process of a host (or of the whole lab), however deeply nested."""
    knob = top(lab, host) / "cgroup.kill"
    if knob.exists():
        knob.write_text("1")


def freeze(lab: str, host: str, *, frozen: bool) -> None:
    """Stop or continue every process of a host at once."""
    (top(lab, host) / "cgroup.freeze").write_text("1" if frozen else "0")


def populated(lab: str, host: str = "") -> bool:
    """Whether any process is left."""
    try:
        return "populated 1" in (top(lab, host) / "cgroup.events").read_text()
    except OSError:
        return False


def processes(lab: str, host: str) -> Iterator[int]:
    """The pids of a host's processes, as this machine numbers them."""
    for current, _, _ in os.walk(top(lab, host)):
        try:
            text = (Path(current) / "cgroup.procs").read_text()
        except OSError:  # the cgroup went away while we walked
            continue
        yield from (int(pid) for pid in text.split())


def end_all(lab: str, *, within_s: float = 5.0) -> None:
    """Thaw and kill everything of a lab and wait until it is gone."""
    place = top(lab)
    if not place.is_dir():
        return
    end = time.monotonic() + within_s
    while True:
        for current in (place, *(p for p in place.iterdir() if p.is_dir())):
            try:
                (current / "cgroup.freeze").write_text("0")
            except OSError:  # the cgroup went away meanwhile
                continue
        kill(lab)
        if not populated(lab) or time.monotonic() > end:
            return
        time.sleep(0.02)


def remove(lab: str, host: str = "", *, within_s: float = 1.0) -> None:
    """Remove the (empty) cgroups of a host, or of the whole lab."""
    for root in (unified_root(), *v1_roots().values()):
        place = root / PREFIX / lab / host
        end = time.monotonic() + within_s
        while place.is_dir():
            for current, _, _ in os.walk(place, topdown=False):
                _rmdir(Path(current))
            if time.monotonic() > end:
                break
            time.sleep(0.01 if place.is_dir() else 0)
        if not host:
            _rmdir(root / PREFIX)


def _rmdir(place: Path) -> None:
    try:
        place.rmdir()
    except OSError:  # still in use, or never there: the caller looks again
        return
