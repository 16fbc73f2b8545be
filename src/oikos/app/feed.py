"""The feed: replay of a session's events from a cursor, then live; deltas and output chunks are ephemeral.

Events come from the store, so what another process appended arrives too; deltas and chunks exist only in the
process that makes them and are lost to whoever is not listening (SPEC R7.1). Writers never wait for readers:
a reader that falls behind loses ephemeral items, never events.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from oikos.domain.events import Recorded
from oikos.domain.run import Stream
from oikos.ports import Clock, Store

POLL_S = 0.25
"""How often another process's commits are looked for (DESIGN §6.7: 500 ms at most)."""
BACKLOG = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """A piece of the model's answer."""

    session_id: str
    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChunk:
    """Masked output of a run as it comes."""

    session_id: str
    run_id: str
    stream: Stream
    offset: int
    data: bytes


Item = Recorded | Delta | OutputChunk


@dataclass(eq=False, slots=True)
class _Reader:
    session_id: str
    items: deque[Item] = field(default_factory=deque)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ephemeral: bool = True


class Feed:
    """Fan-out of one process, on top of the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._readers: set[_Reader] = set()

    @property
    def listened(self) -> bool:
        """Whether anybody listens at all."""
        return bool(self._readers)

    def publish(self, records: Sequence[Recorded]) -> None:
        """Committed events of this process."""
        for reader in self._readers:
            fresh = [record for record in records if record.session_id == reader.session_id]
            if fresh:
                reader.items.extend(fresh)
                reader.ready.set()

    def ephemeral(self, item: Delta | OutputChunk) -> None:
        """A delta or chunk; dropped for readers that lag."""
        for reader in self._readers:
            if reader.ephemeral and reader.session_id == item.session_id and len(reader.items) < BACKLOG:
                reader.items.append(item)
                reader.ready.set()

    async def follow(self, session_id: str, *, after: int = 0, ephemeral: bool = True) -> AsyncGenerator[Item, None]:
        """Events with seq > `after` in order, without gap or repeat, then live; never ends by itself."""
        reader = _Reader(session_id=session_id, ephemeral=ephemeral)
        self._readers.add(reader)
        cursor = after
        try:
            version, polled_s = await self._store.data_version(), asyncio.get_running_loop().time()
            for record in await self._store.load(session_id, after=cursor):
                cursor = record.seq
                yield record
            while True:
                while reader.items:
                    item = reader.items.popleft()
                    if not isinstance(item, Recorded):
                        yield item
                    elif item.seq == cursor + 1:
                        cursor = item.seq
                        yield item
                    elif item.seq > cursor:
                        for record in await self._store.load(session_id, after=cursor):
                            cursor = record.seq
                            yield record
                reader.ready.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):
                        await reader.ready.wait()
                now_s = asyncio.get_running_loop().time()
                if now_s - polled_s < POLL_S:
                    continue
                polled_s = now_s
                newer = await self._store.data_version()
                if newer != version:
                    version = newer
                    for record in await self._store.load(session_id, after=cursor):
                        cursor = record.seq
                        yield record
        finally:
            self._readers.discard(reader)
