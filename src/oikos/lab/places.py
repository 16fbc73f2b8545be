"""Where the lab keeps its state and its root filesystems, and whether the lab can run here at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oikos.lab.errors import LabError

STATE_VARIABLE, STATE_DEFAULT = "OIKOS_LAB_STATE", "/var/lib/oikos-lab"
CACHE_VARIABLE, CACHE_DEFAULT = "OIKOS_LAB_CACHE", "/var/cache/oikos-lab"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """`state`: one directory per lab, gone when it is down. `cache`: root filesystems and .deb files, kept."""

    state: Path
    cache: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Places:
        """OIKOS_LAB_STATE and OIKOS_LAB_CACHE, or the defaults below /var."""
        env = os.environ if environment is None else environment
        state = env.get(STATE_VARIABLE) or STATE_DEFAULT
        cache = env.get(CACHE_VARIABLE) or CACHE_DEFAULT
        return cls(state=Path(state).absolute(), cache=Path(cache).absolute())

    def check(self) -> None:
        """Refuse places where hosts cannot live. Raises: LabError.

        The upper directory of an overlay may not itself lie on an overlay (kernel: overlayfs.rst).
        """
        for variable, place in ((STATE_VARIABLE, self.state), (CACHE_VARIABLE, self.cache)):
            kind = filesystem(place)
            if kind == "overlay":
                raise LabError(
                    f"{place} is on an overlay filesystem, where lab hosts cannot live: "
                    f"set {variable} to a directory on a real disk or a tmpfs"
                )
            try:
                place.mkdir(parents=True, exist_ok=True)
            except OSError as exc:
                raise LabError(f"cannot make {place}: {exc.strerror}; set {variable} to a writable directory") from None


def filesystem(path: Path) -> str:
    """The type of the filesystem that holds `path` (which may not exist yet), as /proc names it."""
    best, kind = "", "unknown"
    where = os.path.realpath(path)
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].replace("\\040", " ")
        inside = where == point or where.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind


def need_root(what: str) -> None:
    """Raises: LabError when this process is not root."""
    if os.geteuid() != 0:
        raise LabError(
            f"{what} needs root (network and mount namespaces, cgroups): run it with sudo, "
            "or go on without the lab: `oikos fleet add` takes any host you reach by ssh"
        )
