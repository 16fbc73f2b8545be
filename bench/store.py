"""What a durable event costs beside a bare sqlite3 commit and aiosqlite, in one interleaved run (bench goal C2).

    python bench/store.py [--rounds 3] [--n 300] [--fsyncs]

aiosqlite is in requirements/bench.txt. `--fsyncs` counts with strace what one append and one loop iteration cost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from oikos.adapters.clock import SystemClock
from oikos.adapters.store.sql import SqlStore
from oikos.domain import events as ev
from oikos.domain.run import Exited, RunOrder, RunReport, Stream
from oikos.domain.verdict import Risk
from oikos.ports import OutputPiece

SAID = ev.OperatorSaid(text="x" * 300, by="ada", channel="cli")
TABLE = "CREATE TABLE ev (id INTEGER PRIMARY KEY, session TEXT, kind TEXT, ts REAL, body TEXT)"
INSERT = "INSERT INTO ev (session, kind, ts, body) VALUES (?, ?, ?, ?)"
ROW = ("s-0001", "step", 1.0, "x" * 300)
PRAGMAS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", TABLE)
Insert = Callable[[int], Awaitable[object]]
Close = Callable[[], Awaitable[object]]


async def inline(home: Path) -> tuple[Insert, Close]:
    """The bare commit, which blocks the event loop."""
    db = sqlite3.connect(home / "x.db", isolation_level=None)
    for statement in PRAGMAS:
        db.execute(statement)

    async def insert(_: int) -> None:
        db.execute(INSERT, ROW)

    async def close() -> None:
        db.close()

    return insert, close


async def aio(home: Path) -> tuple[Insert, Close]:
    """aiosqlite, autocommit."""
    import aiosqlite  # of another environment, appended to the path by bench/run

    db = await aiosqlite.connect(home / "x.db", isolation_level=None)
    for statement in PRAGMAS:
        await db.execute(statement)

    async def insert(_: int) -> None:
        await db.execute(INSERT, ROW)

    return insert, db.close


async def oikos(home: Path) -> tuple[Insert, Close]:
    """One event with its chain and read model, in the session of the caller."""
    clock = SystemClock()
    store = await SqlStore.open(home / "oikos.db", clock=clock)
    seqs: dict[int, int] = {}

    async def insert(session: int) -> None:
        seqs[session] = await store.append(
            f"s{session}", seqs.get(session, 0), [SAID], at=clock.now(), actor="ada", phase="executing"
        )

    return insert, store.close


ENGINES = {"sqlite3-inline": inline, "aiosqlite": aio, "oikos": oikos}


async def measure(name: str, calls: int, sessions: int, home: Path) -> dict[str, float]:
    """Latency and rate of `calls` durable rows by `sessions` callers."""
    directory = Path(tempfile.mkdtemp(dir=home))
    insert, close = await ENGINES[name](directory)
    for _ in range(20):
        await insert(0)
    latencies: list[float] = []
    numbers = iter(range(calls))

    async def work(session: int) -> None:
        for _ in numbers:
            begun = time.perf_counter()
            await insert(session)
            latencies.append((time.perf_counter() - begun) * 1e6)

    cpu, begun = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work(session) for session in range(sessions)))
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    await close()
    shutil.rmtree(directory)
    return {"p50_us": statistics.median(latencies), "rate": calls / took, "cpu_us": cpu / calls * 1e6}


async def compare(rounds: int, n: int, home: Path) -> dict[str, dict[str, float]]:
    """Medians over interleaved rounds."""
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for sessions in (1, 50):
            for name in ENGINES:
                calls = n if sessions == 1 else n * (30 if name == "oikos" else 3)
                found.setdefault(f"{name} x{sessions}", []).append(await measure(name, calls, sessions, home))
    return {name: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for name, rows in found.items()}


async def iterations(home: Path, n: int) -> None:
    """What the agent loop writes: intent, then result and next answer."""
    clock = SystemClock()
    store = await SqlStore.open(home / "oikos.db", clock=clock)
    seq = 0
    for i in range(n):
        call = ev.ToolCall(id=f"c{i}", name="run", arguments='{"command":"true"}')
        order = RunOrder(run_id=f"r{i}", session_id="s1", generation=1, target_id="t", command="true")
        intent = [
            ev.AssistantSaid(text="", calls=(call,)),
            ev.RunStarted(order=order, call_id=call.id, target="t", step=1, risk=Risk.READ_ONLY, effects=(),
                          canonical="true", authority="read_only", admitted=order.digest()),
        ]  # fmt: skip
        seq = await store.append("s1", seq, intent, at=clock.now(), actor="nomos", phase="executing")
        result = [
            ev.RunFinished(run_id=order.run_id, report=RunReport(outcome=Exited(code=0), out_bytes=3)),
            ev.ToolAnswered(call_id=call.id, name="run", text="exit 0\nok\n", run_id=order.run_id),
        ]
        seq = await store.append(
            "s1", seq, result, at=clock.now(), actor="nomos", phase="executing",
            output=[OutputPiece(run_id=order.run_id, stream=Stream.OUT, offset=0, data=b"ok\n")],
        )  # fmt: skip
    await store.close()


def fsyncs(home: Path) -> float:
    """fsync and fdatasync calls of one iteration, set-up excluded: the difference of 30 and 10 of them."""
    counts: list[int] = []
    for n in (10, 30):
        directory = Path(tempfile.mkdtemp(dir=home))
        log = directory / "strace"
        argv = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(log), sys.executable, __file__,
                "--iterations", str(n), "--dir", str(directory / "db")]  # fmt: skip
        subprocess.run(argv, check=True)
        counts.append(sum("sync(" in line for line in log.read_text().splitlines()))
    return (counts[1] - counts[0]) / 20


def imports() -> float:
    """CPU milliseconds that importing and opening the store add to asyncio's own."""
    program = (
        "import asyncio, time, sys\nfrom pathlib import Path\nbegun = time.process_time()\n"
        "from oikos.adapters.store.sql import SqlStore\nfrom oikos.adapters.clock import SystemClock\n"
        "asyncio.run((lambda c: SqlStore.open(Path(sys.argv[1]), clock=c))(SystemClock()))\n"
        "print((time.process_time() - begun) * 1000)\n"
    )
    with tempfile.TemporaryDirectory() as home:
        argv = [sys.executable, "-c", program, f"{home}/state/oikos.db"]
        runs = [float(subprocess.run(argv, capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    return statistics.median(runs)


def main() -> None:
    """Print the table and the ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--fsyncs", action="store_true")
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--dir", type=Path, default=None)
    args = parser.parse_args()
    if args.iterations:
        asyncio.run(iterations(args.dir, args.iterations))
        return
    with tempfile.TemporaryDirectory(dir=args.dir) as name:
        home = Path(name)
        rows = asyncio.run(compare(args.rounds, args.n, home))
        print("| engine | p50 us | rows/s | CPU us/row |\n|---|---|---|---|")
        for engine, row in rows.items():
            print(f"| {engine} | {row['p50_us']:.0f} | {row['rate']:.0f} | {row['cpu_us']:.0f} |")
        ratios = {
            "p50 / inline sqlite3 (goal <= 1.6)": rows["oikos x1"]["p50_us"] / rows["sqlite3-inline x1"]["p50_us"],
            "rate at 50 / aiosqlite (goal >= 15)": rows["oikos x50"]["rate"] / rows["aiosqlite x50"]["rate"],
            "import and open, CPU ms (goal <= 120)": imports(),
        }
        if args.fsyncs:
            ratios["fsyncs per iteration (goal 2)"] = fsyncs(home)
    print(json.dumps({key: round(value, 2) for key, value in ratios.items()}, indent=1))


if __name__ == "__main__":
    main()
