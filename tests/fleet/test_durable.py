"""Faults: whatever breaks, a run starts at most once, its output is exact, its end is known or said to be unknown."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from oikos.adapters.fleet.runner import FleetRunner
from oikos.domain.errors import TargetError
from oikos.domain.inventory import Entity
from oikos.domain.run import Exited, NeverStarted, RemoteState, RunOrder, RunOutcome, Signalled, Unknown
from tests.fleet.controller import POINTS
from tests.fleet.kit import Collect, order, remote, route_to, run, runner
from tests.fleet.servers import Proxy, Server, server
from tests.wait import until, until_async

pytestmark = pytest.mark.anyio
_numbers = itertools.count(5000)

LINES = "i=0; while [ $i -lt 40 ]; do echo line$i; echo e$i >&2; sleep 0.02; i=$((i+1)); done; exit 7"
LINES_OUT = b"".join(b"line%d\n" % i for i in range(40))
LINES_ERR = b"".join(b"e%d\n" % i for i in range(40))
SHAPES = (
    ("echo quick; echo q2 >&2; exit 3", Exited(code=3), b"quick\n", b"q2\n"),
    (LINES, Exited(code=7), LINES_OUT, LINES_ERR),
    ("yes abcdefghijklmnop | head -c 1600000; sleep 0.3; echo done", Exited(code=0),
     (b"abcdefghijklmnop\n" * 94118)[:1600000] + b"done\n", b""),
    ("sleep 0.5; echo late; kill -9 $$", Signalled(signal=9), b"late\n", b""),
    ("(sleep 20; echo orphan) & echo main", Exited(code=0), b"main\n", b""),
)  # fmt: skip


def count(path: Path) -> int:
    """How often a command that counts itself has run."""
    return len(path.read_text().split()) if path.exists() else 0


# ---- connections ---------------------------------------------------------------------------------------------------


async def test_a_cut_connection_loses_nothing(fleet: FleetRunner, sshd: Server, proxy: Proxy) -> None:
    entity, sink = remote(sshd, port=proxy.port), Collect()
    made = order(entity, f"echo x >>~/cut; {LINES}", number=next(_numbers))

    async def cut() -> None:
        for size in (20, 120, 200):
            await until_async(lambda size=size: len(sink.out) >= size, f"{size} bytes")
            proxy.cut()

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            report = await run(fleet, made, entity, sink)
    assert (report.outcome, sink.out, sink.err) == (Exited(code=7), LINES_OUT, LINES_ERR)
    assert (count(sshd.home / "cut"), proxy.accepted) == (1, 4)


async def test_killed_sessions_lose_nothing(fleet: FleetRunner, sshd: Server) -> None:
    entity, sink = remote(sshd), Collect()
    made = order(entity, f"echo x >>~/killed; {LINES}", number=next(_numbers))

    async def kill() -> None:
        for size in (20, 150):
            await until_async(lambda size=size: len(sink.out) >= size, f"{size} bytes")
            assert sshd.kill_sessions()

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            report = await run(fleet, made, entity, sink)
    assert (report.outcome, sink.out, sink.err) == (Exited(code=7), LINES_OUT, LINES_ERR)
    assert count(sshd.home / "killed") == 1


async def test_a_plain_read_is_lost_with_its_connection(fleet: FleetRunner, sshd: Server, proxy: Proxy) -> None:
    entity, sink = remote(sshd, port=proxy.port), Collect()
    made = order(entity, "echo begin; sleep 20", number=next(_numbers), supervised=False)

    async def cut() -> None:
        await sink.seen.wait()
        proxy.cut()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            report = await run(fleet, made, entity, sink)
    assert (report.outcome.kind, sink.out) == ("lost", b"begin\n")
    again = Collect()
    report = await run(fleet, replace(made, run_id=f"{next(_numbers):032x}", command="echo again"), entity, again)
    assert (report.outcome, again.out) == (Exited(code=0), b"again\n")


async def test_two_followers_both_get_the_exact_output(fleet: FleetRunner, sshd: Server, home: Path) -> None:
    entity, first, second = remote(sshd), Collect(), Collect()
    made, reports = order(entity, f"echo x >>~/two; {LINES}", number=next(_numbers)), []
    other = runner(home)

    async def attach() -> None:
        await first.seen.wait()
        reports.append(await other.attach(made, route_to(entity), second, {}))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attach)
            reports.append(await run(fleet, made, entity, first))
    await other.close()
    assert [report.outcome for report in reports] == [Exited(code=7)] * 2
    assert (first.out, first.err, second.out, second.err) == (LINES_OUT, LINES_ERR) * 2
    assert count(sshd.home / "two") == 1


async def test_a_target_that_stays_away_is_unknown_in_the_end(sshd: Server, home: Path, proxy: Proxy) -> None:
    entity, sink = remote(sshd, port=proxy.port), Collect()
    fleet = runner(home, patience_s=0.5)
    made = order(entity, "echo begin; sleep 2", number=next(_numbers), total_s=1.0, connect_s=1.0)

    async def cut() -> None:
        await sink.seen.wait()
        proxy.refuse = True
        proxy.cut()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cut)
            report = await run(fleet, made, entity, sink)
    await fleet.close()
    assert isinstance(report.outcome, Unknown)
    assert report.outcome.reason.startswith("far was out of reach for too long")


# ---- what the spool proves -----------------------------------------------------------------------------------------


async def test_a_start_that_never_arrived_is_void_for_good(fleet: FleetRunner, sshd: Server) -> None:
    entity = remote(sshd)
    made = order(entity, "echo x >>~/void", number=next(_numbers))
    report = await fleet.attach(made, route_to(entity), Collect(), {})
    assert report.outcome == NeverStarted(reason="the target never began it")
    # The start message that was stuck somewhere arrives after all: it finds the run id taken.
    late = Collect()
    assert (await run(fleet, made, entity, late)).outcome == NeverStarted(reason="not begun")
    assert (late.details, count(sshd.home / "void")) == (["exists"], 0)


async def test_a_claim_without_a_decision_is_void(fleet: FleetRunner, sshd: Server) -> None:
    entity = remote(sshd)
    made = order(entity, "true", number=next(_numbers))
    (sshd.spool / made.run_id).mkdir(parents=True, mode=0o700)
    report = await fleet.attach(made, route_to(entity), Collect(), {})
    assert report.outcome == NeverStarted(reason="the target never began it")


async def test_a_claim_that_cannot_be_voided_yet_is_not_called_never_started(fleet: FleetRunner, sshd: Server) -> None:
    entity = remote(sshd)
    made = order(entity, "echo x >>~/undecided", number=next(_numbers))
    directory = sshd.spool / made.run_id
    directory.mkdir(parents=True, mode=0o700)
    carrier: Any = fleet._carrier
    begin, refused = carrier.start, []

    def decide() -> None:
        for name, text in (("out", ""), ("err", ""), ("decision", "run\n"), ("rc", "0 0\n")):
            (directory / name).write_text(text)

    async def refuse_void(way: Any, program: Any, **more: Any) -> Any:
        if b"OP=void" in more.get("stdin", b"") and not refused:
            # Out of reach at the worst moment; meanwhile the slow supervisor decides, runs and ends.
            refused.append(True)
            await anyio.to_thread.run_sync(decide)
            raise TargetError("far: out of reach")
        return await begin(way, program, **more)

    carrier.start = refuse_void
    assert (await run(fleet, made, entity, Collect())).outcome == Exited(code=0)
    assert refused


async def partial(
    fleet: FleetRunner, sshd: Server, command: str, *, await_end: bool
) -> tuple[Entity, Collect, RunOrder]:
    """Start a run and stop listening, as a controller that dies."""
    entity, sink = remote(sshd), Collect()
    made = order(entity, command, number=next(_numbers))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, fleet, made, entity, sink)
        await sink.seen.wait()
        tasks.cancel_scope.cancel()
    if await_end:
        await until_async((sshd.spool / made.run_id / "rc").exists, "the end of the command")
    return entity, sink, made


def kill_run(directory: Path, *, command: bool) -> None:
    """SIGKILL the supervisor, and the command's group if asked."""
    group, _, supervisor, _ = until(lambda: (directory / "pid").read_text().split(), "the pid file")
    os.kill(int(supervisor), signal.SIGKILL)
    if command:
        os.killpg(int(group), signal.SIGKILL)


