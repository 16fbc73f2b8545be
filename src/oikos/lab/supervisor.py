"""The lab's one long-lived process: parent of every host's PID 1 and of the gateway.

It boots hosts, notices when one halts, crashes or reboots (a host that calls reboot(2) is booted again, as hardware
would), and answers one JSON object per line on a unix socket. Started as `python -m oikos.lab.supervisor STATE_DIR`.
"""

from __future__ import annotations

import functools
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oikos.lab import kernel
from oikos.lab.boot import boot
from oikos.lab.errors import LabError
from oikos.lab.network import Network
from oikos.lab.spec import HostSpec


@dataclass(slots=True, kw_only=True)
class HostStatus:
    """What the supervisor knows of a host. `last` says how its previous life ended: halted, rebooted or crashed."""

    state: str = "stopped"
    pid: int = 0
    boots: int = 0
    boot_ms: float = 0.0
    last: str = ""
    error: str = ""


class Supervisor:
    """State of one lab's processes; `serve` is its whole life."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._network = Network.load(state)
        self._specs: dict[str, HostSpec] = {}
        self._status: dict[str, HostStatus] = {}
        self._gateway = 0
        self._stopping = False

    def serve(self, ready: Callable[[], None]) -> None:
        """Until told to quit, or SIGTERM; calls `ready` when it listens."""
        kernel.become_subreaper()
        woken, waker = socket.socketpair()
        for end in (woken, waker):
            end.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: self._stop())
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._state / "ctl.sock"))
        os.chmod(self._state / "ctl.sock", 0o600)
        listener.listen(64)
        self._start_gateway()
        (self._state / "supervisor.pid").write_text(str(os.getpid()))
        ready()
        with selectors.DefaultSelector() as events:
            events.register(listener, selectors.EVENT_READ, "request")
            events.register(woken, selectors.EVENT_READ, "signal")
            while not self._stopping:
                for key, _ in events.select():
                    if key.data == "request":
                        self._answer(listener.accept()[0])
                    else:
                        woken.recv(4096)
                        self._reap()
        os.kill(self._gateway, signal.SIGTERM)

    def _stop(self) -> None:
        self._stopping = True

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as lines:
            for line in lines:
                try:
                    out = {"ok": True, **self._handle(json.loads(line))}
                except LabError as exc:
                    out = {"ok": False, "error": str(exc)}
                except Exception as exc:  # the supervisor outlives any one request: its hosts die with it
                    out = {"ok": False, "error": f"{type(exc).__name__}: {exc}"}
                lines.write(json.dumps(out).encode() + b"\n")
                lines.flush()

    def _handle(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request.get("name", "")
        match request["op"]:
            case "boot":
                spec = HostSpec.from_json(request["spec"])
                self._specs[spec.name] = spec
                return {"pid": self._boot(spec.name)}
            case "start":
                return {"pid": self._boot(name)}
            case "signal":
                if self._status[name].pid:
                    os.kill(self._status[name].pid, request["signal"])
                return {}
            case "status":
                self._reap()
                return {"hosts": {host: asdict(status) for host, status in self._status.items()}}
            case "forget":
                self._specs.pop(name, None)
                self._status.pop(name, None)
                return {}
            case "quit":
                self._stop()
                return {}
            case other:
                raise LabError(f"the lab's supervisor knows no request {other!r}")

    def _boot(self, name: str) -> int:
        status = self._status.setdefault(name, HostStatus())
        if not status.pid:
            begun = time.monotonic()
            status.pid = boot(self._network.lab, self._network, self._specs[name])
            status.state, status.error = "running", ""
            status.boots += 1
            status.boot_ms = round((time.monotonic() - begun) * 1000, 1)
        return status.pid

    def _reap(self) -> None:
        while True:
            try:
                pid, ended = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._gateway and not self._stopping:
                self._start_gateway()
            for name, status in self._status.items():
                if status.pid == pid:
                    self._host_ended(name, status, ended)

    def _host_ended(self, name: str, status: HostStatus, ended: int) -> None:
        # reboot(2): PID 1 of a pid namespace dies of SIGHUP on reboot and of SIGINT on halt.
        status.state, status.pid, status.last = "stopped", 0, "halted"
        if os.WIFSIGNALED(ended):
            how = {signal.SIGHUP: "rebooted", signal.SIGINT: "halted"}
            status.last = how.get(signal.Signals(os.WTERMSIG(ended)), "crashed")
        if status.last == "rebooted" and not self._stopping:
            try:
                self._boot(name)
            except LabError as exc:
                status.error = str(exc)

    def _start_gateway(self) -> None:
        self._gateway = os.fork()
        if self._gateway == 0:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.closerange(3, 1024)
            os.execv(sys.executable, [sys.executable, "-m", "oikos.lab.gateway", str(self._state)])


def _tell(pipe: int) -> None:
    os.write(pipe, b"+")
    os.close(pipe)


def main(state: Path) -> int:
    """Fork the supervisor; 0 when it listens, 1 when it died before (its traceback is on standard error)."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(read_end)
        Supervisor(state).serve(functools.partial(_tell, write_end))
        return 0
    os.close(write_end)
    return 0 if os.read(read_end, 1) else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
