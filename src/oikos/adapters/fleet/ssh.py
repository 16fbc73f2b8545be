"""SSH: one multiplexed connection per server, channels opened ahead of need, and nothing trusted that was not enrolled.

asyncssh opens a channel and asks for the command in two round trips. `_Channel` keeps a session channel open in
reserve, so that a command costs one (bench B). DESIGN §6.3 says what else is never left to a default.
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import asyncssh
from asyncssh.packet import SSHPacket, String

from oikos.adapters.fleet.flow import End, Flow
from oikos.adapters.fleet.spool import Hello
from oikos.adapters.fleet.wrap import Endpoint, Way
from oikos.domain.errors import AnotherMachine, TargetError
from oikos.domain.run import Stream

MAX_CHANNELS: Final = 8
"""sshd allows 10 sessions a connection by default (domain/PROXMOX §2)."""
READY_CHANNELS: Final = 2
KEEPALIVE_S: Final = 15
KEEPALIVE_COUNT: Final = 3
WINDOW_BYTES: Final = 2 * 1024 * 1024
PACKET_BYTES: Final = 32_768

HOST_KEY_ALGORITHMS: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
)
"""One of each kind of key a server may hold."""

CROWDED_S: Final = 0.1
CROWDED_TIMES: Final = 10
"""How often and how many times more a server is asked that opens no channel although none of ours is in use."""

GRACE_S: Final = 0.5
"""After the exit status: how long the channel may stay open without a byte before it is closed."""
GRACE_BYTES: Final = 8 * 1024 * 1024
"""And how much may still come; sshd holds no more than a window and a pipe of what the command itself wrote."""

_SIGNALS: Final = {name.removeprefix("SIG"): number.value for name, number in signal.Signals.__members__.items()}


class Link:
    """One connection: at most `MAX_CHANNELS` channels, some of them opened ahead of need."""

    def __init__(self, connection: asyncssh.SSHClientConnection, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._connection = connection
        self._ready: deque[_Channel] = deque()
        self._slots = asyncio.Semaphore(MAX_CHANNELS)
        self._held = 0
        self._refilling = False
        self.hellos: dict[Way, Hello] = {}
        """What the machines behind this connection said of themselves, by Way."""
        self._reserve = True
        """False after the server refused a channel: it allows fewer than we hold."""

    @property
    def alive(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return not self._connection.is_closed()

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        """For use as a tunnel."""
        return self._connection

    async def start(self, command: str, *, channel_s: float, stdin: bytes = b"") -> SshProcess:
        """Start a command. With a channel in reserve nothing is waited for.

        Raises:
            TargetError: no channel could be had; the command was not sent.
        """
        channel = await self._take(channel_s)
        process = SshProcess(channel)
        try:
            channel.begin(process, command)
            if stdin:
                channel.write(stdin)
            channel.write_eof()
        except (OSError, asyncssh.Error) as error:
            # Something may have been sent: that is for the reader of the process to judge.
            process.flow.finish(End(lost=_first_line(error)))
        self._refill()
        return process

    def close(self) -> None:
        """Begin closing."""
        self._connection.close()

    async def closed(self) -> None:
        """Return when it is closed, or is given up."""
        try:
            async with asyncio.timeout(2):
                await self._connection.wait_closed()
        except TimeoutError:
            self._connection.abort()

    async def _take(self, channel_s: float) -> _Channel:
        while self._ready:
            channel = self._ready.popleft()
            if channel.usable:
                return channel
        try:
            async with asyncio.timeout(channel_s):
                return await self._patiently()
        except TimeoutError:
            raise TargetError(f"{self.endpoint.name}: no channel within {channel_s:g} s (channel deadline)") from None
        except (asyncssh.Error, OSError) as error:
            raise TargetError(f"{self.endpoint.name}: the server opened no channel: {_first_line(error)}") from None

    async def _patiently(self) -> _Channel:
        """Open one; a server that allows no more for the moment is asked again while others of ours are in use.

        sshd counts a session until its shell is reaped, which is later than the channel's end: without any other it is
        asked a few times more.
        """
        alone = 0
        while True:
            await self._slots.acquire()
            try:
                return await self._open()
            except asyncssh.ChannelOpenError:
                alone = 0 if self._held else alone + 1
                if alone > CROWDED_TIMES or not self.alive:
                    raise
            await asyncio.sleep(CROWDED_S)

    async def _open(self) -> _Channel:
        """Open one with a slot that is already held."""
        self._held += 1
        try:
            channel = _Channel(self._connection, self._free)
        except BaseException:
            self._free()
            raise
        await channel.reserve()
        return channel

    def _free(self) -> None:
        self._held -= 1
        self._slots.release()

    def _refill(self) -> None:
        if self._reserve and not self._refilling and len(self._ready) < READY_CHANNELS and self.alive:
            self._refilling = True
            self._connection.create_task(self._open_ahead())  # allow: bare-task - asyncssh owns it

    async def _open_ahead(self) -> None:
        try:
            while len(self._ready) < READY_CHANNELS and not self._slots.locked():
                await self._slots.acquire()
                self._ready.append(await self._open())
        except (asyncssh.Error, OSError):
            self._reserve = False
        finally:
            self._refilling = False


class _Channel(asyncssh.SSHClientChannel[bytes]):
    """A session channel in two steps: `reserve` opens it, `begin` names the command without waiting."""

    def __init__(self, connection: asyncssh.SSHClientConnection, free: Callable[[], None]) -> None:
        super().__init__(connection, asyncio.get_running_loop(), "strict", None, "strict", WINDOW_BYTES, PACKET_BYTES)
        self._free: Callable[[], None] | None = free
        self._given_up = False

    @property
    def usable(self) -> bool:
        """Whether it is open for a command."""
        return self.open and self._send_state == "open" and self._recv_state == "open"

    @property
    def open(self) -> bool:
        """Whether the server still knows it."""
        return self._send_chan is not None

    async def reserve(self) -> None:
        """Open it."""
        try:
            packet = await self._open(b"session")
        except asyncio.CancelledError:
            self._given_up = True
            raise
        packet.check_end()

    def begin(self, process: SshProcess, command: str) -> None:
        """Send the command. A refusal by the server ends the process."""
        self._session = process
        answer: asyncio.Future[bool] = self._loop.create_future()
        answer.add_done_callback(process.answered)
        self._request_waiters.append(answer)
        self._send_request(b"exec", String(command), want_reply=True)
        self.resume_reading()

    def ask(self) -> asyncio.Future[bool]:
        """Make the server answer (it knows no such request and says so)."""
        answer: asyncio.Future[bool] = self._loop.create_future()
        self._request_waiters.append(answer)
        self._send_request(b"keepalive@openssh.com", want_reply=True)
        return answer

    def process_open_confirmation(self, send_chan: int, send_window: int, send_pktsize: int, packet: SSHPacket) -> None:
        """Opened; when nobody waits any more it is closed again, so that it holds no slot."""
        super().process_open_confirmation(send_chan, send_window, send_pktsize, packet)
        if self._given_up:
            self.close()

    def _cleanup(self, exc: Exception | None = None) -> None:
        super()._cleanup(exc)
        free, self._free = self._free, None
        if free is not None:
            free()


class SshProcess(asyncssh.SSHClientSession[bytes]):
    """One command on a channel."""

    def __init__(self, channel: _Channel) -> None:
        self.flow = Flow(pause=channel.pause_reading, resume=channel.resume_reading)
        self._channel = channel
        self._loop = asyncio.get_running_loop()
        self._end: End | None = None
        self._since_end_bytes = 0
        self._grace: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Close the channel."""
        if self._grace is not None:
            self._grace.cancel()
        self._channel.close()
        self.flow.finish(End(lost="closed here"))

    def answered(self, answer: asyncio.Future[bool]) -> None:
        """The server's answer to the exec request."""
        if not answer.cancelled() and answer.exception() is None and not answer.result() and self._end is None:
            self.flow.finish(End(refused=True, lost="the server refused to start a command"))
            self._channel.close()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Output, in order."""
        self.flow.feed(Stream.ERR if datatype == asyncssh.EXTENDED_DATA_STDERR else Stream.OUT, data)
        if self._end is not None:
            self._since_end_bytes += len(data)
            self._linger()

    def exit_status_received(self, status: int) -> None:
        """The command ended; its output may still be under way."""
        self._ended(End(code=status))

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """A signal ended the command."""
        self._ended(End(signal=_SIGNALS.get(signal, 0)))

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed, by either side, or with its connection."""
        if self._grace is not None:
            self._grace.cancel()
        self.flow.finish(self._end or End(lost=_first_line(exc) if exc else "the connection was closed"))

    def _ended(self, end: End) -> None:
        self._end = end
        self._linger()

    def _linger(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        self._grace = self._loop.call_later(GRACE_S, self._give_up)

    def _give_up(self) -> None:
        """The command is gone and its channel is silent: either a background child holds it, or the network is slow.

        Answers come in order behind the output that was sent before them: one question tells which it is.
        """
        if self.flow.paused and self._since_end_bytes < GRACE_BYTES:
            self._linger()
        elif self._channel.open:
            seen = self._since_end_bytes
            self._channel.ask().add_done_callback(lambda _: self._asked(seen))

    def _asked(self, seen: int) -> None:
        if seen != self._since_end_bytes and seen < GRACE_BYTES:
            self._linger()
        elif self._end is not None:
            self.flow.finish(dataclasses.replace(self._end, held=True))
            self._channel.close()


async def connect(
    endpoint: Endpoint, *, jump: Link | None, connect_s: float, agent: str = ""
) -> asyncssh.SSHClientConnection:
    """Make one connection with every option said (DESIGN §6.3).

    Raises:
        TargetError: one line: the target, the cause, the remedy. AnotherMachine when its host key has changed.
    """
    name = endpoint.name
    trusted, authorities = await asyncio.to_thread(_enrolled, endpoint)
    client = _Client()
    try:
        return await asyncssh.connect(
            endpoint.address, endpoint.port,
            **options(endpoint, trusted=trusted, authorities=authorities, connect_s=connect_s, agent=agent),
            client_factory=lambda: client,
            tunnel=jump.connection if jump else None,
        )  # fmt: skip
    except asyncssh.HostKeyNotVerifiable as error:
        kind = AnotherMachine if endpoint.host_keys else TargetError
        raise kind(_host_key_text(endpoint, client.offered, str(error))) from None
    except asyncssh.KeyExchangeFailed as error:
        raise TargetError(
            f"{name}: no common ground with {endpoint}: {_first_line(error)}; "
            f"if its host keys were renewed, run: oikos fleet trust {name}"
        ) from None
    except asyncssh.PermissionDenied:
        with_what = f"key {endpoint.key}" if endpoint.key else "any key of the agent or of ~/.ssh"
        raise TargetError(
            f"{name}: {endpoint} does not accept {with_what}; "
            f"add its public half to the account, or set 'key' in [targets.{name}]"
        ) from None
    except TimeoutError:
        raise TargetError(f"{name}: {endpoint} did not answer within {connect_s:g} s (connect deadline)") from None
    except ConnectionRefusedError:
        raise TargetError(f"{name}: {endpoint} refuses connections; is sshd running and the port right?") from None
    except socket.gaierror:
        raise TargetError(
            f"{name}: the name {endpoint.address} is not known; correct 'address' in [targets.{name}]"
        ) from None
    except asyncssh.ChannelOpenError as error:
        raise TargetError(f"{name}: {endpoint} cannot be reached through the jump host: {_first_line(error)}") from None
    except (asyncssh.Error, OSError) as error:
        raise TargetError(f"{name}: {endpoint} cannot be reached: {_first_line(error)}") from None
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError, ValueError) as error:
        raise TargetError(f"{name}: the key {endpoint.key} cannot be used: {_first_line(error)}") from None


