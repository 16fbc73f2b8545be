"""What a run prints, on its way: masked once, stored in order, shown to the feed, both ends kept for the view."""

from __future__ import annotations

import asyncio
import hashlib

from oikos.app.feed import Feed, OutputChunk
from oikos.domain.mask import Masker, Secrets
from oikos.domain.run import Stream
from oikos.ports import Clock, OutputPiece, Store

FLUSH_S = 0.1
"""At most ten commits a second and run (DESIGN §6.1)."""
FLUSH_BYTES = 256 * 1024
KEEP_BYTES = 32 * 1024
"""Of each end of a stream, for the model's view and for judging checks."""


class Collector:
    """Sink of one run."""

    def __init__(self, session_id: str, run_id: str, *, store: Store, feed: Feed, clock: Clock,
                 secrets: Secrets) -> None:  # fmt: skip
        self._session_id = session_id
        self._run_id = run_id
        self._store = store
        self._feed = feed
        self._clock = clock
        self._maskers = {stream: Masker(secrets) for stream in Stream}
        self._at: dict[Stream, int] = {}
        """Raw offset up to which each stream is masked for certain."""
        self._head = dict.fromkeys(Stream, b"")
        self._tail = dict.fromkeys(Stream, b"")
        self._size = dict.fromkeys(Stream, 0)
        self._hash = {stream: hashlib.sha256() for stream in Stream}
        self._waiting: list[tuple[OutputPiece, int]] = []
        self._waiting_bytes = 0
        self._flushed_s = clock.now().boot_s
        self.detail = ""

    async def started(self, detail: str) -> None:
        """The target claimed the run."""
        self.detail = detail

    def resume(self, stream: Stream, stored: bytes, at: int) -> None:
        """Begin with what an earlier process stored; raw bytes go on at `at`."""
        self._see(stream, stored)
        self._at[stream] = at

    async def output(self, stream: Stream, offset: int, data: bytes) -> None:
        """Raw bytes; only what can be masked for certain goes on."""
        at = self._at.setdefault(stream, offset)
        safe, consumed = self._maskers[stream].feed(data)
        self._at[stream] = at + consumed
        if safe:
            self._keep(stream, at, safe, at + consumed)
        now_s = self._clock.now().boot_s
        if self._waiting and (self._waiting_bytes >= FLUSH_BYTES or now_s - self._flushed_s >= FLUSH_S):
            await self._flush(now_s)

    def finish(self) -> tuple[OutputPiece, ...]:
        """The stream has ended: what is not stored yet, to be stored with the outcome."""
        for stream, masker in self._maskers.items():
            safe, consumed = masker.flush()
            at = self._at.get(stream, 0)
            self._at[stream] = at + consumed
            if safe:
                self._keep(stream, at, safe, at + consumed)
        pieces, self._waiting = tuple(piece for piece, _ in self._waiting), []
        return pieces

    def ends(self, stream: Stream) -> tuple[bytes, bytes, int]:
        """Masked head, masked tail that does not overlap it, and how many bytes there were in all."""
        return self._head[stream], self._tail[stream], self._size[stream]

    def digest(self) -> str:
        """Of all masked output, for stuck detection."""
        return "".join(self._hash[stream].hexdigest()[:16] for stream in Stream)

    def _keep(self, stream: Stream, at: int, safe: bytes, until: int) -> None:
        self._waiting.append((OutputPiece(run_id=self._run_id, stream=stream, offset=at, data=safe), until))
        self._waiting_bytes += len(safe)
        self._see(stream, safe)
        if self._feed.listened:
            self._feed.ephemeral(
                OutputChunk(session_id=self._session_id, run_id=self._run_id, stream=stream, offset=at, data=safe)
            )

    def _see(self, stream: Stream, safe: bytes) -> None:
        self._size[stream] += len(safe)
        self._hash[stream].update(safe)
        rest = safe
        head = self._head[stream]
        if len(head) < KEEP_BYTES:
            take = KEEP_BYTES - len(head)
            self._head[stream] = head + safe[:take]
            rest = safe[take:]
        if rest:
            self._tail[stream] = (self._tail[stream] + rest)[-KEEP_BYTES:]

    async def _flush(self, now_s: float) -> None:
        pieces, self._waiting, self._waiting_bytes = self._waiting, [], 0
        self._flushed_s = now_s
        # accepted in this order when they are called: one group commit, and each moves its resume offset with it
        await asyncio.gather(
            *(self._store.put_output(p.run_id, p.stream, p.offset, p.data, until=until) for p, until in pieces)
        )
