"""What differs between a plan that was shown and the one that waits now: what a stale approval is answered with."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from oikos.domain.plan import AfterFailed, Plan


def differences(shown: Plan, now: Plan) -> tuple[str, ...]:
    """Lines that begin with `- ` (only in the plan that was shown) or `+ ` (only in the plan now); words are no matter.

    Empty when both would do the same: their digests are equal then.
    """
    old, new = tuple(_lines(shown)), tuple(_lines(now))
    found: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            found += [f"- {line}" for line in old[i1:i2]]
            found += [f"+ {line}" for line in new[j1:j2]]
    return tuple(found)


def _lines(plan: Plan) -> Iterator[str]:
    yield f"goal: {plan.goal}"
    yield f"time limit: {plan.timeout_s:g} s"
    for entry in plan.scope:
        yield f"target {entry.slug} ({entry.target_id}), host keys: {', '.join(sorted(entry.host_keys)) or 'none'}"
    for made in plan.creates:
        yield f"creates {made.name} ({made.kind}) on {made.on_target_id}"
    for kept in plan.snapshots:
        yield f"offers a snapshot of {kept.target} ({kept.target_id}): {kept.tool} {kept.guest} on {kept.node_id}"
    named = {(entry.slug, entry.target_id) for entry in plan.scope}

    def where(slug: str, target_id: str) -> str:
        return slug if (slug, target_id) in named or not target_id else f"{slug} ({target_id})"

    first = plan.steps[0].seq if plan.steps else 1
    for step in plan.steps:
        target = where(step.target, step.target_id)
        if not step.commands:
            yield f"{target}: commands not fixed"
        for command in step.commands:
            more = "" if command.stdin is None else f" < {command.stdin!r}"
            does = f"{target} $ {command.text}"
            yield f"{does}{more}"
            for script in command.scripts:
                yield f"{does}: runs {script.path} {script.sha256[:12] or 'not read'}"
            pre = command.preauthorise
            if pre is not None:
                condition = pre.condition
                when = f" after step {condition.step - first + 1}" if isinstance(condition, AfterFailed) else ""
                failed = f"{when} failed" if when else ""
                only = f", only the {pre.created} that it creates" if pre.created else ""
                yield f"{does}: allowed for {pre.object.kind} by `{pre.phrase}`, {pre.max_uses} time(s){failed}{only}"
    for check in plan.checks:
        target = where(check.target, check.target_id)
        yield f"check {target} $ {check.command}: exit {check.expect_exit}, shows {check.expect_text!r}"
