"""What goes straight to its program does exactly what bash would have done."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.adapters.fleet import straight, wrap
from oikos.adapters.fleet.flow import End
from oikos.adapters.fleet.local import LocalProcess
from oikos.adapters.fleet.runner import FleetRunner
from oikos.domain.run import Exited, RunOutcome, Signalled, Stream
from tests.fleet.kit import Collect, local, order, route_to, run
from tests.wait import until_async

_numbers = itertools.count(7000)

NEED_A_SHELL = [
    "", " ls", "ls | wc", "ls; id", "ls&", "ls > x", "ls $HOME", "ls ~", "ls *.py", "ls a?", "ls [ab]", "ls {a,b}",
    "ls 'a'", 'ls "a"', "ls \\a", "ls `id`", "ls\nid", "ls\tx", "A=1 ls", "! ls", "(ls)", "ls #x", "%1", "./run",
    "bin/run", "echo a", "cd /tmp", "test -d /", "[ -d / ]", "kill -0 1", "time ls", "exec ls", "command ls", "type ls",
    "ulimit -a", "umask", "if", "true --help", "false --version", "ls é", "-x", "//x", "/", ".",
]  # fmt: skip

ALONE = [
    ("ls", ["ls"]),
    ("df  -h / ", ["df", "-h", "/"]),
    ("systemctl show --property=ActiveState,SubState ssh.service", None),
    ("git -C /srv/app log --format=%H -1", None),
    ("/usr/bin/env", ["/usr/bin/env"]),
    ("true 7", ["true", "7"]),
    ("env A=1 printenv A", None),
    ("x86_64 a@b:/c+d", None),
]


@pytest.mark.parametrize("command", NEED_A_SHELL)
def test_what_means_anything_to_a_shell_goes_to_one(command: str) -> None:
    assert straight.split(command) == []


@pytest.mark.parametrize(("command", "words"), ALONE)
def test_plain_words_of_a_program_need_no_shell(command: str, words: list[str] | None) -> None:
    assert straight.split(command) == (words or command.split())


def test_every_builtin_and_reserved_word_of_bash_is_left_to_bash() -> None:
    asked = ["bash", "--noprofile", "--norc", "-c", "compgen -b; compgen -k"]
    names = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in names if straight.split(f"{name} --x")} == set()


@given(st.text(alphabet="ab/.-+=:,@% \t\n~*?[]{}$`\\'\"|&;<>()!#^_", max_size=12))
def test_whatever_is_split_is_what_bash_makes_of_it(text: str) -> None:
    """bash prints the words of the line as a program would get them."""
    words = straight.split(text)
    if words:
        asked = ["bash", "--noprofile", "--norc", "-c", f"printf '%s\\0' {text}"]
        told = subprocess.run(asked, capture_output=True, check=True, cwd="/").stdout
        assert told.decode().split("\0")[:-1] == words


@pytest.mark.anyio
@pytest.mark.parametrize(
    "command",
    [
        "true 1", "false", "env", "nice", "printenv PATH HOME SHLVL PWD _", "uname -a", "ls -la /etc/passwd",
        "ls /nowhere", "no-such-program x", "/no/such/program", "/etc/passwd", "/etc", "id -u",
        "cat /proc/self/cmdline", "grep -c bash /proc/self/cmdline", "cat", "readlink /proc/self/fd/0", "sh -c exit",
        "timeout 1 kill", "marked a b", "unmarked a b", "not-executable", "adirectory",
        "grep SigIgn /proc/self/status", "grep SigBlk /proc/self/status", "stat -c %s,%F /proc/self/fd/1",
    ],
)  # fmt: skip
async def test_outcome_and_output_are_those_of_bash(home: Path, command: str) -> None:
    place = home / "bin"
    place.mkdir()
    (place / "marked").write_text('#!/bin/sh\necho $0 $# "$_"\n')
    (place / "unmarked").write_text("echo $# $BASHOPTS; exit 7\n")
    (place / "not-executable").write_text("")
    (place / "adirectory").mkdir()
    for name in ("marked", "unmarked"):
        (place / name).chmod(0o755)
    environment = {**wrap.environment(str(home)), "PATH": f"{wrap.PATH}:{place}"}
    words = wrap.plain(wrap.BASH, command)
    bash = subprocess.run(  # noqa: ASYNC221 - what it is compared with
        words, env=environment, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True,
        check=False,
    )  # fmt: skip
    unshelled = straight.split(command)
    assert unshelled
    process = await LocalProcess.start(words, environment, cwd=str(home), unshelled=unshelled)
    said, end = await _read(process)
    assert end == End(code=bash.returncode)
    assert sorted(said[Stream.OUT].splitlines()) == sorted(bash.stdout.splitlines())
    assert said[Stream.ERR] == bash.stderr


@pytest.mark.anyio
async def test_a_plain_read_starts_no_shell(home: Path) -> None:
    process = await LocalProcess.start(
        ["/no/such/shell", "-c", "uname"], wrap.environment(str(home)), cwd=str(home), unshelled=["uname", "-s"]
    )
    assert await _read(process) == ({Stream.OUT: b"Linux\n", Stream.ERR: b""}, End(code=0))


@pytest.mark.anyio
async def test_the_runner_starts_plain_reads_without_a_shell_and_others_with_one(fleet: FleetRunner) -> None:
    for command, shells in (("printenv SHLVL", b"0\n"), ("printenv SHLVL; true", b"1\n")):
        assert await _end(fleet, command) == (Exited(code=0), shells)


@pytest.mark.anyio
async def test_a_program_without_a_shell_is_killed_like_any_other(fleet: FleetRunner) -> None:
    outcome, _ = await _end(fleet, "sleep 600", kill=True)
    assert outcome == Signalled(signal=15, reason="cancelled")


async def _end(fleet: FleetRunner, command: str, *, kill: bool = False) -> tuple[RunOutcome, bytes]:
    entity, sink = local(), Collect()
    made = order(entity, command, number=next(_numbers), supervised=False)
    found: list[RunOutcome] = []

    async def go() -> None:
        found.append((await run(fleet, made, entity, sink)).outcome)

    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go)
            if kill:
                await until_async(lambda: bool(sink.details), "the run begins")
                await fleet.kill(made, route_to(entity))
    return found[0], sink.out


async def _read(process: LocalProcess) -> tuple[dict[Stream, bytes], End | None]:
    said = dict.fromkeys(Stream, b"")
    with anyio.fail_after(40):
        while chunks := await process.flow.read():
            for stream, data in chunks:
                said[stream] += data
    return said, process.flow.end


def test_a_file_found_first_on_the_path_is_the_one(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "tool").mkdir()
    (tmp_path / "two" / "tool").write_text("")
    (tmp_path / "three" / "tool").write_text("")
    os.chmod(tmp_path / "three" / "tool", 0o755)
    path = ":".join(str(tmp_path / name) for name in ("one", "two", "three"))
    assert straight.find("tool", path) == str(tmp_path / "three" / "tool")
    assert straight.find("other", path) == ""
