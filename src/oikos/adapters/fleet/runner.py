"""The Runner on real machines: spends the Admission, carries out the order, says exactly what is known of its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from oikos.adapters.fleet import plain, probe, wrap
from oikos.adapters.fleet.carrier import Carrier
from oikos.adapters.fleet.follow import Follower
from oikos.adapters.fleet.notes import Notes
from oikos.adapters.fleet.outlet import Outlet
from oikos.adapters.fleet.plain import PlainRun
from oikos.adapters.fleet.pool import Pool
from oikos.adapters.fleet.spool import Filled
from oikos.adapters.fleet.wrap import Way
from oikos.domain.admission import Admission
from oikos.domain.errors import SealError, TargetError
from oikos.domain.inventory import Route
from oikos.domain.run import Identity, NeverStarted, RemoteState, RunOrder, RunOutcome, RunReport, Stream, Unknown
from oikos.ports import Clock, Sink

if TYPE_CHECKING:
    from oikos.adapters.fleet.enroll import Enroller

PATIENCE_S: Final = 300.0

_Work = Callable[[Way, Outlet], Awaitable[tuple[RunOutcome, str]]]
"""What leads to an outcome and a note."""

Fill = Callable[[RunOrder], Awaitable[Filled]]
"""Puts the secrets into an order. Raises TargetError with the remedy when it cannot; then nothing is started."""


def _never_started(reason: str) -> RunOutcome:
    return NeverStarted(reason=reason)


def _unknown(reason: str) -> RunOutcome:
    return Unknown(reason=reason)


class FleetRunner:
    """Runs orders by local process, SSH, `pct exec` and `docker exec` (ports.Runner)."""

    def __init__(
        self,
        *,
        clock: Clock,
        notes: Path,
        secret: Callable[[str], str],
        fill: Fill | None = None,
        agent: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`notes` is a directory in the home of Oikos, shared by all processes on that home.

        `secret` gives the value of a reference such as `env:NAME` and raises TargetError when there is none.
        `fill` is called when the Admission was spent on the order as it was approved, before anything travels;
        None: orders hold no secrets.
        `agent` is the socket of an SSH agent; None: that of the environment. A target may be out of reach for
        `patience_s` seconds beyond a run's own limit before its outcome is Unknown.
        """  # fmt: skip
        self._carrier = Carrier(Pool(agent=agent), secret=secret, clock=clock)
        self._fill = fill
        self._follower = Follower(self._carrier, Notes(notes), clock, patience_s=patience_s)
        self._plain: dict[str, PlainRun] = {}

    @property
    def enroller(self) -> Enroller:
        """For `oikos fleet add` and `trust`: shares the connections."""
        from oikos.adapters.fleet.enroll import Enroller

        return Enroller(self._carrier)

    async def start(self, admission: Admission, order: RunOrder, route: Route, sink: Sink) -> RunReport:
        """Run a journalled order to its end.

        The total limit is enforced where the command runs, so that it holds with the controller dead. An order
        with `keep` has none: its caller stops waiting after `limits.total_s` and lets this call go on. A cancelled
        call ends a plain run and leaves a supervised one running, to be followed by `attach`.

        Raises:
            SealError: the Admission is forged, altered, spent, or not for this order and target.
        """
        if order.target_id != route.target.id or order.target_id != admission.target_id:
            raise SealError("this Admission is for another target; nothing was started")
        admission.spend(kind="run", digest=order.digest())
        return await self._report(route, Outlet(sink), lambda way, outlet: self._start(order, way, outlet))

    async def attach(self, order: RunOrder, route: Route, sink: Sink, offsets: Mapping[Stream, int]) -> RunReport:
        """Follow a supervised run from raw offsets; never starts anything."""

        async def follow(way: Way, outlet: Outlet) -> tuple[RunOutcome, str]:
            return await self._follower.attach(order, way, outlet), ""

        return await self._report(route, Outlet(sink, offsets), follow, unreachable=_unknown)

    async def kill(self, order: RunOrder, route: Route) -> RemoteState:
        """End a run's process group on the target, and say what is known of it."""
        if (run := self._plain.get(order.run_id)) is not None:
            return await run.cancel()
        try:
            way = wrap.follow(route)
        except TargetError:
            return RemoteState.UNKNOWN
        return await self._follower.kill(order, way)

    async def acknowledge(self, order: RunOrder, route: Route) -> None:
        """Let the target forget the spool. Best effort, never raises."""
        if not order.supervised:
            return
        try:
            way = wrap.follow(route)
        except TargetError:
            return
        await self._follower.acknowledge(order, way)

    async def probe(self, admission: Admission, route: Route) -> Identity:
        """Ask a machine who it is, with constant bytes (SPEC §3).

        Raises:
            TargetError: unreachable, host key unknown or changed; one line with the remedy.
            SealError: not a probe admission for this target.
        """
        admission.spend(kind="probe", digest=route.target.id)
        return await probe.ask(self._carrier, wrap.follow(route))

    def connection(self, route: Route) -> str:
        """The connection that the next command goes over; empty when none is open, or the way cannot be gone."""
        try:
            endpoint = wrap.follow(route).endpoint
        except TargetError:
            return ""
        return "local" if endpoint is None else self._carrier.pool.current(endpoint)

    async def close(self) -> None:
        """Close all connections; running supervised commands go on."""
        await self._carrier.pool.close()

    async def _start(self, order: RunOrder, way: Way, outlet: Outlet) -> tuple[RunOutcome, str]:
        if self._fill is not None:
            order = filled = await self._fill(order)
            if filled.files and not order.supervised:
                raise ValueError("a run with secret files needs a supervisor, which takes them away at its end")
            for _, value in filled.files:
                wrap.check(value)
        wrap.check(order.command)
        wrap.check(order.stdin or "")
        if order.supervised:
            return await self._follower.start(order, way, outlet), ""
        hello = await self._carrier.hello(way, order.limits)
        if not plain.fits(order, way, hello):
            # Too long for an argument, or a login shell that changes it: the same bytes as a file.
            return await self._follower.start(order, way, outlet), "run under supervision"
        run = await plain.begin(self._carrier, way, order, hello)
        self._plain[order.run_id] = run
        try:
            return await run.follow(order, outlet)
        finally:
            del self._plain[order.run_id]

    async def _report(
        self, route: Route, outlet: Outlet, work: _Work, unreachable: Callable[[str], RunOutcome] = _never_started
    ) -> RunReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            outcome, note = await work(wrap.follow(route), outlet)
        except (TargetError, ValueError) as error:
            outcome, note = unreachable(str(error)), ""
        return RunReport(
            outcome=outcome, out_bytes=outlet.out_bytes, err_bytes=outlet.err_bytes, duration_s=loop.time() - began,
            transport=str(route), note=note,
        )  # fmt: skip
