"""How a chat message becomes clauses of words: normal form, quotations, hidden and look-alike characters."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

from oikos.domain.value import dataclass

MAX_CHARS = 2_000
"""What of a message is read; a longer one is never an assent."""

QUOTED = "\ufdd0"
"""The word that stands for a quotation, a quoted line, a code fence or struck-out text."""
CUT = "\ufdd1"
"""The word that stands for what lies behind MAX_CHARS."""

_DOUBLE_QUOTES = frozenset('"“”„‟«»‹›「」『』〝〞〟`')
_APOSTROPHES = frozenset("'‘’‚‛´ʼ")
_BREAKS = frozenset(",.!;:-–—‒―~\n、。・،؛।¡")
_OPEN_ENDS = (",", ":", "、", "،")
_QUESTIONS = frozenset("?¿؟‽՞")
# Shown as nothing although Unicode calls them letters or marks.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164")
_LOOK_ALIKES = str.maketrans("аеорсухіјѕһԁԛԝкмтгαορνικτυχεγωѵոɡɑ", "aeopcyxijshdqwkmtraopviktuxeywvnga")
_TO_CYRILLIC = str.maketrans("aeopcyxiskmthb", "аеорсухіѕкмтнв")
_TO_GREEK = str.maketrans("aopviktuxeyw", "αορνικτυχεγω")
_CYRILLIC = frozenset(map(chr, range(0x400, 0x530)))
_GREEK = frozenset(map(chr, range(0x370, 0x400)))
_WORD = re.compile(r"\w+")
# ~so~ and ~~so~~ as Markdown has it. Two marks also strike beside blanks, and when left open, to the end of their line;
# behind a word and before a blank they only lengthen it: "ok~~ go".
_OPENED = r"(?:~~(?=[^\s~])|(?<!\S)~~(?=\s+[^\s~]))"
_STRUCK = re.compile(rf"(?:{_OPENED}|~(?=[^\s~]))[^~]*(?:~~+|(?<!\s)~)|{_OPENED}[^~\n]*")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """A message as words: one tuple a clause, and what its punctuation says about the whole."""

    clauses: tuple[tuple[str, ...], ...]
    asked: bool = False
    """A question mark in the operator's own words."""
    trails: bool = False
    """Two dots or more, or a comma or colon at the end: the sentence is not finished."""
    label: bool = False
    """The first clause ends in a colon."""


def clauses(text: str) -> Clauses:
    """Split a message into clauses of words; time is linear in at most MAX_CHARS characters.

    Every character that is no white space and no known mark ends up in a word: the vocabulary decides on it.
    """
    folded = _fold(text)
    own = _without_quotes(folded[:MAX_CHARS])
    done: list[tuple[str, ...]] = []
    clause: list[str] = []
    asked = label = False
    for word in _words(own.replace(":-)", ":)").replace(":)", "🙂")):
        if word not in _BREAKS and word not in _QUESTIONS:
            clause.append(word)
            continue
        asked = asked or word in _QUESTIONS
        if clause:
            label = label or (word == ":" and not done)
            done.append(tuple(clause))
            clause = []
    if len(text) > MAX_CHARS or len(folded) > MAX_CHARS:
        clause.append(CUT)
    if clause:
        done.append(tuple(clause))
    trails = ".." in own or "。。" in own or own.rstrip().endswith(_OPEN_ENDS)
    return Clauses(clauses=tuple(done), asked=asked, trails=trails, label=label)


def as_seen(text: str) -> tuple[str, ...]:
    """The message as it looks, where that is not as it is written.

    Hidden characters, what is struck out, colours of a terminal, stacked marks and "sooo" are gone. Look-alike letters
    are turned into Latin ones, and then Latin letters into those of the script that the word is written in too.
    """
    written = _fold(text)
    text = _COLOUR.sub("", text)
    shown = "".join(char for char in _STRUCK.sub(" ", _fold(text)) if char in "\n\t" or not _is_unseen(char))
    short = "".join(_shortened(char, "".join(run)) for char, run in groupby(shown))
    views = (
        short.translate(_LOOK_ALIKES),
        _WORD.sub(lambda word: word[0].translate(_TO_CYRILLIC) if _CYRILLIC & set(word[0]) else word[0], short),
        _WORD.sub(lambda word: word[0].translate(_TO_GREEK) if _GREEK & set(word[0]) else word[0], short),
    )
    normal = (unicodedata.normalize("NFKC", view) for view in views)
    return tuple(dict.fromkeys(view for view in normal if view != written))


