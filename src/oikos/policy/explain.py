"""Explanations: a verdict as plain text for a person, and as data for other programs (SPEC R4.5)."""

from __future__ import annotations

from typing import Any

from oikos.domain.verdict import Action, Effect, Reason, Verdict

_SAY = {"read_only": "only looks", "config_mutation": "changes something", "destructive": "destructive"}
_WIDTH = 100


def tree(verdict: Verdict, text: str) -> str:
    """The verdict as a small tree: what decided, why, what else it does, and every command on its machine."""
    lines = [f"{verdict.risk.value}: {_SAY[verdict.risk.value]}"]
    decisive = [reason for reason in verdict.reasons if reason.risk is verdict.risk]
    others = [reason for reason in verdict.reasons if reason.risk is not verdict.risk]
    for index, reason in enumerate(decisive):
        lines += _reason(reason, text, first=index == 0)
    if others:
        lines.append("also found")
        for reason in others:
            lines += _reason(reason, text, first=False)
    if verdict.effects:
        lines.append("effects")
        lines += [f"  {_effect(effect)}" for effect in verdict.effects]
    if verdict.actions:
        lines.append("commands")
        lines += [f"  {_action(action)}" for action in verdict.actions]
    if verdict.objects:
        lines.append("objects")
        lines += [f"  {one.kind} {one.name}: {one.verb or 'named'} ({one.risk.value})" for one in verdict.objects]
    if verdict.pipeline_hides_failure:
        lines.append("note: an earlier stage of a pipeline may fail unseen")
    if verdict.advice:
        lines.append(f"instead: {verdict.advice}")
    lines.append(f"parsed by {verdict.parser or 'nothing'}, rules {verdict.knowledge}")
    return "\n".join(lines)


def as_jsonl(verdict: Verdict) -> dict[str, Any]:
    """The verdict in the shape of SPEC R4.5, without the caller's `id`."""
    return {
        "risk": verdict.risk.value,
        "effects": [{"kind": effect.kind.value, "object": effect.object} for effect in verdict.effects],
        "reasons": [
            {
                "rule": reason.rule,
                "span": list(reason.span),
                "text": reason.text,
                "risk": reason.risk.value,
                "via": list(reason.via),
            }
            for reason in verdict.reasons
        ],
    }


def _reason(reason: Reason, text: str, *, first: bool) -> list[str]:
    mark = "=>" if first else "  "
    via = f"  (inside {' > '.join(reason.via)})" if reason.via else ""
    lines = [f"{mark} {reason.text}  [{reason.rule}]{via}"]
    if first:
        lines += _underlined(text, reason.span)
    return lines


def _underlined(text: str, span: tuple[int, int]) -> list[str]:
    """The line of the text the span begins in, with the span marked below it."""
    start, end = span
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    if stop - begin > _WIDTH:
        begin = max(begin, start - _WIDTH // 3)
        stop = min(stop, begin + _WIDTH)
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[begin:stop])
    return [f"     {shown}", "     " + " " * (start - begin) + "^" * max(1, min(end, stop) - start)]


def _effect(effect: Effect) -> str:
    return f"{effect.kind.value} {effect.object}".rstrip()


def _action(action: Action) -> str:
    words = " ".join(
        "…" if word is None else word if word and not any(char.isspace() for char in word) else repr(word)
        for word in action.argv
    )
    where = " > ".join(f"{hop.kind.value} {hop.name or '(not known yet)'}" for hop in action.place)
    return f"{action.risk.value:<15} {where + ': ' if where else ''}{words}"
