"""Choice of a rule: which subcommand or mode of a program an argument list means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import HopKind, Risk
from oikos.policy import carried, disclosure, options
from oikos.policy.scene import Scene
from oikos.policy.spec import Option, Program, Rule
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.walk import Walker


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The rule an argument list means, and the list read by it."""

    rule: Rule
    line: options.Line
    sub: tuple[str, ...] = ()
    """The subcommand words."""


def choose(walker: Walker, name: str, program: Program, words: list[Word], scene: Scene) -> Choice | None:
    """Choose the rule for an argument list; None: nobody knows its subcommand, and that has been said."""
    base, args = program.base, words[1:]
    if program.subs:
        lead = options.read(args, base.options, base, stop_after=program.sub_at)
        try:
            found, rest = _subcommand(walker, name, program, words, lead, scene)
        except _NotUnderstood:
            return None
        if found in program.subs:
            return _with_needs(program, found, lead, rest)
        if found:  # `docker volume` alone: usage
            shorter = next((found[:n] for n in range(len(found), 0, -1) if found[:n] in program.subs), ())
            if shorter:
                return _with_needs(program, shorter, lead, rest)
            usage = replace(base, name=f"{program.names[0]}.{'.'.join(found)}", risk=Risk.READ_ONLY)
            return Choice(rule=usage, line=lead, sub=found)
    mode = _mode(program, args)
    if mode is None:
        return Choice(rule=base, line=_read(args, base))
    line = options.read(args, {**_tables(program), **mode.options}, mode, stop_after=mode.wraps)
    line.used[:] = [
        used if used.option is None or used.name in mode.options else replace(used, option=_foreign(used.option))
        for used in line.used
    ]
    return Choice(rule=mode, line=line)


class _NotUnderstood(Exception):  # ends the search for a subcommand; the finding has been made
    """No rule is about this subcommand."""


def _subcommand(
    walker: Walker, name: str, program: Program, words: list[Word], lead: options.Line, scene: Scene
) -> tuple[tuple[str, ...], list[Word]]:
    """As many subcommand words as the table knows, and what stands behind them; options between go to `lead`.

    Raises:
        _NotUnderstood: there is a subcommand, and the table does not know it.
    """
    base, args = program.base, words[1:]
    found: tuple[str, ...] = ()
    known = False
    rest = lead.rest
    while True:
        table = program.between.get(found, base.options)
        more = options.read(rest, table, base, stop_after=1) if rest else options.Line()
        if not more.args:
            if more.used and not known:
                lead.used.extend(more.used)
                rest = []
            return found, rest
        word = more.args[0]
        longer = _longer(program, found, word)
        if longer is None:
            if known:
                return found, rest
            if more.loose and not word.literal:
                text = f"The subcommand of {name} is only known when the shell runs."
                walker.unclear("sub.dynamic", word.span, text, scene)
                carried.undescribed(walker, words, scene)
                raise _NotUnderstood
            if not found and (base.args is None or base.args or _mode(program, args)):
                return found, rest  # a program that also takes plain arguments
            rule = f"sub.unknown.{name}.{'.'.join((*found, cleaned(word.text)))}"
            shown = " ".join((name, *found, word.text.replace(HOLE, "…")))
            walker.unclear(rule, word.span, f"`{shown}` is not a command this classifier knows.", scene)
            carried.undescribed(walker, words, scene)
            disclosure.secrets(walker, args, scene)
            raise _NotUnderstood
        found = longer
        known = known or found in program.subs
        lead.used.extend(more.used)
        rest = more.rest
        if not any(key[: len(found)] == found and len(key) > len(found) for key in program.subs):
            return found, rest


def _with_needs(program: Program, sub: tuple[str, ...], lead: options.Line, rest: list[Word]) -> Choice:
    """Of the rules for a subcommand the first whose needs are met, or the last."""
    candidates = program.subs[sub]
    lines = [_read(rest, one) for one in candidates]
    at = next(
        (
            index
            for index, one in enumerate(candidates)
            if not one.needs or meets(one, (*lead.used, *lines[index].used))
        ),
        len(candidates) - 1,
    )
    line = lines[at]
    line.used[:0] = lead.used
    line.args[:0] = lead.args
    line.loose[:0] = lead.loose
    return Choice(rule=candidates[at], line=line, sub=sub)


