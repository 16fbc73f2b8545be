"""Secrets that operators gave in answer to a question: one file each, for their owner only (SPEC R2.11).

The model and the record know a secret as `{{secret:NAME}}`; its value is put in at a run's start, into standard
input only, and is masked wherever it comes back.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from oikos.domain.errors import ConfigError

REFERENCE = re.compile(r"\{\{secret:([A-Za-z0-9_-]{1,64})\}\}")


class SecretFiles:
    """The secrets of one home."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def keep(self, name: str, value: str) -> str:
        """Store a value under a name, replacing an older one; returns its reference.

        Raises:
            ConfigError: the value is empty, or the name cannot be one.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            raise ConfigError(f"{name!r} is no name of a secret: letters, digits, _ and -")
        if not value:
            raise ConfigError(f"the secret {name} is empty; nothing was stored")
        self._directory.mkdir(mode=0o700, exist_ok=True)
        draft = self._directory / f".{name}.new"
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(value)
        draft.replace(self._directory / name)
        return "{{secret:" + name + "}}"

    def all(self) -> dict[str, str]:
        """Every value by name, for masking."""
        if not self._directory.is_dir():
            return {}
        return {file.name: file.read_text(encoding="utf-8") for file in self._directory.iterdir() if not file.name.startswith(".")}

    def fill(self, text: str) -> str:
        """Put the values in.

        Raises:
            ConfigError: a name that nobody gave a value.
        """

        def value(match: re.Match[str]) -> str:
            file = self._directory / match[1]
            if not file.is_file():
                raise ConfigError(f"nobody gave the secret {match[1]} yet: ask the operator for it")
            return file.read_text(encoding="utf-8")

        return REFERENCE.sub(value, text)
