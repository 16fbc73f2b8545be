"""The spool's protocol: what is sent to a target's `sh -s`, and the decoder of the frames that come back.

NONCE H boot epoch shell quoting clock    first line of ours; all before it is noise of the login shell
X why [detail]                            nothing was claimed, and why
S new|exists                              the claim
O n / E n, then n raw bytes               output of the command from the offsets that were asked for
B                                         still here
R rc signalled why                        the end
U why [detail]                            there is no outcome, and why
V run|void                                the decision stands
K void|ended|gone|killed|running          what a kill found
A                                         acknowledged
"""

from __future__ import annotations

import dataclasses
import math
import re
import secrets
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from oikos.domain.run import RunOrder, Stream
from oikos.domain.value import dataclass

CANARY: Final = 'it\'s "$HOME" `id` \\n \\\\ * ? ~ ! # é\u0101\n{a,b} $(id) ;& -'
"""Travels as an argument through every shell on the way; where it arrives changed, no command goes that way."""

CHUNK_BYTES: Final = 4 * 1024 * 1024
"""The largest frame: few processes on the target for much output."""
FLOOR_KB: Final = 16_384
"""Free space in KiB below which no run is started on a target."""
MAX_LINE_BYTES: Final = 65_536
"""A target that sends a longer line is not speaking this protocol (security/THREATS T23)."""

_BLANK = re.compile("@([A-Z_]+)@")

