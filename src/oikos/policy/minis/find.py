"""find and fd: expressions whose predicates run, write or delete."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import arguments, paths
from oikos.policy.scene import EMPTY, Flow
from oikos.policy.words import HOLE, Tag, Tags, Word, WordKind

if TYPE_CHECKING:
    from oikos.policy.call import Call

_NO_VALUE = frozenset(
    "-print -print0 -ls -prune -quit -depth -d -mount -xdev -daystart -follow -empty -executable -readable -writable -nouser -nogroup "
    "-true -false -not -and -or -a -o ! ( ) , -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -H -L -P -E -X -x -s -O0 -O1 "
    "-O2 -O3 --help --version -help -version".split()
)
_VALUE = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size -mtime -atime -ctime -mmin "
    "-amin -cmin -newer -anewer -cnewer -user -group -uid -gid -perm -maxdepth -mindepth -links -inum -samefile -fstype -used -printf -context "
    "-D -newermt -newerat -newerct -newermc -newerma -newermm -neweram -newerac -neweraa -newercm -newerca -newercc -newerBt -newerBm -Bmin -Btime".split()
)
_WRITES = frozenset("-fprint -fprint0 -fls".split())
_EXEC = frozenset("-exec -execdir -ok -okdir".split())
_PATTERNS = frozenset("-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname".split())
_EMITS: Tags = frozenset((Tag.FILE,))


def find(this: Call) -> Flow | None:
    """`find [options] [path…] [expression]`."""
    walker, scene = this.walker, this.scene
    words = this.words[1:]
    at = 0
    patterns: list[str] = []
    starts: list[Word] = []
    in_expression = False
    secret = False
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if not word.literal:
            if in_expression:
                walker.unclear(
                    "dynamic.find",
                    word.span,
                    "This word is only known when the shell runs; it could be -delete or -exec.",
                    scene,
                )
            elif word.could_be_option() and not word.values:
                tame = (not word.splits and not word.text.startswith(HOLE)) or (
                    word.hints and word.hints[0].startswith(("/", "."))
                )
                wide = word.kind is WordKind.GLOB and not word.could_be_option_glob()
                if not tame and not wide:
                    walker.unclear(
                        "dynamic.find",
                        word.span,
                        "This word is only known when the shell runs; it could be -delete or -exec.",
                        scene,
                    )
            starts.append(word)
            continue
        if text in _NO_VALUE:
            in_expression = in_expression or (text.startswith(("-", "(", "!")) and text not in ("-H", "-L", "-P"))
        elif text in _VALUE or re.fullmatch(r"-newer[aBcmt]{2}", text):
            in_expression = in_expression or text != "-D"
            if at < len(words):
                if text in _PATTERNS:
                    patterns.append(words[at].text)
                if text in ("-newer", "-samefile") and words[at].text.startswith("-"):
                    pass  # a file called like an option is still only a value
                at += 1
        elif text == "-files0-from":
            if at < len(words):
                arguments.value(this, "any", words[at], "find.files0-from", text)
                secret = secret or paths.is_secret(words[at].text)
                at += 1
        elif text == "-delete":
            in_expression = True
            start = next((one.text for one in starts if one.literal), ".")
            walker.destroy("find.delete", word.span, "Deletes every file it finds.", scene, thing=start)
            walker.report.name("file", start, scene.place, Risk.DESTRUCTIVE, "delete")
        elif text in _WRITES or text == "-fprintf":
            in_expression = True
            if at < len(words):
                arguments.value(this, "out", words[at], f"find.{text[1:]}", text)
            at += 2 if text == "-fprintf" else 1
        elif text in _EXEC:
            in_expression = True
            at = _run(this, words, at, patterns, starts, ask=text.startswith("-ok"))
        elif text.startswith("-") or in_expression:
            in_expression = True
            walker.unclear(
                f"opt.unknown.find.{re.sub(r'[^a-z0-9-]', '_', text)[:30]}",
                word.span,
                f"The find test {text} is not known.",
                scene,
            )
        else:
            starts.append(word)
    if secret:
        walker.change("read.secret", this.span, "Reads names out of secret material.", scene, EffectKind.SENSITIVE)
    return Flow(_EMITS | _secret_tag(this, patterns, starts), None, True)


def _finds_runs(this: Call, patterns: list[str], starts: list[Word]) -> bool:
    """Whether the secret files of other runs are among what is found."""
    words = [word.text for word in this.words]
    after = dict(itertools.pairwise(words))
    every = not {"-o", "-or", "!", "-not", ","} & set(words)  # each test holds for all that is found
    named = not patterns or any(map(paths.could_be_run_secret, patterns))
    if every and (after.get("-type") == "d" or not named):
        return False
    deepest = after.get("-maxdepth", "")
    levels = int(deepest) if deepest.isdigit() else 3
    where = [one.text for one in starts] or ["."]
    return any(paths.reaches_runs(paths.normal(one, this.walker.cwd), levels=levels) for one in where)


def _secret_tag(this: Call, patterns: list[str], starts: list[Word]) -> Tags:
    """A search for private keys hands them on by name."""
    if _finds_runs(this, patterns, starts):
        return frozenset((Tag.SECRET,))
    names = [pattern for pattern in patterns if paths.is_secret("/root/.ssh/" + pattern) and "." not in pattern[-4:]]
    for start in starts:
        names += [pattern for pattern in patterns if paths.is_secret(start.text.rstrip("/") + "/" + pattern)]
        if paths.is_secret(start.text.rstrip("/") + "/x"):
            names.append(start.text)
    return frozenset((Tag.SECRET,)) if names else frozenset()


def _run(this: Call, words: list[Word], at: int, patterns: list[str], starts: list[Word], *, ask: bool) -> int:
    """Judge the command of -exec; returns the index behind it."""
    begin = at
    while (
        at < len(words)
        and words[at].text != ";"
        and not (words[at].text == "+" and at > begin and words[at - 1].text == "{}")
    ):
        at += 1
    inner = words[begin:at]
    if not inner:
        return at + 1
    secret = _secret_tag(this, patterns, starts)
    hints = tuple(
        f"{start.text.rstrip('/')}/{pattern}" for start in starts[:2] or [Word(".")] for pattern in patterns[:2]
    )
    filled = [
        Word(word.text.replace("{}", HOLE), WordKind.DYNAMIC, word.span, False, word.tags | {Tag.FILE} | secret,
             (), hints)
        if "{}" in word.text and word.literal
        else word
        for word in inner
    ]  # fmt: skip
    # find hands over paths that begin with a starting point, so `{}` alone cannot become an option.
    safe_start = all(not start.text.startswith(("-", HOLE)) for start in starts)
    filled = [
        replace(word, text="./" + word.text)
        if word.text == HOLE and safe_start and index and word.kind is WordKind.DYNAMIC
        else word
        for index, word in enumerate(filled)
    ]
    if inner[0].text == "{}":
        this.walker.unclear("find.exec", inner[0].span, "Runs every file it finds.", this.scene)
        return at + 1
    before = len(this.walker.report.findings)
    this.walker.command(filled, replace(this.scene.inside("find -exec"), stdin=EMPTY, inserted=frozenset((Tag.FILE,))))
    if (
        secret
        and not any(f.effects for f in this.walker.report.findings[before:])
        and inner[0].text not in ("ls", "stat", "test", "echo", "du", "file")
    ):
        this.walker.change(
            "read.secret", inner[0].span, "Reads private keys it finds by name.", this.scene, EffectKind.SENSITIVE
        )
    return at + 1


def fd(this: Call) -> Flow | None:
    """`fd … -x COMMAND` runs a command for each result."""
    words = this.words[1:]
    for index, word in enumerate(words):
        if re.fullmatch(r"-[a-zA-Z]*[xX]|--exec|--exec-batch", word.text) and word.literal:
            inner = words[index + 1 :]
            if inner:
                inside = replace(this.scene.inside("fd -x"), stdin=EMPTY, inserted=frozenset((Tag.FILE,)))
                this.walker.command([*inner, Word(HOLE, WordKind.DYNAMIC, word.span, False, _EMITS)], inside)
            break
    return Flow(_EMITS, None, True)