def _tables(program: Program) -> dict[str, Option]:
    """Options of the program and of all its modes; what the program itself says comes first."""
    table = dict(program.base.options)
    for _, mode in program.modes:
        for key, option in mode.options.items():
            table.setdefault(key, option)
    return table


def _mode(program: Program, args: list[Word]) -> Rule | None:
    """The mode that the options choose."""
    if not program.modes:
        return None
    line = options.read(args, _tables(program), program.base)
    names = {used.name for used in line.used if not _switched_off(used)}
    for when, mode in program.modes:
        if "none" in when and line.args:
            continue
        named = when - {"none"}
        if not named or any(set(one.split("+")) <= names for one in named):
            return mode
    return None


def _foreign(option: Option) -> Option | None:
    """An option of another mode: unknown here unless it raises."""
    return option if option.risk is not Risk.READ_ONLY else None


def meets(rule: Rule, used: Iterable[options.Used]) -> bool:
    """Whether one of the options a rule needs is given, and not switched off again (`--check=false`)."""
    return any(one.name in rule.needs and not _switched_off(one) for one in used)


def _switched_off(used: options.Used) -> bool:
    return used.value is not None and used.value.known == "false"


def _read(args: list[Word], rule: Rule) -> options.Line:
    """Read the arguments by one rule."""
    if rule.hop not in (None, HopKind.SSH, HopKind.DOCKER) and any(word.known == "--" for word in args):
        # These take their own options up to the two dashes, wherever they stand.
        at = next(index for index, word in enumerate(args) if word.known == "--")
        line = options.read(args[:at], rule.options, replace(rule, permute=True))
        line.rest = args[at + 1 :]
        return line
    return options.read(args, rule.options, rule, stop_after=rule.wraps)


def _longer(program: Program, found: tuple[str, ...], word: Word) -> tuple[str, ...] | None:
    """The subcommand words and this one, when the table knows a command that begins so."""
    if not word.literal:
        return None
    at = len(found)
    longer = [key for key in program.subs if len(key) > at and key[:at] == found]
    if any(key[at] == word.text for key in longer):
        return (*found, word.text)
    if program.abbreviates:
        for key in longer:  # the tool itself takes the first that begins so
            if key[at].startswith(word.text) and word.text:
                return (*found, key[at])
    return None


def cleaned(text: str) -> str:
    """A word as a part of a rule id."""
    return re.sub(r"[^\w.+:-]", "_", text)[:40]


_VERSION_FLAGS = {
    "-V": "mysql mariadb borg tmux rustc smartctl virsh wget rsync stress-ng smbd nmbd winbindd libvirtd postgres sshd",
    "-v": "redis-server gcc g++ clang make gmake terraform tofu vault consul nomad rsyslogd runc grafana-server iperf "
    "iperf3 fio snmpd virsh",
    "-version": "javac java sqlite3 ffmpeg ffprobe ant",
}
"""Flags that alone print the version, and the programs where they do; elsewhere the same letter may do anything."""


def asks_for_version(name: str, args: Sequence[Word]) -> bool:
    """Whether `PROGRAM FLAG` can only be a question for the version."""
    return len(args) == 1 and name in _VERSION_FLAGS.get(args[0].known or "", "").split()


def asks_for_help(program: Program, subs: tuple[str, ...]) -> bool:
    """Whether `PROGRAM SUBS… --help` can only be a call for help."""
    if not subs:
        return True
    whole = next((subs[:n] for n in range(len(subs), 0, -1) if subs[:n] in program.subs), ())
    if whole and len(whole) < len(subs):
        # More words: an inner command would get the option (`docker run alpine reboot --help`).
        return all(rule.wraps is None and rule.handler != "dockerrun" for rule in program.subs[whole])
    return any(key[0] == subs[0] for key in program.subs)
