"""The Clock port: the system's clocks, and one that moves only when it is told to."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import os
import time

from oikos.domain.instant import Instant

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class SystemClock:
    """Wall clock, CLOCK_BOOTTIME and the kernel's boot id."""

    def __init__(self) -> None:
        self._boot_id = _boot_id()

    def now(self) -> Instant:
        """This moment."""
        return Instant(wall_s=time.time(), boot_s=time.clock_gettime(time.CLOCK_BOOTTIME), boot_id=self._boot_id)

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock for tests, evals and demos: `advance` moves it and wakes sleepers in order."""

    def __init__(self, *, wall_s: float = 1_700_000_000.0, boot_s: float = 1000.0, boot_id: str = "boot-1") -> None:
        self._now = Instant(wall_s=wall_s, boot_s=boot_s, boot_id=boot_id)
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> Instant:
        """This moment."""
        return self._now

    @property
    def sleepers(self) -> int:
        """How many sleep."""
        return sum(1 for _, _, future in self._sleepers if not future.done())

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was advanced by `seconds`; at once, after a turn of the loop, for 0 or less."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now.boot_s + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move both clocks on; each sleeper whose time comes runs at its own moment, the earliest first."""
        end_s = self._now.boot_s + seconds
        while self._sleepers and self._sleepers[0][0] <= end_s:
            due_s, _, future = heapq.heappop(self._sleepers)
            self._move(due_s - self._now.boot_s)
            if not future.done():
                future.set_result(None)
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
        self._move(end_s - self._now.boot_s)

    def jump(self, seconds: float) -> None:
        """Set the wall clock alone, as an administrator or a bad time server does; nobody wakes."""
        now = self._now
        self._now = Instant(wall_s=now.wall_s + seconds, boot_s=now.boot_s, boot_id=now.boot_id)

    def reboot(self, boot_id: str) -> None:
        """Another boot of the machine; the wall clock goes on."""
        self._now = Instant(wall_s=self._now.wall_s, boot_s=0.0, boot_id=boot_id)

    def _move(self, seconds: float) -> None:
        now = self._now
        self._now = Instant(wall_s=now.wall_s + seconds, boot_s=now.boot_s + seconds, boot_id=now.boot_id)


def _boot_id() -> str:
    """The kernel's id of this boot; empty where there is none, and then only the wall clock counts."""
    try:
        file = os.open(_BOOT_ID, os.O_RDONLY | os.O_NONBLOCK)  # from memory: it does not block an event loop
    except OSError:
        return ""
    try:
        return os.read(file, 100).decode().strip()
    finally:
        os.close(file)


_TURNS = 5
"""Turns of the loop that a woken sleeper gets before the clock moves on, so that it may sleep again."""
