"""Commands that go straight to their program: plain words for which bash would do nothing but find and start it.

bash takes longer to start than most programs that only look (ADR 0018). What starts here is what bash would have
started: same file, same words, same environment, same process id. Whatever cannot be started goes to bash after all,
which says why in its own words and with its own exit code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

# Nothing in it can be quoted, expanded, redirected, assigned or split in another way; the first word is a name that
# is looked for on PATH, or a path from the root.
_PLAIN: Final = re.compile(r"(?:[A-Za-z]|/[A-Za-z0-9_.])[A-Za-z0-9_./+-]*(?: +[A-Za-z0-9_./:=,@%+-]+)* *")

OF_BASH: Final = frozenset(
    "alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable "
    "eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd "
    "pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask "
    "unalias unset wait if then else elif fi case esac for select while until do done in function time coproc".split()
)
"""Builtins and reserved words that are spelt like a program; a test asks bash for its own list."""
_ALIKE: Final = frozenset({"true", "false"})
"""Builtins that differ from the program of that name in nothing but its options."""


def split(command: str) -> list[str]:
    """The words of a command that needs no shell; empty: it needs one."""
    if not _PLAIN.fullmatch(command):
        return []
    words = command.split(" ")
    words = [word for word in words if word]
    name = words[0]
    if "/" in name:
        return words if name.startswith("/") else []
    if name in OF_BASH and (name not in _ALIKE or any(word.startswith("-") for word in words)):
        return []
    return words


def find(name: str, path: str) -> str:
    """The file that bash would start for a name; empty: none, or not one to be started."""
    if "/" in name:
        return name
    for directory in path.split(":"):
        file = f"{directory}/{name}"
        if os.access(file, os.X_OK) and os.path.isfile(file):
            return file
    return ""


def environment(given: Mapping[str, str], file: str, cwd: str) -> dict[str, str]:
    """What bash adds for its child."""
    return {**given, "PWD": os.path.realpath(cwd), "SHLVL": "0", "_": file}
