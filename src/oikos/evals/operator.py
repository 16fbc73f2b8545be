"""The scripted operator of an eval: decides what a manifest says, and counts what it had to do (SPEC R9.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from oikos.app.service import Card, Done
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import OikosError, Refusal
from oikos.domain.verdict import Risk
from oikos.evals.manifest import OperatorRule

SCRIPT = Principal(id="script", role=Role.APPROVER, channel=Channel.SCRIPT)

PUSHES = frozenset({"changes", "answer", "raise", "say"})
"""What may bring the agent on; saying no does not (security/THREATS T35)."""


class Desk(Protocol):
    """Where a decision goes: the service of this process, or a server's."""

    async def approve(
        self,
        session_id: str,
        card: Card,
        by: Principal,
        *,
        items: tuple[int, ...] = (),
        phrases: tuple[str, ...] = (),
        snapshot: bool = False,
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

    async def revoke(self, session_id: str, by: Principal) -> Done | Refusal:
        """Close the window."""
        ...

    async def raise_limits(self, session_id: str, by: Principal) -> Done | Refusal:
        """Raise and continue."""
        ...

    async def stop(self, session_id: str, by: Principal) -> Done | Refusal:
        """End it."""
        ...


class Operator:
    """The first rule that fits what happens and is not used up decides; without one things are left alone."""

    def __init__(self, rules: tuple[OperatorRule, ...], values: Mapping[str, str] | None = None) -> None:
        """`values` of the play stand for `{NAME}` in what is typed."""
        self._rules = tuple(_filled(rule, values or {}) for rule in rules)
        self._used = [0] * len(rules)
        self.pushes: list[tuple[str, int]] = []
        """Session and newest seq of each act that brought the agent on."""

    @property
    def unused(self) -> tuple[OperatorRule, ...]:
        """The rules that decided nothing so far, and should have."""
        return tuple(rule for rule, used in zip(self._rules, self._used, strict=True) if not (used or rule.optional))

    async def decide(self, desk: Desk, card: Card) -> Done | None:
        """Do what the rule for a card says; None when it is left alone.

        Raises:
            OikosError: what the manifest wants is refused.
        """
        rule = self._rule_for(card.kind, card.generation, _shown(card))
        if rule is None or rule.do == "leave":
            return None
        return self._carried_out(rule, card.session_id, await self._decide(desk, card, rule))

    def after(self, kind: str, generation: int) -> OperatorRule | None:
        """The rule for what has just happened, used up by that; `interrupt` does it."""
        return self._rule_for(kind, generation, "")

    async def interrupt(self, desk: Desk, session_id: str, rule: OperatorRule) -> Done:
        """Do what a rule says while nothing waits.

        Raises:
            OikosError: what the manifest wants is refused.
        """
        match rule.do:
            case "say":
                done = await desk.send(session_id, rule.text, SCRIPT)
            case "revoke":
                done = await desk.revoke(session_id, SCRIPT)
            case "stop":
                done = await desk.stop(session_id, SCRIPT)
            case _:
                raise OikosError(f"the scripted operator cannot {rule.do} unasked")
        return self._carried_out(rule, session_id, done)

    def _rule_for(self, when: str, generation: int, shown: str) -> OperatorRule | None:
        for number, rule in enumerate(self._rules):
            fits = rule.when == when and rule.generation in (None, generation) and rule.shows in shown
            if fits and self._used[number] < rule.times:
                self._used[number] += 1
                return rule
        return None

    def _carried_out(self, rule: OperatorRule, session_id: str, done: Done | Refusal) -> Done:
        if isinstance(done, Refusal):
            raise OikosError(f"the scripted operator wanted to {rule.do} and was refused ({done.code}): {done.text}")
        if rule.do in PUSHES:
            self.pushes.append((session_id, done.seq))
        return done

    async def _decide(self, desk: Desk, card: Card, rule: OperatorRule) -> Done | Refusal:
        session_id = card.session_id
        match rule.do:
            case "approve":
                items = _items(card, rule)
                return await desk.approve(
                    session_id, card, SCRIPT, items=items, phrases=rule.phrases, snapshot=rule.snapshot
                )
            case "reject":
                return await desk.reject(session_id, SCRIPT, reason=rule.text)
            case "changes":
                return await desk.ask_for_changes(session_id, rule.text, SCRIPT)
            case "confirm":
                return await desk.confirm(session_id, rule.text, SCRIPT, shown=card)
            case "answer":
                return await desk.send(session_id, rule.text, SCRIPT, shown=card)
            case "raise":
                return await desk.raise_limits(session_id, SCRIPT)
            case "stop":
                return await desk.stop(session_id, SCRIPT)
            case _:
                raise OikosError(f"the scripted operator cannot {rule.do}")


def _filled(rule: OperatorRule, values: Mapping[str, str]) -> OperatorRule:
    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    return replace(rule, text=fill(rule.text), phrases=tuple(fill(phrase) for phrase in rule.phrases))


def _shown(card: Card) -> str:
    """What a rule may look for on a card."""
    lines = [card.text]
    if card.run is not None:
        lines.append(card.run.order.command)
    elif card.plan is not None:
        lines += [line for step in card.plan.steps for line in (step.title, *(each.text for each in step.commands))]
    return "\n".join(lines)


def _items(card: Card, rule: OperatorRule) -> tuple[int, ...]:
    if card.plan is None:
        return ()
    items = enumerate(card.plan.destructive_items(), start=1)
    return tuple(
        number for number, (_, command) in items if command.preauthorise and command.preauthorise.phrase in rule.phrases
    )


class Moments:
    """Which events a crash, a fault or an operator's rule may wait for: of runs those that are not read-only."""

    def __init__(self) -> None:
        self._changes: set[str] = set()

    def kind(self, event: ev.Event) -> str:
        """The kind of an event that may be waited for; empty for reads, which may be asked again, and for probes."""
        match event:
            case ev.RunStarted():
                if event.risk is Risk.READ_ONLY:
                    return ""
                self._changes.add(event.order.run_id)
            case ev.RunFinished() if event.run_id not in self._changes:
                return ""
            case _:
                pass
        return event.KIND
