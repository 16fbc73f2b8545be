"""The lab's DNS: A records of hosts, containers, registries and invented services; NXDOMAIN for the rest (RFC 1035)."""

from __future__ import annotations

import asyncio
import socket
import struct
from pathlib import Path
from typing import cast

from oikos.lab.gateway.journal import Journal
from oikos.lab.gateway.rules import LiveRules

TYPE_A, CLASS_IN, TTL_S = 1, 1, 5
SERVFAIL, NXDOMAIN, REFUSED = 2, 3, 5
ANSWER_FLAGS = 0x8180


class Names:
    """Which address a name has."""

    def __init__(self, state: Path, gateway: str, upstreams: frozenset[str], rules: LiveRules) -> None:
        self._state, self._gateway, self._upstreams, self._rules = state, gateway, upstreams, rules

    def address(self, name: str) -> str | None:
        name = name.rstrip(".").lower()
        short = name.removesuffix(".lab")
        if "/" not in short:
            file = self._state / "hosts.d" / short
            if file.is_file():
                return file.read_text(encoding="utf-8").strip()
        if "." not in short:
            return self._container(short)
        return self._gateway if name in self._upstreams or name in self._rules.hosts() else None

    def _container(self, short: str) -> str | None:
        """A container that `pct` made on one of the nodes: each node notes its own in /etc/pve/lab."""
        for file in self._state.glob("hosts/*/store/upper/etc/pve/lab/*"):
            words = file.read_text(encoding="utf-8").split()
            if words[:1] == [short] and len(words) == 2:
                return words[1]
        return None


class Dns(asyncio.DatagramProtocol):
    """Answers one question per datagram."""

    def __init__(self, names: Names, rules: LiveRules, journal: Journal) -> None:
        self._names, self._rules, self._journal = names, rules, journal
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Python 3.11's own datagram transport is no subclass of the class it documents.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        try:
            answer = self.answer(data, addr[0])
        except (IndexError, struct.error):  # not a DNS question
            return
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)

    def answer(self, query: bytes, peer: str) -> bytes | None:
        """The response to a query, or None to stay silent."""
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode("latin1"))
            at += query[at] + 1
        (kind,) = struct.unpack(">H", query[at + 1 : at + 3])
        name, question = ".".join(labels), query[12 : at + 5]
        code, record = 0, b""
        match self._rules.dns(peer):
            case "drop":
                self._journal.note(dns=name, peer=peer, fault="drop")
                return None
            case "servfail":
                code = SERVFAIL
            case "nxdomain":
                code = NXDOMAIN
            case "refused":
                code = REFUSED
            case None:
                address = self._names.address(name)
                if address is None:
                    code = NXDOMAIN
                elif kind == TYPE_A:
                    record = b"\xc0\x0c" + struct.pack(">HHIH", TYPE_A, CLASS_IN, TTL_S, 4) + socket.inet_aton(address)
        self._journal.note(dns=name, type=kind, peer=peer, rcode=code)
        number, flags = struct.unpack(">HH", query[:4])
        counts = struct.pack(">HHHH", 1, 1 if record else 0, 0, 0)
        return struct.pack(">HH", number, ANSWER_FLAGS | (flags & 0x0100) | code) + counts + question + record
