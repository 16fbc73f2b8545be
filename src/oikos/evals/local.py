"""The world `local`: one target, `box`, which is a new directory of this machine; needs neither root nor the lab.

Commands of its scripts stay below `{workshop}`: what a gate that fails would let through must not hurt the machine.
The directory is no part of the home, for what names Oikos's home is another matter (SPEC R3.13).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from oikos.bootstrap import new_id
from oikos.domain.errors import OikosError
from oikos.domain.inventory import AccessPath, Entity, Transport

SLUG = "box"


class LocalScene:
    """A directory and a target that reaches it."""

    prompt = followup = ""

    def __init__(self, directory: Path, seed: int, files: Sequence[tuple[str, str]] = ()) -> None:
        self.seed = seed
        self._directory = directory
        self.entities: Sequence[Entity] = (
            Entity(id=new_id(), kind="host", slug=SLUG, access=AccessPath(transport=Transport.LOCAL), lab=True),
        )
        directory.mkdir(exist_ok=True)
        for name, text in files:
            file = directory / name.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    @property
    def values(self) -> Mapping[str, str]:
        """`host` and `workshop`."""
        return {"host": SLUG, "workshop": str(self._directory)}

    def truth(self) -> Mapping[str, object]:
        """The values; the directory is asked by `target_state`."""
        return dict(self.values)

    def check(self, phase: str) -> Sequence[str]:
        """A directory has no story of its own."""
        return (f"the world local has no {phase}",)

    def shell(self, host: str, command: str) -> tuple[int, str]:
        """Exit code and standard output of a command in the directory."""
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def inject(self, host: str, fault: str, words: Sequence[str]) -> None:
        """This machine is nothing to play with."""
        raise OikosError(f"the world local takes no fault, such as {fault}")

    def logs(self) -> Mapping[str, str]:
        """What lies in the directory."""
        return {"workshop": self.shell(SLUG, "find . -ls; tail -n 100 $(find . -type f) /dev/null")[1]}

    def close(self) -> None:
        """Remove the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)
