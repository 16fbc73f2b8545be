"""Secret files: how a command names one, where it lies while the command runs, how such a command is judged (R2.11).

The reference in a command is no shell text. What the shell reads is the path that takes its place, and that can be
another command: the here-document of `cat <<'{{secret_file:a}}b'` ends at the line `{{secret_file:ab}}`, and `}}` ends
no `${x:-`. So the classifier is given the text with paths in it, of a run that nobody can guess, and its verdict is
then said of the references.
"""

from __future__ import annotations

import re
from typing import Final

from oikos.domain.value import dataclass, replace
from oikos.domain.verdict import Effect, EffectKind, Hop, Verdict

MARK: Final = "{{secret_file:"
"""Begins every reference; what begins so and is none is refused."""
REFERENCE: Final = re.compile(r"\{\{secret_file:([A-Za-z0-9_-]{1,64})\}\}")
IN_STDIN: Final = re.compile(r"\{\{secret:([A-Za-z0-9_-]{1,64})\}\}")
MAX_BYTES: Final = 65_536
"""Of one secret file."""


def directory(run_id: str) -> str:
    """Where the secret files of a run lie on its target; no character in it means anything to a shell."""
    return f"/tmp/oikos-{run_id}"


def named_in(command: str) -> tuple[str, ...]:
    """The secrets that a command wants as files, each once."""
    return tuple(dict.fromkeys(REFERENCE.findall(command)))


def placed(command: str, run_id: str) -> str:
    """The command as the shell of the target reads it."""
    return REFERENCE.sub(rf"{directory(run_id)}/\1", command)


def given_to(verdict: Verdict, command: str, stdin: str | None) -> Verdict:
    """The verdict on a run that is given secrets: each is a sensitive effect of it.

    What a command prints of a secret in another form (`rev`, `base64`), no mask finds: so a run is given one only
    because the approved plan holds that very run, or by an approval of its own (SPEC R3.5).
    """
    names = (*named_in(command), *IN_STDIN.findall(stdin or ""))
    if not names:
        return verdict
    given = {Effect(kind=EffectKind.SENSITIVE, object=f"secret {name}") for name in names}
    effects = sorted({*verdict.effects, *given}, key=lambda effect: (effect.kind, effect.object))
    return replace(verdict, effects=tuple(effects))


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A command made ready to be judged."""

    command: str
    run_id: str
    """Of no run. Whoever wrote the command must not know it: a text could be made to be read otherwise with it."""

    @property
    def text(self) -> str:
        """What the classifier is given."""
        return placed(self.command, self.run_id)

    def told(self, verdict: Verdict) -> Verdict:
        """The verdict on `text`, said of the command."""
        return replace(
            verdict,
            effects=tuple(replace(effect, object=self._said(effect.object)) for effect in verdict.effects),
            reasons=tuple(
                replace(one, rule=self._said(one.rule), span=self._span(one.span), text=self._said(one.text),
                        via=tuple(map(self._said, one.via)))
                for one in verdict.reasons
            ),
            actions=tuple(
                replace(one, argv=tuple(word if word is None else self._said(word) for word in one.argv),
                        place=self._hops(one.place), span=self._span(one.span))
                for one in verdict.actions
            ),
            objects=tuple(
                replace(one, name=self._said(one.name), place=self._hops(one.place)) for one in verdict.objects
            ),
            advice=self._said(verdict.advice),
            canonical=self._said(verdict.canonical),
        )  # fmt: skip

    def _said(self, text: str) -> str:
        if self.run_id not in text:
            return text
        named = re.sub(rf"{directory(self.run_id)}/([A-Za-z0-9_-]{{1,64}})", r"{{secret_file:\1}}", text)
        return named.replace(self.run_id, "RUN")

    def _hops(self, place: tuple[Hop, ...]) -> tuple[Hop, ...]:
        return tuple(replace(hop, name=self._said(hop.name)) for hop in place)

    def _span(self, span: tuple[int, int]) -> tuple[int, int]:
        first, last = span
        return self._at(first, last=False), self._at(last, last=True)

    def _at(self, position: int, *, last: bool) -> int:
        """Where a position of `text` is in the command; inside a path it is an end of the reference."""
        moved = 0
        for found in REFERENCE.finditer(self.command):
            begin = found.start() + moved
            size = len(directory(self.run_id)) + 1 + len(found[1])
            if position <= begin:
                break
            if position < begin + size:
                return found.end() if last else found.start()
            moved += size - (found.end() - found.start())
        return position - moved
