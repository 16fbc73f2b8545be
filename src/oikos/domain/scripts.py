"""Script files that a command runs: which they are, the one command that reads them, and what drifted (THREATS T6).

A plan approves bytes. The bytes of `sh /srv/job.sh` say nothing of what the file holds, so the plan carries the
file's hash, and a start compares it with what the file holds then.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from oikos.domain.value import dataclass
from oikos.domain.verdict import Reason, Verdict

RUNS_A_FILE = ("exec.file", "program.path", "shell.source")
"""Rules of the classifier for a command whose effect lies in a file that the plan does not hold."""
_MAY_BE_A_PATH = "program.unknown"
"""A program it does not know; called by its path, it is a file like any other."""
_ONLY_THE_SHELL_KNOWS = re.compile(r"[$`*?\[\]{}~\n\0\"']")
_KEEP_THE_PLACE = frozenset(
    "sudo doas nice ionice nohup time timeout setsid stdbuf chrt taskset flock command exec sh bash dash ash".split()
)
"""Wrappers under which a path means what it means without them; `env -C`, `su -`, `systemd-run` and others move."""
_MOVES_THE_ROOT = re.compile(r"(?:^|\s)(?:-[a-zA-Z]*[RDi]|--chroot\b|--chdir\b|--login\b)")
_LEADING_CD = re.compile(r"\s*cd\s+(?P<to>/[^\s;&|<>()\"'\\]*)\s*&&")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A file that a command runs, and what it held."""

    path: str
    sha256: str = ""
    """64 hex digits; empty: not read, or there was no such file."""


def runs_a_file(verdict: Verdict) -> bool:
    """Whether the command's effect lies in a file, readable or not."""
    return any(reason.rule in RUNS_A_FILE for reason in verdict.reasons)


def scripts_of(command: str, verdict: Verdict) -> tuple[str, ...]:
    """Paths of the files that the command runs on its own target, where the text names them literally.

    A relative path is joined to the one absolute `cd` before it. What lies on an inner machine, or is known only to
    the shell, is left out: the gate's rule for files that may differ still holds for it.
    """
    found: list[str] = []
    for reason in verdict.reasons:
        path = _path(command, verdict, reason)
        if path and path not in found:
            found.append(path)
    return tuple(found)


def _path(command: str, verdict: Verdict, reason: Reason) -> str:
    if reason.rule not in (*RUNS_A_FILE, _MAY_BE_A_PATH):
        return ""
    first, last = reason.span
    try:
        words = shlex.split(command[first:last])
    except ValueError:
        return ""
    if reason.rule == "shell.source":
        words = words[1:2]
    inside = [a for a in verdict.actions if a.span[0] <= first and last <= a.span[1]]
    if len(words) != 1 or not inside or any(action.place for action in inside):
        return ""
    path = words[0]
    if _ONLY_THE_SHELL_KNOWS.search(path) or (reason.rule != "exec.file" and "/" not in path):
        return ""  # `. NAME` and a bare name are looked for on PATH
    wrappers = {label.split()[0].rsplit("/", 1)[-1] for label in reason.via if label.split()}
    if wrappers - _KEEP_THE_PLACE or (wrappers and _MOVES_THE_ROOT.search(command[:first])):
        return ""
    if path.startswith("/"):
        return path
    return _placed(command, verdict, path)


def _placed(command: str, verdict: Verdict, path: str) -> str:
    """Joined to the one `cd /DIR &&` that the text begins with; any other way to move leaves the place unknown.

    Bash resolves `..` by name, the kernel by the real folder: with a symbolic link in between they differ.
    """
    moves = [a for a in verdict.actions if a.argv and a.argv[0] in ("cd", "pushd", "popd")]
    if not moves:
        return path
    leading = _LEADING_CD.match(command)
    if len(moves) != 1 or leading is None or ".." in leading["to"].split("/"):
        return ""
    return f"{leading['to'].rstrip('/')}/{path}"


def names(text: str, path: str) -> bool:
    """Whether a command has the file among its words, by its path or by its name: it may have written it."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    name = path.rsplit("/", 1)[-1]
    try:
        words = list(lexer)
    except ValueError:
        return False  # the hash holds
    return any(word == path or word.rsplit("/", 1)[-1] == name for word in words)


def reading(paths: Sequence[str]) -> str:
    """The built-in read: one line a file, its hash or `-`."""
    each = (shlex.quote(path) for path in paths)
    return "\n".join(f"test -f {path} && sha256sum < {path} || echo -" for path in each)


def read(paths: Sequence[str], output: str) -> tuple[Script, ...]:
    """What the built-in read showed; a file without a hash was not read."""
    lines = [line.split(" ", 1)[0] for line in output.splitlines()]
    shown = [line if _HASH.fullmatch(line) else "" for line in lines]
    if len(shown) != len(paths):
        shown = [""] * len(paths)
    return tuple(Script(path=path, sha256=hash_) for path, hash_ in zip(paths, shown, strict=True))


def drift(approved: Sequence[Script], now: Sequence[Script]) -> str:
    """The first file that is not what was approved, in words; empty when all are, or none was read then."""
    found = {script.path: script.sha256 for script in now}
    for script in approved:
        holds = found.get(script.path, "")
        if script.sha256 and holds != script.sha256:
            is_now = f"is {holds[:12]}" if holds else "cannot be read"
            return (
                f"The script {script.path} changed since it was approved (was {script.sha256[:12]}, now it {is_now})."
            )
    return ""
