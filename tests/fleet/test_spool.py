"""The spool's protocol: every cut of the bytes gives the same frames, and the remote half works in every shell."""

from __future__ import annotations

import itertools
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.adapters.fleet import spool
from oikos.adapters.fleet.spool import (
    Acknowledged,
    Beat,
    Claimed,
    Data,
    Decision,
    Declined,
    Decoder,
    Ended,
    Filled,
    Frame,
    Hello,
    KillFound,
    NoOutcome,
)
from oikos.domain.run import Limits, RunOrder, Stream
from oikos.domain.secret_files import MAX_BYTES, directory
from tests.fleet.kit import filled
from tests.wait import until

GREETING = b"Welcome!\nnoise n1 H x\nmark H boot epoch bash ok 1700000000\n"
HELLO = Hello(boot="boot", epoch="epoch", bash=True, quoting=True, clock_s=1700000000)


def decode(pieces: list[bytes]) -> list[Frame]:
    """All frames, with adjacent output joined."""
    decoder, frames = Decoder("mark"), []
    for piece in pieces:
        for frame in decoder.feed(piece):
            last = frames[-1] if frames else None
            if isinstance(frame, Data) and isinstance(last, Data) and frame.stream == last.stream:
                frames[-1] = Data(stream=frame.stream, data=last.data + frame.data)
            else:
                frames.append(frame)
    return frames


@given(st.binary(max_size=80), st.binary(max_size=80), st.lists(st.integers(0, 400), max_size=12))
def test_frames_do_not_depend_on_how_the_bytes_are_cut(out: bytes, err: bytes, cuts: list[int]) -> None:
    wire = GREETING + b"S new\nO %d\n%sB\nE %d\n%sR 3 0 -\n" % (len(out), out, len(err), err)
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    frames = decode([wire[a:b] for a, b in itertools.pairwise(edges)])
    expected: list[Frame] = [HELLO, Claimed(new=True)]
    expected += [Data(stream=Stream.OUT, data=out)] if out else []
    expected.append(Beat())
    expected += [Data(stream=Stream.ERR, data=err)] if err else []
    expected.append(Ended(code=3, signalled=False, why=""))
    assert frames == expected


@pytest.mark.parametrize(
    "line", [b"O x\n", b"O -1\n", b"R a 0 -\n", b"S maybe\n", b"V \n", b"\xff\n", b"Z\n", b"H boot\n", b"x" * 70_000]
)
def test_a_line_that_is_no_frame_is_an_error(line: bytes) -> None:
    with pytest.raises(spool.ProtocolError):
        decode([GREETING, line])


def test_endless_noise_before_the_greeting_is_not_kept() -> None:
    decoder = Decoder("mark")
    for _ in range(100):
        assert list(decoder.feed(b"x" * 100_000)) == []
    assert len(decoder._line) <= spool.MAX_LINE_BYTES + 100_000
    assert list(decoder.feed(b"\nmark H b e sh bad 1\n")) == [
        Hello(boot="b", epoch="e", bash=False, quoting=False, clock_s=1)
    ]


def test_a_run_id_that_is_none_is_refused() -> None:
    for bad in ("", "a/b", "..", "a b", "$(id)", "é"):
        with pytest.raises(ValueError, match="no run id"):
            spool.payload(spool.script(), "attach", bad, "mark")


def test_a_filled_order_shows_nothing_of_what_it_holds() -> None:
    order = RunOrder(run_id="r", session_id="s", generation=1, target_id="t", command="x", stdin="{{secret:a}}")
    filled = Filled.of(order, command="y", stdin="hush-hush", files={"a": "hush-hush"})
    assert "hush" not in repr(filled)
    assert (filled.run_id, filled.command, filled.stdin, filled.files) == ("r", "y", "hush-hush", (("a", "hush-hush"),))


