"""Plans: ordered steps and checks for one goal, never edited once proposed, and their digest.

The digest covers what changes effect (targets with their host keys, exact command bytes, stdin, the goal,
limits) and not the titles, so that rewording asks nobody again and a changed byte always does
(SPEC R3.6, security/THREATS T6, T7).
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Iterator
from typing import Literal

from oikos.domain.run import DEFAULT_TIMEOUT_S
from oikos.domain.scripts import Script
from oikos.domain.value import dataclass, replace
from oikos.domain.verdict import Effect, EffectKind, NamedObject, Risk
from oikos.domain.view import text_for_people

GUARDED = frozenset(
    {
        EffectKind.UNCLASSIFIED, EffectKind.SENSITIVE, EffectKind.EGRESS, EffectKind.PRIVILEGE, EffectKind.CONNECTIVITY,
        EffectKind.IRREVERSIBLE, EffectKind.REMOTE_CODE, EffectKind.TARGET_ESCAPE, EffectKind.SELF,
    }
)  # fmt: skip
"""Effects that need more than a window; `outage` joins them when nothing in the plan names its object (SPEC R3.5)."""


class PlanStatus(enum.StrEnum):
    """States of a plan (SPEC R2.9)."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    """Read-only throughout: runs without approval."""
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CLOSED = "closed"


LIVE = frozenset({PlanStatus.PROPOSED, PlanStatus.ACCEPTED, PlanStatus.APPROVED})


class StepStatus(enum.StrEnum):
    """States of a step (SPEC §0)."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    REPLACED = "replaced"