def options(
    endpoint: Endpoint,
    *,
    trusted: Sequence[asyncssh.SSHKey],
    authorities: Sequence[asyncssh.SSHKey],
    connect_s: float,
    agent: str,
) -> dict[str, Any]:
    """Every option of a connection; a test asserts them one by one."""  # fmt: skip
    return {
        "username": endpoint.user,
        "known_hosts": (list(trusted), list(authorities), []),
        "x509_trusted_certs": None,
        "config": None,
        "client_keys": [str(Path(endpoint.key).expanduser())] if endpoint.key else (),
        "agent_path": None if endpoint.key else (agent or None),
        "agent_forwarding": False,
        "x11_forwarding": False,
        "password": None,
        "preferred_auth": "publickey",
        "public_key_auth": True,
        "password_auth": False,
        "kbdint_auth": False,
        "host_based_auth": False,
        "gss_kex": False,
        "gss_auth": False,
        "gss_host": None,
        "proxy_command": None,
        "canonicalize_hostname": False,
        "compression_algs": None,
        "env": None,
        "send_env": None,
        "request_pty": False,
        "encoding": None,
        "connect_timeout": connect_s,
        "login_timeout": connect_s,
        "keepalive_interval": KEEPALIVE_S,
        "keepalive_count_max": KEEPALIVE_COUNT,
        "tcp_keepalive": True,
        "disable_trivial_auth": True,
    }


