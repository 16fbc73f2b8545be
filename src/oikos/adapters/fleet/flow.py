"""A running process as its reader sees it: chunks of two streams, then one end; the same for every transport."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from oikos.domain.run import Stream

HIGH_BYTES: Final = 1 << 20
"""What may wait for the reader before the transport is told to pause."""

Chunk = tuple[Stream, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a process ended: a code, a signal number, or neither because the connection was lost."""

    code: int | None = None
    signal: int | None = None
    lost: str = ""
    """Why nothing is known."""
    refused: bool = False
    """The far side said that it did not begin."""
    held: bool = False
    """A child in the background still had the output open when reading stopped."""


class Flow:
    """The queue between a transport's callbacks and one reader, with back-pressure."""

    def __init__(self, *, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._pause, self._resume = pause, resume
        self._chunks: deque[Chunk] = deque()
        self._waiting_bytes = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self.end: End | None = None
        """Set once; chunks may still be queued."""

    @property
    def paused(self) -> bool:
        """Whether the reader is behind."""
        return self._paused

    def feed(self, stream: Stream, data: bytes) -> None:
        """Called by the transport."""
        self._chunks.append((stream, data))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > HIGH_BYTES and not self._paused:
            self._paused = True
            self._pause()
        self._wake()

    def finish(self, end: End) -> None:
        """Called by the transport; the first end counts."""
        if self.end is None:
            self.end = end
            self._wake()

    async def read(self) -> list[Chunk]:
        """All that has come, at least one chunk; empty when the process ended and everything was read."""
        while not self._chunks and self.end is None:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunks = list(self._chunks)
        self._chunks.clear()
        self._waiting_bytes = 0
        if self._paused:
            self._paused = False
            self._resume()
        return chunks

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Process(Protocol):
    """A started program. `flow` is read by one reader; `close` never waits and may be called twice."""

    flow: Flow

    def close(self) -> None:
        """Stop listening. What still runs goes on."""
        ...
