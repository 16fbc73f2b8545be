"""The Wake port within one process: an event; rows of other processes are found by the caller's polling."""

from __future__ import annotations

import asyncio

POLL_S = 0.5
"""Longest a caller should wait before it looks for other processes' wake rows (DESIGN §6.7)."""


class LocalWake:
    """Tells this process's worker that a session wants attention."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self, session_id: str) -> None:
        """A wake row of `session_id` was committed; the row, not this call, is what a worker reads."""
        self._event.set()

    async def wait(self, timeout_s: float = POLL_S) -> None:
        """Return when something was notified since the last return, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
