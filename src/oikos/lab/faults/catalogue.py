"""The faults of a host by name, as the command line takes them: words in, a sentence out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oikos.lab.errors import LabError

if TYPE_CHECKING:
    from oikos.lab.host import Host

HEALED = ("none", "None", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`least` and `most` count the arguments; `apply` gets them as words."""

    usage: str
    help: str
    apply: Callable[[Host, list[str]], object]
    least: int = 0
    most: int = 0
    lasts: int | None = None
    """Which argument is a duration in seconds, for `pace`."""


def _optional(word: str) -> str | None:
    return None if word in HEALED else word


def _whole(word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise LabError(f"not a whole number: {word!r}") from None


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise LabError(f"not a number: {word!r}") from None


FAULTS: Mapping[str, Fault] = {
    "net_cut": Fault(usage="", help="pull the network cable", apply=lambda host, _: host.net_cut()),
    "net_restore": Fault(usage="", help="put the cable back", apply=lambda host, _: host.net_restore()),
    "net_slow": Fault(
        usage="KBIT",
        help="limit what the host receives, in kbit/s",
        least=1,
        most=1,
        apply=lambda host, words: host.net_slow(_whole(words[0])),
    ),
    "net_fast": Fault(usage="", help="lift that limit", apply=lambda host, _: host.net_fast()),
    "dns_fault": Fault(
        usage="servfail|nxdomain|refused|drop|none",
        help="break this host's name resolution; none heals",
        least=1,
        most=1,
        apply=lambda host, words: host.dns_fault(_optional(words[0])),
    ),
    "disk_fill": Fault(
        usage="[PATH]",
        help="fill the filesystem of PATH (/) with one file",
        most=1,
        apply=lambda host, words: host.disk_fill(*words),
    ),
    "disk_small": Fault(
        usage="PATH [SIZE]",
        help="put a small, full filesystem (8m) on PATH",
        least=1,
        most=2,
        apply=lambda host, words: host.disk_small(*words),
    ),
    "apt_lock": Fault(
        usage="[SECONDS]",
        help="hold apt's locks for a while (30)",
        most=1,
        lasts=0,
        apply=lambda host, words: _hold_apt(host, words),
    ),
    "kill_ssh_sessions": Fault(
        usage="",
        help="cut every live SSH session",
        apply=lambda host, _: f"{host.kill_ssh_sessions()} processes killed",
    ),
    "ssh_cut": Fault(
        usage="SECONDS [PATTERN]",
        help="cut every live SSH session and the network for a while, once a command of that pattern runs",
        least=1,
        most=2,
        lasts=0,
        apply=lambda host, words: _cut_ssh(host, words),
    ),
    "stop_sshd": Fault(usage="", help="stop the SSH server", apply=lambda host, _: host.stop_sshd()),
    "wrap_command": Fault(
        usage="COMMAND DELAY_S [FAIL_TIMES]",
        help="make a command slow, and its first calls fail",
        least=2,
        most=3,
        lasts=1,
        apply=lambda host, words: host.wrap_command(
            words[0], delay_s=_number(words[1]), fail_times=_whole(words[2]) if words[2:] else 0
        ),
    ),
    "unwrap_command": Fault(
        usage="COMMAND",
        help="give the real command back",
        least=1,
        most=1,
        apply=lambda host, words: host.unwrap_command(words[0]),
    ),
    "clock_skew": Fault(
        usage="OFFSET|none",
        help="shift the clock of new SSH sessions, e.g. +2h",
        least=1,
        most=1,
        apply=lambda host, words: host.clock_skew(_optional(words[0])),
    ),
    "hang": Fault(usage="", help="freeze every process", apply=lambda host, _: host.hang()),
    "unhang": Fault(usage="", help="let them go on", apply=lambda host, _: host.unhang()),
    "limit": Fault(
        usage="MEMORY",
        help="limit the host's memory, e.g. 256M",
        least=1,
        most=1,
        apply=lambda host, words: host.limit(memory=words[0]),
    ),
    "power_off": Fault(usage="", help="pull the plug", apply=lambda host, _: host.power_off()),
    "start": Fault(usage="", help="boot it again", apply=lambda host, _: host.start()),
    "snapshot": Fault(
        usage="NAME", help="keep the host's files", least=1, most=1, apply=lambda host, words: host.snapshot(words[0])
    ),
    "rollback": Fault(
        usage="NAME", help="go back to them", least=1, most=1, apply=lambda host, words: host.rollback(words[0])
    ),
}


def _hold_apt(host: Host, words: list[str]) -> None:
    host.apt_lock(_number(words[0]) if words else 30)


def _cut_ssh(host: Host, words: list[str]) -> str:
    killed = host.ssh_cut(_number(words[0]), when_running=words[1] if words[1:] else None)
    return f"{killed} processes killed"


def describe() -> list[str]:
    """One line per fault: name, arguments, what it does."""
    width = max(len(f"{name} {fault.usage}") for name, fault in FAULTS.items())
    return [f"{f'{name} {fault.usage}':<{width}}  {fault.help}" for name, fault in FAULTS.items()]


def apply(host: Host, name: str, words: list[str], *, pace: float = 1.0) -> str:
    """Put a fault in, its duration scaled by `pace`; what to tell the person. Raises: LabError."""
    if name not in FAULTS:
        raise LabError(f"unknown fault {name!r}: `oikos lab fault {host.name}` lists them")
    fault = FAULTS[name]
    if not fault.least <= len(words) <= fault.most:
        raise LabError(f"usage: oikos lab fault {host.name} {name} {fault.usage}".rstrip())
    said = fault.apply(host, scaled(fault, words, pace))
    return str(said) if said is not None else f"{host.name}: {name} done"


def scaled(fault: Fault, words: list[str], pace: float) -> list[str]:
    """The arguments with the duration among them times `pace`. Raises: LabError when it is no number."""
    if fault.lasts is None or fault.lasts >= len(words) or pace == 1.0:
        return words
    return [f"{_number(word) * pace:g}" if at == fault.lasts else word for at, word in enumerate(words)]
