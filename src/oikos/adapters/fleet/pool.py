"""The pool of SSH connections. The library behind them is loaded with the first: it takes longer than all of Oikos."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import TYPE_CHECKING

from oikos.adapters.fleet.wrap import Endpoint

if TYPE_CHECKING:
    from oikos.adapters.fleet.ssh import Link


class Pool:
    """All connections of this process, one per server and login."""

    def __init__(self, *, agent: str | None = None) -> None:
        """`agent` is the socket of an SSH agent for targets without a key of their own; None: the environment's."""
        self._agent = os.environ.get("SSH_AUTH_SOCK", "") if agent is None else agent
        self._links: dict[Endpoint, Link] = {}
        self._locks: dict[Endpoint, asyncio.Lock] = {}
        self._numbers: dict[Endpoint, int] = {}
        self._made = 0

    async def link(self, endpoint: Endpoint, *, connect_s: float) -> Link:
        """The living connection to a server, made if need be.

        Raises:
            TargetError: it cannot be made; the text says why and what to do. Nothing was sent beyond the handshake.
        """
        found = self._links.get(endpoint)
        if found is not None and found.alive:
            return found
        async with self._locks.setdefault(endpoint, asyncio.Lock()):
            found = self._links.get(endpoint)
            if found is not None and found.alive:
                return found
            ssh = await asyncio.to_thread(import_module, "oikos.adapters.fleet.ssh")
            jump = await self.link(endpoint.jump, connect_s=connect_s) if endpoint.jump else None
            connection = await ssh.connect(endpoint, jump=jump, connect_s=connect_s, agent=self._agent)
            link: Link = ssh.Link(connection, endpoint)
            self._links[endpoint] = link
            self._made += 1
            self._numbers[endpoint] = self._made
            return link

    def current(self, endpoint: Endpoint) -> str:
        """Names the living connection to a server, never the same name twice; empty when there is none."""
        found = self._links.get(endpoint)
        return str(self._numbers[endpoint]) if found is not None and found.alive else ""

    async def close(self) -> None:
        """Close every connection; what runs on targets goes on."""
        links, self._links = list(self._links.values()), {}
        for link in links:
            link.close()
        for link in links:
            await link.closed()