async def scan_host_keys(address: str, port: int, *, timeout_s: float = 15.0, jump: Link | None = None) -> list[str]:
    """All host keys a server offers, as `TYPE BASE64`, without trusting or logging in.

    Raises:
        TargetError: it cannot be reached.
    """
    found: list[str] = []
    trouble = "none of a known kind"
    for algorithm in HOST_KEY_ALGORITHMS:
        try:
            async with asyncio.timeout(timeout_s):
                key = await asyncssh.get_server_host_key(
                    address, port, config=None, server_host_key_algs=[algorithm], proxy_command=None,
                    tunnel=jump.connection if jump else None,
                )  # fmt: skip
        except TimeoutError:
            raise TargetError(f"{address}:{port} did not answer within {timeout_s:g} s") from None
        except (asyncssh.Error, ConnectionResetError, BrokenPipeError) as error:
            trouble = _first_line(error)  # it has no key of this kind, and says so or hangs up
            continue
        except OSError as error:
            raise TargetError(f"{address}:{port} cannot be reached: {_first_line(error)}") from None
        if key is not None:
            found.append(_public(key))
    if not found:
        raise TargetError(f"{address}:{port} shows no host key: {trouble}")
    return found


def fingerprint(host_key: str) -> str:
    """`SHA256:…` of a public key in OpenSSH form, as `ssh-keygen -l` prints it."""
    return asyncssh.import_public_key(host_key).get_fingerprint()


