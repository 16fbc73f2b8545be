from __future__ import annotations

import asyncio

import anyio
import pytest

from oikos.adapters.wake.local import LocalWake
from oikos.ports import Wake

pytestmark = pytest.mark.anyio


async def test_a_waiting_worker_returns_when_it_is_notified() -> None:
    wake: Wake = LocalWake()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(wake.wait(60))
        await asyncio.sleep(0)
        assert not waiting.done()
        wake.notify("s1")
        with anyio.fail_after(5):
            await waiting


async def test_a_notification_before_the_wait_is_not_lost_and_counts_once() -> None:
    wake = LocalWake()
    wake.notify("s1")
    wake.notify("s2")
    with anyio.fail_after(5):
        await wake.wait(60)
    with anyio.move_on_after(0.02) as scope:
        await wake.wait(60)
    assert scope.cancelled_caught


async def test_without_a_notification_the_wait_ends_by_itself() -> None:
    with anyio.fail_after(5):
        await LocalWake().wait(0.01)