async def finish(fleet: FleetRunner, entity: Entity, made: RunOrder, sink: Collect) -> tuple[RunOutcome, bytes]:
    """Attach from where the sink is."""
    rest = Collect(base=dict(sink.offsets()))
    with anyio.fail_after(20):
        report = await fleet.attach(made, route_to(entity), rest, sink.offsets())
    return report.outcome, sink.out + rest.out


async def test_a_killed_supervisor_leaves_the_outcome_unknown(fleet: FleetRunner, sshd: Server) -> None:
    entity, sink, made = await partial(fleet, sshd, "echo begin; sleep 60", await_end=False)
    kill_run(sshd.spool / made.run_id, command=True)
    assert await finish(fleet, entity, made, sink) == (
        Unknown(reason="its supervisor on the target was killed"), b"begin\n",
    )  # fmt: skip


async def test_a_restart_while_it_ran_leaves_the_outcome_unknown(fleet: FleetRunner, sshd: Server) -> None:
    entity, sink, made = await partial(fleet, sshd, "echo begin; sleep 60", await_end=False)
    directory = sshd.spool / made.run_id
    kill_run(directory, command=True)
    (directory / "boot").write_text("another-boot\n")
    assert await finish(fleet, entity, made, sink) == (
        Unknown(reason="the target was restarted while it ran"), b"begin\n",
    )  # fmt: skip


