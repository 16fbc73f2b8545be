"""Texts with holes: `{slot}` is filled from what a session has learned; in a command it is always one quoted word.

Values come from the output of machines. A command is split into words when the runbook is read, the holes are
filled afterwards, and every word is quoted: whatever a value contains, it cannot become shell syntax or an option.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

HOLE: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?:\|([a-z_]+))?\}")
OPERATORS: Final = frozenset({"|", "&&"})
UNFIT: Final = re.compile(r"[\x00-\x1f\x7f]")

FILTERS: Final[Mapping[str, Callable[[str], str]]] = {
    "base": lambda value: posixpath.basename(value.rstrip("/")),
    "dir": lambda value: posixpath.dirname(value.rstrip("/")),
    "lower": str.lower,
    # What people call a service, as a unit is called.
    "unit_name": lambda value: value.lower().removesuffix(".service"),
    "stem": lambda value: value.rpartition(".")[0] or value,
    # As a pattern and as a replacement within sed's s|…|…|.
    "sed_from": lambda value: re.sub(r"([\\.*\[\]^$|])", r"\\\1", value),
    "sed_to": lambda value: re.sub(r"([\\&|])", r"\\\1", value),
}


class Hole(Exception):
    """A template cannot be filled: the text names the slot, or why its value does not fit."""


def holes(template: str) -> list[str]:
    """The slots a template needs, in order."""
    return [found[1] for found in HOLE.finditer(template)]


def unknown_filter(template: str) -> str:
    """The first filter that does not exist; empty when all do."""
    return next((found[2] for found in HOLE.finditer(template) if found[2] and found[2] not in FILTERS), "")


def fill(template: str, slots: Mapping[str, str]) -> str:
    """The text with its holes filled.

    Raises:
        Hole: a slot is not known.
    """
    return HOLE.sub(lambda found: _value(found, slots), template)


def fill_known(template: str, slots: Mapping[str, str]) -> str:
    """The text with the holes filled whose slots are known, and … for the others."""

    def known(found: re.Match[str]) -> str:
        try:
            return _value(found, slots)
        except Hole:
            return "…"

    return HOLE.sub(known, template)


def fill_pattern(template: str, slots: Mapping[str, str]) -> str:
    """A regular expression whose holes match exactly the slots' values.

    Raises:
        Hole: a slot is not known.
    """
    return HOLE.sub(lambda found: re.escape(_value(found, slots)), template)


def words(command: str) -> tuple[str, ...]:
    """A command of a runbook as words; `|` and `&&` alone are operators.

    Raises:
        ValueError: unbalanced quotes, or no word at all.
    """
    split = tuple(shlex.split(command))
    if not split:
        raise ValueError("no words")
    return split


def command(template: tuple[str, ...], slots: Mapping[str, str]) -> str:
    """The command line: words filled, then quoted.

    Raises:
        Hole: a slot is not known, or its value could be taken for an option or is no text of one line.
    """
    line = []
    for word in template:
        if word in OPERATORS:
            line.append(word)
            continue
        filled = fill(word, slots)
        if filled != word and (not filled or (word.startswith("{") and filled.startswith("-"))):
            raise Hole(f"{word}: {filled[:80]!r} could be taken for an option")
        if filled != word and UNFIT.search(filled):
            raise Hole(f"{word}: the value holds control characters")
        line.append(shlex.quote(filled))
    return " ".join(line)


def _value(found: re.Match[str], slots: Mapping[str, str]) -> str:
    value = slots.get(found[1])
    if value is None:
        raise Hole(found[1])
    return FILTERS[found[2]](value) if found[2] else value


# ---- what operators say ---------------------------------------------------------------------------------------------

SAID_SLOT: Final = r"[\w.@:+/-]*[\w@+/]"
OPTIONAL: Final = r")\s+)?"
GAP: Final = r"(?:\S+\s+){0,6}?"
PIECE: Final = re.compile(r"\{([a-z][a-z0-9_]*)\}|\.\.\.|\[|\]|\(|\)|\||\s+|[^\s\[\]()|{}.]+|.")


def intent(pattern: str) -> re.Pattern[str]:
    """What is said, as a pattern: words, `{slot}` for one word, `[optional]`, `(this|that)`, `...` for up to 6 words.

    Raises:
        ValueError: unbalanced brackets.
    """
    made = [r"(?:^|(?<=[\s,.;:!?(\"']))"]
    for piece in PIECE.finditer(" ".join(pattern.split())):
        token = piece[0]
        if piece[1]:
            made.append(rf"(?P<{piece[1]}>{SAID_SLOT})")
        elif token == "...":
            made.append(GAP)
        elif token == "[":
            made.append("(?:(?:")
        elif token == "]":
            made.append(OPTIONAL)
        elif token == "(":
            made.append("(?:")
        elif token in ")|":
            made.append(token)
        elif token.isspace():
            made.append("" if made[-1] in (OPTIONAL, GAP) else r"\s+")
        else:
            made.append(re.escape(token))
    made.append(r"(?=$|[\s,.;:!?)\"'])")
    try:
        return re.compile("".join(made), re.IGNORECASE)
    except re.error:
        raise ValueError("one is not closed, or not opened") from None
