from __future__ import annotations

import asyncio

import anyio
import pytest

from oikos.adapters.clock import SystemClock, VirtualClock
from oikos.domain.instant import Instant
from oikos.ports import Clock

pytestmark = pytest.mark.anyio

CLOCKS: list[Clock] = [SystemClock(), VirtualClock()]


async def test_the_system_clock_reads_both_clocks_and_names_the_boot() -> None:
    clock = SystemClock()
    before = clock.now()
    await clock.sleep(0.02)
    after = clock.now()
    assert after.boot_id == before.boot_id != ""
    assert 0.02 <= after.boot_s - before.boot_s < 10
    assert after.elapsed_since(before) >= 0.02


async def test_virtual_sleepers_wake_in_the_order_of_their_times() -> None:
    clock = VirtualClock(wall_s=100.0, boot_s=5.0)
    woken: list[tuple[str, float]] = []

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now().wall_s))

    async with asyncio.TaskGroup() as tasks:
        for name, seconds in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("a2", 1.0)):
            tasks.create_task(sleep(name, seconds))
        await asyncio.sleep(0)
        assert clock.sleepers == 4
        await clock.advance(2.5)
        assert woken == [("a", 101.0), ("a2", 101.0), ("b", 102.0)]
        assert clock.now() == Instant(wall_s=102.5, boot_s=7.5, boot_id="boot-1")
        await clock.advance(10)
    assert woken[-1] == ("c", 103.0)


async def test_a_virtual_sleeper_may_sleep_again_while_the_clock_advances() -> None:
    clock = VirtualClock()
    ticks: list[float] = []

    async def tick() -> None:
        for _ in range(3):
            await clock.sleep(1)
            ticks.append(clock.now().boot_s)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tick())
        await asyncio.sleep(0)
        await clock.advance(10)
    assert ticks == [1001.0, 1002.0, 1003.0]


async def test_a_cancelled_virtual_sleeper_is_forgotten() -> None:
    clock = VirtualClock()
    with anyio.move_on_after(0.01):
        await clock.sleep(100)
    assert clock.sleepers == 0
    await clock.advance(200)
    await clock.sleep(0)


def test_a_jump_moves_the_wall_clock_alone_and_a_reboot_names_another_boot() -> None:
    clock = VirtualClock(wall_s=100.0, boot_s=5.0)
    clock.jump(-50)
    assert clock.now() == Instant(wall_s=50.0, boot_s=5.0, boot_id="boot-1")
    clock.reboot("boot-2")
    assert clock.now() == Instant(wall_s=50.0, boot_s=0.0, boot_id="boot-2")