class _Client(asyncssh.SSHClient):
    """Remembers the key that was offered, so that a refusal can show it."""

    def __init__(self) -> None:
        self.offered: asyncssh.SSHKey | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Asked only about keys that are not enrolled: never trusted."""
        self.offered = key
        return False


def _enrolled(endpoint: Endpoint) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
    """The enrolled host keys and certificate authorities; also checks that the login key is there."""
    if endpoint.key and not Path(endpoint.key).expanduser().is_file():
        raise TargetError(
            f"{endpoint.name}: the key file {endpoint.key} is missing; "
            f"put it there or correct 'key' in [targets.{endpoint.name}]"
        )
    trusted: list[asyncssh.SSHKey] = []
    authorities: list[asyncssh.SSHKey] = []
    for text in endpoint.host_keys:
        marker, _, rest = text.partition(" ")
        try:
            if marker == "@cert-authority":
                authorities.append(asyncssh.import_public_key(rest))
            else:
                trusted.append(asyncssh.import_public_key(text))
        except asyncssh.KeyImportError:
            raise TargetError(
                f"{endpoint.name}: an enrolled host key is unreadable; enrol anew: oikos fleet trust {endpoint.name}"
            ) from None
    return trusted, authorities


def _host_key_text(endpoint: Endpoint, offered: asyncssh.SSHKey | None, cause: str) -> str:
    name = endpoint.name
    shown = f"{offered.get_algorithm()} {offered.get_fingerprint()}" if offered else cause
    if not endpoint.host_keys:
        return (
            f"{name}: the host key of {endpoint} is not enrolled ({shown}); "
            f"compare it and run: oikos fleet trust {name}"
        )
    known = ", ".join(fingerprint(key.removeprefix("@cert-authority ")) for key in endpoint.host_keys)
    return (
        f"{name}: THE HOST KEY OF {endpoint} HAS CHANGED: offered {shown}, enrolled {known}; nothing was sent. "
        f"If the machine was reinstalled, run: oikos fleet trust {name}"
    )


def _public(key: asyncssh.SSHKey) -> str:
    kind, blob, *_ = key.export_public_key("openssh").decode("ascii").split()
    return f"{kind} {blob}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
