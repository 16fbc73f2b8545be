"""Starting programs at the end of a way, and holding conversations with the spool there."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final

from oikos.adapters.fleet import spool
from oikos.adapters.fleet.flow import End, Process
from oikos.adapters.fleet.local import LocalProcess
from oikos.adapters.fleet.pool import Pool
from oikos.adapters.fleet.spool import Declined, Frame, Hello, Operation
from oikos.adapters.fleet.wrap import Way, environment
from oikos.domain.errors import TargetError
from oikos.domain.run import Limits, RunOrder, Stream
from oikos.ports import Clock

SILENCE_S: Final = 60.0
"""A follower that says nothing, not even that it is there, for so long has lost its connection."""
COMPLAINT_BYTES: Final = 4096

DEFAULT_LIMITS: Final = Limits()


class Broken(Exception):
    """A conversation ended before its last frame; what was sent may have been received."""


class NotReached(Exception):
    """The far shell never began: proven by an exit code without its greeting. Nothing was claimed."""


class Carrier:
    """Reaches the end of any way, by this machine or by the pool."""

    def __init__(self, pool: Pool, *, secret: Callable[[str], str], clock: Clock) -> None:
        """`secret` gives the value of a reference such as `env:NAME`; it raises TargetError when there is none."""
        self.pool = pool
        self._secret = secret
        self._clock = clock
        self._home = os.path.expanduser("~")
        self._script = ""
        self._hellos: dict[Way, Hello] = {}
        """Of this machine and the guests on it."""

    async def hello(self, way: Way, limits: Limits = DEFAULT_LIMITS) -> Hello:
        """What the end of the way says of itself; asked once per connection.

        Raises:
            TargetError: it cannot be reached, or has no shell.
        """
        if way.endpoint is None:
            known = self._hellos
        else:
            known = (await self.pool.link(way.endpoint, connect_s=limits.connect_s)).hellos
        if (found := known.get(way)) is not None:
            return found
        said: Hello | None = None
        try:
            async with aclosing(self.converse(way, "hello", "0", limits=limits)) as frames:
                async for frame in frames:
                    if isinstance(frame, Hello):
                        said = dataclasses.replace(frame, skew_s=frame.clock_s - self._clock.now().wall_s)
                        if said.epoch:
                            break
                    elif isinstance(frame, Declined) and said is not None:
                        said = dataclasses.replace(said, trouble=frame.why)
        except NotReached as error:
            raise TargetError(f"{way.name}: its shell cannot be started: {error}") from None
        except (Broken, spool.ProtocolError) as error:
            raise TargetError(f"{way.name}: no answer from its shell: {error}") from None
        if said is None:
            raise TargetError(f"{way.name}: its shell said nothing")
        known[way] = said
        return said

    async def start(
        self,
        way: Way,
        program: Sequence[str],
        *,
        stdin: bytes = b"",
        limits: Limits = DEFAULT_LIMITS,
        mark: str = "",
        unshelled: Sequence[str] = (),
    ) -> Process:
        """Start a program. Its standard input is `stdin` and then closed.

        `unshelled` is the program without its shell, used on this machine only.

        Raises:
            TargetError: it was not started; nothing was sent.
        """
        if way.sudo and way.password:
            stdin = self._secret(way.password).encode() + b"\n" + stdin
        if way.endpoint is None:
            words = way.words(program)
            return await LocalProcess.start(
                words, environment(self._home), cwd=self._home, stdin=stdin, unshelled=unshelled if way.bare else ()
            )
        link = await self.pool.link(way.endpoint, connect_s=limits.connect_s)
        return await link.start(way.text(program, mark=mark), channel_s=limits.channel_s, stdin=stdin)

    async def converse(
        self,
        way: Way,
        op: Operation,
        run_id: str,
        *,
        order: RunOrder | None = None,
        limit_s: int = 0,
        not_after_s: int = 0,
        out: int = 0,
        err: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> AsyncGenerator[Frame, None]:
        """Send one operation to the spool and yield its frames, as long as there are any.

        Raises:
            TargetError: nothing was sent.
            NotReached: sent, and proven not to have been read.
            Broken, ProtocolError: sent, and what became of it is not known.
        """  # fmt: skip
        mark = spool.nonce()
        if not self._script:
            self._script = await asyncio.to_thread(spool.script)
        message = spool.payload(
            self._script, op, run_id, mark, order=order, limit_s=limit_s, not_after_s=not_after_s, out=out, err=err
        )
        process = await self.start(way, ["sh", "-s", spool.CANARY], stdin=message, limits=limits)
        decoder, complaint, greeted = spool.Decoder(mark), bytearray(), False
        try:
            while True:
                try:
                    async with asyncio.timeout(SILENCE_S):
                        chunks = await process.flow.read()
                except TimeoutError:
                    raise Broken(f"no sign of life for {SILENCE_S:g} s") from None
                if not chunks:
                    break
                for stream, data in chunks:
                    if stream is Stream.ERR:
                        complaint += data[: COMPLAINT_BYTES - len(complaint)]
                        continue
                    for frame in decoder.feed(data):
                        greeted = True
                        yield frame
        finally:
            process.close()
        end = process.flow.end or End(lost="closed")
        if greeted:
            if end.lost:
                raise Broken(end.lost)
            return
        reason = last_words(complaint, end)
        if end.refused or (not end.lost and not end.held):
            raise NotReached(reason)
        raise Broken(reason)


def last_words(complaint: bytes | bytearray, end: End) -> str:
    """Why a program did not come to its work: what it complained of, or how it ended."""
    for line in bytes(complaint).decode("utf-8", "replace").splitlines():
        if line.strip():
            return line.strip()[:300]
    if end.lost:
        return end.lost
    return f"exit {end.code}" if end.signal is None else f"signal {end.signal}"