# ---- the remote half, in every shell and without its conveniences -----------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Box:
    """A home and a PATH of one kind."""

    home: Path
    path: str
    names_term: bool = True
    """bash says of a child that a signal ended it, but not for TERM."""

    def talk(
        self, op: spool.Operation, run_id: str = "r1", *, order: RunOrder | None = None, out: int = 0
    ) -> list[Frame]:
        """One whole conversation."""
        mark = spool.nonce()
        message = spool.payload(
            spool.script(), op, run_id, mark, order=order, out=out,
            limit_s=int(order.limits.total_s) if order else 0,
        )  # fmt: skip
        done = subprocess.run(
            ["sh", "-s", spool.CANARY], input=message, capture_output=True, timeout=60, check=False,
            env={"HOME": str(self.home), "PATH": self.path}, start_new_session=True,
        )  # fmt: skip
        decoder = Decoder(mark)
        return list(decoder.feed(done.stdout))

    def start(self, command: str, run_id: str, value: str = "", **limits: float) -> tuple[list[Frame], bytes, bytes]:
        """Start a run; the frames besides output, and the output. Every secret file of it holds `value`."""
        order = RunOrder(
            run_id=run_id, session_id="s", generation=1, target_id="t", command=command,
            limits=Limits(**{"total_s": 30.0, **limits}),  # type: ignore[arg-type]  # floats and ints
        )  # fmt: skip
        frames = self.talk("start", run_id, order=filled(order, value) if value else order)
        out = b"".join(f.data for f in frames if isinstance(f, Data) and f.stream is Stream.OUT)
        err = b"".join(f.data for f in frames if isinstance(f, Data) and f.stream is Stream.ERR)
        return [f for f in frames if not isinstance(f, Data | Beat | Hello)], out, err


KINDS = ["dash", "bash", "busybox", "busybox-only", "no-setsid", "no-mkfifo"]


