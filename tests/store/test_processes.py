"""Several processes on one home, which is normal: a CLI beside a server (DESIGN §6.7)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.store.homes import opened

pytestmark = pytest.mark.anyio

OPEN_AND_WRITE = """
import asyncio, sys
from pathlib import Path
from oikos.adapters.clock import SystemClock
from oikos.adapters.store.sql import SqlStore
from oikos.domain import events as ev

async def main(path, name):
    clock = SystemClock()
    store = await SqlStore.open(Path(path), clock=clock)
    seq = 0
    for _ in range(20):
        seq = await store.append(name, seq, [ev.TurnStarted(wake="message")], at=clock.now(), actor=name)
    await store.close()

sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


def run_together(path: Path, count: int) -> list[tuple[int, str]]:
    """Exit code and errors of processes that open a database that is not there yet, all at the same moment."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AND_WRITE, str(path), f"p{n}"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for n in range(count)
    ]  # fmt: skip
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [(process.returncode, errors) for process in processes for _, errors in [process.communicate(timeout=120)]]


async def test_processes_that_start_at_once_on_a_new_home_all_work_on_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "state" / "oikos.db"
    assert run_together(path, 5) == [(0, "")] * 5
    async with opened(path) as store:
        report = await store.verify()
        assert (report.events, report.problems) == (100, ())
        assert sorted((row.session_id, row.seq) for row in await store.sessions()) == [(f"p{n}", 20) for n in range(5)]
