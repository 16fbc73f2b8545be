"""Programs on this machine: spawned into a group of their own, watched by pidfd, read without threads."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from oikos.adapters.fleet import straight
from oikos.adapters.fleet.flow import End, Flow
from oikos.domain.errors import TargetError
from oikos.domain.run import Stream

GRACE_S: Final = 0.1
"""After the process ended: how long its output may stay open without a byte before reading stops."""
READ_BYTES: Final = 262_144


class LocalProcess:
    """One child process. Its group is its own, so that a signal reaches what it started, and nothing else."""

    def __init__(self, born: _Born) -> None:
        self.flow = Flow(pause=self._pause, resume=self._resume)
        self._loop = asyncio.get_running_loop()
        self._pid, self._pidfd = born.pid, born.pidfd
        self._open = {born.out: Stream.OUT, born.err: Stream.ERR}
        self._status: int | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._gone = asyncio.Event()
        self._resume()
        self._loop.add_reader(self._pidfd, self._exited)

    @classmethod
    async def start(
        cls,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        stdin: bytes = b"",
        unshelled: Sequence[str] = (),
    ) -> LocalProcess:
        """Start it, off the event loop: a fork takes as long as it takes.

        `unshelled` is what the shell in `words` would start and nothing else (see `straight`); if that fails, the
        shell is asked after all.

        Raises:
            TargetError: there is no such program, or no process can be made.
        """
        spawning = asyncio.get_running_loop().run_in_executor(None, _spawn, words, environment, cwd, stdin, unshelled)
        try:
            return cls(await asyncio.shield(spawning))
        except asyncio.CancelledError:
            spawning.add_done_callback(_abandon)
            raise

    def signal(self, number: int) -> None:
        """Send a signal to the group; the child is not reaped before, so the number is still its own."""
        if self._status is None:
            try:
                os.killpg(self._pid, number)
            except ProcessLookupError:
                pass

    async def ended_within(self, seconds: float) -> bool:
        """Whether the child ends in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Stop listening; a child that still runs is reaped by the loop when it ends."""
        if self._grace is not None:
            self._grace.cancel()
        for end in list(self._open):
            self._shut(end)

    def _pause(self) -> None:
        for end in self._open:
            self._loop.remove_reader(end)

    def _resume(self) -> None:
        for end in self._open:
            self._loop.add_reader(end, self._readable, end)

    def _readable(self, end: int) -> None:
        if self._take(end) and self._grace is not None:
            self._linger()

    def _take(self, end: int) -> bool:
        """Read once; whether there was something."""
        try:
            data = os.read(end, READ_BYTES)
        except BlockingIOError:
            return False
        if data:
            self.flow.feed(self._open[end], data)
            return True
        self._shut(end)
        self._settle()
        return False

    def _shut(self, end: int) -> None:
        self._loop.remove_reader(end)
        del self._open[end]
        os.close(end)

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._gone.set()
        if self._open:
            self._linger()
        self._settle()

    def _linger(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
        self._grace = self._loop.call_later(GRACE_S, self._give_up)

    def _give_up(self) -> None:
        """The process is gone and its pipes are silent: a background child holds them."""
        if self.flow.paused:
            self._linger()
            return
        came = [self._take(end) for end in list(self._open)]
        if any(came):
            self._linger()
        else:
            self._settle(held=bool(self._open))

    def _settle(self, *, held: bool = False) -> None:
        if self._status is None or (self._open and not held):
            return
        self.close()
        if self._status < 0:
            self.flow.finish(End(signal=-self._status, held=held))
        else:
            self.flow.finish(End(code=self._status, held=held))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Born:
    pid: int
    pidfd: int
    out: int
    err: int


def _spawn(
    words: Sequence[str], environment: Mapping[str, str], cwd: str, stdin: bytes, unshelled: Sequence[str]
) -> _Born:
    source = _source(stdin)
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    try:
        child = None
        if unshelled and (file := straight.find(unshelled[0], environment["PATH"])):
            try:
                child = subprocess.Popen(
                    unshelled, executable=file, env=straight.environment(environment, file, cwd), cwd=cwd,
                    stdin=source, stdout=out_end, stderr=err_end, start_new_session=True,
                )  # fmt: skip
            except OSError:
                pass  # a script without an interpreter's line, a directory …: the shell knows what to do or to say
        if child is None:
            child = subprocess.Popen(
                words, env=environment, cwd=cwd, stdin=source, stdout=out_end, stderr=err_end, start_new_session=True
            )
        pidfd = os.pidfd_open(child.pid)
    except OSError as error:
        os.close(out)
        os.close(err)
        raise TargetError(f"{words[0]} cannot be started here: {error.strerror}") from None
    finally:
        for end in (source, out_end, err_end):
            os.close(end)
    os.set_blocking(out, False)
    os.set_blocking(err, False)
    # From here on it is ours to reap, when the pidfd says so; subprocess would complain of a child that outlives us.
    child.returncode = 0
    return _Born(pid=child.pid, pidfd=pidfd, out=out, err=err)


def _abandon(spawning: asyncio.Future[_Born]) -> None:
    """Nobody waits for it any more: end it as soon as it is there."""
    if not spawning.cancelled() and spawning.exception() is None:
        process = LocalProcess(spawning.result())
        process.signal(signal.SIGKILL)
        process.close()


def _source(stdin: bytes) -> int:
    """A descriptor to read standard input from: nothing, or bytes that only this process and its child see."""
    if not stdin:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    source = os.memfd_create("oikos-stdin")
    view = memoryview(stdin)
    while view:
        view = view[os.write(source, view) :]
    os.lseek(source, 0, os.SEEK_SET)
    return source
