"""The text guard: characters that make a reader see another text than the shell does (LABELS, last table rows)."""

from __future__ import annotations

import re
import unicodedata

from oikos.domain.view import UNSEEN

# Everything but printable ASCII, blank, tab and newline is looked at more closely.
_ODD = re.compile(r"[^\t\n\x20-\x7e]")
_SPACES = frozenset("\u00a0\u1680\u202f\u205f\u3000\u2028\u2029\u0085\ufeff") | {chr(c) for c in range(0x2000, 0x200B)}


def deceptive(text: str, quoted: list[tuple[int, int]] | None = None) -> tuple[int, str] | None:
    """First deceptive character as (offset, sentence), or None.

    Control and invisible characters, all that `domain/view.py` makes visible among them, are deceptive everywhere; odd
    spaces and look-alike operators only outside `quoted`, the character ranges of quoted data.
    """
    for found in _ODD.finditer(text):
        char, at = found.group(), found.start()
        name = unicodedata.name(char, f"U+{ord(char):04X}").lower()
        if UNSEEN.match(char) or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn"):
            return at, f"The text holds a control or invisible character ({name}); reader and shell see different text."
        outside = not any(start <= at < end for start, end in quoted or ())
        if outside and (char in _SPACES or unicodedata.normalize("NFKC", char) in tuple(";|&<>$`'\"\\(){} -/")):
            return at, f"The text holds a character that only looks like shell syntax ({name})."
    return None
