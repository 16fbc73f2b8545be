"""The feed: replay from a cursor, then live, without gap or repeat; what is ephemeral reaches who listens, masked."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial

import anyio
import pytest

from oikos.app.feed import Delta, Item, OutputChunk
from oikos.domain import events as ev
from oikos.domain.session import Phase, fold
from tests.app.conftest import WAIT_S, Household, Open, finish, plan, run
from tests.wait import until_async

pytestmark = pytest.mark.anyio

MAKE = "touch {{workshop}}/made"
WHOLE = plan(MAKE) + run(MAKE) + finish()


def arrived(items: list[Item], seq: int) -> bool:
    """Whether an event is there."""
    return any(isinstance(item, ev.Recorded) and item.seq == seq for item in items)


async def collect(house: Household, after: int, until: int, into: list[Item], ready: anyio.Event | None = None) -> None:
    """Follow from a cursor until a seq."""
    with anyio.fail_after(WAIT_S):
        async with aclosing(house.oikos.feed.follow(house.session_id, after=after)) as items:
            async for item in items:
                into.append(item)
                if ready is not None:
                    ready.set()
                if isinstance(item, ev.Recorded) and item.seq >= until:
                    return


async def test_a_reader_from_any_cursor_sees_every_later_event_once(household: Open) -> None:
    async with household(WHOLE) as house:
        await house.say("make it")
        await house.approve()
        records = list(await house.oikos.service.history(house.session_id))
        assert [record.seq for record in records] == list(range(1, len(records) + 1))
        for after in (0, 1, len(records) // 2, len(records) - 1):
            seen: list[Item] = []
            await collect(house, after, len(records), seen)
            assert seen == records[after:]


async def test_readers_that_come_at_different_moments_see_the_same_live(household: Open) -> None:
    async with household(WHOLE) as house:
        seen: list[list[Item]] = [[], [], []]
        async with anyio.create_task_group() as tasks:
            for number in range(2):
                ready = anyio.Event()
                tasks.start_soon(collect, house, 0, 10_000, seen[number], ready)
                await ready.wait()
            await house.say("make it")
            tasks.start_soon(collect, house, 2, 10_000, seen[2])
            state = await house.approve()
            for reader in seen:
                await until_async(partial(arrived, reader, state.seq), "the readers to have it", WAIT_S)
            tasks.cancel_scope.cancel()
        records = list(await house.oikos.service.history(house.session_id))
        assert [item for item in seen[0] if isinstance(item, ev.Recorded)] == records
        assert [item for item in seen[1] if isinstance(item, ev.Recorded)] == records
        assert [item for item in seen[2] if isinstance(item, ev.Recorded)] == records[2:]


async def test_a_reader_in_another_process_sees_the_same(household: Open) -> None:
    async with household(WHOLE) as house, household(WHOLE, session_id=house.session_id, work=False) as other:
        seen: list[Item] = []
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, other, 0, 10_000, seen, ready)
            await ready.wait()
            await house.say("make it")
            state = await house.approve()
            await until_async(lambda: len(seen) >= state.seq, "the reader to have it", WAIT_S)
            tasks.cancel_scope.cancel()
        assert seen == list(await house.oikos.service.history(house.session_id))


async def test_a_stop_from_elsewhere_is_seen_through_a_stream_of_output(household: Open) -> None:
    noisy = "while test ! -e {{workshop}}/go; do echo noise; sleep 0.01; done; touch {{workshop}}/made"
    async with household(plan(noisy) + run(noisy)) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        await house.oikos.service.approve(house.session_id, card, house.by)
        await house.until(lambda state: any(run.running and run.authority != "probe" for run in state.runs.values()))
        stopped: list[Item] = []
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, house, 0, 10_000, stopped, ready)
            await until_async(
                lambda: any(isinstance(item, OutputChunk) for item in stopped), "the reader to have it", WAIT_S
            )
            async with household("- text: x\n", session_id=house.session_id, work=False) as other:
                await other.oikos.service.stop(house.session_id, other.by)
            await until_async(
                lambda: any(isinstance(i, ev.Recorded) and isinstance(i.event, ev.SessionStopped) for i in stopped),
                "the reader to see the stop", WAIT_S,
            )  # fmt: skip
            tasks.cancel_scope.cancel()
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.running)


async def test_text_and_output_come_live_and_are_nowhere_in_the_log(household: Open) -> None:
    script = plan(MAKE) + run(MAKE) + run("echo one; echo two", expects="text: |\n  I look.\n  Wait.") + finish()
    async with household(script) as house:
        seen: list[Item] = []
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(collect, house, 0, 10_000, seen, ready)
            await ready.wait()
            await house.say("make it")
            state = await house.approve()
            await until_async(
                lambda: any(isinstance(item, ev.Recorded) and item.seq == state.seq for item in seen),
                "the reader to have it",
                WAIT_S,
            )
            tasks.cancel_scope.cancel()
        assert "".join(item.text for item in seen if isinstance(item, Delta)) == "I look.\nWait.\n"
        assert (
            b"".join(item.data for item in seen if isinstance(item, OutputChunk) and b"o" in item.data)[:8]
            == b"one\ntwo\n"
        )
        assert fold(item for item in seen if isinstance(item, ev.Recorded)) == await house.state()
