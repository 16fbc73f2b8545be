"""Secrets that operators gave in answer to a question: one file each, for their owner only (SPEC R2.11).

The model and the record know a secret as `{{secret:NAME}}`; its value is put in at a run's start, into standard
input only, and is masked wherever it comes back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from oikos.domain.errors import ConfigError
from oikos.domain.mask import Secrets

REFERENCE = re.compile(r"\{\{secret:([A-Za-z0-9_-]{1,64})\}\}")


class KnownSecrets(Secrets):
    """The values Oikos holds; more may become known while it runs."""

    def learn(self, values: Mapping[str, str]) -> None:
        """Mask these too, from now on; nothing is ever forgotten."""
        more = Secrets(values)
        self._names = self._names | more._names
        self.longest_bytes = max(self.longest_bytes, more.longest_bytes)


class SecretFiles:
    """The secrets of one home."""

    def __init__(self, directory: Path, known: KnownSecrets | None = None) -> None:
        self._directory = directory
        self._known = known
        self._seen_ns = -1

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
        self._learn({name: value})
        return "{{secret:" + name + "}}"

    def all(self) -> dict[str, str]:
        """Every value by name, for masking."""
        if not self._directory.is_dir():
            return {}
        return {
            file.name: file.read_text(encoding="utf-8")
            for file in self._directory.iterdir()
            if not file.name.startswith(".")
        }

    def refresh(self) -> None:
        """Learn what another process was given since the last look."""
        try:
            changed_ns = self._directory.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if changed_ns != self._seen_ns:
            self._seen_ns = changed_ns
            self._learn(self.all())

    def _learn(self, values: Mapping[str, str]) -> None:
        if self._known is not None:
            self._known.learn(values)

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