async def test_an_end_before_the_restart_is_still_known(fleet: FleetRunner, sshd: Server) -> None:
    entity, sink, made = await partial(fleet, sshd, "echo hi; exit 5", await_end=True)
    (sshd.spool / made.run_id / "boot").write_text("another-boot\n")
    assert await finish(fleet, entity, made, sink) == (Exited(code=5), b"hi\n")


async def test_a_claim_lost_in_a_power_cut_is_not_called_never_started(
    fleet: FleetRunner, sshd: Server, home: Path
) -> None:
    entity, sink, made = await partial(fleet, sshd, "echo hi", await_end=True)
    note = home / "notes" / made.run_id
    note.write_text("another-boot " + note.read_text().split()[1])
    shutil.rmtree(sshd.spool / made.run_id)
    outcome, _ = await finish(fleet, entity, made, sink)
    assert outcome == Unknown(reason="the target was restarted and remembers no such run")


async def test_a_wiped_spool_is_not_called_never_started(fleet: FleetRunner, sshd: Server) -> None:
    entity, sink, made = await partial(fleet, sshd, "echo hi", await_end=True)
    shutil.rmtree(sshd.spool)
    outcome, _ = await finish(fleet, entity, made, sink)
    assert outcome == Unknown(reason="the spool on the target was wiped since the start")


async def test_a_kill_before_the_beginning_keeps_it_from_beginning(fleet: FleetRunner, sshd: Server) -> None:
    entity = remote(sshd)
    made = order(entity, "echo x >>~/nothing", number=next(_numbers))
    assert await fleet.kill(made, route_to(entity)) is RemoteState.KILLED
    assert (await run(fleet, made, entity, Collect())).outcome == NeverStarted(reason="not begun")
    assert count(sshd.home / "nothing") == 0


async def test_a_recycled_pid_is_not_signalled(fleet: FleetRunner, sshd: Server) -> None:
    entity, _, made = await partial(fleet, sshd, "echo begin; sleep 60", await_end=False)
    directory = sshd.spool / made.run_id
    kill_run(directory, command=True)
    innocent = await anyio.open_process(["sleep", "60"], start_new_session=True)
    (directory / "pid").write_text(f"{innocent.pid} 1 1 1\n")
    assert await fleet.kill(made, route_to(entity)) is RemoteState.KILLED
    assert innocent.returncode is None
    innocent.kill()
    await innocent.wait()


async def test_a_dead_consent_never_begins_by_whichever_clock(sshd: Server, home: Path) -> None:
    entity = remote(sshd)
    for offset_s in (0.0, -7200.0, 7200.0):
        fleet = runner(home, offset_s=offset_s)
        now_s = time.time() + offset_s
        late = order(entity, "echo x >>~/late", number=next(_numbers), not_after_s=now_s - 5)
        early = order(entity, "echo early", number=next(_numbers), not_after_s=now_s + 60)
        assert isinstance((await run(fleet, late, entity, Collect())).outcome, NeverStarted)
        assert (await run(fleet, early, entity, Collect())).outcome == Exited(code=0)
        await fleet.close()
    assert count(sshd.home / "late") == 0


async def test_the_target_itself_refuses_a_late_start(sshd: Server, home: Path) -> None:
    entity = remote(sshd)
    fleet = runner(home)
    await run(fleet, order(entity, "true", number=next(_numbers)), entity, Collect())  # the clocks are compared here
    made = order(entity, "echo x >>~/late2", number=next(_numbers), not_after_s=time.time() + 3600)
    # Between our look at the clock and the target's, time may pass: as if two hours went by on the way.
    (link,) = fleet._carrier.pool._links.values()
    ((way, hello),) = link.hellos.items()
    link.hellos[way] = replace(hello, skew_s=-7300.0)
    assert (await run(fleet, made, entity, Collect())).outcome == NeverStarted(
        reason="its consent had ended when the target was ready"
    )
    await fleet.close()
    assert count(sshd.home / "late2") == 0