@pytest.fixture(params=KINDS)
def box(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    """A machine with another shell, or with less."""
    kind, tools = request.param, tmp_path / "bin"
    tools.mkdir()
    shell = {"dash": "dash", "bash": "bash", "no-setsid": "dash", "no-mkfifo": "dash"}.get(kind, "busybox")
    found = shutil.which(shell)
    assert found, f"{shell} is missing: apt-get install busybox dash bash"
    if kind in ("no-setsid", "no-mkfifo"):
        missing = kind.removeprefix("no-")
        for name in "ls dd head tail mkfifo ln mv cat df date sleep setsid mkdir rm find yes awk".split():
            if name != missing:
                (tools / name).symlink_to(shutil.which(name) or "")
        path = str(tools)
    elif kind == "busybox-only":
        subprocess.run([found, "--install", "-s", str(tools)], check=True)
        path = str(tools)
    else:
        path = f"{tools}:/usr/bin:/bin"
    (tools / "sh").unlink(missing_ok=True)
    (tools / "sh").symlink_to(found)
    monkeypatch.setenv("PATH", path)
    (tmp_path / "home").mkdir()
    return Box(home=tmp_path / "home", path=path, names_term=kind != "bash")


def test_a_whole_life_in_every_shell(box: Box) -> None:
    hello = box.talk("hello")[0]
    assert isinstance(hello, Hello)
    assert (hello.quoting, bool(hello.epoch)) == (True, True)
    assert box.start("echo out; echo err >&2; exit 42", "a") == (
        [Claimed(new=True), Ended(code=42, signalled=False, why="")], b"out\n", b"err\n",
    )  # fmt: skip
    assert box.start("exit 137", "b")[0][-1] == Ended(code=137, signalled=False, why="")
    assert box.start("sleep 0.2; kill -9 $$", "c")[0][-1] == Ended(code=137, signalled=True, why="")
    big = box.start("printf 'a\\0b'; yes 0123456789 | head -c 3000000", "d")
    exact = b"a\0b" + (b"0123456789\n" * 272728)[:3000000]
    assert big == ([Claimed(new=True), Ended(code=0, signalled=False, why="")], exact, b"")
    assert box.start("sleep 60 & echo main", "e")[1] == b"main\n"
    assert box.start("sleep 60", "f", total_s=1)[0][-1] == Ended(code=143, signalled=box.names_term, why="timeout")
    text = "printf '%s' 'q\u0101\u00e9\"$HOME\"\\\\'"
    assert box.start(text, "g")[1].decode() == 'q\u0101\u00e9"$HOME"\\\\'
    # Again: attaches, runs nothing.
    assert box.start("echo twice", "a") == (
        [Claimed(new=False), Ended(code=42, signalled=False, why="")], b"out\n", b"err\n",
    )  # fmt: skip
    assert box.talk("attach", "a", out=2)[1:3] == [
        Data(stream=Stream.OUT, data=b"t\n"), Data(stream=Stream.ERR, data=b"err\n"),
    ]  # fmt: skip
    assert box.talk("attach", "nothing")[1:] == [NoOutcome(why="absent")]
    assert box.talk("void", "h")[1:] == [Decision(run=False)]
    assert box.start("echo no", "h")[0] == [Claimed(new=False), NoOutcome(why="void", detail="-")]
    assert box.talk("void", "a")[1:] == [Decision(run=True)]
    assert box.talk("kill", "a")[1:] == [KillFound(what="ended")]
    box.talk("ack", "a")
    assert box.talk("attach", "a")[1:] == [NoOutcome(why="acknowledged")]


def test_a_stop_in_every_shell(box: Box) -> None:
    frames: list[Frame] = []
    worker = threading.Thread(
        target=lambda: frames.extend(box.start("trap '' TERM; echo on; sleep 60; sleep 60", "k")[0])
    )
    worker.start()
    pid = box.home / ".local/state/oikos/spool/k/pid"
    until(lambda: pid.exists() and pid.read_text().split()[1:], "the pid file")
    assert box.talk("kill", "k")[1:] == [KillFound(what="killed")]
    worker.join(20)
    assert frames == [Claimed(new=True), Ended(code=137, signalled=True, why="cancelled")]


EVERY_BYTE = "".join(map(chr, (*range(1, 0x180), 0x20AC, 0x1F512))) + "\n\n"
"""Of UTF-8 that a shell may take for one of its own marks."""


@pytest.fixture
def run_id() -> Iterator[str]:
    """A run that nobody else has; its secret files lie in the one /tmp."""
    made = secrets.token_hex(16)
    yield made
    shutil.rmtree(directory(made), ignore_errors=True)


def test_secret_files_in_every_shell(box: Box) -> None:
    for value in (EVERY_BYTE, "x", (EVERY_BYTE * MAX_BYTES).encode()[:MAX_BYTES].decode("utf-8", "ignore")):
        run_id = secrets.token_hex(16)
        show = "ls -lnd {{secret_file:a}} && cat {{secret_file:a}} {{secret_file:b}}"
        frames, out, err = box.start(f'd={{{{secret_file:a}}}}; ls -lnd "${{d%/*}}" && {show}', run_id, value)
        folder, file, both = out.split(b"\n", 2)
        assert (frames, err) == ([Claimed(new=True), Ended(code=0, signalled=False, why="")], b"")
        assert (folder[:10], file[:10]) == (b"drwx------", b"-rw-------")
        assert both == value.encode() * 2
        assert not Path(directory(run_id)).exists()


def test_secret_files_of_a_run_that_cannot_begin_are_taken_away_in_every_shell(box: Box, run_id: str) -> None:
    claim, secret = box.home / ".local/state/oikos/spool" / run_id, Path(directory(run_id))
    ends: list[tuple[spool.Operation, list[Frame]]] = [
        ("void", [Decision(run=False)]), ("kill", [KillFound(what="void")]), ("ack", [Acknowledged()]),
    ]  # fmt: skip
    for op, frames in ends:
        claim.mkdir(parents=True)
        secret.mkdir(mode=0o700)
        for path in (claim / "files", claim / "stdin", secret / "repo"):
            path.write_text("hush")
        assert box.talk(op, run_id)[1:] == frames
        assert not secret.exists()
        assert not (claim / "stdin").exists()
        shutil.rmtree(claim)


def test_a_run_that_is_voided_while_it_is_claimed_leaves_no_secret_file(tmp_path: Path, run_id: str) -> None:
    (tmp_path / "bin").mkdir()
    voiding = tmp_path / "bin/mkfifo"  # called when the files are there and the supervisor is not
    voiding.write_text('#!/bin/sh\necho void >"${1%/alive}/decision"\nexec /usr/bin/mkfifo "$@"\n')
    voiding.chmod(0o755)
    box = Box(home=tmp_path, path=f"{tmp_path}/bin:/usr/bin:/bin")
    frames, _, _ = box.start("touch ~/ran {{secret_file:a}}", run_id, "hush")
    assert frames == [Claimed(new=True), NoOutcome(why="void", detail="-")]
    until(lambda: not Path(directory(run_id)).exists(), "the supervisor to take the files away")
    assert not (tmp_path / "ran").exists()


def test_a_run_that_began_keeps_its_secret_files_when_it_is_voided(box: Box, run_id: str) -> None:
    claim, secret = box.home / ".local/state/oikos/spool" / run_id, Path(directory(run_id))
    claim.mkdir(parents=True)
    secret.mkdir(mode=0o700)
    (claim / "decision").write_text("run\n")
    for path in (claim / "files", claim / "stdin", secret / "repo"):
        path.write_text("hush")
    assert box.talk("void", run_id)[1:] == [Decision(run=True)]
    assert ((secret / "repo").exists(), (claim / "stdin").exists()) == (True, True)


@pytest.mark.parametrize("theirs", [pytest.param("directory", marks=pytest.mark.needs_root), "link"])
def test_what_somebody_else_put_in_the_place_of_secret_files_is_not_removed(
    tmp_path: Path, run_id: str, theirs: str
) -> None:
    box, secret = Box(home=tmp_path, path=os.environ["PATH"]), Path(directory(run_id))
    claim, aside = tmp_path / ".local/state/oikos/spool" / run_id, tmp_path / "aside"
    for path in (claim, aside):
        path.mkdir(parents=True)
    if theirs == "link":
        secret.symlink_to(aside)
    else:
        secret.mkdir()
    (secret / "file").touch()
    if theirs == "directory":
        os.chown(secret, 12345, 12345)
    (claim / "files").touch()
    box.talk("void", run_id)
    box.talk("ack", run_id)
    assert (secret / "file").exists()
    if theirs == "link":
        secret.unlink()


def test_files_of_a_supervisor_that_is_long_dead_are_taken_away_by_a_greeting(box: Box, run_id: str) -> None:
    claim, secret = box.home / ".local/state/oikos/spool" / run_id, Path(directory(run_id))
    for path in (claim, secret):
        path.mkdir(parents=True, mode=0o700)
    (claim / "files").touch()
    box.talk("hello")
    os.utime(claim / "files", (1, 1))
    box.talk("hello")
    until(lambda: not secret.exists(), "the sweep")
    assert claim.exists()


@pytest.mark.needs_root
@pytest.mark.parametrize(
    ("mount", "why"), [("mode=0777", "refused"), ("mode=1777,size=4k", "unwritten"), ("mode=1777,ro", "refused")]
)
def test_a_tmp_that_cannot_hold_secret_files_starts_nothing(run_id: str, mount: str, why: str) -> None:
    home = Path(tempfile.mkdtemp(dir="/var/tmp"))
    order = RunOrder(
        run_id=run_id, session_id="s", generation=1, target_id="t", command="touch ~/ran {{secret_file:a}}"
    )
    mark = spool.nonce()
    message = spool.payload(spool.script(), "start", run_id, mark, order=filled(order, "x" * 9000))
    inside = f'mount -t tmpfs -o {mount} none /tmp; sh -s "$0"; ls -A /tmp'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, spool.CANARY], input=message, capture_output=True, timeout=60,
        check=False, env={"HOME": str(home), "PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert list(Decoder(mark).feed(done.stdout))[1:] == [NoOutcome(why="void", detail=why)]
    assert not (home / "ran").exists()
    shutil.rmtree(home)


def test_a_spool_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    state = tmp_path / ".local/state/oikos"
    state.mkdir(parents=True)
    box = Box(home=tmp_path, path=os.environ["PATH"])
    (state / "spool").symlink_to(tmp_path)
    assert box.talk("attach")[1:] == [Declined(why="no-directory")]
    (state / "spool").unlink()
    if os.geteuid() == 0:
        (state / "spool").mkdir()
        os.chown(state / "spool", 12345, 12345)
        assert box.talk("attach")[1:] == [Declined(why="not-ours")]


def test_a_full_disk_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin/df"
    fake.write_text(
        "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho /dev/x 100 99 1 99% /\n"
    )
    fake.chmod(0o755)
    box = Box(home=tmp_path, path=f"{tmp_path}/bin:/usr/bin:/bin")
    assert box.start("echo x", "full")[0] == [Declined(why="full 1")]
    assert not (tmp_path / ".local/state/oikos/spool/full").exists()


def test_a_cut_payload_does_nothing(tmp_path: Path) -> None:
    order = RunOrder(run_id="r", session_id="s", generation=1, target_id="t", command=f"touch {tmp_path}/ran")
    message = spool.payload(spool.script(), "start", "r", "mark", order=order)
    for size in range(0, len(message) - 12, 997):
        subprocess.run(
            ["sh", "-s", spool.CANARY], input=message[:size], capture_output=True, check=False,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == []
