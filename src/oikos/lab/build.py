"""Building root filesystem layers: mmdebstrap on a tmpfs, then one copy into the cache.

The base comes from the apt sources of this machine, read at build time; no mirror's name is in the project. A build
happens inside a private mount namespace and is published by one rename: a crash leaves nothing mounted and nothing
half-written that a later run would take for whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from oikos.lab import dress, kernel, layers, packages, pve_layer, tree
from oikos.lab.errors import LabError
from oikos.lab.layers import Kind, Layer
from oikos.lab.places import Places, need_root

Log = Callable[[str], object]

BUILD_SIZE = "size=3g,mode=755"
CHROOT_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def prepare(kinds: Iterable[Kind], places: Places, log: Log) -> None:
    """All that a lab of these kinds needs: the machine's packages, then the layers.

    Raises: LabError naming the failing step and the log file.
    """
    need_root("the lab")
    places.check()
    packages.install(log, places.cache / "build.log")
    ensure(kinds, places, log)


def ensure(kinds: Iterable[Kind], places: Places, log: Log) -> None:
    """Build the layers that are missing for these kinds; nothing when all is there.

    Raises: LabError naming the failing step and the log file.
    """
    wanted = sorted(set(kinds))
    if not _absent(wanted, places.cache):
        return
    need_root("building the lab's root filesystems")
    places.check()
    with (places.cache / ".lock").open("w") as lock:
        # Two labs may start at once: the second waits, then finds the work done.
        fcntl.flock(lock, fcntl.LOCK_EX)
        absent = _absent(wanted, places.cache)
        if absent:
            log_file = places.cache / "build.log"
            log_file.write_bytes(b"")
            packages.install(log, log_file)
            _build(absent, places.cache, log_file, log)


def _absent(kinds: Sequence[Kind], cache: Path) -> list[Layer]:
    wanted = {layer for kind in kinds for layer in layers.layers_of(kind)}
    return [layer for layer in layers.PACKAGES if layer in wanted and not layers.path(cache, layer).is_dir()]


def _build(absent: list[Layer], cache: Path, log_file: Path, log: Log) -> None:
    """Fork, so that the mount namespace is the child's own; its progress lines come back through a pipe."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read_end)
            with os.fdopen(write_end, "w", buffering=1) as lines:
                status = _Builder(cache, log_file, lambda text: lines.write(f"{text}\n")).all(absent)
        except BaseException:  # the child must not return into the parent's code, whatever happened
            with log_file.open("a") as out:
                traceback.print_exc(file=out)
        finally:
            os._exit(status)
    os.close(write_end)
    last = ""
    with os.fdopen(read_end) as lines:
        for line in lines:
            last = line.rstrip("\n")
            log(last)
    if os.waitpid(child, 0)[1] != 0:
        raise LabError(
            f"building the lab's root filesystem failed at step `{last}`: {_reason(log_file)}; see {log_file}; "
            f"a build needs the Debian mirror of this machine's apt sources and 1 GB free in {cache}"
        )


def _reason(log_file: Path) -> str:
    """What the failing program first called an error, or said last."""
    lines = [
        line.strip() for line in log_file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
    ]
    errors = [line for line in lines if line.startswith(("E:", "W:", "cp:", "OSError", "LabError"))]
    return (errors[:1] or lines[-1:] or ["no output"])[0][:200]


