"""The one exception of the lab: a sentence for a person."""

from __future__ import annotations


class LabError(Exception):
    """Something the lab could not do. The message is one line: what, why, and what to do about it."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
