"""What one eval left behind: the record of the session, turn by turn, and the truth asked of the hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from oikos.domain import events as ev
from oikos.domain.inventory import Entity, Inventory
from oikos.domain.session import Phase, State
from oikos.evals.manifest import OperatorRule


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
    ticks: int = 0
    """How often the operator had to help it on; consents are counted apart."""


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
    unused: tuple[OperatorRule, ...] = ()
    """What the operator was to do and never had to."""

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

    def sessions(self) -> tuple[Trial, ...]:
        """The same trial, one session at a time, in the order they were opened."""
        ids = dict.fromkeys(turn.session_id for turn in self.turns)
        return tuple(replace(self, turns=tuple(turn for turn in self.turns if turn.session_id == id)) for id in ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What completed tasks asked of the operator (security/THREATS T35)."""

    tasks: int = 0
    """Turns that ended done."""
    approvals: int = 0
    """Consents on the way to them."""
    ticks: int = 0
    """Whatever else had to be done beyond the first approval of each: answers, pushes, further approvals."""


def effort(trial: Trial) -> Effort:
    """The effort of a trial; turns that ended otherwise belong to the task that is completed after them."""
    tasks = approvals = ticks = 0
    for session in trial.sessions():
        consents = helps = 0
        for turn in session.turns:
            consents += sum(isinstance(record.event, ev.ConsentGranted) for record in turn.records)
            helps += turn.ticks
            if turn.state.phase is Phase.DONE:
                tasks, approvals, ticks = tasks + 1, approvals + consents, ticks + helps + max(0, consents - 1)
                consents = helps = 0
    return Effort(tasks=tasks, approvals=approvals, ticks=ticks)


def helps(records: Sequence[ev.Recorded], session_id: str, pushes: Iterable[tuple[str, int]]) -> int:
    """How many of the operator's acts brought the agent on by something else than a consent or a no.

    A message is what the record says it was: an assent that opened a window is a consent, "stop" is none at all.
    """
    count = 0
    for pushed, seq in pushes:
        at = next((record.at for record in records if pushed == session_id and record.seq == seq), None)
        act = [record.event for record in records if record.at == at]
        if at is not None and not any(_counts_elsewhere(event) for event in act):
            count += 1
    return count


def _counts_elsewhere(event: ev.Event) -> bool:
    no = isinstance(event, ev.OperatorSaid) and event.reading in ("refusal", "halt")
    return no or isinstance(event, ev.ConsentGranted)
