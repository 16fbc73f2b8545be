"""The server process around the application: its socket, its signals, and a clean end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from oikos.domain.errors import ConfigError
from oikos.domain.value import dataclass
from oikos.web.api import Backend
from oikos.web.guard import LOOPBACK
from oikos.web.routes import BASE, application
from oikos.web.tokens import Tokens

LEAVING_S = 5
"""How long requests under way may take to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """Where to listen, and under which names."""

    host: str = "127.0.0.1"
    port: int = 8470
    """0: any free one."""
    names: tuple[str, ...] = ()
    """Other host names that clients may use, such as a reverse proxy's."""
    certificate: Path | None = None
    key: Path | None = None
    without_tls: bool = False

    @property
    def scheme(self) -> str:
        """http or https."""
        return "https" if self.certificate is not None else "http"


def listen(binding: Binding) -> socket.socket:
    """The listening socket.

    Raises:
        ConfigError: it would let tokens travel in the clear, or the address cannot be had.
    """
    if (binding.certificate is None) != (binding.key is None):
        raise ConfigError("--tls-cert and --tls-key belong together: give both")
    if not _loopback(binding.host) and binding.certificate is None and not binding.without_tls:
        raise ConfigError(
            f"{binding.host} is not this machine alone, and tokens would travel in the clear: give --tls-cert and "
            "--tls-key, or --without-tls behind a proxy that has them"
        )
    family = socket.AF_INET6 if ":" in binding.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((binding.host, binding.port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {binding.host} port {binding.port} ({error.strerror}): give another --host or --port"
        ) from None
    return listener


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Server(uvicorn.Server):
    """Signals are ours: the application behind the server ends after it, in order."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


async def serve(
    backend: Backend, tokens: Tokens, binding: Binding, listener: socket.socket, *, ready: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is told the address once requests are taken.

    Raises:
        ConfigError: the certificate cannot be used.
    """
    closing = asyncio.Event()
    hosts = {*LOOPBACK, binding.host, *binding.names} - {"0.0.0.0", "::"}
    app = application(backend, tokens, hosts=hosts, closing=closing)
    config = uvicorn.Config(
        app, http="h11", ws="none", lifespan="off", loop="none", access_log=False, log_level="warning",
        server_header=False, proxy_headers=False, timeout_graceful_shutdown=LEAVING_S,
        ssl_certfile=binding.certificate, ssl_keyfile=binding.key,
    )  # fmt: skip
    try:
        config.load()
    except OSError as error:
        raise ConfigError(f"the certificate {binding.certificate} or its key cannot be used ({error})") from None
    server = _Server(config)

    def leave() -> None:
        closing.set()
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, leave)
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    listener.listen(128)  # from here on nobody is turned away; the first are served as the loop goes on
    ready(f"{binding.scheme}://{name}:{port}{BASE}")
    try:
        await server.serve(sockets=[listener])
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
