"""Rules an admin taught: exact commands that the classifier does not know, on named targets.

A taught rule speaks only where the built-in verdict was "unknown program, subcommand or option"; whatever else the
classifier found stays, so that nothing it knows to be dangerous can be taught away (SPEC R4.1, R4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oikos.domain.errors import Code, Refusal
from oikos.domain.value import dataclass, replace
from oikos.domain.verdict import Action, EffectKind, Reason, Risk, Verdict

UNKNOWN = ("program.unknown", "sub.unknown.", "opt.unknown.")
"""Rule ids, or their beginnings, of what may be taught."""
TAUGHT = "taught."


@dataclass(frozen=True, slots=True, kw_only=True)
class TaughtRule:
    """One rule; a row of the ledger says who taught it, when, and with which words."""

    id: str
    argv: tuple[str, ...]
    """Program, subcommand, options and operands, exactly."""
    targets: tuple[str, ...]
    """Entity ids."""
    risk: Risk
    """read_only or config_mutation."""
    by: str
    at_s: float

    @property
    def reason_id(self) -> str:
        """The stable id its findings carry."""
        return f"{TAUGHT}{self.id[:8]}"


def phrase_for(argv: Sequence[str]) -> str:
    """What is typed to teach a command: `teach PROGRAM`."""
    return f"teach {argv[0].rsplit('/', 1)[-1]}"


def teachable(verdict: Verdict) -> tuple[str, ...] | Refusal:
    """The one command of a text that may be taught, or why it may not."""
    unknown = [reason for reason in verdict.reasons if _is_unknown(reason)]
    if not unknown:
        return Refusal(
            code=Code.WRONG_STATE,
            text="The classifier knows this command; only unknown programs, subcommands and options are taught.",
        )
    worse = [reason for reason in verdict.reasons if reason.risk > Risk.READ_ONLY and not _is_unknown(reason)]
    if worse:
        return Refusal(code=Code.WRONG_STATE, text=f"Teaching would not help: {worse[0].text} [{worse[0].rule}]")
    if len(verdict.actions) != 1 or verdict.actions[0].place:
        return Refusal(
            code=Code.WRONG_STATE, text="Teach one simple command at a time, without pipes, wrappers or other machines."
        )
    argv = _literal(verdict.actions[0])
    if argv is None:
        return Refusal(
            code=Code.WRONG_STATE,
            text="The command has words that only the shell will know: teach it with literal words.",
        )
    return argv


def apply(verdict: Verdict, rules: Iterable[TaughtRule], target_id: str) -> Verdict:
    """The verdict with what was taught for this target; the same object when nothing applies."""
    known = {rule.argv: rule for rule in rules if target_id in rule.targets}
    if not known or not any(_is_unknown(reason) for reason in verdict.reasons):
        return verdict
    reasons: list[Reason] = []
    changed = False
    for reason in verdict.reasons:
        rule = _covering(reason, verdict.actions, known) if _is_unknown(reason) else None
        if rule is None:
            reasons.append(reason)
            continue
        changed = True
        text = f"Taught by {rule.by}: counts as {rule.risk} on this target."
        reasons.append(replace(reason, rule=rule.reason_id, risk=rule.risk, text=text))
    if not changed:
        return verdict
    effects = verdict.effects
    left = [reason for reason in reasons if reason.risk > Risk.READ_ONLY and not reason.rule.startswith(TAUGHT)]
    if not left:  # else another finding may be what is not understood
        effects = tuple(effect for effect in effects if effect.kind is not EffectKind.UNCLASSIFIED)
    risk = max((reason.risk for reason in reasons), default=Risk.READ_ONLY)
    ordered = tuple(sorted(reasons, key=lambda reason: -reason.risk.rank))
    return replace(verdict, risk=risk, reasons=ordered, effects=effects)


def taught_by(verdict: Verdict) -> str:
    """The ids of taught rules that a verdict rests on, for the run's authority; empty when none."""
    return ",".join(sorted({reason.rule for reason in verdict.reasons if reason.rule.startswith(TAUGHT)}))


def _is_unknown(reason: Reason) -> bool:
    return reason.rule.startswith(UNKNOWN)


def _literal(action: Action) -> tuple[str, ...] | None:
    words = tuple(word for word in action.argv if word is not None)
    return words if len(words) == len(action.argv) and words else None


def _covering(reason: Reason, actions: Sequence[Action], known: dict[tuple[str, ...], TaughtRule]) -> TaughtRule | None:
    """The rule for the innermost command that the finding lies in."""
    inside = [a for a in actions if a.span[0] <= reason.span[0] and reason.span[1] <= a.span[1]]
    if not inside:
        return None
    action = min(inside, key=lambda a: a.span[1] - a.span[0])
    argv = _literal(action)
    return known.get(argv) if argv is not None and not action.place else None
