"""Secrets that operators gave in answer to a question: one file each, for their owner only (SPEC R2.11).

The model and the record know a secret as `{{secret:NAME}}` in standard input and `{{secret_file:NAME}}` in a command;
its value is put in at a run's start, into standard input or into a file, and is masked wherever it comes back.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from oikos.domain.errors import ConfigError
from oikos.domain.mask import Secrets
from oikos.domain.secret_files import IN_STDIN, MAX_BYTES


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
        self._fd = -1
        """Of the directory, once it was there."""
        self._looking = threading.Lock()

    def keep(self, name: str, value: str) -> str:
        """Store a value under a name, replacing an older one; returns its reference.

        Raises:
            ConfigError: the value is empty or holds a NUL, or the name cannot be one.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            raise ConfigError(f"{name!r} is no name of a secret: letters, digits, _ and -")
        if not value:
            raise ConfigError(f"the secret {name} is empty; nothing was stored")
        if "\0" in value:
            raise ConfigError(f"the secret {name} holds a NUL character; nothing was stored")
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
        return {file.name: _read(file) for file in self._directory.iterdir() if not file.name.startswith(".")}

    def changed(self) -> bool:
        """Whether there may be something new to `refresh`: asks the kernel's memory, so it may be called anywhere."""
        try:
            found = os.fstat(self._fd)
        except OSError:  # not looked yet, or looked at by another thread just now
            return True
        return found.st_mtime_ns != self._seen_ns or found.st_nlink == 0

    def refresh(self) -> None:
        """Learn what another process was given since the last look."""
        with self._looking:
            if (self._fd < 0 or os.fstat(self._fd).st_nlink == 0) and not self._open():
                return
            changed_ns = os.fstat(self._fd).st_mtime_ns
            if changed_ns != self._seen_ns:
                self._learn(self.all())
                self._seen_ns = changed_ns

    def _open(self) -> bool:
        """Hold the directory, made if need be: one that is not there cannot be asked whether it changed."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:  # a full disk, a home that cannot be written
            if not self._directory.exists():
                return False
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._seen_ns = fd, -1
        return True

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def _learn(self, values: Mapping[str, str]) -> None:
        if self._known is not None:
            self._known.learn(values)

    def fill(self, text: str) -> str:
        """Put the values in.

        Raises:
            ConfigError: a name that nobody gave a value.
        """
        return IN_STDIN.sub(lambda match: self._value(match[1]), text)

    def files(self, names: Sequence[str]) -> dict[str, str]:
        """What secret files hold, by name.

        Raises:
            ConfigError: a name that nobody gave a value, or a value that no file can be made of.
        """
        found = {name: self._value(name) for name in names}
        for name, value in found.items():
            if "\0" in value:
                raise ConfigError(f"the secret {name} holds a NUL character: ask the operator for it again")
            if len(value.encode()) > MAX_BYTES:
                raise ConfigError(f"the secret {name} is longer than {MAX_BYTES} bytes: too long for a secret file")
        return found

    def _value(self, name: str) -> str:
        file = self._directory / name
        if not file.is_file():
            raise ConfigError(f"nobody gave the secret {name} yet: ask the operator for it")
        value = _read(file)
        self._learn({name: value})  # it may be newer than the last look
        return value


def _read(file: Path) -> str:
    """To the byte: `read_text` would change the ends of lines."""
    return file.read_bytes().decode()
