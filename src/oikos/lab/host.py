"""One host of a lab: its console, its SSH, its files, its power."""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oikos.lab import cgroups, kernel
from oikos.lab.command import run
from oikos.lab.errors import LabError
from oikos.lab.faults.disk import DiskFaults
from oikos.lab.faults.network import NetworkFaults
from oikos.lab.faults.programs import ProgramFaults
from oikos.lab.faults.sessions import SessionFaults
from oikos.lab.layers import Kind
from oikos.lab.spec import HostSpec

if TYPE_CHECKING:
    from oikos.lab.lab import Lab

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = (f"PATH={PATH}", "HOME=/root", "TERM=dumb", "LANG=C.UTF-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostState:
    """`state` is running, stopped or absent; `last` says how its previous life ended: halted, rebooted, crashed."""

    state: str = "absent"
    pid: int = 0
    boots: int = 0
    boot_ms: float = 0.0
    last: str = ""
    error: str = ""


class Host(NetworkFaults, DiskFaults, ProgramFaults, SessionFaults):
    """Made by Lab.add; `lab.hosts[name]` is the same object."""

    def __init__(self, lab: Lab, spec: HostSpec) -> None:
        self.lab, self.spec = lab, spec

    def __repr__(self) -> str:
        return f"Host({self.name!r}, kind={self.kind!r}, address={self.address!r})"

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def kind(self) -> Kind:
        return self.spec.kind

    @property
    def address(self) -> str:
        """Reachable by TCP from this machine and from every host of the lab."""
        return self.spec.address

    @property
    def dir(self) -> Path:
        return Path(self.spec.dir)

    @property
    def upper(self) -> Path:
        """The host's own files, as this machine sees them."""
        return self.spec.upper

    @property
    def lab_name(self) -> str:
        return self.lab.name

    @property
    def lab_dir(self) -> Path:
        return self.lab.dir

    @property
    def lab_netns(self) -> str:
        return self.lab.network.netns

    @property
    def state(self) -> HostState:
        """What the supervisor says now."""
        hosts: dict[str, Any] = self.lab.call("status")["hosts"]
        return HostState(**hosts.get(self.name, {}))

    @property
    def pid(self) -> int:
        """PID 1 of the host, as this machine numbers it; 0 when it is not running."""
        return self.state.pid

    def host_keys(self) -> list[str]:
        """Its public SSH host keys, `ssh-ed25519 AAAA…` without comment, for enrolment."""
        files = sorted((self.upper / "etc/ssh").glob("ssh_host_*_key.pub"))
        return [" ".join(file.read_text(encoding="utf-8").split()[:2]) for file in files]

    # The console: not SSH; works while the host runs, whatever its network does.

    def exec(
        self, command: str, *, check: bool = True, input: str | None = None, timeout_s: float | None = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command as root at the console.

        Raises: LabError when the host is down, or the command fails and `check` is set; subprocess.TimeoutExpired.
        """
        done = subprocess.run(
            [*self._enter(), "/usr/bin/env", "-i", *ENVIRONMENT, "/bin/sh", "-c", command],
            text=True,
            errors="replace",
            capture_output=True,
            input=input,
            timeout=timeout_s,
            cwd="/",
            preexec_fn=self._join(),
            check=False,
        )
        if check and done.returncode:
            why = done.stderr.strip() or done.stdout.strip()
            raise LabError(f"{self.name}: {command!r}: exit {done.returncode}: {why[-600:]}")
        return done

    def popen(self, command: str) -> subprocess.Popen[str]:
        """Start a shell command at the console; its standard output is a pipe."""
        return subprocess.Popen(
            [*self._enter(), "/bin/sh", "-c", command],
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd="/",
            preexec_fn=self._join(),
            start_new_session=True,
        )

    def _enter(self) -> list[str]:
        pid = self.pid
        if not pid:
            raise LabError(f"host {self.name} is not running: start it with `lab.hosts[{self.name!r}].start()`")
        return ["nsenter", "-t", str(pid), "-m", "-u", "-i", "-n", "-p", "-C", "-T", "--"]

    def _join(self) -> Callable[[], None]:
        """For the child, before nsenter: the host's cgroups, and no more privilege than its PID 1 has."""
        lab, name = self.lab.name, self.name

        def join() -> None:
            cgroups.join(lab, name, leaf="lab.exec")
            kernel.drop_caps()

        return join

    def ssh(
        self, command: str, *, check: bool = False, timeout_s: float | None = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command by ssh, the way an agent comes in.

        Raises: LabError when the command fails and `check` is set; subprocess.TimeoutExpired.
        """
        done = subprocess.run(
            ["ssh", "-F", str(self.lab.ssh_config), self.name, "--", command],
            text=True,
            errors="replace",
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
        if check and done.returncode:
            why = done.stderr.strip() or done.stdout.strip()
            raise LabError(f"ssh {self.name} {command!r}: exit {done.returncode}: {why[-600:]}")
        return done

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file through the console, with its directories."""
        parent, file = shlex.quote(str(Path(path).parent)), shlex.quote(path)
        self.exec(f"mkdir -p {parent} && cat > {file} && chmod {mode:o} {file}", input=text)

    def read(self, path: str) -> str:
        return self.exec(f"cat {shlex.quote(path)}").stdout

    # Power.

    def wait_ready(self, timeout_s: float = 60) -> None:
        """Until its SSH server greets. Raises: LabError."""
        self.lab.wait_ready([self], timeout_s)

    def wait_state(self, state: str, timeout_s: float = 30) -> None:
        """Until it is `running` or `stopped`. Raises: LabError."""
        self._wait(lambda now: now.state == state, f"become {state}", timeout_s)

    def wait_boot(self, boots: int, timeout_s: float = 60) -> None:
        """Until it has been booted so many times in all and greets again. Raises: LabError."""
        self._wait(lambda now: now.boots >= boots, f"boot {boots} times", timeout_s)
        self.wait_ready(timeout_s)

    def _wait(self, reached: Callable[[HostState], bool], what: str, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        while not reached(now := self.state):
            if time.monotonic() > end:
                raise LabError(f"host {self.name} did not {what} within {timeout_s:.0f} s: {now}")
            time.sleep(0.03)

    def start(self) -> None:
        self.lab.call("start", name=self.name)

    def stop(self, timeout_s: float = 20) -> None:
        """Ask systemd to halt; pull the plug when it does not."""
        self.lab.call("signal", name=self.name, signal=signal.SIGRTMIN + 3)
        try:
            self.wait_state("stopped", timeout_s)
        except LabError:
            self.power_off()

    def power_off(self) -> None:
        """As if the plug were pulled."""
        cgroups.kill(self.lab.name, self.name)
        self.wait_state("stopped", 10)

    def destroy(self) -> None:
        """Take the host away with all that is its own."""
        if self.pid:
            self.power_off()
        self.lab.call("forget", name=self.name)
        run(["ip", "netns", "del", self.spec.netns], check=False)
        run(["umount", "-l", str(self.spec.store)], check=False)
        cgroups.remove(self.lab.name, self.name)
        shutil.rmtree(self.dir)
        self.lab.forget(self)

    # Snapshots of the whole host's filesystem.

    def snapshot(self, name: str) -> None:
        """Keep a copy of the host's files under a name; a running host stands still meanwhile."""
        running = bool(self.pid)
        if running:
            self.hang()
        try:
            kept = self.dir / "snap" / name
            kept.parent.mkdir(exist_ok=True)
            run(["cp", "-a", "--sparse=always", str(self.upper), str(kept)])
        finally:
            if running:
                self.unhang()

    def rollback(self, name: str) -> None:
        """Go back to a snapshot; a running host is powered off and started again. Raises: LabError."""
        kept = self.dir / "snap" / name
        if not kept.is_dir():
            raise LabError(f"host {self.name} has no snapshot {name!r}")
        running = bool(self.pid)
        if running:
            self.power_off()
        shutil.rmtree(self.upper)
        run(["cp", "-a", str(kept), str(self.upper)])
        if running:
            self.start()