def _shortened(char: str, run: str) -> str:
    """No language writes a letter three times."""
    return char if len(run) > 2 and char.isalpha() else run


_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Me", "Mn", "Zl", "Zp"})


def _is_unseen(char: str) -> bool:
    return unicodedata.category(char) in _UNSEEN or char in _BLANK_LETTERS


def without_accents(phrase: str) -> str:
    """A phrase as it is typed on a keyboard without accents or apostrophes; scripts where marks are letters stay."""
    # Devanagari, kana and Hangul come after U+0900: their marks make other words.
    loose = "".join(unicodedata.normalize("NFD", char) if char < "\u0900" or "\u1e00" <= char < "\u2000" else char
                    for char in phrase)  # fmt: skip
    bare = "".join(char for char in loose if not (unicodedata.category(char) == "Mn" and char < "\u0900"))
    for letter, typed in (("ı", "i"), ("ł", "l"), ("ø", "o"), ("'", "")):
        bare = bare.replace(letter, typed)
    return unicodedata.normalize("NFC", bare)


def _fold(text: str) -> str:
    """Normal form KC, one apostrophe, no case; the dot that folding leaves on a Turkish capital I goes."""
    normal = unicodedata.normalize("NFKC", "".join("'" if char in _APOSTROPHES else char for char in text[:MAX_CHARS]))
    return normal.casefold().replace("i\u0307", "i").replace("\r\n", "\n")


# ---- quotations ------------------------------------------------------------------------------------------------------


def _without_quotes(text: str) -> str:
    """The operator's own words, with each quotation, and what is struck out, as the one word QUOTED."""
    parts = text.replace("~~~", "```").split("```")
    own = "".join(QUOTED if number % 2 else part for number, part in enumerate(parts))
    lines = _STRUCK.sub(QUOTED, own).split("\n")
    return "\n".join(QUOTED if line.lstrip().startswith(">") else _line_without_quotes(line) for line in lines)


def _line_without_quotes(line: str) -> str:
    """A quotation that is left open goes to the end of its line."""
    kept: list[str] = []
    closing: frozenset[str] | None = None
    for at, char in enumerate(line):
        marks = char in _DOUBLE_QUOTES or (char == "'" and not _inside_word(line, at))
        if closing is not None:
            if marks and char in closing:
                closing = None
        elif marks:
            closing = _DOUBLE_QUOTES if char in _DOUBLE_QUOTES else _APOSTROPHES
            kept.append(QUOTED)
        else:
            kept.append(char)
    return "".join(kept)


def _inside_word(line: str, at: int) -> bool:
    return line[max(at - 1, 0) : at].isalnum() and line[at + 1 : at + 2].isalnum()


# ---- words -----------------------------------------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    """Words, breaks and question marks; characters of scripts that write without spaces are words of their own."""
    words: list[str] = []
    word = ""
    for at, char in enumerate(text):
        after = text[at + 1 : at + 2]
        before = text[max(at - 1, 0) : at]
        if _is_letter(char) or (char in "+#" and after.isdecimal()) or (char == "'" and word):
            word = _extended(words, word, char)
            continue
        if word:
            words.append(word)
            word = ""
        if char == ";" and "\u0370" <= before < "\u0400":
            words.append("?")
        elif char == "-" and _is_letter(before) and _is_letter(after):
            continue
        elif char not in " \t" and not _dresses(char, before):
            words.append(char)
    return [*words, word] if word else words


def _extended(words: list[str], word: str, char: str) -> str:
    """The word with one more letter; a number and a letter of a script without spaces begin anew."""
    if word and (_stands_alone(char) or _stands_alone(word[-1]) or char in "+#"):
        words.append(word)
        word = ""
    return word if char == "#" else word + char


def _is_letter(char: str) -> bool:
    return char == "_" or (unicodedata.category(char or " ")[0] in "LNM" and not "\ufe00" <= char <= "\ufe0f")


def _dresses(char: str, before: str) -> bool:
    """A variation selector or a skin colour behind an emoji."""
    dress = char == "\ufe0f" or "\U0001f3fb" <= char <= "\U0001f3ff"
    return dress and unicodedata.category(before or " ") in ("So", "Sk")


def _stands_alone(char: str) -> bool:
    """Han, kana and Hangul; phrases are made of their characters."""
    return (
        "\u3005" <= char <= "\u30ff" or "\u3400" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3"
        or "\uf900" <= char <= "\ufaff" or "\U00020000" <= char <= "\U0003ffff"
    )  # fmt: skip
