"""A call: one simple command with the rule that was chosen for it and its words read by that rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oikos.domain.verdict import Risk
from oikos.policy.findings import Span
from oikos.policy.options import Line
from oikos.policy.scene import Scene
from oikos.policy.spec import Program, Rule
from oikos.policy.words import NOTHING, Tags, Word

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

_DRY_NO = frozenset(("none", "false", "no", "0", "off", "f"))


def span_of(words: Sequence[Word]) -> Span:
    """From the first to the last word."""
    return min(word.span[0] for word in words), max(word.span[1] for word in words)


@dataclass(slots=True)
class Call:
    """One simple command with everything that was found out about it."""

    walker: Walker
    name: str
    words: list[Word]
    program: Program
    rule: Rule
    line: Line
    scene: Scene
    sub: tuple[str, ...] = ()
    emits: Tags = NOTHING

    @property
    def id(self) -> str:
        """The rule id, with the name the program was called by."""
        return self.name + self.rule.name[len(self.program.names[0]) :]

    @property
    def span(self) -> Span:
        return span_of(self.words)

    def value(self, *names: str) -> Word | None:
        """Value of the last use of an option."""
        for used in reversed(self.line.used):
            if used.name in names:
                return used.value
        return None

    def has(self, *names: str) -> bool:
        return any(used.name in names for used in self.line.used)

    def values(self, *names: str) -> list[Word]:
        return [used.value for used in self.line.used if used.name in names and used.value is not None]

    @property
    def title(self) -> str:
        """The program and its subcommand, for sentences."""
        return " ".join((self.name, *self.sub))

    @property
    def dry(self) -> bool:
        """Whether every use of a dry-run option really asks for a dry run."""
        used = [used for used in self.line.used if used.name in self.rule.dry]
        return bool(used) and all(
            one.value is None or (one.value.literal and one.value.text.lower() not in _DRY_NO) for one in used
        )

    @property
    def worst(self) -> Risk:
        """The class of its rule, or of an option that raises it."""
        used = [used.option.risk for used in self.line.used if used.option is not None]
        return max((self.rule.risk, *used), key=lambda risk: risk.rank)
