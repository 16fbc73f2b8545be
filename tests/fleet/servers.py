"""A private OpenSSH server on loopback, and a proxy in front of it that can cut and delay."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.wait import until

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))


@dataclass(kw_only=True)
class Server:
    """One sshd with its own keys, and a home directory of its own for every session."""

    directory: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """The home that sessions see."""
        return self.directory / "home"

    @property
    def key(self) -> Path:
        """The private key that may log in."""
        return self.directory / "id"

    @property
    def spool(self) -> Path:
        """Where supervised runs live."""
        return self.home / ".local/state/oikos/spool"

    def host_keys(self) -> tuple[str, ...]:
        """What an operator enrols."""
        return tuple(" ".join(path.read_text().split()[:2]) for path in sorted(self.directory.glob("host_*.pub")))

    def renew_host_keys(self) -> None:
        """Give the server a new identity; it must be restarted."""
        for path in self.directory.glob("host_*"):
            path.unlink()
        _keygen(self.directory / "host_ed25519", "ed25519")

    def start(self) -> None:
        """Start listening."""
        assert SSHD is not None, "openssh-server is missing"
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(self.directory / "sshd_config")], stdin=subprocess.DEVNULL, stderr=log
            )
        until(lambda: _listens(self.port), f"sshd on port {self.port}")

    def stop(self) -> None:
        """Stop listening; sessions go on."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def sessions(self) -> list[int]:
        """Process ids of the server's children, deepest last."""
        assert self.process is not None
        found, queue = [], [self.process.pid]
        while queue:
            for child in _children(queue.pop()):
                if b"sshd" in _words(child):
                    found.append(child)
                    queue.append(child)
        return found

    def connections(self) -> list[int]:
        """The server's direct children: one for each connection."""
        assert self.process is not None
        return _children(self.process.pid)

    def kill_sessions(self) -> int:
        """SIGKILL every session process, as a crash of the server would."""
        killed = 0
        for pid in self.sessions():
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        return killed

    def commands(self) -> list[bytes]:
        """Command lines of everything that runs below the server."""
        assert self.process is not None
        found, queue = [], [self.process.pid]
        while queue:
            for child in _children(queue.pop()):
                found.append(_words(child))
                queue.append(child)
        return found


@contextmanager
def server(directory: Path, *, more: str = "") -> Iterator[Server]:
    """A running sshd; the directory must be empty."""
    made = Server(directory=directory, port=free_port())
    made.home.mkdir(mode=0o700)
    _keygen(directory / "host_ed25519", "ed25519")
    _keygen(directory / "host_ecdsa", "ecdsa")
    _keygen(directory / "id", "ed25519")
    shutil.copy(directory / "id.pub", directory / "authorized")
    (directory / "sshd_config").write_text(
        f"""ListenAddress 127.0.0.1
Port {made.port}
HostKey {directory}/host_ed25519
{"" if not (directory / "host_ecdsa").exists() else f"HostKey {directory}/host_ecdsa"}
PidFile none
AuthorizedKeysFile {directory}/authorized
SetEnv HOME={made.home} LEAKED=from-the-server
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 100
LogLevel ERROR
AllowTcpForwarding yes
{more}
"""
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    made.start()
    try:
        yield made
    finally:
        if made.process:
            made.kill_sessions()
        made.stop()


@dataclass(kw_only=True)
class Proxy:
    """A TCP relay that counts, delays and cuts."""

    target: int
    delay_s: float = 0.0
    port: int = 0
    accepted: int = 0
    from_client_bytes: int = 0
    refuse: bool = False
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _handlers: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset every connection at once."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def stop(self) -> None:
        """Stop, and cut what is left."""
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=5)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        handler.add_done_callback(self._handlers.discard)
        if self.refuse:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers += [writer, far_writer]
        await asyncio.gather(self._pipe(reader, far_writer, count=True), self._pipe(far_reader, writer, count=False))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, count: bool) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await reader.read(1 << 18):
                if count:
                    self.from_client_bytes += len(data)
                if self.delay_s:
                    loop.call_later(self.delay_s, _write, writer, data)
                else:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        loop.call_later(self.delay_s, writer.close)


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _keygen(path: Path, kind: str) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(path)], check=True)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it ended meanwhile
        return found
    for task in tasks:
        try:
            found += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
        except OSError:
            continue
    return found


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
