"""Faults of SSH sessions and of the whole host: cut, stopped, frozen, starved."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from dataclasses import replace

from oikos.lab import cgroups
from oikos.lab.command import run
from oikos.lab.errors import LabError
from oikos.lab.faults.target import FaultTarget
from oikos.lab.spec import size_bytes


class SessionFaults(FaultTarget):
    """Mixed into Host."""

    def kill_ssh_sessions(self, *, when_running: str | None = None, within_s: float = 30, after_s: float = 0) -> int:
        """Kill live SSH sessions, not the listener; how many processes that were.

        With `when_running`, wait until a command that matches the pattern runs. The command lives on.
        Raises: LabError when it never ran.
        """
        if when_running is not None:
            end = time.monotonic() + within_s
            while not any(
                re.search(when_running, words) for _, words in self.commands() if not words.startswith("sshd")
            ):
                if time.monotonic() > end:
                    raise LabError(f"{self.spec.name}: nothing matching {when_running!r} ran within {within_s:.0f} s")
                time.sleep(0.02)
        time.sleep(after_s)
        killed = 0
        for pid, words in list(self.commands()):
            if words.startswith("sshd:") and "[listener]" not in words:
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:  # it ended by itself
                    continue
        return killed

    def ssh_cut(self, seconds: float, *, when_running: str | None = None, within_s: float = 600) -> int:
        """Kill live SSH sessions and pull the cable for so long; how many processes were killed.

        Returns when the cable is out; a process of its own puts it back. What the sessions had started lives on.
        `when_running`, `within_s` and LabError: as for `kill_ssh_sessions`.
        """
        killed = self.kill_ssh_sessions(when_running=when_running, within_s=within_s)
        plug = ["ip", "-n", self.lab_netns, "link", "set", self.spec.port]
        run([*plug, "down"])
        later = f"exec > /dev/null 2>&1; sleep {seconds:g}; exec {shlex.join([*plug, 'up'])}"
        run(["setsid", "--fork", "sh", "-c", later])
        return killed

    def stop_sshd(self) -> None:
        self.exec("systemctl stop ssh.socket 2>/dev/null; systemctl stop ssh.service")

    def hang(self) -> None:
        """Freeze every process: TCP connects, nothing answers."""
        cgroups.freeze(self.lab_name, self.spec.name, frozen=True)

    def unhang(self) -> None:
        cgroups.freeze(self.lab_name, self.spec.name, frozen=False)

    def limit(self, *, memory: str | int | None = None, cpus: float | None = None, pids: int | None = None) -> None:
        """Change the host's limits while it runs; what is not given keeps its value."""
        limits = self.spec.limits
        if memory is not None:
            limits = replace(limits, memory_bytes=size_bytes(memory))
        if cpus is not None:
            limits = replace(limits, cpus=cpus)
        if pids is not None:
            limits = replace(limits, pids=pids)
        cgroups.set_limits(self.lab_name, self.spec.name, limits)
