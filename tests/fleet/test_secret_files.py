"""Secret files on real machines: there while the command runs, for its login only, and gone whatever happens."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from oikos.adapters.fleet.runner import FleetRunner
from oikos.domain.inventory import Entity
from oikos.domain.run import Exited, NeverStarted, RemoteState, RunOrder, RunOutcome, Signalled, TimedOut, Unknown
from oikos.domain.secret_files import MAX_BYTES, directory
from tests.fleet.kit import Collect, guest, local, order, remote, route_to, run, runner
from tests.fleet.servers import Server
from tests.wait import until, until_async

pytestmark = pytest.mark.anyio

CANARY = "canary-9c1e"
VALUE = (
    CANARY
    + "\r\n$HOME `id` 'q' \"d\" \\n\t\x01\x1b\x7f\u0081\u0088\u00ff\u0101\u20ac \U0001f512\n\nno newline at its end"
)
KILLED = TimedOut(deadline="total", remote=RemoteState.KILLED)
SHOW = 'f={{secret_file:repo}}; LC_ALL=C stat -c "%a %u %F" "${f%/*}" $f; cat $f'
"""Says what it finds; the path fits in any quoting."""


def numbered(entity: Entity, command: str, **more: object) -> RunOrder:
    """An order whose id nobody else has: the directories of all tests lie in one /tmp."""
    return order(entity, command, number=secrets.randbits(127), **more)  # type: ignore[arg-type]  # a test's shorthand


def place(made: RunOrder) -> Path:
    """Where the secret files of a run lie; lab hosts aside, every target of these tests has the same /tmp."""
    return Path(directory(made.run_id))


@pytest.fixture
async def fleet(home: Path) -> AsyncIterator[FleetRunner]:
    """A runner that puts the value into every secret file."""
    made = runner(home, files=VALUE)
    yield made
    await made.close()


@pytest.fixture(params=["local", "ssh", "pct"])
def way(request: pytest.FixtureRequest, sshd: Server) -> tuple[Entity, ...]:
    """A target, and the machine that it lies behind."""
    match request.param:
        case "local":
            return (local(),)
        case "ssh":
            return (remote(sshd),)
        case _:
            request.getfixturevalue("with_tools")
            return guest("101", "pve1"), remote(sshd, slug="pve1")


async def end(fleet: FleetRunner, made: RunOrder, way: tuple[Entity, ...]) -> tuple[RunOutcome, Collect]:
    """Run it to its end."""
    sink = Collect()
    with anyio.fail_after(40):
        report = await run(fleet, made, way[0], sink, *way[1:])
    return report.outcome, sink


async def test_a_secret_file_holds_the_value_for_its_login_while_the_command_runs(
    fleet: FleetRunner, way: tuple[Entity, ...]
) -> None:
    made = numbered(way[0], SHOW)
    outcome, sink = await end(fleet, made, way)
    me = os.geteuid()
    assert outcome == Exited(code=0)
    assert sink.out.decode() == f"700 {me} directory\n600 {me} regular file\n{VALUE}"
    assert not place(made).exists()
    await fleet.acknowledge(made, route_to(*way))


async def test_many_secret_files_of_the_largest_size_arrive(home: Path, sshd: Server) -> None:
    value = ("0123456789abcde\n" * 4096)[:MAX_BYTES]
    fleet, entity = runner(home, files=value), remote(sshd)
    made = numbered(
        entity, "cat {{secret_file:a}} '{{secret_file:b-2}}' \"{{secret_file:_C}}\" | sha256sum; cat", stdin="in"
    )
    outcome, sink = await end(fleet, made, (entity,))
    await fleet.close()
    assert outcome == Exited(code=0)
    assert sink.out.decode() == f"{hashlib.sha256(value.encode() * 3).hexdigest()}  -\nin"


@pytest.mark.parametrize(
    ("command", "limits", "outcome"),
    [
        ("exit 3", {}, Exited(code=3)),
        ("sleep 0.3; kill -9 $$", {}, Signalled(signal=signal.SIGKILL)),
        ("sleep 100", {"total_s": 1}, KILLED),
        ("sleep 100", {"idle_s": 1}, TimedOut(deadline="idle", remote=RemoteState.KILLED)),
        ("trap '' TERM; while :; do sleep 0.2; done", {"total_s": 1}, KILLED),
        ("yes", {"kill_bytes": 100_000}, Signalled(signal=signal.SIGTERM, reason="output_limit")),
        ("(sleep 2) & echo main", {}, Exited(code=0)),
    ],
)  # fmt: skip
async def test_it_is_gone_when_the_end_is_known(
    fleet: FleetRunner, command: str, limits: dict[str, float], outcome: RunOutcome
) -> None:
    made = numbered(local(), f"test -s {{{{secret_file:repo}}}} || exit 9; {command}", **limits)
    found, _ = await end(fleet, made, (local(),))
    assert (found, place(made).exists()) == (outcome, False)


async def test_it_is_gone_after_a_stop(fleet: FleetRunner, way: tuple[Entity, ...]) -> None:
    made, sink = numbered(way[0], "cat {{secret_file:repo}} >/dev/null; echo on; sleep 100"), Collect()
    found: list[object] = []

    async def stop() -> None:
        await sink.seen.wait()
        found.append(place(made).exists())
        found.append(await fleet.kill(made, route_to(*way)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            report = await run(fleet, made, way[0], sink, *way[1:])
    assert (report.outcome, found) == (Signalled(signal=signal.SIGTERM, reason="cancelled"), [True, RemoteState.KILLED])
    assert not place(made).exists()


async def test_a_late_start_makes_no_file(home: Path, sshd: Server) -> None:
    entity = remote(sshd)
    fleet = runner(home, files=VALUE)
    await run(fleet, numbered(entity, "true"), entity, Collect())  # the clocks are compared here
    (link,) = fleet._carrier.pool._links.values()
    ((way, hello),) = link.hellos.items()
    link.hellos[way] = replace(hello, skew_s=-7300.0)
    made = numbered(entity, SHOW, not_after_s=time.time() + 3600)
    outcome, _ = await end(fleet, made, (entity,))
    await fleet.close()
    assert outcome == NeverStarted(reason="its consent had ended when the target was ready")
    assert not place(made).exists()


# ---- the supervisor dies --------------------------------------------------------------------------------------------


async def begun(fleet: FleetRunner, sshd: Server, command: str) -> tuple[RunOrder, Entity, Path]:
    """Start a run and stop listening, as a controller that dies; its spool on the target."""
    entity, sink = remote(sshd), Collect()
    made = numbered(entity, f"{command} # {{{{secret_file:repo}}}}")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, fleet, made, entity, sink)
        await sink.seen.wait()
        tasks.cancel_scope.cancel()
    assert sorted(path.name for path in place(made).iterdir()) == ["repo"]
    return made, entity, sshd.spool / made.run_id


def kill(spool: Path, *, command: bool) -> int:
    """SIGKILL the supervisor, and the command's group if asked; the command's process id."""
    group, _, supervisor, _ = until(lambda: (spool / "pid").read_text().split(), "the pid file")
    os.kill(int(supervisor), signal.SIGKILL)
    if command:
        os.killpg(int(group), signal.SIGKILL)
    return int(group)


async def test_who_attaches_after_the_supervisor_was_killed_takes_the_file_away(
    fleet: FleetRunner, sshd: Server
) -> None:
    made, entity, spool = await begun(fleet, sshd, "echo on; sleep 60")
    kill(spool, command=True)
    assert place(made).exists()
    with anyio.fail_after(20):
        report = await fleet.attach(made, route_to(entity), Collect(), {})
    assert report.outcome == Unknown(reason="its supervisor on the target was killed")
    assert not place(made).exists()


async def test_an_acknowledgement_after_the_supervisor_was_killed_takes_the_file_away(
    fleet: FleetRunner, sshd: Server
) -> None:
    made, entity, spool = await begun(fleet, sshd, "echo on; sleep 60")
    kill(spool, command=True)
    await fleet.acknowledge(made, route_to(entity))
    assert not place(made).exists()
    assert sorted(path.name for path in spool.iterdir()) == ["decision", "gone"]


async def test_after_a_restart_of_the_target_the_file_is_taken_away(fleet: FleetRunner, sshd: Server) -> None:
    made, entity, spool = await begun(fleet, sshd, "echo on; sleep 60")
    kill(spool, command=True)
    (spool / "boot").write_text("another-boot\n")
    with anyio.fail_after(20):
        report = await fleet.attach(made, route_to(entity), Collect(), {})
    assert report.outcome == Unknown(reason="the target was restarted while it ran")
    assert not place(made).exists()


async def test_an_acknowledgement_takes_no_file_from_a_command_that_runs(fleet: FleetRunner, sshd: Server) -> None:
    made, entity, spool = await begun(fleet, sshd, "echo on; until [ -e ~/enough ]; do sleep 0.1; done")
    until(lambda: (spool / "pid").read_text().split(), "the pid file")
    await fleet.acknowledge(made, route_to(entity))
    assert place(made).exists()
    (sshd.home / "enough").touch()
    await until_async(lambda: not place(made).exists(), "the supervisor to take the file away")
    (sshd.home / "enough").unlink()


async def test_a_cut_connection_harms_no_secret_file(fleet: FleetRunner, sshd: Server) -> None:
    made, entity, _ = await begun(fleet, sshd, "echo on; sleep 0.5; cat {{secret_file:repo}}")
    sshd.kill_sessions()
    sink = Collect()
    with anyio.fail_after(20):
        report = await fleet.attach(made, route_to(entity), sink, {})
    assert (report.outcome, sink.out.decode()) == (Exited(code=0), "on\n" + VALUE)
    assert not place(made).exists()


# ---- somebody was there before (THREATS T34) ------------------------------------------------------------------------


def _other_users(where: Path, bait: Path) -> None:
    where.mkdir(mode=0o777)
    os.chown(where, 12345, 12345)


def _link_to_a_directory(where: Path, bait: Path) -> None:
    where.symlink_to(bait)


def _link_to_nothing(where: Path, bait: Path) -> None:
    where.symlink_to(bait / "nothing")


def _file(where: Path, bait: Path) -> None:
    where.write_text("")


def _own_directory(where: Path, bait: Path) -> None:
    where.mkdir(mode=0o700)


def identity(where: Path) -> tuple[int, ...]:
    """What changes when something is put in the place of another thing, or into it."""
    found = os.lstat(where)
    return found.st_ino, found.st_mode, found.st_uid, found.st_size, found.st_mtime_ns


@pytest.mark.parametrize(
    "plant",
    [
        _link_to_a_directory,
        _link_to_nothing,
        _file,
        _own_directory,
        pytest.param(_other_users, marks=pytest.mark.needs_root),
    ],
)
async def test_a_planted_directory_starts_nothing_and_gets_nothing(
    fleet: FleetRunner, sshd: Server, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    bait = tmp_path / "bait"
    bait.mkdir()
    entity = remote(sshd)
    made = numbered(entity, "cat {{secret_file:repo}}; echo x >>~/ran")
    where = place(made)
    plant(where, bait)
    before = identity(where)
    try:
        outcome, sink = await end(fleet, made, (entity,))
        assert outcome == NeverStarted(
            reason=f"{where} was there before on far, so no secret file was put there: see who made it"
        )
        assert (sink.out, sink.details, (sshd.home / "ran").exists(), list(bait.iterdir())) == (b"", [], False, [])
        assert (await fleet.attach(made, route_to(entity), Collect(), {})).outcome == outcome
        await fleet.acknowledge(made, route_to(entity))
        assert identity(where) == before
        assert where.is_symlink() or where.is_file() or list(where.iterdir()) == []
    finally:
        where.rmdir() if where.is_dir() and not where.is_symlink() else where.unlink()


async def test_the_same_start_twice_makes_no_second_file(fleet: FleetRunner, sshd: Server) -> None:
    entity = remote(sshd)
    made = numbered(entity, "echo x >>~/twice; cat {{secret_file:repo}} >/dev/null")
    assert (await end(fleet, made, (entity,)))[0] == Exited(code=0)
    again, sink = await end(fleet, made, (entity,))
    assert (again, sink.details, (sshd.home / "twice").read_text()) == (Exited(code=0), ["exists"], "x\n")
    assert not place(made).exists()


# ---- where the value is not -----------------------------------------------------------------------------------------


async def test_the_value_is_in_no_argument_and_in_no_file_but_its_own(
    fleet: FleetRunner, sshd: Server, home: Path
) -> None:
    made, entity, spool = await begun(fleet, sshd, "echo on; sleep 0.5")
    seen = await anyio.to_thread.run_sync(sshd.commands)
    kept = [path for top in (spool, home) for path in top.rglob("*") if path.is_file()]
    assert (spool / "cmd") in kept
    assert not [path for path in kept if CANARY.encode() in path.read_bytes()]
    assert seen
    assert not [words for words in seen if CANARY.encode() in words]
    with anyio.fail_after(20):
        report = await fleet.attach(made, route_to(entity), Collect(), {})
    assert CANARY not in repr(report)


async def test_a_run_without_a_supervisor_gets_no_secret_file(fleet: FleetRunner) -> None:
    made = numbered(local(), SHOW, supervised=False)
    outcome, sink = await end(fleet, made, (local(),))
    assert outcome == NeverStarted(
        reason="a run with secret files needs a supervisor, which takes them away at its end"
    )
    assert sink.details == []
    assert not place(made).exists()


async def test_a_value_with_nul_starts_nothing(home: Path) -> None:
    fleet = runner(home, files="a\0b")
    made = numbered(local(), SHOW)
    outcome, _ = await end(fleet, made, (local(),))
    await fleet.close()
    assert outcome == NeverStarted(reason="the text holds a NUL character")
    assert not place(made).exists()
