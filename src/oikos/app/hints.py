"""Known symptoms and how one recovers from them (SPEC R1.6). Hints inform; they never act."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CLASSES = (
    "transient",
    "wrong assumption",
    "missing prerequisite",
    "half-done state",
    "environmental block",
    "already satisfied",
    "unknown",
)
"""Recovery classes (domain/PROXMOX §4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """One symptom: every text of `all` occurs in the output, and one of `any` where there are some."""

    id: str
    recovery: str
    text: str
    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    on_success: bool = False
    """Also when the exit code is 0: some commands lie (domain/PROXMOX §0)."""

    def fits(self, output: str) -> bool:
        """Whether the output shows it."""
        return all(text in output for text in self.all) and (not self.any or any(text in output for text in self.any))


class Hints:
    """The table: read at the start, understood when a run first printed something."""

    def __init__(self) -> None:
        self._text = Path(__file__).with_name("hints.toml").read_text(encoding="utf-8")

    @cached_property
    def table(self) -> tuple[Hint, ...]:
        """All of them, in the order of the file."""
        return tuple(
            Hint(
                id=name,
                recovery=row["class"],
                text=row["text"],
                all=tuple(row.get("all", ())),
                any=tuple(row.get("any", ())),
                on_success=row.get("on_success", False),
            )
            for name, row in tomllib.loads(self._text).items()
        )

    def find(self, output: str, *, failed: bool) -> Hint | None:
        """The first symptom that the output shows."""
        if not output.strip():
            return None
        for hint in self.table:
            if (failed or hint.on_success) and hint.fits(output):
                return hint
        return None
