"""Options: reads an argument list the way getopt_long and its cousins do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from oikos.policy.spec import Option, Rule, Takes
from oikos.policy.words import Word, WordKind


@dataclass(frozen=True, slots=True)
class Used:
    """An option as it was used."""

    name: str
    """Canonical spelling, such as `--output` for `--outp`."""
    option: Option | None
    """None: the table does not know it."""
    value: Word | None
    word: Word


@dataclass(slots=True)
class Line:
    """A parsed argument list."""

    used: list[Used] = field(default_factory=list)
    args: list[Word] = field(default_factory=list)
    rest: list[Word] = field(default_factory=list)
    """For wrappers and subcommands: everything from the first argument on that was not consumed."""
    loose: list[Word] = field(default_factory=list)
    """Dynamic or glob words that could turn into options or into several arguments."""
    dashes: bool = False
    """Whether `--` ended the options."""


def read(words: list[Word], table: Mapping[str, Option], rule: Rule, *, stop_after: int | None = None) -> Line:
    """Read `words` with `table`; stop after `stop_after` arguments, leaving what follows in `rest`."""
    line = Line()
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        full = stop_after is not None and len(line.args) >= stop_after
        if full and (stop_after or not (word.literal and _is_option(text, table)) or text == "--"):
            if text == "--" and not stop_after:
                line.rest = words[at + 1 :]
                return line
            line.rest = words[at:]
            return line
        at += 1
        if word.kind is not WordKind.LITERAL and not _dashed(word, table):
            if word.could_be_option() or word.splits:
                line.loose.append(word)
            line.args.append(word)
            continue
        if text == "--":
            line.dashes = True
            tail = words[at:]
            if stop_after is not None:
                room = stop_after - len(line.args)
                line.args.extend(tail[:room])
                line.rest = tail[room:]
            else:
                line.args.extend(tail)
                line.loose.extend(one for one in tail if one.splits and one.kind is WordKind.DYNAMIC)
            return line
        if _is_option(text, table):
            at = _one(line, word, words, at, table, rule)
            continue
        line.args.append(word)
        if not rule.permute and stop_after is None:
            line.args.extend(words[at:])
            line.loose.extend(one for one in words[at:] if one.splits)
            return line
    return line


def _dashed(word: Word, table: Mapping[str, Option]) -> bool:
    """A dynamic word whose option name is literal: `--since=$x`, `-n$x`."""
    return bool(re.match(r"--[\w-]+=|-[A-Za-z](?=.)", word.text)) and not word.text.startswith("-\0")


def _is_option(text: str, table: Mapping[str, Option]) -> bool:
    if text.startswith("+") and len(text) > 1:
        return any(name.startswith("+") for name in table)
    return text.startswith("-") and text != "-"


def _one(line: Line, word: Word, words: list[Word], at: int, table: Mapping[str, Option], rule: Rule) -> int:
    """Read one option word; returns the index of the next unread word."""
    text = word.text
    if text.startswith(("--", "+")) or (rule.single and text.partition("=")[0] in table):
        name, equals, glued = text.partition("=")
        option = table.get(name)
        if option is None and not name.startswith("+"):
            meant = _abbreviated(name, table)
            option = meant[0] if meant else None
            # An ambiguous abbreviation is every option it could be.
            line.used.extend(
                Used(one.name, one, _cut(word, glued) if equals else words[at] if at < len(words) else None, word)
                for one in meant[1:]
            )
        if rule.single and option is None and name.startswith("--"):
            option = table.get(name[1:])
        if option is None:
            takes = rule.lenient == "*=" and not equals and at < len(words) and not words[at].text.startswith("-")
            line.used.append(Used(name, None, words[at] if takes else _cut(word, glued) if equals else None, word))
            return at + takes
        if equals:
            line.used.append(Used(option.name, option, _cut(word, glued), word))
            return at
        return _value(line, option, word, words, at)
    if re.fullmatch(r"-\d+", text) and "-#" in table:
        line.used.append(Used("-#", table["-#"], None, word))
        return at
    if rule.single:
        line.used.append(Used(text, None, None, word))
        return at
    if text in table and len(text) > 2:  # a word that the table lists whole, such as -nodes
        return _value(line, table[text], word, words, at)
    letters = text[1:]
    for index, letter in enumerate(letters):
        option = table.get("-" + letter)
        after = letters[index + 1 :]
        if option is None:
            takes = rule.lenient == "*=" and index == 0 and not after and at < len(words)
            takes = takes and not words[at].text.startswith("-")
            line.used.append(Used("-" + letter, None, words[at] if takes else None, word))
            if takes:
                return at + 1
            if not rule.lenient or letter == "\0":
                return at
            continue
        if option.takes is Takes.NOTHING:
            line.used.append(Used(option.name, option, None, word))
            continue
        if after:
            line.used.append(
                Used(option.name, option, _cut(word, after.removeprefix("=") if len(after) > 1 else after), word)
            )
            return at
        return _value(line, option, word, words, at)
    return at


def _value(line: Line, option: Option, word: Word, words: list[Word], at: int) -> int:
    if option.takes is Takes.VALUE and at < len(words):
        value = words[at]
        if value.splits and value.kind is WordKind.DYNAMIC:
            line.loose.append(value)
        line.used.append(Used(option.name, option, value, word))
        return at + 1
    line.used.append(Used(option.name, option, None, word))
    return at


def _abbreviated(name: str, table: Mapping[str, Option]) -> list[Option]:
    """GNU getopt: a unique prefix of a long option stands for it; of several, the worst comes first."""
    if len(name) < 3:
        return []
    return sorted(
        (option for known, option in table.items() if known.startswith(name)),
        key=lambda option: (-option.risk.rank, len(option.name)),
    )


def _cut(word: Word, text: str) -> Word:
    """The part of a word behind `=` or a short option."""
    lead = len(word.text) - len(text)

    def shorten(spelled: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(one[lead:] for one in spelled if one[:lead] == word.text[:lead])

    body = None if word.body is None else word.body + lead
    return Word(
        text, word.kind, word.span, word.splits, word.tags, shorten(word.values), shorten(word.hints), body, word.odd
    )
