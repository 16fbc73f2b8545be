"""Where a run's output goes: counts raw bytes, hands them to the Sink with their offsets."""

from __future__ import annotations

from collections.abc import Mapping

from oikos.domain.run import Stream
from oikos.ports import Sink


class Outlet:
    """One run's way to its Sink; knows how far each stream has come."""

    def __init__(self, sink: Sink, offsets: Mapping[Stream, int] | None = None) -> None:
        self._sink = sink
        self._offsets = {stream: (offsets or {}).get(stream, 0) for stream in Stream}

    @property
    def out_bytes(self) -> int:
        """Raw bytes of standard output so far."""
        return self._offsets[Stream.OUT]

    @property
    def err_bytes(self) -> int:
        """Raw bytes of standard error so far."""
        return self._offsets[Stream.ERR]

    async def put(self, stream: Stream, data: bytes) -> None:
        """Deliver the next bytes; returns when the Sink took them."""
        offset = self._offsets[stream]
        await self._sink.output(stream, offset, data)
        self._offsets[stream] = offset + len(data)

    async def started(self, detail: str) -> None:
        """The run began (`new`) or had begun before (`exists`)."""
        await self._sink.started(detail)
