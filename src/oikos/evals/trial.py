"""What one eval left behind: the record of the session, turn by turn, and the truth asked of the hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from oikos.domain import events as ev
from oikos.domain.inventory import Entity, Inventory
from oikos.domain.session import State


class Scene(Protocol):
    """A built world, for the harness: hosts that can be asked the truth past the agent."""

    @property
    def seed(self) -> int:
        """What its values were drawn from."""
        ...

    @property
    def prompt(self) -> str:
        """What its operator asks."""
        ...

    @property
    def followup(self) -> str:
        """What its operator asks next."""
        ...

    @property
    def entities(self) -> Sequence[Entity]:
        """Its hosts, with their access paths."""
        ...

    @property
    def values(self) -> Mapping[str, str]:
        """What scripts and messages may name: `host` is the slug of the first host."""
        ...

    def truth(self) -> Mapping[str, object]:
        """What is so, asked of the hosts themselves."""
        ...

    def check(self, phase: str) -> Sequence[str]:
        """Discrepancies from `before` or `after`."""
        ...

    def shell(self, host: str, command: str) -> tuple[int, str]:
        """Exit code and standard output of a command on a host's console, not through Oikos."""
        ...

    def inject(self, host: str, fault: str, words: Sequence[str]) -> None:
        """Put a fault into a host."""
        ...

    def logs(self) -> Mapping[str, str]:
        """What the hosts themselves recorded, by a name for each; kept when an eval fails."""
        ...

    def close(self) -> None:
        """Take it down."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of the operator and everything until the session rested."""

    text: str
    state: State
    """When it rested."""
    records: tuple[ev.Recorded, ...]
    session_id: str = ""
    truth: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of a manifest."""

    turns: tuple[Turn, ...]
    inventory: Inventory
    outputs: Mapping[str, bytes]
    """Standard output and error of each run, concatenated."""
    ticks: int
    """How often the operator had to help it on, beyond prompt and follow-ups; consents are counted apart."""
    hosts: frozenset[str] = frozenset()
    """Slugs that the world made."""
    files: bytes = b""
    """Everything the home keeps on disk, but what is meant to hold secrets."""
    audit: tuple[str, ...] = ()
    """Problems of the record; must be empty."""
    crashes: int = 0
    """How often the working process was killed."""
    faults: int = 0
    """How many faults came after an event."""

    @property
    def consents(self) -> int:
        """How often the operator gave consent."""
        return sum(isinstance(event, ev.ConsentGranted) for event in self.events())

    def records(self) -> Iterator[ev.Recorded]:
        """All events, in order."""
        for turn in self.turns:
            yield from turn.records

    def events(self) -> Iterator[ev.Event]:
        """All events, in order, without their envelopes."""
        for record in self.records():
            yield record.event

    def calls(self, name: str) -> tuple[int, ...]:
        """Seqs of the responses that call a tool, one entry a call."""
        return tuple(
            record.seq
            for record in self.records()
            if isinstance(record.event, ev.AssistantSaid)
            for call in record.event.calls
            if call.name == name
        )

    def started(self) -> tuple[ev.RunStarted, ...]:
        """Runs of the agent; probes are Oikos's own."""
        return tuple(e for e in self.events() if isinstance(e, ev.RunStarted) and e.authority != "probe")
