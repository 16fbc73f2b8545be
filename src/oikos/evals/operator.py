"""The scripted operator of an eval: decides what a manifest says, and counts what it had to do (SPEC R9.1)."""

from __future__ import annotations

from typing import Protocol

from oikos.app.service import Card, Done
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import OikosError, Refusal
from oikos.evals.manifest import OperatorRule

SCRIPT = Principal(id="script", role=Role.APPROVER, channel=Channel.SCRIPT)

PUSHES = frozenset({"changes", "answer", "raise"})
"""What brings the agent on and is no consent; saying no does not (security/THREATS T35)."""


class Desk(Protocol):
    """Where a decision goes: the service of this process, or a server's."""

    async def approve(
        self, session_id: str, card: Card, by: Principal, *, items: tuple[int, ...] = (), phrases: tuple[str, ...] = ()
    ) -> Done | Refusal:
        """Approve what a card showed."""
        ...

    async def reject(self, session_id: str, by: Principal, *, reason: str = "") -> Done | Refusal:
        """No."""
        ...

    async def ask_for_changes(self, session_id: str, text: str, by: Principal) -> Done | Refusal:
        """Not like this."""
        ...

    async def confirm(self, session_id: str, phrase: str, by: Principal, *, shown: Card | None) -> Done | Refusal:
        """A typed phrase."""
        ...

    async def send(self, session_id: str, text: str, by: Principal, *, shown: Card | None = None) -> Done | Refusal:
        """A message."""
        ...

    async def raise_limits(self, session_id: str, by: Principal) -> Done | Refusal:
        """Raise and continue."""
        ...

    async def stop(self, session_id: str, by: Principal) -> Done | Refusal:
        """End it."""
        ...


class Operator:
    """The first rule that fits a card and is not used up decides it; without one the card is left alone."""

    def __init__(self, rules: tuple[OperatorRule, ...]) -> None:
        self._rules = rules
        self._used = [0] * len(rules)
        self.ticks = 0
        """How often it had to help the agent on."""

    async def decide(self, service: Desk, card: Card) -> Done | None:
        """Do what the rule says; None when the card is left alone.

        Raises:
            OikosError: what the manifest wants is refused.
        """
        rule = self._rule_for(card)
        if rule is None or rule.do == "leave":
            return None
        self.ticks += rule.do in PUSHES
        done = await self._act(service, card, rule)
        if isinstance(done, Refusal):
            raise OikosError(f"the scripted operator wanted to {rule.do} and was refused ({done.code}): {done.text}")
        return done

    def _rule_for(self, card: Card) -> OperatorRule | None:
        for number, rule in enumerate(self._rules):
            fits = rule.when == card.kind and rule.generation in (None, card.generation)
            if fits and self._used[number] < rule.times:
                self._used[number] += 1
                return rule
        return None

    async def _act(self, service: Desk, card: Card, rule: OperatorRule) -> Done | Refusal:
        session_id = card.session_id
        match rule.do:
            case "approve":
                return await service.approve(session_id, card, SCRIPT, items=_items(card, rule), phrases=rule.phrases)
            case "reject":
                return await service.reject(session_id, SCRIPT, reason=rule.text)
            case "changes":
                return await service.ask_for_changes(session_id, rule.text, SCRIPT)
            case "confirm":
                return await service.confirm(session_id, rule.text, SCRIPT, shown=card)
            case "answer":
                return await service.send(session_id, rule.text, SCRIPT, shown=card)
            case "raise":
                return await service.raise_limits(session_id, SCRIPT)
            case "stop":
                return await service.stop(session_id, SCRIPT)
            case _:
                raise OikosError(f"the scripted operator cannot {rule.do}")


def _items(card: Card, rule: OperatorRule) -> tuple[int, ...]:
    if card.plan is None:
        return ()
    items = enumerate(card.plan.destructive_items(), start=1)
    return tuple(
        number for number, (_, command) in items if command.preauthorise and command.preauthorise.phrase in rule.phrases
    )
