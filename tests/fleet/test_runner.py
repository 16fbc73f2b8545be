"""The Runner on this machine and over a real sshd: every outcome, and exact output."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

import anyio
import pytest

from oikos.adapters.fleet.runner import FleetRunner
from oikos.domain.admission import seal
from oikos.domain.errors import SealError, TargetError
from oikos.domain.inventory import Entity
from oikos.domain.run import (
    Exited,
    NeverStarted,
    RemoteState,
    RunOutcome,
    Signalled,
    TimedOut,
)
from tests.fleet.kit import Collect, admission, local, order, remote, route_to, run, runner
from tests.fleet.servers import Server, server
from tests.wait import until, until_async

pytestmark = pytest.mark.anyio
_numbers = itertools.count(1000)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
WAYS = [("local", False), ("local", True), ("ssh", False), ("ssh", True)]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{'supervised' if way[1] else 'plain'}")
def way(request: pytest.FixtureRequest, sshd: Server) -> tuple[Entity, bool]:
    """Every transport, plain and supervised."""
    place, supervised = request.param
    return (local() if place == "local" else remote(sshd)), supervised


async def end(fleet: FleetRunner, way: tuple[Entity, bool], command: str, **more: object) -> tuple[RunOutcome, Collect]:
    """Run a command to its end."""
    entity, supervised = way
    sink = Collect()
    made = order(entity, command, number=next(_numbers), supervised=supervised, **more)  # type: ignore[arg-type]  # a test's shorthand
    with anyio.fail_after(40):
        report = await run(fleet, made, entity, sink)
    assert (report.out_bytes, report.err_bytes) == (len(sink.out), len(sink.err))
    return report.outcome, sink


@pytest.mark.parametrize("code", [0, 1, 42, 127, 255])
async def test_an_exit_code_arrives_as_it_is(fleet: FleetRunner, way: tuple[Entity, bool], code: int) -> None:
    outcome, sink = await end(fleet, way, f"echo out; echo err >&2; exit {code}")
    assert (outcome, sink.out, sink.err, sink.details) == (Exited(code=code), b"out\n", b"err\n", ["new"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
async def test_a_signal_is_told_as_a_signal(fleet: FleetRunner, way: tuple[Entity, bool], number: int) -> None:
    # a child that dies before its watcher starts may be reaped on the side: then only 128+n is known (supervise.sh)
    outcome, _ = await end(fleet, way, f"ulimit -c 0; echo x; sleep 0.3; kill -{number} $$")
    assert outcome == Signalled(signal=number)


async def test_an_exit_code_above_128_is_no_signal(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, _ = await end(fleet, way, "exit 137")
    assert outcome == Exited(code=137)


async def test_three_megabytes_with_nul_bytes_are_exact(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, r"printf 'a\0b\377\r\n'; yes 0123456789 | head -c 3000000; printf '\0'")
    assert outcome == Exited(code=0)
    assert sink.out == b"a\0b\xff\r\n" + (b"0123456789\n" * 300000)[:3000000] + b"\0"


async def test_a_background_child_does_not_hold_the_run(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    with anyio.fail_after(10):
        outcome, sink = await end(fleet, way, "(sleep 30; echo late) & echo main")
    assert (outcome, sink.out) == (Exited(code=0), b"main\n")


async def test_the_environment_is_ours_and_nothing_else(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    _, sink = await end(fleet, way, "env")
    names = {line.partition(b"=")[0].decode() for line in sink.out.splitlines()}
    assert names - {"USER", "LOGNAME", "PWD", "SHLVL", "_"} == {
        "HOME", "PATH", "LANG", "LC_ALL", "TERM", "PAGER", "SYSTEMD_PAGER", "SYSTEMD_COLORS", "NO_COLOR", "LESSSECURE",
        "DEBIAN_FRONTEND", "GIT_PAGER", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_CONFIG_COUNT",
        *(f"GIT_CONFIG_{part}_{i}" for part in ("KEY", "VALUE") for i in range(4)),
    }  # fmt: skip


async def test_bash_runs_it_where_there_is_bash(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, 'a=(one two); [[ ${a[1]} == t* ]] && echo "${a[1]^^}"')
    assert (outcome, sink.out) == (Exited(code=0), b"TWO\n")


async def test_profile_files_have_no_say(
    fleet: FleetRunner, way: tuple[Entity, bool], sshd: Server, home: Path
) -> None:
    profiles = [place / name for place in (sshd.home, home) for name in (".bashrc", ".profile")]
    for path in profiles:
        path.write_text("echo noise\nls() { echo shadowed; }\nexport -f ls\nalias ls='echo aliased'\n")
    outcome, sink = await end(fleet, way, "ls /dev/null")
    for path in profiles:
        path.unlink()
    assert (outcome, sink.out) == (Exited(code=0), b"/dev/null\n")


async def test_standard_input_is_closed(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, "cat; read x; echo $?")
    assert (outcome, sink.out) == (Exited(code=0), b"1\n")


async def test_standard_input_arrives_to_the_byte(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    text = "line\n$HOME `id` 'q' \"d\" \\n\n\u0101\u00e9\nno newline at the end"
    outcome, sink = await end(fleet, way, "cat", stdin=text)
    assert (outcome, sink.out.decode()) == (Exited(code=0), text)


async def test_a_run_that_takes_too_long_is_killed_and_said_to_be(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, "echo begin; echo $$; sleep 100", total_s=1)
    assert outcome == TimedOut(deadline="total", remote=RemoteState.KILLED)
    assert not alive(sink.out.split()[1])


async def test_term_that_is_ignored_is_followed_by_kill(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, "trap '' TERM; echo $$; while :; do sleep 0.2; done", total_s=1)
    assert outcome == TimedOut(deadline="total", remote=RemoteState.KILLED)
    assert not alive(sink.out.split()[0])


async def test_silence_has_a_limit_of_its_own(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, "echo begin; sleep 100", idle_s=1)
    assert (outcome, sink.out) == (TimedOut(deadline="idle", remote=RemoteState.KILLED), b"begin\n")


async def test_endless_output_is_stopped_by_the_kill_limit(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, _ = await end(fleet, way, "yes", kill_bytes=2_000_000)
    assert isinstance(outcome, Signalled)
    assert outcome.reason == "output_limit"


async def test_stop_kills_the_whole_group(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    entity, supervised = way
    made, sink, states = (
        order(entity, f"sleep 5{os.getpid()} & sleep 6{os.getpid()}", number=next(_numbers), supervised=supervised),
        Collect(),
        [],
    )
    pids: list[Path] = []

    async def stop() -> None:
        await until_async(lambda: sink.details, "the claim")
        mine = (f"sleep\x005{os.getpid()}", f"sleep\x006{os.getpid()}")  # other tests and lab hosts sleep too
        found = await until_async(lambda: _running(mine[0]) + _running(mine[1]), "both sleeps")
        pids.extend(found)
        states.append(await fleet.kill(made, route_to(entity)))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            report = await run(fleet, made, entity, sink)
    assert (report.outcome, states) == (Signalled(signal=signal.SIGTERM, reason="cancelled"), [RemoteState.KILLED])
    until(lambda: not any(pid.exists() for pid in pids), "the end of both sleeps")


async def test_a_command_with_nul_never_starts(fleet: FleetRunner, way: tuple[Entity, bool]) -> None:
    outcome, sink = await end(fleet, way, "echo a\0b")
    assert (outcome, sink.details) == (NeverStarted(reason="the text holds a NUL character"), [])


async def test_a_command_too_long_for_an_argument_runs_nevertheless(
    fleet: FleetRunner, way: tuple[Entity, bool]
) -> None:
    outcome, sink = await end(fleet, way, ": " + "x" * 200_000 + "\necho done")
    assert (outcome, sink.out) == (Exited(code=0), b"done\n")


async def test_many_runs_at_once_share_one_connection(fleet: FleetRunner, sshd: Server) -> None:
    entity, results = remote(sshd), []

    async def one(number: int) -> None:
        made, sink = order(entity, f"echo {number}; sleep 0.2", number=next(_numbers), supervised=False), Collect()
        results.append((number, (await run(fleet, made, entity, sink)).outcome, sink.out))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)
    assert sorted(results) == [(n, Exited(code=0), b"%d\n" % n) for n in range(20)]
    assert len(sshd.connections()) == 1


async def test_a_server_that_allows_few_sessions_is_waited_for(fleet: FleetRunner, tmp_path: Path) -> None:
    with server(tmp_path, more="MaxSessions 2") as few:
        entity, results = remote(few), []

        async def one(number: int) -> None:
            made, sink = order(entity, f"echo {number}; sleep 0.1", number=next(_numbers), supervised=False), Collect()
            results.append((number, (await run(fleet, made, entity, sink)).outcome, sink.out))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                for number in range(8):
                    tasks.start_soon(one, number)
        assert sorted(results) == [(n, Exited(code=0), b"%d\n" % n) for n in range(8)]
        assert len(few.connections()) == 1


async def test_the_probe_says_who_a_machine_is(fleet: FleetRunner, sshd: Server) -> None:
    for entity in (local(), remote(sshd)):
        leave = seal(kind="probe", digest=entity.id, target_id=entity.id, authority="a test", seq=1)
        found = await fleet.probe(leave, route_to(entity))
        assert found.hostname == os.uname().nodename
        assert found.boot_id == BOOT_ID
        with pytest.raises(SealError, match="used before"):
            await fleet.probe(leave, route_to(entity))


async def test_nothing_runs_on_another_admission_or_target(fleet: FleetRunner, sshd: Server) -> None:
    made = order(local(), "touch ran", number=next(_numbers))
    other = order(local(), "touch run", number=next(_numbers))
    with pytest.raises(SealError, match="another order"):
        await fleet.start(admission(other), made, route_to(local()), Collect())
    with pytest.raises(SealError, match="another target"):
        await fleet.start(admission(made), made, route_to(remote(sshd)), Collect())
    spent = admission(made)
    await fleet.start(spent, made, route_to(local()), Collect())
    with pytest.raises(SealError, match="used before"):
        await fleet.start(spent, made, route_to(local()), Collect())


async def test_secrets_on_standard_input_leave_nothing_behind(fleet: FleetRunner, sshd: Server) -> None:
    entity, canary = remote(sshd), "canary-7f3a"
    made, sink = order(entity, "read x; sleep 1; echo ${#x}", number=next(_numbers), stdin=canary + "\n"), Collect()
    seen: list[bytes] = []

    async def look() -> None:
        await until_async(lambda: sink.details, "the start")
        seen.extend(sshd.commands())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look)
        await run(fleet, made, entity, sink)
    assert sink.out == b"11\n"
    assert seen
    assert not [words for words in seen if canary.encode() in words]
    assert not [path for path in (sshd.spool / made.run_id).iterdir() if path.is_file() and canary in path.read_text()]


async def test_what_was_acknowledged_cannot_be_started_again(fleet: FleetRunner, sshd: Server) -> None:
    entity = remote(sshd)
    made, counter = order(entity, "echo x >>~/counter", number=next(_numbers)), sshd.home / "counter"
    await run(fleet, made, entity, Collect())
    await fleet.acknowledge(made, route_to(entity))
    assert sorted(path.name for path in (sshd.spool / made.run_id).iterdir()) == ["decision", "gone"]
    sink = Collect()
    await run(fleet, made, entity, sink)
    assert (sink.details, counter.read_text()) == (["exists"], "x\n")


async def test_cancelling_a_plain_run_closes_its_channel_and_a_supervised_one_goes_on(
    fleet: FleetRunner, sshd: Server
) -> None:
    entity, sink = remote(sshd), Collect()
    made = order(entity, "echo begin; sleep 1; echo end", number=next(_numbers))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, fleet, made, entity, sink)
        await sink.seen.wait()
        tasks.cancel_scope.cancel()
    rest = Collect(base=dict(sink.offsets()))
    report = await fleet.attach(made, route_to(entity), rest, sink.offsets())
    assert (report.outcome, sink.out + rest.out) == (Exited(code=0), b"begin\nend\n")
    assert report.out_bytes == len(b"begin\nend\n")


async def test_an_unreachable_machine_is_named_with_the_remedy(sshd: Server, home: Path) -> None:
    fleet = runner(home)
    gone = remote(sshd, port=1, slug="gone")
    for supervised in (False, True):
        report = await run(fleet, order(gone, "true", number=next(_numbers), supervised=supervised), gone, Collect())
        assert isinstance(report.outcome, NeverStarted)
        assert report.outcome.reason.startswith("gone: ")
        assert "refuses connections" in report.outcome.reason
    leave = seal(kind="probe", digest=gone.id, target_id=gone.id, authority="a test", seq=1)
    with pytest.raises(TargetError, match="refuses connections"):
        await fleet.probe(leave, route_to(gone))
    await fleet.close()


def alive(pid: bytes) -> bool:
    """Whether a process is there."""
    return Path(f"/proc/{pid.decode()}").exists()


def _running(words: str) -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_text() == words + "\0":
                found.append(path.parent)
        except OSError:
            continue
    return found
