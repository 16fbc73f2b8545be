"""What a fault needs of the host it is put into."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from oikos.lab import cgroups
from oikos.lab.spec import HostSpec


class FaultTarget(ABC):
    """The console, the files and the cable of one host; Host is the only implementation."""

    spec: HostSpec

    @property
    @abstractmethod
    def lab_name(self) -> str: ...

    @property
    @abstractmethod
    def lab_dir(self) -> Path: ...

    @property
    @abstractmethod
    def lab_netns(self) -> str: ...

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def exec(
        self, command: str, *, check: bool = True, input: str | None = None, timeout_s: float | None = 60
    ) -> subprocess.CompletedProcess[str]: ...

    @abstractmethod
    def popen(self, command: str) -> subprocess.Popen[str]: ...

    @abstractmethod
    def write(self, path: str, text: str, mode: int = 0o644) -> None: ...

    def commands(self) -> Iterator[tuple[int, str]]:
        """Pid (as this machine numbers it) and command line of every process of the host."""
        for pid in cgroups.processes(self.lab_name, self.spec.name):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:  # it ended while we looked
                continue
            yield pid, words.replace(b"\0", b" ").decode(errors="replace").strip()
