"""Reads labelled commands: columns id, command, target_context, label, why, source_kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from oikos.domain.verdict import Risk

_ESCAPES = {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One labelled command."""

    id: str
    command: str
    label: Risk
    why: str
    kind: str
    corpus: str

    @property
    def borderline(self) -> bool:
        """Whether the label is defensible either way."""
        return "borderline" in self.why


def corpora_folder() -> Path | None:
    """The shared corpora beside this checkout, or None."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "policy" / "corpora"
    return folder if folder.is_dir() else None


def read_rows(path: Path) -> list[Row]:
    """The rows of one file; lines that a raw line break has torn apart are left out."""
    rows = []
    for line in path.read_bytes().decode("utf-8").split("\n")[1:]:
        fields = line.split("\t")
        if len(fields) != 6 or fields[3] not in set(Risk) or not fields[1]:
            continue
        command = re.sub(r"\\(.)", lambda found: _ESCAPES[found.group(1)], fields[1])
        label, why, kind = Risk(fields[3]), fields[4], fields[5]
        rows.append(Row(id=fields[0], command=command, label=label, why=why, kind=kind, corpus=path.stem))
    return rows
