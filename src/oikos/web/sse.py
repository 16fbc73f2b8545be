"""A session's events as server-sent events: replay from a cursor, then live, until somebody leaves (SPEC R7.1).

Events carry their seq as id, so that a cut connection goes on with `Last-Event-ID`, without gap or repeat. Pieces of
answers and output have no id: they are lost to whoever is not there, and cost nothing to lose.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from oikos.app.feed import Feed
from oikos.web.shape import item

BEAT_S = 5.0
"""How often a silent stream says that it lives, and looks whether its token still counts."""


class EventStream(Response):
    """The answer that does not end by itself."""

    def __init__(
        self, feed: Feed, session_id: str, *, after: int, allowed: Callable[[], Awaitable[bool]],
        closing: asyncio.Event, among: set[EventStream],
    ) -> None:  # fmt: skip
        """`among` holds the streams that are open."""
        super().__init__(media_type="text/event-stream")
        self._feed = feed
        self._session_id = session_id
        self._after = after
        self._allowed = allowed
        self._closing = closing
        self._among = among

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client leaves, its token is revoked, or the server closes."""
        self._among.add(self)
        try:
            await self._stream(receive, send)
        finally:
            self._among.discard(self)

    async def _stream(self, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await _write(send, b"retry: 1000\n\n")
        async with asyncio.TaskGroup() as tasks:
            ends = {
                tasks.create_task(self._pump(send)),
                tasks.create_task(self._beat(send)),
                tasks.create_task(_gone(receive)),
                tasks.create_task(_wait(self._closing)),
            }
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in ends:
                task.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        async with aclosing(self._feed.follow(self._session_id, after=self._after)) as items:
            async for what in items:
                name, number, data = item(what)
                head = f"id: {number}\n" if number is not None else ""
                await _write(send, b"%sevent: %s\ndata: %s\n\n" % (head.encode(), name.encode(), orjson.dumps(data)))

    async def _beat(self, send: Send) -> None:
        while await self._allowed():
            await _write(send, b": alive\n\n")
            await asyncio.sleep(BEAT_S)


async def _write(send: Send, raw: bytes) -> None:
    await send({"type": "http.response.body", "body": raw, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
