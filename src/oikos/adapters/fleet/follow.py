"""Supervised runs: started at most once, followed through lost connections, ended with proof or as Unknown."""

from __future__ import annotations

import asyncio
import math
from contextlib import aclosing
from typing import Final

from oikos.adapters.fleet import spool
from oikos.adapters.fleet.carrier import Broken, Carrier, NotReached
from oikos.adapters.fleet.notes import Note, Notes
from oikos.adapters.fleet.outlet import Outlet
from oikos.adapters.fleet.spool import (
    Acknowledged,
    Beat,
    Claimed,
    Data,
    Decision,
    Declined,
    Ended,
    Hello,
    KillFound,
    NoOutcome,
    Operation,
)
from oikos.adapters.fleet.wrap import Way
from oikos.domain import secret_files
from oikos.domain.errors import TargetError
from oikos.domain.run import (
    Exited,
    NeverStarted,
    RemoteState,
    RunOrder,
    RunOutcome,
    Signalled,
    TimedOut,
    Unknown,
)
from oikos.ports import Clock

BACKOFF_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Pauses between attempts to reach a target again; the last one repeats."""
SIGTERM: Final = 15


class Follower:
    """Drives the spool of any target."""

    def __init__(self, carrier: Carrier, notes: Notes, clock: Clock, *, patience_s: float) -> None:
        """`patience_s`: how long a target may be out of reach, beyond the run's own limit, before it is Unknown."""
        self._carrier, self._notes, self._clock = carrier, notes, clock
        self._patience_s = patience_s

    async def start(self, order: RunOrder, way: Way, outlet: Outlet) -> RunOutcome:
        """Start and follow. Whatever fails before the start is sent is NeverStarted."""
        sent_at = self._clock.now()
        try:
            hello = await self._carrier.hello(way, order.limits)
        except TargetError as error:
            return NeverStarted(reason=str(error))
        if not hello.epoch:
            return NeverStarted(reason=f"{way.name} has no directory for supervised runs; see: oikos fleet list")
        try:
            await self._notes.put(order.run_id, Note(boot=hello.boot, epoch=hello.epoch))
        except OSError as error:
            return NeverStarted(reason=f"the start could not be noted here: {error.strerror}; free some space")
        not_after_s = 0
        if order.not_after_s is not None:
            # Judged by the target's clock, which may differ from ours: the difference was seen when it said hello.
            not_after_s = max(1, math.floor(order.not_after_s + _skew_s(hello)))
            if sent_at.wall_s > order.not_after_s:
                return NeverStarted(reason="the consent had ended before the start was sent")
        return await self._follow(order, way, outlet, "start", not_after_s)

    async def attach(self, order: RunOrder, way: Way, outlet: Outlet) -> RunOutcome:
        """Follow a run that was started before, or prove that it never was."""
        return await self._follow(order, way, outlet, "attach", 0)

    async def kill(self, order: RunOrder, way: Way) -> RemoteState:
        """TERM, then KILL, for the run's process group; a run that has not begun never will."""
        try:
            async with aclosing(self._carrier.converse(way, "kill", order.run_id, limits=order.limits)) as frames:
                async for frame in frames:
                    if isinstance(frame, KillFound):
                        return RemoteState.RUNNING if frame.what == "running" else RemoteState.KILLED
        except (TargetError, NotReached, Broken, spool.ProtocolError):
            pass
        return RemoteState.UNKNOWN

    async def acknowledge(self, order: RunOrder, way: Way) -> None:
        """Let the target forget the spool; the note goes when it has."""
        try:
            async with aclosing(self._carrier.converse(way, "ack", order.run_id, limits=order.limits)) as frames:
                async for frame in frames:
                    if isinstance(frame, Acknowledged):
                        await self._notes.drop(order.run_id)
        except (TargetError, NotReached, Broken, spool.ProtocolError, OSError):
            return  # best effort: the target sweeps by itself

    async def _follow(self, order: RunOrder, way: Way, outlet: Outlet, op: Operation, not_after_s: int) -> RunOutcome:
        loop = asyncio.get_running_loop()
        seen_at, failures, reason = loop.time(), 0, ""
        while True:
            try:
                outcome = await self._talk(order, way, outlet, op, not_after_s)
                if outcome is not None:
                    return outcome
                seen_at, failures, reason = loop.time(), 0, "the follower ended early"
            except NotReached as error:
                if op == "start":
                    return NeverStarted(reason=str(error))
                reason = str(error)
            except TargetError as error:
                if op == "start":
                    return NeverStarted(reason=str(error))
                reason = str(error)
            except _Cut as cut:
                seen_at, failures, reason = loop.time(), 0, str(cut)
            except (Broken, spool.ProtocolError) as error:
                reason = str(error)
            op = "attach"
            if loop.time() - seen_at > order.limits.total_s + self._patience_s:
                return Unknown(reason=f"{way.name} was out of reach for too long: {reason}")
            await self._clock.sleep(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
            failures += 1

    async def _talk(
        self, order: RunOrder, way: Way, outlet: Outlet, op: Operation, not_after_s: int
    ) -> RunOutcome | None:
        """One conversation; None: ask again.

        Raises:
            _Cut: broken off after the target had answered.
        """
        hello: Hello | None = None
        limit_s = 0 if order.keep else math.ceil(order.limits.total_s)
        frames = self._carrier.converse(
            way, op, order.run_id, order=order if op == "start" else None, limit_s=limit_s, not_after_s=not_after_s,
            out=outlet.out_bytes, err=outlet.err_bytes, limits=order.limits,
        )  # fmt: skip
        try:
            async with aclosing(frames):
                async for frame in frames:
                    match frame:
                        case Hello():
                            hello = frame
                        case Data(stream=stream, data=data):
                            await outlet.put(stream, data)
                        case Claimed(new=new):
                            await outlet.started("new" if new else "exists")
                        case Ended():
                            return _outcome(frame)
                        case Declined(why=why):
                            return _declined(op, why, way)
                        case NoOutcome(why=why, detail=detail):
                            assert hello is not None  # the decoder greets first
                            return await self._no_outcome(order, way, why, detail, hello)
                        case Beat() | Decision() | KillFound() | Acknowledged():
                            pass
        except (Broken, spool.ProtocolError) as error:
            if hello is not None:
                raise _Cut(str(error)) from None
            raise
        return None

    async def _no_outcome(self, order: RunOrder, way: Way, why: str, detail: str, hello: Hello) -> RunOutcome | None:
        match why:
            case "absent":
                note = await self._notes.get(order.run_id)
                if note is not None and note.epoch != hello.epoch:
                    return Unknown(reason="the spool on the target was wiped since the start")
                if note is not None and note.boot != hello.boot:
                    return Unknown(reason="the target was restarted and remembers no such run")
                return await self._void(order, way)
            case "undecided":
                return await self._void(order, way)
            case "void":
                return NeverStarted(reason=_void(order, way, detail))
            case "rebooted":
                return Unknown(reason="the target was restarted while it ran")
            case "supervisor-killed":
                return Unknown(reason="its supervisor on the target was killed")
            case "acknowledged":
                return Unknown(reason="its spool was acknowledged and is gone")
            case _:
                return Unknown(reason=f"the target says: {why[:100]}")

    async def _void(self, order: RunOrder, way: Way) -> RunOutcome | None:
        """Forbid what has not begun; afterwards it is proven. Until then nothing is: not even if it cannot be sent."""
        try:
            async with aclosing(self._carrier.converse(way, "void", order.run_id, limits=order.limits)) as frames:
                async for frame in frames:
                    if isinstance(frame, Decision):
                        return None if frame.run else NeverStarted(reason="the target never began it")
        except (TargetError, NotReached, Broken, spool.ProtocolError) as error:
            raise _Cut(str(error)) from None
        return None


class _Cut(Exception):
    """The connection broke after the target had answered."""


def _declined(op: Operation, why: str, way: Way) -> RunOutcome | None:
    if op != "start":
        return Unknown(reason=f"the spool on {way.name} cannot be used any more: {why}")
    if why.startswith("full"):
        return NeverStarted(reason=f"the disk of {way.name} is full: {why.removeprefix('full ')} KiB free")
    return NeverStarted(reason=f"{way.name} has no usable spool: {why}")


def _void(order: RunOrder, way: Way, detail: str) -> str:
    place = secret_files.directory(order.run_id)
    match detail:
        case "late":
            return "its consent had ended when the target was ready"
        case "taken":
            return f"{place} was there before on {way.name}, so no secret file was put there: see who made it"
        case "refused":
            return f"{way.name} cannot hold secret files: /tmp must be writable and sticky there (mode 1777)"
        case "unwritten":
            return f"the secret files could not be written on {way.name}: see whether /tmp is full there"
        case _:
            return "not begun"


def _skew_s(hello: Hello) -> float:
    """Differences below two seconds are the granularity of `date` and the way of the answer."""
    return hello.skew_s if abs(hello.skew_s) >= 2 else 0.0


def _outcome(end: Ended) -> RunOutcome:
    number = end.code - 128 if 128 < end.code < 193 else SIGTERM
    match end.why:
        case "timeout":
            return TimedOut(deadline="total", remote=RemoteState.KILLED)
        case "idle":
            return TimedOut(deadline="idle", remote=RemoteState.KILLED)
        case "":
            return Signalled(signal=number) if end.signalled else Exited(code=end.code)
        case why:
            return Signalled(signal=number, reason=why)
