"""The classifier's verdict: how risky a command text is, what else it does, and why.

This module is the interface between `oikos.policy`, which makes verdicts, and the gate, the plan and
every face, which read them. It holds no knowledge of any program.
"""

from __future__ import annotations

import enum

from oikos.domain.value import dataclass


class Risk(enum.StrEnum):
    """How dangerous a command is; ordered, so that `max()` folds findings (SPEC §0)."""

    READ_ONLY = "read_only"
    CONFIG_MUTATION = "config_mutation"
    DESTRUCTIVE = "destructive"

    @property
    def rank(self) -> int:
        """0, 1 or 2, from harmless to destructive."""
        return _RANK[self]

    def __lt__(self, other: str) -> bool:
        return self.rank < Risk(other).rank

    def __le__(self, other: str) -> bool:
        return self.rank <= Risk(other).rank

    def __gt__(self, other: str) -> bool:
        return self.rank > Risk(other).rank

    def __ge__(self, other: str) -> bool:
        return self.rank >= Risk(other).rank


_RANK = {Risk.READ_ONLY: 0, Risk.CONFIG_MUTATION: 1, Risk.DESTRUCTIVE: 2}


class EffectKind(enum.StrEnum):
    """Marks beside the risk (SPEC R4.4)."""

    UNCLASSIFIED = "unclassified"
    SENSITIVE = "sensitive"
    EGRESS = "egress"
    PRIVILEGE = "privilege"
    OUTAGE = "outage"
    IRREVERSIBLE = "irreversible"
    CONNECTIVITY = "connectivity"
    TARGET_ESCAPE = "target_escape"
    INTERACTIVE = "interactive"
    REMOTE_CODE = "remote_code"
    SELF = "self"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect and the object or machine it names."""

    kind: EffectKind
    object: str = ""
    """What it concerns: a unit, a guest, a path, a host; empty when the command names none."""


class HopKind(enum.StrEnum):
    """How a wrapper reaches the machine its inner command runs on."""

    SSH = "ssh"
    PCT = "pct"
    """`pct exec ID`, `pct enter ID`, `lxc-attach -n ID` on a Proxmox node."""
    QM = "qm"
    """`qm guest exec ID`."""
    DOCKER = "docker"
    """`docker|podman|nerdctl exec NAME`, `docker compose exec SERVICE`."""
    KUBE = "kube"
    LXC = "lxc"
    """`lxc exec NAME`, `incus exec NAME`."""
    MACHINE = "machine"
    """`machinectl shell`, `systemd-run -M`, `nsenter -t PID`, `chroot DIR`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One step from the machine that receives the text to the machine a command runs on."""

    kind: HopKind
    name: str
    """The literal id, name or address; empty when it is not known before the shell runs."""

    @property
    def resolved(self) -> bool:
        """Whether the text names the machine literally."""
        return bool(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One finding: the rule that spoke, where in the text, and what it said."""

    rule: str
    """Stable dotted id, such as `redirect.truncate` or `opt.unknown.sort.--foo`."""
    risk: Risk
    span: tuple[int, int]
    """Half-open range of *characters* of the classified text."""
    text: str
    """One sentence for an operator."""
    via: tuple[str, ...] = ()
    """Wrappers around the command, outermost first, such as `("ssh web1", "sudo")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One simple command and the machine it runs on, found by unwrapping (SPEC R3.5)."""

    argv: tuple[str | None, ...]
    """The words after the shell's quoting; `None` for a word only the shell will know."""
    place: tuple[Hop, ...]
    """Hops from the run's target, outermost first; empty: on the target itself."""
    risk: Risk
    span: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedObject:
    """A guest, dataset, container, service or file that a rule says the command acts on."""

    kind: str
    """`guest`, `container`, `service`, `dataset`, `snapshot`, `volume`, `device`, `file`, `database`, `host` …"""
    name: str
    place: tuple[Hop, ...] = ()
    risk: Risk = Risk.READ_ONLY
    verb: str = ""
    """What is done to it, one word, for the typed phrase: `destroy`, `rollback`, `delete` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the classifier says of one command text. Immutable; equal texts give equal verdicts."""

    risk: Risk
    effects: tuple[Effect, ...] = ()
    """Sorted and without repeats."""
    reasons: tuple[Reason, ...] = ()
    """The decisive finding first; empty for a text with no finding (then `risk` is read_only)."""
    actions: tuple[Action, ...] = ()
    """Every (machine, command) pair, in the order of the text."""
    objects: tuple[NamedObject, ...] = ()
    advice: str = ""
    """For an interactive program: the non-interactive way (SPEC R3.11)."""
    pipeline_hides_failure: bool = False
    """A pipeline whose earlier stage may fail unseen (SPEC R5.4)."""
    canonical: str = ""
    """The text with quoting and white space removed, for the duplicate rule (SPEC R3.10)."""
    parser: str = ""
    """Name and version of the parser that was used, such as `shfmt 3.14.1`."""
    knowledge: str = ""
    """Digest of the rule files in force."""

    def destroyed(self) -> tuple[NamedObject, ...]:
        """What is destroyed for all that the text says, each once."""
        return tuple(dict.fromkeys(named for named in self.objects if named.risk is Risk.DESTRUCTIVE and named.name))

    def destroys_only(self, kind: str, name: str) -> bool:
        """Whether nothing but this object is destroyed: by one command of the text, every word of which is known."""
        doing = [action for action in self.actions if action.risk is Risk.DESTRUCTIVE]
        known = all(None not in action.argv for action in doing)
        return len(doing) <= 1 and known and {(one.kind, one.name) for one in self.destroyed()} == {(kind, name)}

    def has(self, kind: EffectKind) -> bool:
        """Whether any effect is of this kind."""
        return any(effect.kind is kind for effect in self.effects)