async def test_kept_runs_outlive_their_limit(fleet: FleetRunner, sshd: Server) -> None:
    entity, sink = remote(sshd), Collect()
    made = order(entity, "sleep 2; echo end", number=next(_numbers), total_s=1, keep=True)
    assert ((await run(fleet, made, entity, sink)).outcome, sink.out) == (Exited(code=0), b"end\n")


async def test_followers_that_are_gone_leave_no_process_behind(fleet: FleetRunner, sshd: Server) -> None:
    await partial(fleet, sshd, "echo begin; sleep 3.25", await_end=False)
    with anyio.fail_after(20):
        await until_async(
            lambda: not [words for words in sshd.commands() if words.startswith(b"sh\0-s")], "the end of the follower"
        )


# ---- controllers that die ------------------------------------------------------------------------------------------


def campaign(sshd: Server, place: Path, points: list[str], rnd: random.Random) -> dict[str, int]:
    """One run per point, its controller killed there; afterwards another one finishes. Counts the outcomes."""
    seen: dict[str, int] = {}
    for position, point in enumerate(points):
        number = next(_numbers)
        home = place / str(number)
        home.mkdir()
        command, expected, out, err = SHAPES[position % len(SHAPES)]
        job = home / "job.json"
        job.write_text(
            json.dumps(
                {
                    "home": str(home), "port": sshd.port, "key": str(sshd.key), "host_keys": sshd.host_keys(),
                    "number": number, "command": f"echo x >>{home}/count; {command}",
                    "after_sent_s": rnd.choice([0, 0.01, 0.05]),
                }
            )
        )  # fmt: skip
        if point == "on_attach":
            control(job, "after_started")
        assert control(job, point) == -signal.SIGKILL, point
        assert control(job) == 0
        outcome = (home / "outcome").read_text()
        ran = count(home / "count")
        if outcome.startswith("NeverStarted"):
            assert ran == 0, (point, outcome)
        else:
            assert (ran, outcome) == (1, repr(expected)), point
            assert ((home / "out").read_bytes() if out else b"") == out
            assert ((home / "err").read_bytes() if err else b"") == err
        key = outcome.partition("(")[0]
        seen[key] = seen.get(key, 0) + 1
    return seen


def control(job: Path, *point: str) -> int:
    """One controller process."""
    return subprocess.run([sys.executable, "-m", "tests.fleet.controller", str(job), *point], timeout=90).returncode


def test_controllers_killed_at_every_named_point_start_nothing_twice(sshd: Server, tmp_path: Path) -> None:
    seen = campaign(sshd, tmp_path, list(POINTS), random.Random(1))
    assert sum(seen.values()) == len(POINTS)
    assert seen["NeverStarted"] >= 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_controllers_killed_start_nothing_twice(sshd: Server, tmp_path: Path) -> None:
    rnd = random.Random(2)
    points = [rnd.choice(POINTS) for _ in range(100)]
    assert sum(campaign(sshd, tmp_path, points, rnd).values()) == len(points)


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_many_random_cuts_and_session_kills_lose_nothing(fleet: FleetRunner, sshd: Server, proxy: Proxy) -> None:
    rnd, entity = random.Random(3), remote(sshd, port=proxy.port)
    for position in range(60):
        command, expected, out, err = SHAPES[position % len(SHAPES)]
        sink = Collect()
        made = order(entity, f"echo x >>~/random-{position}; {command}", number=next(_numbers))

        async def harm() -> None:
            for _ in range(rnd.randrange(1, 4)):
                await anyio.sleep(rnd.uniform(0, 0.6))  # allow: test-sleep - a fault at a random moment
                if rnd.random() < 0.5:
                    proxy.cut()
                else:
                    sshd.kill_sessions()

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(harm)
                report = await run(fleet, made, entity, sink)
        ran = count(sshd.home / f"random-{position}")
        if isinstance(report.outcome, NeverStarted):
            assert ran == 0
        else:
            assert (ran, report.outcome, sink.out, sink.err) == (1, expected, out, err)


async def test_a_restarted_server_is_found_again(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sshd").mkdir()
    with server(tmp_path / "sshd") as sshd:
        fleet, entity, sink = runner(home), remote(sshd), Collect()
        made = order(entity, f"echo x >>~/restarted; {LINES}", number=next(_numbers))

        async def restart() -> None:
            await until_async(lambda: len(sink.out) >= 50, "some output")
            sshd.kill_sessions()
            await anyio.to_thread.run_sync(sshd.stop)
            await anyio.to_thread.run_sync(sshd.start)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(restart)
                report = await run(fleet, made, entity, sink)
        assert (report.outcome, sink.out, sink.err) == (Exited(code=7), LINES_OUT, LINES_ERR)
        assert count(sshd.home / "restarted") == 1
        await fleet.close()