FINISHED_STEPS = frozenset({StepStatus.DONE, StepStatus.FAILED, StepStatus.SKIPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """The pre-authorisation holds whenever its command comes up."""

    kind: Literal["always"] = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterFailed:
    """The pre-authorisation holds only once step `step` has failed."""

    step: int
    kind: Literal["after_failed"] = "after_failed"


Condition = Always | AfterFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class PreAuthorisation:
    """Leave to run one destructive command without asking, if the approver ticks it (SPEC R3.4)."""

    object: NamedObject
    max_uses: int = 1
    condition: Condition = Always()
    created: str = ""
    """Name of what the plan creates, when the object is that: only what this plan has made is meant."""

    @property
    def phrase(self) -> str:
        """What is typed to tick it: verb, space, short object name."""
        return phrase_of(self.object)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommand:
    """A command of a step, with what the server's own classification said of it."""

    text: str
    stdin: str | None = None
    risk: Risk = Risk.CONFIG_MUTATION
    effects: tuple[Effect, ...] = ()
    objects: tuple[NamedObject, ...] = ()
    canonical: str = ""
    why: str = ""
    """The decisive reason, for the card."""
    preauthorise: PreAuthorisation | None = None
    scripts: tuple[Script, ...] = ()
    """Files that it runs, with what they held when the plan was proposed."""

    @property
    def guarded(self) -> bool:
        """Whether it carries an effect that a window alone does not cover."""
        return any(effect.kind in GUARDED for effect in self.effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step; its number is unique in the session, across generations (SPEC R2.10)."""

    seq: int
    title: str
    target: str
    """Slug of the target, or the NAME of something the plan creates."""
    target_id: str
    """Entity id; empty while what the plan creates does not exist yet."""
    commands: tuple[PlannedCommand, ...] = ()
    undo: str = ""

    @property
    def risk(self) -> Risk:
        """The worst command; a step without commands counts as a change (SPEC R2.4)."""
        return max((command.risk for command in self.commands), default=Risk.CONFIG_MUTATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A read-only command and what it must show; judged by the server (SPEC §0)."""

    target: str
    target_id: str
    command: str
    expect_exit: int | None = 0
    expect_text: str = ""
    """Literal text that standard output must contain; empty: not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creates:
    """Something the plan will create, so that later steps may name it (SPEC R2.3)."""

    name: str
    kind: str
    on_target_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An offer to keep a guest as it is before the plan's first change of it (SPEC R5.12)."""

    target_id: str
    target: str
    """Slug of the guest."""
    node_id: str
    node: str
    """Slug of the node that takes it."""
    tool: str
    """`pct` or `qm`."""
    guest: str
    """Its id on the node."""

    def command(self, session_id: str, generation: int) -> str:
        """What takes it, on the node."""
        return f"{self.tool} snapshot {self.guest} {self._name(session_id, generation)}"

    def way_back(self, session_id: str, generation: int) -> str:
        """What puts the guest back, on the node; whatever came later is lost."""
        start = " --start 1" if self.tool == "pct" else ""
        return f"{self.tool} rollback {self.guest} {self._name(session_id, generation)}{start}"

    def _name(self, session_id: str, generation: int) -> str:
        """Letters, digits and dashes, at most 40 characters: what Proxmox VE takes."""
        return f"oikos-{session_id[:12]}-{generation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A machine of the plan and the host keys it had when the plan was proposed."""

    target_id: str
    slug: str
    host_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One generation's steps and checks."""

    generation: int
    goal: str
    steps: tuple[Step, ...]
    checks: tuple[Check, ...] = ()
    creates: tuple[Creates, ...] = ()
    scope: tuple[Scope, ...] = ()
    timeout_s: float = DEFAULT_TIMEOUT_S
    snapshots: tuple[Snapshot, ...] = ()
    """What can be kept before the first change; taken only if the approver chooses so."""

    @property
    def risk(self) -> Risk:
        """The worst step."""
        return max((step.risk for step in self.steps), default=Risk.CONFIG_MUTATION)

    @property
    def needs_approval(self) -> bool:
        """Whether a person must decide: anything but reads without a guarded effect (SPEC R2.4)."""
        return self.risk is not Risk.READ_ONLY or any(self.guarded(command.effects) for _, command in self.commands())

    def commands(self) -> Iterator[tuple[Step, PlannedCommand]]:
        """Every command with its step, in order."""
        for step in self.steps:
            for command in step.commands:
                yield step, command

    def guarded(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """The effects that a window does not cover; an `outage` is one unless the plan names its object (SPEC R3.5)."""
        text = " ".join(" ".join((s.title, s.target, *(command.text for command in s.commands))) for s in self.steps)

        def needs_more(effect: Effect) -> bool:
            if effect.kind is EffectKind.OUTAGE:
                return not names(text, effect.object)
            return effect.kind in GUARDED

        return tuple(effect for effect in effects if needs_more(effect))

    def declares(self, target_id: str, command: str, stdin: str | None) -> bool:
        """Whether exactly this command on this target is in the plan, byte for byte."""
        return bool(self.planned(target_id, command, stdin))

    def planned(self, target_id: str, command: str, stdin: str | None) -> tuple[PlannedCommand, ...]:
        """Every place where exactly this command on this target is in the plan."""
        return tuple(
            planned
            for step, planned in self.commands()
            if step.target_id == target_id and (planned.text, planned.stdin) == (command, stdin)
        )

    def machines(self) -> tuple[str, ...]:
        """Entity ids of the machines in scope."""
        return tuple(entry.target_id for entry in self.scope)

    def destructive_items(self) -> tuple[tuple[Step, PlannedCommand], ...]:
        """Commands an approver may tick, in order; item numbers are positions in this tuple, from 1."""
        return tuple((step, command) for step, command in self.commands() if command.preauthorise is not None)

    def bound(self, made: Scope) -> Plan:
        """The plan once what it creates has an entity: its name means that entity everywhere.

        The digest that was approved is the one of the plan as it was proposed.
        """

        def placed(place: Step | Check) -> bool:
            return not place.target_id and place.target == made.slug

        return replace(
            self,
            steps=tuple(replace(s, target_id=made.target_id) if placed(s) else s for s in self.steps),
            checks=tuple(replace(c, target_id=made.target_id) if placed(c) else c for c in self.checks),
            scope=(*self.scope, made),
        )

    def digest(self) -> str:
        """SHA-256 over what changes effect."""
        return _digest(
            [
                "goal", self.goal, "timeout", repr(self.timeout_s),
                *(word for entry in self.scope for word in (
                    "scope", entry.target_id, str(len(entry.host_keys)), *sorted(entry.host_keys))),
                *(word for made in self.creates for word in ("creates", made.name, made.kind, made.on_target_id)),
                *(word for kept in self.snapshots for word in ("snapshot", kept.target_id, kept.node_id, kept.guest)),
                *(word for step in self.steps for word in _step_words(step, self.steps[0].seq)),
                *(word for check in self.checks for word in (
                    "check", check.target_id or check.target, check.command, repr(check.expect_exit),
                    check.expect_text)),
            ]
        )  # fmt: skip


def names(text: str, thing: str) -> bool:
    """Whether `text` names the object as a word of its own; a unit with or without its suffix."""
    word = re.escape(thing.removesuffix(".service"))
    return bool(thing) and re.search(rf"(?<![\w.-]){word}(?:\.service)?(?![\w-]|\.\w)", text) is not None


def phrase_of(obj: NamedObject) -> str:
    """The typed confirmation for an object: `destroy 131` (SPEC §0)."""
    name = obj.name.rstrip("/").rpartition("/")[2] or obj.name
    seen = text_for_people(name).replace("\n", "␤").replace("\t", "␉")  # what cannot be seen cannot be typed
    return f"{obj.verb or 'confirm'} {seen}".strip()


def _step_words(step: Step, first: int) -> Iterator[str]:
    yield from ("step", step.target_id or step.target)
    for command in step.commands:
        yield from ("command", command.text, "-" if command.stdin is None else "+" + command.stdin)
        yield from (word for script in command.scripts for word in ("script", script.path, script.sha256))
        if command.preauthorise is not None:
            pre = command.preauthorise
            # relative, so that the same plan has the same digest wherever the session's count of steps stands
            after = str(pre.condition.step - first) if isinstance(pre.condition, AfterFailed) else "always"
            yield from ("preauthorise", pre.object.kind, pre.object.name, str(pre.max_uses), after)
            if pre.created:
                yield from ("created", pre.created)


def _digest(words: list[str]) -> str:
    hasher = hashlib.sha256()
    for word in words:
        raw = word.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(raw) + raw)
    return hasher.hexdigest()
