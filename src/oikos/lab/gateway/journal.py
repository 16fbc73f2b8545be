"""The gateway's log: one JSON object per DNS question, HTTP request and TLS connection, for assertions."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


def _file(state: Path) -> Path:
    return state / "gateway.log"


class Journal:
    """The writing end."""

    def __init__(self, state: Path) -> None:
        self._out = _file(state).open("a", encoding="utf-8")

    def note(self, **entry: object) -> None:
        self._out.write(json.dumps({"t": round(time.time(), 3), **entry}) + "\n")
        self._out.flush()


def read(state: Path) -> list[dict[str, Any]]:
    """Every entry so far, oldest first."""
    file = _file(state)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
