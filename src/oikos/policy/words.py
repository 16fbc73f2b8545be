"""Words: what a shell word is before the shell runs, as literal text, glob or dynamic text.

A dynamic piece is written as the placeholder NUL inside `Word.text`, so that paths and names can still be
compared around it.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from oikos.policy.findings import Span

HOLE = "\0"
"""Stands for a piece of a word that only the shell will know."""


class Tag(enum.StrEnum):
    """Where data comes from, as far as the text shows."""

    UNKNOWN = "unknown"
    """Not set in this text: an inherited variable, a positional parameter."""
    FILE = "file"
    """Contents or names of files."""
    NETWORK = "network"
    """Fetched from another machine."""
    DECODED = "decoded"
    """Decoded or transformed, so that a reader cannot see what it is."""
    SECRET = "secret"  # a tag, not a password
    CREDENTIAL = "credential"
    """An inherited variable that is called like a password."""
    BULK = "bulk"
    """A dump, archive or journal: much data at once."""


Tags = frozenset[Tag]
NOTHING: Tags = frozenset()


class WordKind(enum.Enum):
    """How much of a word is known."""

    LITERAL = "literal"
    GLOB = "glob"
    DYNAMIC = "dynamic"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    text: str
    """The text after quoting; `HOLE` for dynamic pieces; unquoted glob characters kept when kind is GLOB."""
    kind: WordKind = WordKind.LITERAL
    span: Span = (0, 0)
    splits: bool = False
    """Whether the shell may make no word or several of it."""
    tags: Tags = NOTHING
    """Sources of its dynamic pieces."""
    values: tuple[str, ...] = ()
    """Complete list of texts it can have, when this script alone decides that."""
    hints: tuple[str, ...] = ()
    """Texts it probably has; only ever used to raise a class."""
    body: int | None = field(default=None, compare=False)
    """Offset at which `text` stands verbatim in the classified text, when it does."""
    odd: bool = False
    """Written with ANSI-C quoting, braces or quotes inside the word: hides what it says."""
    number: bool = field(default=False, compare=False)
    """Dynamic, and a number or nothing whatever happens."""

    @property
    def literal(self) -> bool:
        return self.kind is WordKind.LITERAL

    @property
    def known(self) -> str | None:
        """The literal text, or None."""
        return self.text if self.kind is WordKind.LITERAL else None

    def could_be_option(self) -> bool:
        """Whether the program could take this word for an option."""
        if self.kind is WordKind.LITERAL:
            return self.text.startswith("-") and len(self.text) > 1
        if self.values:
            return any(value.startswith("-") and len(value) > 1 for value in self.values)
        if self.splits:
            return True
        return self.text[:1] in ("-", HOLE, "*", "?", "[", "")

    def could_be_option_glob(self) -> bool:
        """Whether a glob could match a file that is named like an option."""
        return self.text[:1] in ("*", "?", "[", "-", HOLE)

    def spellings(self) -> tuple[str, ...]:
        """Every text a raising rule should look at."""
        return tuple(dict.fromkeys((self.text, *self.values, *self.hints)))


def literal(text: str, span: Span = (0, 0)) -> Word:
    """A literal word."""
    return Word(text, WordKind.LITERAL, span)


def dynamic(span: Span, *, tags: Tags = NOTHING, splits: bool = True, text: str = HOLE) -> Word:
    """A word of which nothing is known but its sources."""
    return Word(text, WordKind.DYNAMIC, span, splits, tags)


_ANSI = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_ANSI_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def ansi_c(body: str) -> str:
    """The text of `$'body'`."""

    def one(found: re.Match[str]) -> str:
        hexa, short, long, octal, control, other = found.groups()
        if hexa or short or long:
            code = int(hexa or short or long, 16)
            return chr(code) if code <= 0x10FFFF else "\ufffd"
        if octal:
            return chr(int(octal, 8) & 0xFF)
        if control:
            return chr(ord(control) & 0x1F)
        return _ANSI_NAMED.get(other, other if other in "\\'\"?" else "\\" + other)

    return _ANSI.sub(one, body)


def unescape(raw: str, *, quoted: bool) -> str:
    """Remove the shell's backslashes from literal text outside (or inside double) quotes."""
    if "\\" not in raw:
        return raw
    out: list[str] = []
    at = 0
    while at < len(raw):
        char = raw[at]
        if char == "\\" and at + 1 < len(raw):
            after = raw[at + 1]
            if after == "\n":
                pass
            elif quoted and after not in '$`"\\':
                out.append("\\" + after)
            else:
                out.append(after)
            at += 2
            continue
        out.append(char)
        at += 1
    return "".join(out)


_GLOB = re.compile(r"(?<!\\)(?:\\\\)*(?:[*?]|\[(?=[^\]]*\]))")


def has_glob(raw: str) -> bool:
    """Whether unquoted raw text holds a glob character."""
    return bool(_GLOB.search(raw))


_RANGE = re.compile(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.(-?\d+))?")
MAX_BRACES = 64


def expand_braces(raw: str) -> list[str] | None:
    """Brace expansion of unquoted raw text; None when there is more than `MAX_BRACES` words or odd nesting."""
    start = _find_brace(raw)
    if start is None:
        return [raw]
    begin, end, parts = start
    middle = _range(raw[begin + 1 : end]) if len(parts) == 1 else parts
    if middle is None:
        return None
    out: list[str] = []
    for part, tail in itertools.product(middle, expand_braces(raw[end + 1 :]) or [HOLE]):
        inner = expand_braces(part) if len(parts) > 1 else [part]
        if inner is None:
            return None
        out.extend(raw[:begin] + one + tail for one in inner)
        if len(out) > MAX_BRACES:
            return None
    return out


def _find_brace(raw: str) -> tuple[int, int, list[str]] | None:
    """First brace group that expands, as (open, close, alternatives)."""
    for begin in (at for at, char in enumerate(raw) if char == "{" and (at == 0 or raw[at - 1] not in "$\\")):
        depth, parts, last = 0, [], begin + 1
        for at in range(begin, len(raw)):
            char = raw[at]
            if char == "{":
                depth += 1
            elif char == "," and depth == 1:
                parts.append(raw[last:at])
                last = at + 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    parts.append(raw[last:at])
                    if len(parts) > 1 or _RANGE.fullmatch(parts[0]):
                        return begin, at, parts
                    break
    return None


def _range(body: str) -> list[str] | None:
    found = _RANGE.fullmatch(body)
    if not found:
        return [body]
    first, last, step = found.groups()
    if first.lstrip("-").isdigit() and last.lstrip("-").isdigit():
        low, high, by = int(first), int(last), abs(int(step or 1)) or 1
        if abs(high - low) // by >= MAX_BRACES:
            return None
        numbers = range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
        return [str(number) for number in numbers]
    if first.isalpha() and last.isalpha():
        low, high = ord(first), ord(last)
        if abs(high - low) >= MAX_BRACES:
            return None
        return [chr(code) for code in (range(low, high + 1) if low <= high else range(low, high - 1, -1))]
    return [body]


def join(words: list[Word]) -> Iterator[str]:
    """Texts of the words for display; `…` for dynamic pieces."""
    for word in words:
        yield word.text.replace(HOLE, "…")


def moved(word: Word, span: Span) -> Word:
    """The same word at another place, for words made out of wrappers' texts."""
    return replace(word, span=span, body=None)
