"""Consent: who granted what, when, over which channel, until when; and the window it opens."""

from __future__ import annotations

import enum

from oikos.domain.instant import Instant
from oikos.domain.value import dataclass

WINDOW_CHOICES_S = (1800.0, 3600.0, 14400.0)
"""30 min, 1 h, 4 h (SPEC R3.6); the first is the default."""
PLAN_CARD_S = 24 * 3600.0
CHAT_ASSENT_S = 1800.0
PARKED_RUN_S = 24 * 3600.0
"""How long a plan card, a chat assent after its display, and a parked run can be decided (SPEC R3.8)."""
RUN_APPROVAL_S = 600.0
"""How long an approved run may wait for its start (SPEC R3.3)."""

SNAPSHOT_ITEM = 0
"""The item of the snapshots that a plan offers; destructive items count from 1."""
SNAPSHOT_PHRASE = "snapshot"
"""What is typed to tick it: nothing is destroyed, so the word is enough."""


class Role(enum.StrEnum):
    """What a principal may do; each includes the ones before it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """0 (viewer) to 3 (admin)."""
        return ("viewer", "operator", "approver", "admin").index(self.value)


class Channel(enum.StrEnum):
    """Over which way a decision came in."""

    WEB = "web"
    API = "api"
    CLI = "cli"
    TICKET = "ticket"
    CHAT = "chat"
    SCRIPT = "script"
    """Operator scripts of demos and evals; only in a home made by the lab (SPEC R3.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated person, as the face that let them in says. Authority comes from here, never from text."""

    id: str
    role: Role
    channel: Channel
    attended: bool = True
    """At a terminal or behind a signed-in request; False for a pipe (SPEC R3.6: chat assent needs a terminal)."""

    @property
    def may_approve(self) -> bool:
        """Whether this person may give consent at all."""
        return self.role.rank >= Role.APPROVER.rank


class Grant(enum.StrEnum):
    """What a consent allows."""

    PLAN = "plan"
    """The plan's scope for the window's duration."""
    RUN = "run"
    """Exactly one parked run."""
    RENEW = "renew"
    """The same plan's window once more."""
    REOPEN = "reopen"
    """One parked run, and the ended window again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """One row of the append-only ledger."""

    id: str
    grant: Grant
    session_id: str
    generation: int
    digest: str
    """Of the plan, or of the parked run's order."""
    machines: tuple[str, ...]
    items: tuple[int, ...] = ()
    """Destructive items of the plan that were ticked, by number."""
    duration_s: float = 0.0
    at: Instant
    by: str
    channel: Channel
    run_id: str = ""
    text: str = ""
    """What was said or typed, verbatim."""
    snapshot: bool = False
    """Each guest that the plan offers to keep is kept before its first change (SPEC R5.12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Time-boxed permission to run config_mutation on a plan's machines."""

    consent_id: str
    generation: int
    machines: tuple[str, ...]
    opened: Instant
    duration_s: float
    by: str
    suspended: bool = False

    def remaining_s(self, now: Instant) -> float:
        """Seconds left: the earlier end of wall and boot clock; 0 when it cannot be proven open (THREATS T30)."""
        elapsed_s = now.elapsed_since(self.opened)
        if elapsed_s < 0:
            return 0.0
        return max(0.0, self.duration_s - elapsed_s)

    def open(self, now: Instant) -> bool:
        """Whether it admits at this moment."""
        return not self.suspended and self.remaining_s(now) > 0
