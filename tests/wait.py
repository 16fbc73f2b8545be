"""Waiting in a test for something that sends no signal of its own: bounded, and saying what never came."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio

T = TypeVar("T")
TICK_S = 0.01


def until(look: Callable[[], T], what: str, timeout_s: float = 10.0) -> T:
    """The first truthy answer of `look`; fails the test with `what` after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while not (answer := look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(TICK_S)  # allow: test-sleep - the one place where tests poll
    return answer


async def until_async(look: Callable[[], T], what: str, timeout_s: float = 10.0) -> T:
    """As `until`, without blocking the event loop."""
    end = time.monotonic() + timeout_s
    while not (answer := look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        await anyio.sleep(TICK_S)  # allow: test-sleep - the one place where tests poll
    return answer
