"""The gateway process: `python -m oikos.lab.gateway STATE_DIR`, started and restarted by the supervisor."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

from oikos.lab import kernel
from oikos.lab.gateway import dns, http, tls, upstreams
from oikos.lab.gateway.journal import Journal
from oikos.lab.gateway.rules import LiveRules
from oikos.lab.network import Network
from oikos.lab.places import Places


def _listen(address: str, kind: socket.SocketKind, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, kind)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    if kind == socket.SOCK_STREAM:
        listener.listen(256)
    listener.setblocking(False)
    return listener


async def serve(state: Path) -> None:
    """Listen inside the lab's namespace, reach out from this machine's own."""
    network, rules, journal, known = Network.load(state), LiveRules(state), Journal(state), upstreams.names()
    debs = Places.from_environment().cache / "debs"
    debs.mkdir(parents=True, exist_ok=True)

    def sockets() -> tuple[socket.socket, socket.socket, socket.socket]:
        return (
            _listen(network.gateway, socket.SOCK_DGRAM, 53),
            _listen(network.gateway, socket.SOCK_STREAM, http.PORT),
            _listen(network.gateway, socket.SOCK_STREAM, tls.PORT),
        )

    udp, plain, secure = kernel.in_net(network.netns, sockets)
    names = dns.Names(state, network.gateway, known, rules)
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: dns.Dns(names, rules, journal), sock=udp)
    web = await asyncio.start_server(http.Http(known, rules, journal, debs).serve, sock=plain)
    sealed = await asyncio.start_server(tls.Tls(known, journal).serve, sock=secure)
    (state / "gateway.pid").write_text(str(os.getpid()))
    await asyncio.gather(web.serve_forever(), sealed.serve_forever())


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
