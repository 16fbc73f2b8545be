from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import anyio
import pytest
from tests.store.homes import AT, OPENED, append, opened

from oikos.adapters.store.sql import SqlStore
from oikos.adapters.store.transaction import Transaction
from oikos.domain.errors import StoreError

pytestmark = pytest.mark.anyio


def store_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("oikos-store")]


def open_files(home: Path) -> list[str]:
    found: list[str] = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink()))
        except OSError:  # the one that lists
            continue
    return [name for name in found if name.startswith(str(home))]


def names(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir())


async def commits_during(store: SqlStore, calls: int) -> int:
    """How many transactions serve `calls` appends that wait while the writer is busy."""
    gate, statements = threading.Event(), list[str]()

    def hold(transaction: Transaction) -> None:
        transaction.execute.__self__.set_trace_callback(statements.append)
        gate.wait(10)

    held = store._write(hold)
    pending = [store.append(f"s{n}", 0, [OPENED], at=AT, actor="ada") for n in range(calls)]
    gate.set()
    await held
    await asyncio.gather(*pending)
    return statements.count("BEGIN IMMEDIATE")


async def test_what_waits_while_the_writer_is_busy_is_one_transaction(tmp_path: Path) -> None:
    async with opened(tmp_path / "oikos.db") as store:
        assert await commits_during(store, 50) <= 2


async def test_after_close_no_thread_and_no_file_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path / "oikos.db") as store:
        await append(store, 0)
        await asyncio.gather(*(store.load("s1") for _ in range(20)), store.data_version())
        assert len(store_threads()) >= 3
        assert open_files(tmp_path) != []
    assert store_threads() == []
    assert open_files(tmp_path) == []
    assert names(tmp_path) == ["oikos.db", "oikos.db.ballast"]


async def test_a_store_that_could_not_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "oikos.db").write_bytes(b"x" * 5000)
    with pytest.raises(StoreError):
        async with opened(tmp_path / "oikos.db"):
            pass
    assert store_threads() == []
    assert open_files(tmp_path) == []


async def test_callers_cancelled_at_random_neither_lose_nor_double_anything(tmp_path: Path) -> None:
    async with opened(tmp_path / "oikos.db") as store:
        for turn in range(30):
            seq = len(await store.load("s1"))
            with anyio.move_on_after(0.0001 * turn):
                await append(store, seq)
                await append(store, seq + 1)
        report = await store.verify()
        assert report.problems == ()
        assert report.events == len(await store.load("s1"))
    assert store_threads() == []


async def test_an_error_in_the_work_of_one_caller_reaches_that_caller_only(tmp_path: Path) -> None:
    def fail(transaction: Transaction) -> None:
        raise ZeroDivisionError("oops")

    async with opened(tmp_path / "oikos.db") as store:
        good = store.append("s1", 0, [OPENED], at=AT, actor="ada")
        bad = store._write(fail)
        also_good = store.append("s2", 0, [OPENED], at=AT, actor="ada")
        with pytest.raises(StoreError, match="oops"):
            await bad
        assert (await good, await also_good) == (1, 1)


def test_a_store_outlives_the_loop_of_a_caller_that_went_away(tmp_path: Path) -> None:
    store = asyncio.run(SqlStore.open(tmp_path / "oikos.db", clock=None))  # type: ignore[arg-type]  # never asked for the time

    async def accept_and_go() -> None:
        store.append("s1", 0, [OPENED], at=AT, actor="ada").close()

    async def look_and_close() -> int:
        seen = len(await store.load("s1"))
        await store.close()
        return seen

    asyncio.run(accept_and_go())
    assert asyncio.run(look_and_close()) == 1
    assert store_threads() == []
