"""One command on one target: what is asked, what is journalled, and every way it can end."""

from __future__ import annotations

import enum
import hashlib
from typing import Literal

from oikos.domain.value import dataclass, replace

MAX_TIMEOUT_S = 600.0
DEFAULT_TIMEOUT_S = 120.0
OUTPUT_CAP_BYTES = 10 * 1024 * 1024
KILL_LIMIT_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a `run` tool call asks for (SPEC R5.1); nothing in it carries consent."""

    call_id: str
    target: str
    """As the model named it; resolved by the inventory."""
    command: str
    step: int | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    background: bool = False
    keep: bool = False
    """Go on in the background when the time limit is reached, instead of being killed (SPEC R5.6)."""
    stdin: str | None = None
    rerun: str = ""
    """The reason for repeating a command that already succeeded (SPEC R3.10)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Deadlines in seconds and sizes in bytes of one run (SPEC R5.4, R5.5)."""

    total_s: float = DEFAULT_TIMEOUT_S
    connect_s: float = 15.0
    channel_s: float = 15.0
    idle_s: float = 0.0
    """Longest silence; 0 = none but the total."""
    output_cap_bytes: int = OUTPUT_CAP_BYTES
    """Per stream; beyond it only the tail is kept."""
    kill_bytes: int = KILL_LIMIT_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """The journalled run: exactly what a Runner may execute. Its digest is what an Admission admits."""

    run_id: str
    """128 random bits in hex; also the name of the spool directory on the target."""
    session_id: str
    generation: int
    target_id: str
    command: str
    stdin: str | None = None
    limits: Limits = Limits()
    supervised: bool = True
    """Started through the spool; False only for short reads (SPEC R5.3)."""
    background: bool = False
    keep: bool = False
    not_after_s: float | None = None
    """Wall time after which the target must not begin: the consent would be dead (DESIGN §3)."""

    def asked(self) -> str:
        """Digest of what an operator is shown and approves: everything but `not_after_s`, which the approval sets."""
        return replace(self, not_after_s=None).digest()

    def digest(self) -> str:
        """SHA-256 over every field that changes what happens."""
        limits = self.limits
        parts = (
            self.run_id, self.session_id, str(self.generation), self.target_id, self.command,
            "-" if self.stdin is None else "+" + self.stdin,
            repr((limits.total_s, limits.connect_s, limits.channel_s, limits.idle_s, limits.output_cap_bytes,
                  limits.kill_bytes)),
            f"{self.supervised:d}{self.background:d}{self.keep:d}", repr(self.not_after_s),
        )  # fmt: skip
        hasher = hashlib.sha256()
        for part in parts:
            raw = part.encode("utf-8", "surrogatepass")
            hasher.update(b"%d:" % len(raw) + raw)
        return hasher.hexdigest()


class RemoteState(enum.StrEnum):
    """What is known of the remote process after a time-out or a Stop."""

    KILLED = "killed"
    RUNNING = "running"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The command ended by itself with an exit code."""

    code: int
    kind: Literal["exited"] = "exited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """The command was ended by a signal that Oikos did not send, or by a kill that `reason` names."""

    signal: int
    reason: str = ""
    """`cancelled` (Stop), `output_limit`, or empty."""
    kind: Literal["signalled"] = "signalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The total or idle deadline passed; `remote` says whether the process is gone."""

    deadline: str
    """`total`, `idle`."""
    remote: RemoteState
    kind: Literal["timed_out"] = "timed_out"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeverStarted:
    """Proven not to have begun: repeating is a new run through the gate."""

    reason: str
    kind: Literal["never_started"] = "never_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A plain read whose connection broke; it may simply be asked again."""

    reason: str
    kind: Literal["lost"] = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It may or may not have run to its end, and nothing can tell any more. Never repeated by the infrastructure."""

    reason: str
    kind: Literal["unknown"] = "unknown"


RunOutcome = Exited | Signalled | TimedOut | NeverStarted | Lost | Unknown


def succeeded(outcome: RunOutcome) -> bool:
    """Whether the command ended by itself with exit code 0."""
    return isinstance(outcome, Exited) and outcome.code == 0


def describe(outcome: RunOutcome) -> str:
    """The outcome in the words every face uses."""
    match outcome:
        case Exited(code=code):
            return f"exit {code}"
        case Signalled(signal=signal, reason=reason):
            return f"signal {signal}" + (f" ({reason})" if reason else "")
        case TimedOut(deadline=deadline, remote=remote):
            return f"timed out ({deadline}); remote process {remote}"
        case NeverStarted(reason=reason):
            return f"never started ({reason})"
        case Lost(reason=reason):
            return f"connection lost ({reason}); it was a read and may be asked again"
        case Unknown(reason=reason):  # pragma: no branch: the union is closed, mypy proves it
            return f"outcome unknown ({reason})"


class Stream(enum.StrEnum):
    """Which of the two output streams."""

    OUT = "out"
    ERR = "err"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a machine says it is (SPEC R5.8); empty where it cannot say."""

    hostname: str = ""
    machine_id: str = ""
    guest_id: str = ""
    boot_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a Runner says when a run has ended."""

    outcome: RunOutcome
    out_bytes: int = 0
    """Bytes the command wrote to standard output, stored or not."""
    err_bytes: int = 0
    duration_s: float = 0.0
    transport: str = ""
    """Such as `local`, `ssh root@10.0.0.5:22`, `pct 101 via ssh root@10.0.0.5:22`."""
    note: str = ""
    """What an operator should know besides, such as `output limit reached`."""