Operation = Literal["hello", "start", "attach", "void", "kill", "ack"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled(RunOrder):
    """An order as it travels: with the secrets in it. Never journalled, never shown."""

    files: tuple[tuple[str, str], ...] = ()
    """Name and exact contents of each secret file; they lie in `secret_files.directory(run_id)`."""

    @classmethod
    def of(cls, order: RunOrder, *, command: str, stdin: str | None, files: Mapping[str, str]) -> Filled:
        """What a journalled order becomes."""
        held = {field.name: getattr(order, field.name) for field in dataclasses.fields(order)}
        return cls(**held | {"command": command, "stdin": stdin, "files": tuple(files.items())})

    def __repr__(self) -> str:
        return f"Filled({self.run_id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a target says of itself before anything else."""

    boot: str
    epoch: str
    """Of the spool; empty: there is no usable spool."""
    bash: bool
    quoting: bool
    """Whether arguments arrive unchanged."""
    clock_s: int
    """Its wall time; only asked for by `hello`, else 0."""
    skew_s: float = 0.0
    """Its wall time less ours, as seen when it said hello; filled in by the carrier."""
    trouble: str = ""
    """Why there is no usable spool; filled in by the carrier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """Nothing was claimed."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """The run id is taken, by this message or by an earlier one."""

    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Output bytes of the command."""

    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The follower is alive and there is nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The command ended."""

    code: int
    signalled: bool
    why: str
    """timeout, idle, output_limit, disk_full, cancelled, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOutcome:
    """absent, undecided, void, acknowledged, supervisor-killed or rebooted."""

    why: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What stands: run or void."""

    run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KillFound:
    """What the kill found: void, ended, gone, killed or running."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """The spool of the run is forgotten."""


Frame = Hello | Declined | Claimed | Data | Beat | Ended | NoOutcome | Decision | KillFound | Acknowledged


class ProtocolError(Exception):
    """The far side sent something that is no frame."""


def nonce() -> str:
    """A fresh marker for one conversation."""
    return "n" + secrets.token_hex(16)


def script() -> str:
    """The remote half, with its blanks; read from the package."""
    return Path(__file__).with_name("supervise.sh").read_text(encoding="utf-8")


def payload(
    text: str,
    op: Operation,
    run_id: str,
    mark: str,
    *,
    order: RunOrder | None = None,
    limit_s: int = 0,
    not_after_s: int = 0,
    out: int = 0,
    err: int = 0,
) -> bytes:
    """The whole message for one operation; `text` is the `script`.

    Raises:
        ValueError: a run id that is not plain hex.
    """  # fmt: skip
    if not run_id.isalnum() or not run_id.isascii():
        raise ValueError(f"{run_id!r} is no run id")
    command = order.command if order else ""
    stdin = order.stdin if order else None
    files = order.files if isinstance(order, Filled) else ()
    words: dict[str, str] = {
        "OP": op, "ID": run_id, "NONCE": mark, "OOFF": str(out), "EOFF": str(err), "CHUNK": str(CHUNK_BYTES),
        "LIMIT": str(limit_s), "IDLE": str(_up(order.limits.idle_s) if order else 0),
        "CAP": str(order.limits.kill_bytes if order else 0), "NOT_AFTER": str(not_after_s),
        "FLOOR_KB": str(FLOOR_KB), "CANARY": shlex.quote(CANARY),
        "STDIN": str(-1 if stdin is None else len(stdin.encode())), "CMD": command, "STDIN_TEXT": stdin or "",
        "FILES": str(len(files)),
        "PUTS": "\n".join(
            f"put {name} {len(value.encode())} <<'{mark}_F{at}'\n{value}\n{mark}_F{at}"
            for at, (name, value) in enumerate(files)
        ),
    }  # fmt: skip
    return _BLANK.sub(lambda blank: words[blank[1]], text).encode()


class Decoder:
    """Bytes in, frames out; keeps only what is not yet whole.

    Output is passed on as it comes: a frame of n bytes may be delivered as several `Data`.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode() + b" "
        self._greeted = False
        self._line = bytearray()
        self._stream = Stream.OUT
        self._left = 0
        """Bytes of the open output frame that are still to come."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Decode some more.

        Raises:
            ProtocolError: this is no conversation of ours.
        """
        position = 0
        while position < len(data):
            if self._left:
                piece = data[position : position + self._left]
                self._left -= len(piece)
                position += len(piece)
                yield Data(stream=self._stream, data=piece)
                continue
            end = data.find(b"\n", position)
            self._line += data[position : len(data) if end < 0 else end]
            if len(self._line) > MAX_LINE_BYTES:
                if self._greeted:
                    raise ProtocolError("a frame's line is too long")
                del self._line[:-MAX_LINE_BYTES]
            if end < 0:
                return
            position = end + 1
            line, self._line = bytes(self._line), bytearray()
            frame = self._frame(line) if self._greeted else self._greeting(line)
            if frame is not None:
                yield frame

    def _greeting(self, line: bytes) -> Hello | None:
        at = line.find(self._mark + b"H ")
        if at < 0:
            return None
        match line[at + len(self._mark) :].decode("ascii", "replace").split():
            case ["H", boot, epoch, shell, quoting, clock] if clock.isdecimal():
                self._greeted = True
                return Hello(
                    boot=boot, epoch="" if epoch == "-" else epoch, bash=shell == "bash", quoting=quoting == "ok",
                    clock_s=int(clock),
                )  # fmt: skip
            case _:
                raise ProtocolError(f"a greeting that is none: {line[at:][:80]!r}")

    def _frame(self, line: bytes) -> Frame | None:
        match line.decode("ascii", "replace").split():
            case ["O" | "E" as stream, size] if size.isdecimal():
                self._stream = Stream.OUT if stream == "O" else Stream.ERR
                self._left = int(size)
                return None
            case ["B"]:
                return Beat()
            case ["R", code, signalled, why] if code.isdecimal():
                return Ended(code=int(code), signalled=signalled == "1", why="" if why == "-" else why)
            case ["S", "new" | "exists" as claim]:
                return Claimed(new=claim == "new")
            case ["X", why, *detail]:
                return Declined(why=" ".join([why, *detail]))
            case ["U", why, *detail]:
                return NoOutcome(why=why, detail=" ".join(detail))
            case ["V", "run" | "void" as decision]:
                return Decision(run=decision == "run")
            case ["K", what]:
                return KillFound(what=what)
            case ["A"]:
                return Acknowledged()
            case _:
                raise ProtocolError(f"a line that is no frame: {line[:80]!r}")


def _up(seconds: float) -> int:
    return math.ceil(seconds)
