"""A container's configuration file: `key: value` lines, the description as comments, one section per snapshot."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator

from oikos.lab.node.errors import Die
from oikos.lab.node.site import CONFIGS, site

LOCK_WITHIN_S = 10.0


class Conf(dict[str, str]):
    """The current section is the mapping itself; `snapshots` maps names to sections, oldest first."""

    def __init__(self, vmid: str) -> None:
        super().__init__()
        self.vmid = vmid
        self.snapshots: dict[str, dict[str, str]] = {}

    @property
    def path(self) -> str:
        return f"{CONFIGS}/{self.vmid}.conf"

    @property
    def hostname(self) -> str:
        return self.get("hostname", f"CT{self.vmid}")

    @classmethod
    def load(cls, vmid: str) -> Conf:
        """Raises: Die(2) when there is no such container."""
        conf = cls(vmid)
        try:
            with open(conf.path, encoding="utf-8") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            raise Die(f"Configuration file 'nodes/{site().node}/lxc/{vmid}.conf' does not exist", 2) from None
        section: dict[str, str] = conf
        for line in lines:
            heading = re.fullmatch(r"\[(.+)\]", line)
            if heading:
                section = conf.snapshots.setdefault(heading[1], {})
            elif line.startswith("#"):
                said = section.get("description")
                section["description"] = line[1:] if said is None else f"{said}\n{line[1:]}"
            elif ": " in line:
                key, value = line.split(": ", 1)
                section[key] = value
        return conf

    def save(self) -> None:
        """Replace the file at once."""
        lines = _lines(self)
        for name, section in self.snapshots.items():
            lines += ["", f"[{name}]", *_lines(section)]
        os.makedirs(CONFIGS, exist_ok=True)
        with open(f"{self.path}.tmp", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(f"{self.path}.tmp", self.path)

    def unlocked(self) -> Conf:
        """Itself. Raises: Die when a `lock:` is set."""
        if self.get("lock"):
            raise Die(f"CT is locked ({self['lock']})")
        return self

    def snapshot(self, name: str) -> dict[str, str]:
        """Raises: Die when there is none of that name."""
        if name not in self.snapshots:
            raise Die(f"snapshot '{name}' does not exist")
        return self.snapshots[name]


def _lines(section: dict[str, str]) -> list[str]:
    description = [f"#{line}" for line in section.get("description", "").splitlines()]
    return description + [f"{key}: {value}" for key, value in sorted(section.items()) if key != "description"]


@contextlib.contextmanager
def locked(vmid: str) -> Iterator[None]:
    """Hold the lock of a container's configuration. Raises: Die after ten seconds."""
    os.makedirs("/run/lock/lxc", exist_ok=True)
    path = f"/run/lock/lxc/pve-config-{vmid}.lock"
    end = time.monotonic() + LOCK_WITHIN_S
    with open(path, "w", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > end:
                    raise Die(f"can't lock file '{path}' - got timeout") from None
                time.sleep(0.1)
        yield
