"""How a node's command ends when it refuses."""

from __future__ import annotations


class Die(Exception):
    """The text goes to standard error as it is, the code is the exit status."""

    def __init__(self, text: str, code: int = 255) -> None:
        super().__init__(text)
        self.code = code


def bad_parameter(name: str, why: str) -> Die:
    """The API's answer to a value it does not take."""
    return Die(f"400 Parameter verification failed.\n{name}: {why}")
