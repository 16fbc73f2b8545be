"""A process that only works: `python -m oikos.evals.worker`, on `$OIKOS_HOME`, until somebody kills it (SPEC R10.2)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from oikos.bootstrap import open_oikos
from oikos.config import load


async def _work() -> None:
    async with open_oikos(load()):
        await asyncio.Event().wait()


class Worker:
    """The process that works on an eval's home, for the harness to kill."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = {name: value for name, value in environ.items() if not name.startswith("OIKOS_")}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Begin, or begin again; its standard error is kept in the home."""
        with (self._home / "worker.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "oikos.evals.worker",
                env={**self._environ, "OIKOS_HOME": str(self._home)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def kill(self) -> None:
        """Kill -9."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


if __name__ == "__main__":
    asyncio.run(_work())
