"""A writer killed with SIGKILL at any moment loses nothing that it acknowledged (SPEC R10.2)."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.store.homes import opened, raw

pytestmark = pytest.mark.anyio

WRITER = """
import asyncio, sys
from pathlib import Path
from oikos.adapters.clock import SystemClock
from oikos.adapters.store.sql import SqlStore
from oikos.domain import events as ev

async def session(store, clock, name, seq):
    while True:
        said = ev.OperatorSaid(text=f"{name} {seq + 1} " * (1 + 700 * (seq % 3 == 0)), by="ada", channel="cli")
        seq = await store.append(name, seq, [said, ev.TurnStarted(wake="message")], at=clock.now(), actor="ada")
        print(name, seq, flush=True)

async def main():
    clock = SystemClock()
    store = await SqlStore.open(Path(sys.argv[1]), clock=clock)
    names = [f"s{n}" for n in range(5)]
    known = {row.session_id: row.seq for row in await store.sessions()}
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(session(store, clock, name, known.get(name, 0)))

asyncio.run(main())
"""


def write_and_die(path: Path, after_s: float) -> dict[str, int]:
    """The highest acknowledged seq by session, of a writer that lived for `after_s` after its first word."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(after_s)  # allow: test-sleep - the moment of death is what is tried
        process.kill()
        lines += process.stdout.read().splitlines()[:-1]  # the last one may be cut
    acknowledged: dict[str, int] = {}
    for line in lines:
        name, _, seq = line.partition(" ")
        acknowledged[name] = int(seq)
    return acknowledged


async def kill_again_and_again(path: Path, times: int, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(times):
        acknowledged = write_and_die(path, dice.uniform(0, 0.05))
        assert acknowledged
        async with opened(path, busy_timeout_s=5) as store:
            rows = {row.session_id: row.seq for row in await store.sessions()}
            for name, seq in acknowledged.items():
                assert rows[name] >= seq, f"{name} lost {seq - rows[name]} acknowledged events"
                assert [recorded.seq for recorded in await store.load(name)] == list(range(1, rows[name] + 1))
            assert all(seq % 2 == 0 for seq in rows.values()), "an append of two events was cut in half"
            assert (await store.verify()).problems == ()
    assert raw(path, "PRAGMA integrity_check") == [("ok",)]


async def test_a_killed_writer_loses_no_acknowledged_event_and_leaves_no_gap(tmp_path: Path) -> None:
    await kill_again_and_again(tmp_path / "oikos.db", times=4, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
async def test_a_writer_killed_twenty_times_still_has_one_whole_chain(tmp_path: Path, seed: int) -> None:
    await kill_again_and_again(tmp_path / "oikos.db", times=20, seed=seed)
