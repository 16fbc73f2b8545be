"""What Oikos knows of the fleet: entities, how they are reached, facts with provenance, and name resolution."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import field

from oikos.domain.run import Identity
from oikos.domain.value import dataclass

NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
"""Grammar of slugs and host names (security/THREATS T2): no leading dash, nothing a shell could read."""


class Mode(enum.StrEnum):
    """What may happen on a target (SPEC R3.9); set by an admin only."""

    LOCKED = "locked"
    LOOK = "look"
    ASK = "ask"


class Transport(enum.StrEnum):
    """How a command reaches a target."""

    LOCAL = "local"
    SSH = "ssh"
    PCT = "pct"
    DOCKER = "docker"


class Become(enum.StrEnum):
    """How the login user becomes root."""

    NONE = "none"
    SUDO = "sudo"


class Support(enum.StrEnum):
    """What a target can do for durable runs (SPEC R5.11)."""

    FULL = "full"
    ATTENDED = "attended"
    NONE = "none"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPath:
    """One way in. Written by operators only, never by a model (SPEC R2.1)."""

    transport: Transport
    address: str = ""
    port: int = 22
    user: str = "root"
    key: str = ""
    """Path of the private key; empty: the agent or the user's default keys."""
    via: str = ""
    """Slug of the jump host (ssh) or of the node or host that holds the guest (pct, docker)."""
    guest: str = ""
    """Container id or name, for pct and docker."""
    become: Become = Become.NONE
    become_password: str = ""
    """Reference of the sudo password (`env:NAME` or `file:PATH`), never the password."""
    host_keys: tuple[str, ...] = ()
    """Enrolled public host keys, OpenSSH form `TYPE BASE64`."""
    support: Support = Support.UNTESTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalId:
    """An identity some source gave: the layer that survives renaming (domain/PROXMOX §6.2)."""

    source: str
    namespace: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One thing of the fleet; its id is stable, its names are labels."""

    id: str
    kind: str
    """`host`, `node`, `vm`, `lxc`, `container`, `service`, `app`, `storage`, `backup_job` …"""
    slug: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    parent: str = ""
    """Entity id of the host or node it runs on."""
    mode: Mode = Mode.ASK
    access: AccessPath | None = None
    identity: Identity | None = None
    """What the identity probe found when the target was enrolled."""
    external: tuple[ExternalId, ...] = ()
    gone: bool = False
    lab: bool = False
    """Made by the lab; only then may the channel `script` give consent (SPEC R3.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One observed, declared or imported attribute value; append-only (SPEC R6.1)."""

    entity_id: str
    key: str
    value: str
    """The value as JSON text."""
    source: str
    """`run:ID`, `operator:ID`, `import:NAME`."""
    observed_s: float
    """Wall time of the observation."""
    ttl_s: float | None = None
    """Seconds it stays fresh; None: for good."""

    def stale(self, now_s: float) -> bool:
        """Whether its time-to-live is over."""
        return self.ttl_s is not None and now_s - self.observed_s > self.ttl_s


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownName:
    """No entity has this name; `near` are the names that look like it."""

    name: str
    near: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousName:
    """More than one entity has this name: a question, not a guess."""

    name: str
    slugs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The way from the controller to a target: access paths, nearest machine first."""

    target: Entity
    hops: tuple[tuple[Entity, AccessPath], ...]

    def __str__(self) -> str:
        words: list[str] = []
        for entity, path in self.hops:
            match path.transport:
                case Transport.LOCAL:
                    words.append("local")
                case Transport.SSH:
                    words.append(f"ssh {path.user}@{path.address}:{path.port}")
                case Transport.PCT:
                    words.append(f"pct {path.guest} on {entity.slug}")
                case Transport.DOCKER:  # pragma: no branch: the union is closed, mypy proves it
                    words.append(f"docker {path.guest} on {entity.slug}")
        return " > ".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """A consistent view of all entities and their current facts."""

    entities: Mapping[str, Entity] = field(default_factory=dict)
    """By entity id."""
    facts: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict)
    """Current fact by entity id and key."""

    def get(self, entity_id: str) -> Entity | None:
        """The entity with this id."""
        return self.entities.get(entity_id)

    def resolve(self, name: str) -> Entity | UnknownName | AmbiguousName:
        """The one living entity that `name` means: its slug, else its only namesake."""
        wanted = name.strip().lower()
        living = [entity for entity in self.entities.values() if not entity.gone]
        named = [e for e in living if wanted and wanted in (e.slug, e.id)]
        if not named:
            named = [e for e in living if wanted and wanted in (e.name.lower(), *(a.lower() for a in e.aliases))]
        if len(named) == 1:
            return named[0]
        if named:
            return AmbiguousName(name=name, slugs=tuple(sorted(e.slug for e in named)))
        near = sorted(e.slug for e in living if wanted and (wanted in e.slug or e.slug in wanted))
        return UnknownName(name=name, near=tuple(near or sorted(e.slug for e in living if e.access))[:8])

    def route(self, entity: Entity) -> Route | None:
        """How to reach an entity; None when it has no access path or its way leads in a circle."""
        hops: list[tuple[Entity, AccessPath]] = []
        seen: set[str] = set()
        current: Entity | None = entity
        while current is not None:
            if current.access is None or current.id in seen:
                return None
            seen.add(current.id)
            hops.append((current, current.access))
            if not current.access.via:
                return Route(target=entity, hops=tuple(reversed(hops)))
            found = self.resolve(current.access.via)
            current = found if isinstance(found, Entity) else None
        return None
