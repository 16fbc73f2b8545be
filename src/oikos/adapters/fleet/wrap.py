"""The words that travel: from a route and a program to the exact bytes of the first hop (SPEC R5.2, policy §4.13).

One canonical builder. Every machine on the way runs the next program under `env -i` with a fixed environment, so
that what runs is what was classified: no profile files, no functions or aliases of the account, no pager, no
colours, no environment of the controller or of a Proxmox node.

    way = follow(route)                         # where to connect, and what to wrap
    words = way.words(plain(shell, command))    # argv of the first machine, for posix_spawn
    text = way.text(plain(shell, command))      # the same as one line for a remote login shell
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from oikos.domain.errors import TargetError
from oikos.domain.inventory import AccessPath, Become, Entity, Route, Transport
from oikos.domain.value import dataclass

ENV: Final = "/usr/bin/env"
"""By its path: a function of the login shell cannot shadow it."""

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

ENVIRONMENT: Final[Mapping[str, str]] = {
    "PATH": PATH,
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "SYSTEMD_PAGER": "",
    "SYSTEMD_COLORS": "0",
    "NO_COLOR": "1",
    "LESSSECURE": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_COUNT": "4",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
    "GIT_CONFIG_KEY_2": "diff.external",
    "GIT_CONFIG_VALUE_2": "",
    "GIT_CONFIG_KEY_3": "core.pager",
    "GIT_CONFIG_VALUE_3": "cat",
}
"""All a command sees besides HOME (policy §4.13, domain/PROXMOX §1.5)."""

ROOT_HOME: Final = "/root"
MAX_WORD_BYTES: Final = 120_000
"""Linux refuses one argument of 128 KiB; longer commands travel on standard input."""

BASH: Final = ("bash", "--noprofile", "--norc")
"""The shell of a target that has bash: the classifier judges the bash dialect."""
SH: Final = ("sh",)
"""The shell of a target without bash."""

_GUEST_OF_PCT = re.compile(r"[1-9][0-9]{2,8}")
_GUEST_OF_DOCKER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}")
_USER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,31}\$?")
_ADDRESS = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,253}[a-zA-Z0-9])?|[0-9a-fA-F:]{2,45}(%[a-zA-Z0-9._-]+)?")

# `sudo -n` first, so that a password is never sent where none is asked for: it would become input of the command.
_SUDO_WITH_PASSWORD = (
    "IFS= read -r secret\n"
    'if sudo -n true 2>/dev/null; then unset secret; exec sudo -n -H -- "$@"; fi\n'
    '{ printf "%s\\n" "$secret"; unset secret; exec cat; } | sudo -S -p "" -H -- "$@"'
)
# docker sets HOME by the user of the image; nothing else of the image's environment is kept.
_KEEP_HOME = f'exec {ENV} -i HOME="${{HOME:-{ROOT_HOME}}}" "$@"'
# What a mark says besides: who the process is, in the words of /proc/PID/stat, so that it can be killed by them.
_WHO = "l=; { read -r l </proc/$$/stat; } 2>/dev/null"
_SAY_BEGUN = f'{_WHO}; printf "%s %s\\n" "$0" "$l"; exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One SSH server and how to log in there; also what a pooled connection is known by."""

    name: str
    """Slug of the entity, for messages."""
    address: str
    port: int
    user: str
    key: str
    host_keys: tuple[str, ...]
    jump: Endpoint | None = None

    def __str__(self) -> str:
        where = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{where}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A route made ready: the machine to connect to, and what is wrapped around a program there."""

    endpoint: Endpoint | None
    """None: this machine."""
    guests: tuple[tuple[Transport, str], ...] = ()
    """pct and docker, outermost first."""
    sudo: bool = False
    password: str = ""
    """Reference of the sudo password; empty: sudo must ask for none."""
    name: str = ""
    """Slug of the target, for messages."""

    def words(self, program: Sequence[str]) -> list[str]:
        """The program as argv of the first machine, whose own environment is `environment(home)`."""
        words = list(program)
        for transport, guest in reversed(self.guests):
            inner = [f"{name}={value}" for name, value in ENVIRONMENT.items()] + words
            if transport is Transport.PCT:
                words = ["pct", "exec", guest, "--", ENV, "-i", f"HOME={ROOT_HOME}", *inner]
            else:
                words = ["docker", "exec", "-i", guest, "sh", "-c", _KEEP_HOME, "sh", *inner]
        if self.sudo:
            clean = [ENV, "-i", *(f"{k}={v}" for k, v in environment(ROOT_HOME).items()), *words]
            if self.password:
                return ["sh", "-c", _SUDO_WITH_PASSWORD, "sh", *clean]
            return ["sudo", "-n", "-H", "--", *clean]
        return words

    @property
    def bare(self) -> bool:
        """Whether the first machine is the target itself and its login user is the one to be."""
        return not self.guests and not self.sudo

    def text(self, program: Sequence[str], *, mark: str = "") -> str:
        """The program as one line for the login shell of the first machine (sh, bash, zsh, ksh, busybox).

        `mark` begins a line that is printed before it, where profile files have had their say (see `announced`).
        """
        fixed = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        words = shlex.join([*fixed, *self.words(program)])
        say = f"{_WHO}; printf '%s %s\\n' {shlex.quote(mark)} \"$l\"; " if mark else ""
        return f'{say}exec {ENV} -i HOME="$HOME" USER="$USER" LOGNAME="$LOGNAME" {words}'


def environment(home: str) -> dict[str, str]:
    """The whole environment of a program whose home is `home`."""
    return {"HOME": home, **ENVIRONMENT}


def plain(shell: Sequence[str], command: str) -> list[str]:
    """The program that runs a command with nothing around it.

    Raises:
        ValueError: the text holds a NUL or is too long for an argument.
    """
    check(command)
    if len(command.encode()) > MAX_WORD_BYTES:
        raise ValueError(f"the command is longer than {MAX_WORD_BYTES} bytes")
    return [*shell, "-c", command]


def announced(mark: str, program: Sequence[str]) -> list[str]:
    """The program, preceded on its output by one line: the mark, a space, and its /proc/PID/stat if there is one.

    It proves that the innermost machine was reached, and names the process there.
    """
    return ["sh", "-c", _SAY_BEGUN, mark, *program]


def check(text: str) -> None:
    """Refuse what no shell can be given.

    Raises:
        ValueError: a NUL, or a lone surrogate.
    """
    if "\0" in text:
        raise ValueError("the text holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("the text is not valid Unicode") from None


def follow(route: Route) -> Way:
    """Turn a route into a connection and its wrappings.

    Words that would become part of a command line or a connection are checked again here (security/THREATS T20).

    Raises:
        TargetError: a combination that Oikos cannot travel, or a name that is none.
    """
    name = route.target.slug
    endpoint: Endpoint | None = None
    guests: list[tuple[Transport, str]] = []
    sudo, password = False, ""
    for position, (entity, path) in enumerate(route.hops):
        match path.transport:
            case Transport.LOCAL:
                if position:
                    raise TargetError(f"{name}: {entity.slug} is local and cannot lie behind another machine")
                sudo, password = _become(path)
            case Transport.SSH:
                if guests or (position and endpoint is None):
                    raise TargetError(f"{name}: {entity.slug} by ssh cannot lie behind a container or this machine")
                endpoint = _endpoint(entity, path, endpoint)
                sudo, password = _become(path)
            case Transport.PCT | Transport.DOCKER:
                if not position:
                    raise TargetError(f"{name}: {entity.slug} needs 'via', the machine that holds it")
                grammar = _GUEST_OF_PCT if path.transport is Transport.PCT else _GUEST_OF_DOCKER
                if not grammar.fullmatch(path.guest):
                    raise TargetError(f"{name}: {path.guest!r} is no {path.transport} guest; correct 'guest'")
                guests.append((path.transport, path.guest))
    return Way(endpoint=endpoint, guests=tuple(guests), sudo=sudo, password=password, name=name)


def _become(path: AccessPath) -> tuple[bool, str]:
    return path.become is Become.SUDO, path.become_password


def _endpoint(entity: Entity, path: AccessPath, jump: Endpoint | None) -> Endpoint:
    wrong = ""
    if not _ADDRESS.fullmatch(path.address):
        wrong = f"{path.address!r} is no address; correct 'address'"
    elif not _USER.fullmatch(path.user):
        wrong = f"{path.user!r} is no user name; correct 'user'"
    elif not 0 < path.port < 65536:
        wrong = f"{path.port} is no port; correct 'port'"
    if wrong:
        raise TargetError(f"{entity.slug}: {wrong} in [targets.{entity.slug}]")
    return Endpoint(
        name=entity.slug, address=path.address, port=path.port, user=path.user, key=path.key,
        host_keys=path.host_keys, jump=jump,
    )  # fmt: skip
