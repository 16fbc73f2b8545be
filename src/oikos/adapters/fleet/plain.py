"""Plain runs: short reads without a supervisor. A lost connection means `Lost`, and the read may be asked again."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final

from oikos.adapters.fleet import spool, straight, wrap
from oikos.adapters.fleet.carrier import COMPLAINT_BYTES, Carrier, last_words
from oikos.adapters.fleet.flow import Chunk, End, Process
from oikos.adapters.fleet.local import LocalProcess
from oikos.adapters.fleet.outlet import Outlet
from oikos.adapters.fleet.spool import Hello
from oikos.adapters.fleet.wrap import Way
from oikos.domain.errors import TargetError
from oikos.domain.run import Exited, Lost, NeverStarted, RemoteState, RunOrder, RunOutcome, Signalled, Stream, TimedOut

TERM_S: Final = 3.0
"""Between TERM and KILL, and after KILL."""
KILL_S: Final = 12.0
"""How long all of a kill may take."""
LAST_S: Final = 1.0
"""How long the last output is waited for afterwards."""


KILLER: Final = """\
st() { { read -r l </proc/$1/stat; } 2>/dev/null || return 1; l=${l##*) }; set -- $l; shift 19; echo "$1"; }
alive() { [ "$(st $1)" = "$2" ]; }
pid=$1 since=$2 to=$3
for s in $4; do
 alive $pid $since || { echo gone; exit 0; }
 kill -$s $to 2>/dev/null
 n=0; while [ $n -lt 30 ] && alive $pid $since; do n=$((n+1)); sleep 0.1 2>/dev/null || sleep 1; done
done
alive $pid $since || { echo gone; exit 0; }
echo running
"""
"""Ends a process known by pid and start time, on a channel of its own: sshd does not signal for root, pct and docker
never do (domain/PROXMOX §1.5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """One process of a Linux machine, beyond doubt."""

    pid: int
    group: int
    since: int
    """Start time in ticks since boot."""

    @classmethod
    def read(cls, stat: bytes) -> Who | None:
        """From the text of /proc/PID/stat; None when there was none."""
        before, _, after = stat.rpartition(b")")
        words = after.split()
        pid = before.partition(b" ")[0]
        if not pid.isdigit() or len(words) < 20 or not (words[2].isdigit() and words[19].isdigit()):
            return None
        return cls(pid=int(pid), group=int(words[2]), since=int(words[19]))


@dataclass(slots=True, kw_only=True)
class PlainRun:
    """One plain run under way; `cancel` may be called from another task."""

    carrier: Carrier
    way: Way
    process: Process
    mark: bytes = b""
    """Begins the line that proves that the innermost shell was reached; empty: it was."""
    who: Who | None = None
    """The command's process on the target, as it said itself."""
    complaint: bytearray = field(default_factory=bytearray)
    """The first bytes of standard error."""
    cancelled: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _before: bytearray = field(default_factory=bytearray)

    @property
    def begun(self) -> bool:
        """Whether the command itself is known to have been started."""
        return not self.mark

    async def follow(self, order: RunOrder, outlet: Outlet) -> tuple[RunOutcome, str]:
        """Deliver the output until the end; the outcome, and a note for the operator."""
        loop = asyncio.get_running_loop()
        limits = order.limits
        total = (loop.time() + limits.total_s, "total")
        deadline = total
        try:
            if self.begun:
                await outlet.started("new")
            while True:
                if limits.idle_s:
                    deadline = min(total, (loop.time() + limits.idle_s, "idle"))
                try:
                    async with asyncio.timeout_at(deadline[0]):
                        chunks = await self.process.flow.read()
                except TimeoutError:
                    remote = await self._end("TERM KILL", outlet)
                    return TimedOut(deadline=deadline[1], remote=remote), ""
                if not chunks:
                    return self._outcome(self.process.flow.end or End(lost="closed"))
                await self._deliver(chunks, outlet)
                if outlet.out_bytes + outlet.err_bytes > limits.kill_bytes:
                    remote = await self._end("KILL", None)
                    return Signalled(signal=signal.SIGKILL, reason="output_limit"), f"remote process: {remote}"
        finally:
            self.process.close()
            self.ended.set()

    async def cancel(self) -> RemoteState:
        """End it from another task, while `follow` goes on delivering."""
        self.cancelled = True
        remote = await self._kill("TERM KILL")
        try:
            async with asyncio.timeout(LAST_S):
                await self.ended.wait()
        except TimeoutError:
            self.process.close()
        return remote

    async def _end(self, signals: str, outlet: Outlet | None) -> RemoteState:
        """Kill, then deliver what was still under way; without an outlet it is dropped."""
        remote = await self._kill(signals)
        try:
            async with asyncio.timeout(LAST_S):
                while chunks := await self.process.flow.read():
                    if outlet is not None:
                        await self._deliver(chunks, outlet)
        except TimeoutError:
            pass
        return remote

    async def _kill(self, signals: str) -> RemoteState:
        if isinstance(self.process, LocalProcess) and self.way.bare:
            for name in signals.split():
                self.process.signal(signal.Signals[f"SIG{name}"])
                if await self.process.ended_within(TERM_S):
                    return RemoteState.KILLED
            return RemoteState.RUNNING
        if self.who is None:
            return RemoteState.UNKNOWN
        # Without a group of its own only the one process may be signalled.
        own_group = self.who.group == self.who.pid
        to = -self.who.pid if own_group else self.who.pid
        words = ["sh", "-c", KILLER, "sh", str(self.who.pid), str(self.who.since), str(to), signals]
        answer = b""
        try:
            async with asyncio.timeout(KILL_S):
                killer = await self.carrier.start(self.way, words)
                try:
                    while chunks := await killer.flow.read():
                        answer += b"".join(data for stream, data in chunks if stream is Stream.OUT)
                finally:
                    killer.close()
        except (TargetError, TimeoutError):
            return RemoteState.UNKNOWN
        if answer.endswith(b"gone\n"):
            return RemoteState.KILLED if own_group else RemoteState.UNKNOWN
        return RemoteState.RUNNING if answer.endswith(b"running\n") else RemoteState.UNKNOWN

    async def _deliver(self, chunks: list[Chunk], outlet: Outlet) -> None:
        for stream, pieces in groupby(chunks, itemgetter(0)):
            data = b"".join(piece for _, piece in pieces)
            if stream is Stream.ERR:
                self.complaint += data[: COMPLAINT_BYTES - len(self.complaint)]
            elif self.mark:
                data = self._after_mark(data)
                if self.begun:
                    await outlet.started("new")
            if data and (self.begun or stream is Stream.ERR):
                await outlet.put(stream, data)

    def _after_mark(self, data: bytes) -> bytes:
        """Drop what profile files printed, and the line that says that the command begins."""
        self._before += data
        at = self._before.find(self.mark)
        end = self._before.find(b"\n", at) if at >= 0 else -1
        if end < 0:
            if at < 0:
                del self._before[: -len(self.mark)]
            return b""
        self.who = Who.read(bytes(self._before[at + len(self.mark) + 1 : end]))
        rest = bytes(self._before[end + 1 :])
        self._before.clear()
        self.mark = b""
        return rest

    def _outcome(self, end: End) -> tuple[RunOutcome, str]:
        note = "a background child still held the output when the command had ended" if end.held else ""
        if end.refused:
            return NeverStarted(reason=end.lost), ""
        if not self.begun and not end.lost and not end.held:
            return NeverStarted(reason=last_words(self.complaint, end)), ""
        if self.cancelled:
            return Signalled(signal=end.signal or signal.SIGTERM, reason="cancelled"), note
        if end.signal is not None:
            return Signalled(signal=end.signal), note
        if end.code is not None:
            return Exited(code=end.code), note
        return Lost(reason=end.lost), note


def fits(order: RunOrder, way: Way, hello: Hello) -> bool:
    """Whether the command can travel as one argument and arrive unchanged."""
    return len(order.command.encode()) <= wrap.MAX_WORD_BYTES and (way.endpoint is None or hello.quoting)


async def begin(carrier: Carrier, way: Way, order: RunOrder, hello: Hello) -> PlainRun:
    """Start the command of an order.

    Raises:
        TargetError: it was not started; nothing was sent.
        ValueError: the text cannot be an argument.
    """
    program = wrap.plain(wrap.BASH if hello.bash else wrap.SH, order.command)
    mark = "" if way.bare and way.endpoint is None else spool.nonce()
    if not way.bare:
        program = wrap.announced(mark, program)
    stdin = (order.stdin or "").encode()
    process = await carrier.start(
        way, program, stdin=stdin, limits=order.limits, mark=mark if way.bare else "",
        unshelled=straight.split(order.command) if hello.bash else (),
    )  # fmt: skip
    return PlainRun(carrier=carrier, way=way, process=process, mark=mark.encode())
