"""What a runbook says: its intents, acts, symptoms with their remedies, checks and answers, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from oikos.adapters.model.learned import Take


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A way operators put it."""

    pattern: re.Pattern[str]
    said: str
    repair: bool
    """Whether they want something changed."""
    follow_up: bool = False
    """Only right after this runbook was used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Must:
    """What a look must show, or the remedy it belongs to does not apply."""

    exit: int | None = None
    slot: str = ""
    otherwise: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A slot that only the operator can fill when looking did not."""

    slot: str
    question: str
    table: str = ""
    column: str = ""
    """Where the choices come from, if there are any."""
    form: str = r".+"
    """What an answer must look like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One command and what is taken from its output."""

    line: int
    run: tuple[str, ...]
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    keep: str = ""
    """Slot that holds the whole output."""
    take: tuple[Take, ...] = ()
    must: Must | None = None
    ask: Ask | None = None
    timeout_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCheck:
    """A read that proves the goal."""

    run: tuple[str, ...]
    text: str = ""
    exit: int = 0
    take: tuple[Take, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One sentence of an answer; left out when a value is missing, or when none was shown by a run."""

    say: str
    each: str = ""
    """Table: once for each of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A failure that is known by its text, and what repairs it."""

    name: str
    text: str
    title: str
    look: tuple[Act, ...] = ()
    fix: tuple[Act, ...] = ()
    undo: tuple[str, ...] = ()
    operator: str = ""
    """What only the operator can do."""
    tries: int = 1
    say: str = ""
    """What a look alone says about it."""
    repaired: str = ""
    """What the answer says when it was repaired."""
    checks: tuple[PlanCheck, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A titled list of acts."""

    title: str
    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """How what was found is put right."""

    goal: str
    evidence: tuple[str, ...]
    apply: Stage
    checks: tuple[PlanCheck, ...]
    answer: tuple[Clause, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    rows: str = ""
    """Table whose rows are what can be broken; empty: there is one thing only."""
    key: str = ""
    """Column that names a row, and the slot the operator names it with."""
    healthy: tuple[Take, ...] = ()
    """Take the slot `healthy` when nothing is wrong."""
    well: tuple[Clause, ...] = ()
    """The answer then."""
    diagnose: tuple[Act, ...] = ()
    """What is read after a failure."""
    more: tuple[Act, ...] = ()
    """What is read when no symptom fits."""
    symptoms: tuple[Symptom, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A question that the inventory alone answers (SPEC R2.7)."""

    kinds: Mapping[str, tuple[str, ...]]
    """Kinds of entities by the word operators use; an empty tuple means all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """One runbook."""

    name: str
    title: str
    intents: tuple[Intent, ...]
    goal: str
    answer: tuple[Clause, ...]
    locate: Stage | None = None
    found: str = ""
    """Slot that is known when the right machine was found."""
    look: tuple[Act, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    ttl_s: int | None = None
    repair: Repair | None = None
    listing: Listing | None = None