class _Builder:
    """One build, inside the child: steps in order, each announced before it is done."""

    def __init__(self, cache: Path, log_file: Path, log: Log) -> None:
        self._cache, self._log_file, self._log = cache, log_file, log
        self._begun = time.monotonic()
        self._work = cache / ".build"

    def all(self, absent: list[Layer]) -> int:
        """Build and publish the layers; 0, or an exception."""
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.private_mounts()
        self._work.mkdir(exist_ok=True)
        kernel.mount("tmpfs", str(self._work), "tmpfs", 0, BUILD_SIZE)
        base = layers.path(self._cache, "base")
        if "base" in absent:
            fresh = self._work / "base"
            self._base(fresh)
            self._publish(fresh, "base")
            self._keep_faketime()
            base = fresh
        for layer in absent:
            if layer != "base":
                self._layer(layer, base)
        self._step("done")
        return 0

    def _step(self, text: str) -> None:
        self._log(f"{text} ({time.monotonic() - self._begun:.0f} s)")

    def _run(self, argv: Sequence[str], env: dict[str, str] | None = None) -> None:
        with self._log_file.open("ab") as out:
            subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=True)

    def _base(self, root: Path) -> None:
        self._step(f"base: Debian {layers.SUITE} with systemd and OpenSSH, from this machine's apt sources")
        sources = [Path("/etc/apt/sources.list")] if Path("/etc/apt/sources.list").exists() else []
        for pattern in ("*.sources", "*.list"):
            sources += sorted(Path("/etc/apt/sources.list.d").glob(pattern))
        argv = ["mmdebstrap", "--verbose", "--variant=minbase", f"--include={','.join(layers.PACKAGES['base'])}"]
        argv += ['--aptopt=Acquire::Languages "none"', *(f"--dpkgopt={option}" for option in layers.DPKG_OPTIONS)]
        self._run([*argv, layers.SUITE, str(root), *map(str, sources)])
        dress.dress(root)
        dress.lend_apt_settings(root)

    def _layer(self, layer: Layer, base: Path) -> None:
        self._step(f"{layer}: {' '.join(layers.PACKAGES[layer])}")
        upper, work, root = (self._work / f"{layer}{suffix}" for suffix in ("", ".work", ".root"))
        for place in (upper, work, root):
            place.mkdir()
        kernel.mount("overlay", str(root), "overlay", 0, f"lowerdir={base},upperdir={upper},workdir={work}")
        kernel.mount("proc", f"{root}/proc", "proc")
        shutil.copy("/etc/resolv.conf", f"{root}/etc/resolv.conf")
        no_services = tree.write(root, "/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
        inside = ["chroot", str(root), "apt-get"]
        self._run([*inside, "update", "-q", "-o", "APT::Update::Error-Mode=any"], CHROOT_ENV)
        # Before the layer has packages of its own: what is kept must do for whoever has the base only.
        if debs := layers.DEBS.get(layer):
            tree.directory(root, f"{layers.KEPT}/partial")
            keep = ["--download-only", "-o", f"Dir::Cache::archives={layers.KEPT}", "--no-install-recommends"]
            self._run([*inside, "install", "-y", "-q", *keep, *debs], CHROOT_ENV)
        self._run([*inside, "install", "-y", "-q", "--no-install-recommends", *layers.PACKAGES[layer]], CHROOT_ENV)
        self._run([*inside, "clean"], CHROOT_ENV)
        shutil.rmtree(root / "var/lib/apt/lists")
        tree.directory(root, "var/lib/apt/lists/partial")
        no_services.unlink()
        tree.write(root, "/etc/resolv.conf", "")
        if layer == "pve":
            pve_layer.dress(root)
        kernel.umount(f"{root}/proc")
        kernel.umount(str(root))
        self._publish(upper, layer)

    def _publish(self, source: Path, layer: Layer) -> None:
        """Copy beside the final name, then rename: the layer is there whole or not at all."""
        self._step(f"{layer}: storing in {self._cache}")
        final = layers.path(self._cache, layer)
        part = final.with_name(f"{final.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        try:
            self._run(["cp", "-a", str(source), str(part)])
            part.rename(final)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _keep_faketime(self) -> None:
        """Keep libfaketime beside the base, not in it: only the clock fault copies it into a host."""
        final = self._cache / "libfaketime.so.1"
        if final.exists():
            return
        self._step("base: libfaketime for the clock fault")
        place = self._work / "faketime"
        place.mkdir()
        with self._log_file.open("ab") as out:
            got = subprocess.run(
                ["apt-get", "download", "-q", "libfaketime"], cwd=place, stdout=out, stderr=out, check=False
            )
        if got.returncode != 0:
            return  # the clock fault then says what is missing
        self._run(["dpkg", "-x", str(next(place.glob("*.deb"))), str(place / "x")])
        found = next((place / "x").glob("usr/lib/*/faketime/libfaketimeMT.so.1"))
        part = final.with_suffix(".part")
        shutil.copy(found, part)
        part.rename(final)
