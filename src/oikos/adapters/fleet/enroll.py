"""Enrolling a machine: is it there, which keys does it show, who is it, and what can it do (SPEC R5.11, R6.0).

What `oikos fleet add` and `oikos fleet trust` need. Nothing here trusts anything: keys are only shown, and a machine
is asked for more than its keys only when the route names the ones that the operator accepted.
"""

from __future__ import annotations

from dataclasses import dataclass

from oikos.adapters.fleet import probe, ssh, wrap
from oikos.adapters.fleet.carrier import Carrier
from oikos.adapters.fleet.ssh import Link
from oikos.adapters.fleet.wrap import Endpoint
from oikos.domain.errors import TargetError
from oikos.domain.inventory import Route, Support
from oikos.domain.run import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedKey:
    """One host key that a server shows."""

    public: str
    """`TYPE BASE64`, as it is enrolled."""
    fingerprint: str
    """`SHA256:…`, as `ssh-keygen -l` prints it."""
    enrolled: bool
    """Whether this very key is enrolled already."""

    def __str__(self) -> str:
        return f"{self.public.partition(' ')[0]} {self.fingerprint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What a trusted machine can do."""

    support: Support
    reason: str
    """Why it is not full; empty when it is."""
    identity: Identity | None
    shell: str
    """`bash` or `sh`; empty when there is none."""


class Enroller:
    """Asks machines on behalf of an operator."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier

    async def offered_keys(self, route: Route, *, timeout_s: float = 15.0) -> list[OfferedKey]:
        """The host keys that the last SSH server on a route shows now; empty for a way without SSH.

        Jump hosts before it must be enrolled.

        Raises:
            TargetError: it cannot be reached.
        """
        endpoint = wrap.follow(route).endpoint
        if endpoint is None:
            return []
        keys = await ssh.scan_host_keys(
            endpoint.address, endpoint.port, timeout_s=timeout_s, jump=await self._jump(endpoint, timeout_s)
        )
        return [
            OfferedKey(public=key, fingerprint=ssh.fingerprint(key), enrolled=key in endpoint.host_keys) for key in keys
        ]

    async def check(self, route: Route) -> Checkup:
        """What the target can do, and who it is. Never raises for what a machine lacks.

        Raises:
            TargetError: it cannot be reached or trusted; one line with the remedy.
        """
        way = wrap.follow(route)
        if way.endpoint is not None:
            await self._carrier.pool.link(way.endpoint, connect_s=15.0)
        try:
            hello = await self._carrier.hello(way)
        except TargetError as error:
            return Checkup(support=Support.NONE, reason=str(error), identity=None, shell="")
        try:
            identity = await probe.ask(self._carrier, way)
        except TargetError:
            identity = None
        shell = "bash" if hello.bash else "sh"
        support, reason = Support.FULL, ""
        if not hello.epoch:
            reason = f"no supervised runs: {hello.trouble or 'its home cannot hold a spool'}"
        elif hello.boot == "none":
            reason = "no supervised runs: it has no /proc"
        if reason:
            support = Support.ATTENDED
            if not hello.quoting:
                support, reason = Support.NONE, f"{reason}; and its login shell changes arguments"
        return Checkup(support=support, reason=reason, identity=identity, shell=shell)

    async def _jump(self, endpoint: Endpoint, timeout_s: float) -> Link | None:
        return await self._carrier.pool.link(endpoint.jump, connect_s=timeout_s) if endpoint.jump else None
