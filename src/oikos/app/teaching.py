"""Taught rules in force: read from their own stream of the record, kept for a moment (SPEC R4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from oikos.domain import events as ev
from oikos.domain.consent import Principal, Role
from oikos.domain.errors import Code, OikosError, Refusal, SeqConflict
from oikos.domain.inventory import Entity
from oikos.domain.teaching import TaughtRule, apply, phrase_for, teachable
from oikos.domain.verdict import Risk, Verdict
from oikos.ports import Clock, Ids, Store

STREAM = "rules"
"""The stream that holds them; no session, and hash-chained like one."""
KEEP_S = 2.0


class Teaching:
    """The taught rules of one home."""

    def __init__(self, store: Store, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._rules: tuple[TaughtRule, ...] | None = None
        self._read_s = 0.0

    async def rules(self) -> Sequence[TaughtRule]:
        """In force now, oldest first."""
        now_s = self._clock.now().boot_s
        if self._rules is None or now_s - self._read_s > KEEP_S:
            found: dict[str, TaughtRule] = {}
            for record in await self._store.load(STREAM):
                match record.event:
                    case ev.RuleTaught(rule=rule):
                        found[rule.id] = rule
                    case ev.RuleRemoved(rule_id=rule_id):
                        found.pop(rule_id, None)
                    case _:
                        pass
            self._rules, self._read_s = tuple(found.values()), now_s
        return self._rules

    async def judge(self, verdict: Verdict, target_id: str) -> Verdict:
        """The verdict on this target, with what was taught for it."""
        if verdict.risk is Risk.READ_ONLY:
            return verdict
        return apply(verdict, await self.rules(), target_id)

    async def teach(
        self, verdict: Verdict, risk: Risk, targets: Sequence[Entity], by: Principal, typed: str
    ) -> TaughtRule | Refusal:
        """Add a rule: by an admin at a terminal, with the phrase typed, for named targets."""
        refusal = _may_teach(by)
        if refusal is not None:
            return refusal
        argv = teachable(verdict)
        if isinstance(argv, Refusal):
            return argv
        if risk is Risk.DESTRUCTIVE or not targets:
            return Refusal(
                code=Code.WRONG_STATE, text="Teach read_only or config_mutation, for at least one named target."
            )
        if typed.strip() != phrase_for(argv):
            return Refusal(code=Code.WRONG_PHRASE, text=f"Type `{phrase_for(argv)}` to teach it; nothing was taught.")
        rule = TaughtRule(
            id=self._ids(), argv=argv, targets=tuple(entity.id for entity in targets), risk=risk, by=by.id,
            at_s=self._clock.now().wall_s,
        )  # fmt: skip
        await self._append(ev.RuleTaught(rule=rule, text=typed), by)
        return rule

    async def remove(self, prefix: str, by: Principal) -> TaughtRule | Refusal:
        """Take a rule back; runs it let through stay on record."""
        refusal = _may_teach(by)
        if refusal is not None:
            return refusal
        found = [rule for rule in await self.rules() if rule.id.startswith(prefix)]
        if len(found) != 1:
            raise OikosError(f"{len(found)} taught rules begin with {prefix}: `oikos classify --rules` lists them")
        await self._append(ev.RuleRemoved(rule_id=found[0].id, by=by.id), by)
        return found[0]

    async def _append(self, event: ev.RuleTaught | ev.RuleRemoved, by: Principal) -> None:
        self._rules = None
        while True:
            records = await self._store.load(STREAM)
            seq = records[-1].seq if records else 0
            try:
                await self._store.append(STREAM, seq, [event], at=self._clock.now(), actor=f"operator:{by.id}")
            except SeqConflict:
                continue
            return


def _may_teach(by: Principal) -> Refusal | None:
    if by.role is not Role.ADMIN:
        return Refusal(code=Code.NOT_APPROVER, text=f"Only an admin teaches the classifier; {by.id} is {by.role}.")
    if not by.attended:
        return Refusal(code=Code.NO_TERMINAL, text="Teaching needs a terminal, or an approver token.")
    return None
