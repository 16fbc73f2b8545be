"""Findings: what each rule says about one span of a command text, before they are folded into a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oikos.domain.verdict import Action, Effect, EffectKind, Hop, NamedObject, Risk

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One rule's word on one span."""

    rule: str
    risk: Risk
    span: Span
    text: str
    via: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()


def effects_of(kinds: Iterable[EffectKind], thing: str = "") -> tuple[Effect, ...]:
    """One effect of each kind, all naming the same thing."""
    return tuple(Effect(kind=kind, object=thing) for kind in kinds)


class Report:
    """Collects findings, actions and objects while one text is walked; only ever grows."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.actions: list[Action] = []
        self.objects: list[NamedObject] = []
        self.advice: list[str] = []
        self.hides_failure = False

    def name(self, kind: str, name: str, place: tuple[Hop, ...], risk: Risk, verb: str) -> None:
        """Record an object the command acts on."""
        found = NamedObject(kind=kind, name=name, place=place, risk=risk, verb=verb)
        if found not in self.objects:
            self.objects.append(found)
