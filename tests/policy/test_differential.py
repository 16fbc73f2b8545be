"""The list of commands in a verdict, against what a real bash starts: stub programs write down how they were called."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from oikos.policy.classify import Classifier

PROGRAMS = ("alpha", "beta", "gamma", "delta", "grep", "sort", "uptime", "ls")
WORDS = (
    "one",
    "two words",
    "-x",
    "--long=value",
    "$HOME-not",
    "a*b",
    "semi;colon",
    "quo'te",
    'dou"ble',
    "tab\tin",
    "{brace}",
    "~",
    "",
    "#hash",
)
# Writes its name, its arguments and a mark in one piece, so that the two ends of a pipeline cannot mix theirs.
STUB = """#!{sh}
printf '%s\\0' "${{0##*/}}" "$@" '\1' >> "$LOG"
"""


def _quoted(chance: random.Random, word: str) -> str:
    """One of the ways to write a word so that the shell passes exactly that."""
    single = "'" + word.replace("'", "'\\''") + "'"
    double = '"' + "".join("\\" + char if char in '\\"$`' else char for char in word) + '"'
    bare = "".join(char if char.isalnum() or char in "-=/." else "\\" + char for char in word)
    return chance.choice((single, double, bare if word and "\n" not in word else single))


def _simple(chance: random.Random) -> str:
    words = [chance.choice(WORDS) for _ in range(chance.randrange(3))]
    return " ".join((chance.choice(PROGRAMS), *(_quoted(chance, word) for word in words)))


def script(chance: random.Random, depth: int = 0) -> str:
    """A script of the safe grammar: every command in it runs exactly once, and all of them succeed."""
    if depth > 3 or chance.random() < 0.35:
        return _simple(chance)
    one, two = script(chance, depth + 1), script(chance, depth + 1)
    match chance.randrange(11):
        case 0:
            return f"{one}; {two}"
        case 1:
            return f"{one} && {two}"
        case 2:
            return f"{{ {one} | {two}; }}"
        case 3:
            return f"( {one} )"
        case 4:
            return f"{{ {one}; }}"
        case 5:
            return f"if {one}; then {two}; fi"
        case 6:
            return f"x=$( {one} )"
        case 7:
            return f"for i in 1; do {one}; done"
        case 8:
            return f"{one} > /dev/null"
        case 9:
            return f"case x in x) {one};; esac"
        case _:
            return f"{one}\n{two}"


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    """A folder of stub programs, and nothing else to find in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text(STUB.format(sh=shutil.which("sh")))
        (folder / name).chmod(0o755)
    return folder


def started(text: str, stubs: Path, log: Path) -> list[tuple[str, ...]]:
    """Argument lists of all programs that bash starts for `text`, sorted."""
    log.write_bytes(b"")
    bash = shutil.which("bash")
    assert bash is not None
    subprocess.run(
        [bash, "--norc", "-c", text], env={"PATH": str(stubs), "LOG": str(log)}, cwd=stubs, check=True, timeout=20,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return sorted(_records(log.read_bytes().decode()))


def _records(logged: str) -> Iterator[tuple[str, ...]]:
    for record in logged.split("\1\0"):
        if record:
            yield tuple(record.split("\0")[:-1])


def predicted(classifier: Classifier, text: str) -> list[tuple[str | None, ...]]:
    """Argument lists of the verdict's programs, sorted; builtins are no programs."""
    return sorted(action.argv for action in classifier.classify(text).actions if action.argv[0] in PROGRAMS)


def _compare(classifier: Classifier, stubs: Path, log: Path, seeds: range) -> None:
    for seed in seeds:
        text = script(random.Random(seed))
        assert predicted(classifier, text) == started(text, stubs, log), (seed, text)


def test_the_verdict_lists_the_commands_a_real_shell_starts(
    classifier: Classifier, stubs: Path, tmp_path: Path
) -> None:
    _compare(classifier, stubs, tmp_path / "log", range(120))


@pytest.mark.slow
def test_the_verdict_lists_the_commands_of_many_scripts(classifier: Classifier, stubs: Path, tmp_path: Path) -> None:
    _compare(classifier, stubs, tmp_path / "log", range(1000, 3000))


def test_the_comparison_notices_a_command_that_is_not_listed(
    classifier: Classifier, stubs: Path, tmp_path: Path
) -> None:
    assert started("alpha one; beta", stubs, tmp_path / "log") == [("alpha", "one"), ("beta",)]
    assert predicted(classifier, "alpha one") != started("alpha one; beta", stubs, tmp_path / "log")
