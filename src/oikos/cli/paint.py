"""Words and colours of the terminal: the same for every command, plain when nobody looks (`NO_COLOR`, a pipe)."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TextIO

from oikos.domain.verdict import Risk
from oikos.domain.view import text_for_people

RISK_WORDS = {Risk.READ_ONLY: "read-only", Risk.CONFIG_MUTATION: "changes", Risk.DESTRUCTIVE: "destructive"}
"""The operator's words for a risk, everywhere."""
_COLOURS = {"dim": "2", "bold": "1", "red": "31", "green": "32", "yellow": "33", "blue": "36"}
_RISK_COLOURS = {Risk.READ_ONLY: "green", Risk.CONFIG_MUTATION: "yellow", Risk.DESTRUCTIVE: "red"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours, if they are wanted."""

    on: bool

    @classmethod
    def for_stream(cls, stream: TextIO | None = None) -> Paint:
        """Colours at a terminal, unless NO_COLOR or TERM=dumb."""
        out = stream or sys.stdout
        return cls(out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb")

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not styles:
            return text
        return f"\x1b[{';'.join(_COLOURS[style] for style in styles)}m{text}\x1b[0m"

    def risk(self, risk: Risk | str) -> str:
        """A risk in brackets, such as `[changes]`."""
        level = Risk(risk)
        return self(f"[{RISK_WORDS[level]}]", _RISK_COLOURS[level])


def safe(text: str) -> str:
    """Foreign text for the terminal: control, hidden and bidirectional characters made visible (THREATS T9, T16)."""
    return text_for_people(text)


def line(text: str) -> str:
    """As `safe`, and on one line: what others wrote adds no line to what is shown (THREATS T9)."""
    return safe(text).replace("\n", "␤").replace("\t", " ")


def seconds(value: float) -> str:
    """A duration as people read it: `0.3 s`, `41 s`, `3 min 12 s`, `2 h 05 min`."""
    if value < 10:
        return f"{value:.1f} s"
    if value < 60:
        return f"{value:.0f} s"
    if value < 3600:
        return f"{int(value // 60)} min {int(value % 60):02d} s"
    return f"{int(value // 3600)} h {int(value % 3600 // 60):02d} min"


def clock(value: float) -> str:
    """Minutes and seconds left, `27:10`."""
    return f"{int(value // 60)}:{int(value % 60):02d}"
