"""What `decide` answers: events to append, with a word to the operator, or a refusal."""

from __future__ import annotations

from oikos.domain.errors import Refusal
from oikos.domain.events import Event
from oikos.domain.value import dataclass


@dataclass(frozen=True, slots=True)
class Decided:
    """The events of one decision; they are appended together or not at all."""

    events: tuple[Event, ...]
    notice: str = ""
    """One line for whoever acted."""


Decision = Decided | Refusal
