"""What Oikos knew of a target's spool when it sent a start: the proof behind "never started" (durable/NOTES, part 2).

One small file per run that was sent and is not acknowledged, in the home of this Oikos. It is on disk before a byte
of the start goes out. A run without a note was never sent from this home.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """The boot and the spool that the start was sent to."""

    boot: str
    epoch: str


class Notes:
    """A directory of notes, one per run id."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def put(self, run_id: str, note: Note) -> None:
        """Durable when it returns.

        Raises:
            OSError: it could not be written; nothing may be sent.
        """
        await asyncio.to_thread(self._put, run_id, note)

    async def get(self, run_id: str) -> Note | None:
        """None: never sent from here."""
        return await asyncio.to_thread(self._get, run_id)

    async def drop(self, run_id: str) -> None:
        """The outcome is durable elsewhere."""
        await asyncio.to_thread((self._directory / run_id).unlink, missing_ok=True)

    def _put(self, run_id: str, note: Note) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        final = self._directory / run_id
        draft = final.with_suffix(".t")
        with draft.open("w", encoding="ascii") as file:
            file.write(f"{note.boot} {note.epoch}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(final)
        directory = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _get(self, run_id: str) -> Note | None:
        try:
            words = (self._directory / run_id).read_text(encoding="ascii").split()
        except FileNotFoundError:
            return None
        # Unreadable means: it was sent, and nothing is proven.
        return Note(boot=words[0], epoch=words[1]) if len(words) == 2 else Note(boot="", epoch="")
