"""The Debian packages of the machine that the lab uses: package -> the program it is needed for.

The one list of them: `oikos lab build`, the Makefile and the README's remedy all ask here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from oikos.lab.errors import LabError

PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "iproute2": "ip",
    "util-linux": "nsenter",
    "mount": "losetup",
    "e2fsprogs": "mkfs.ext4",
    "openssh-client": "ssh",
    "coreutils": "cp",
}


def missing() -> list[str]:
    """Packages whose program is not found, sorted."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return sorted(package for package, program in PROGRAMS.items() if shutil.which(program, path=path) is None)


def install(log: Callable[[str], object], log_file: Path) -> list[str]:
    """Install what is missing with apt-get; returns what was installed.

    Raises: LabError naming the command for a person when this is not root or apt-get fails.
    """
    wanted = missing()
    if not wanted:
        return []
    by_hand = f"apt-get install {' '.join(wanted)}"
    if os.geteuid() != 0:
        raise LabError(f"the lab needs packages that are not installed: as root, run `{by_hand}`")
    log(f"installing {' '.join(wanted)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    options = ["-y", "-q", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    options += ["-o", "Dpkg::Options::=--force-unsafe-io"]
    steps = [["apt-get", "install", *options, *wanted]]
    if not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
        steps.insert(0, ["apt-get", "update", "-q"])
    with log_file.open("ab") as out:
        # The lists may be stale (404 on a package): then update and try once more.
        if not all(_apt(step, env, out.fileno()) for step in steps):
            retry = [["apt-get", "update", "-q"], ["apt-get", "install", *options, *wanted]]
            if not all(_apt(step, env, out.fileno()) for step in retry):
                raise LabError(f"{by_hand} failed: see {log_file}; check the network and apt's sources, then try again")
    return wanted


def _apt(argv: list[str], env: dict[str, str], out: int) -> bool:
    return subprocess.run(argv, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL, check=False).returncode == 0
