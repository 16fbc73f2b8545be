"""Unwrapping: from a wrapper to the command inside it, on the machine inside it (SPEC R4.2, R3.5)."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Hop, HopKind, Risk
from oikos.policy import danger, paths
from oikos.policy.findings import Report
from oikos.policy.scene import EMPTY, Flow, Scene
from oikos.policy.words import HOLE, Tag, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call
    from oikos.policy.walk import Walker

PLACEHOLDER = "oikos-word"
"""Stands in re-parsed text for a piece only the outer shell knows."""
_UNTAME = frozenset((Tag.FILE, Tag.NETWORK, Tag.DECODED, Tag.SECRET, Tag.BULK, Tag.UNKNOWN))
_ADVICE = {
    HopKind.SSH: "give the command: ssh HOST 'COMMAND'",
    HopKind.PCT: "run pct exec ID -- COMMAND instead",
    HopKind.QM: "run qm guest exec ID -- COMMAND instead",
    HopKind.DOCKER: "run docker exec NAME COMMAND instead",
    HopKind.KUBE: "run kubectl exec POD -- COMMAND instead",
    HopKind.LXC: "run lxc exec NAME -- COMMAND instead",
    HopKind.MACHINE: "name the command to run instead of opening a shell",
}


def inner(this: Call) -> Flow:
    """Judge a wrapper's inner command."""
    kind = this.rule.hop
    names = _names(this)
    if kind is not None and len(names) > 1:  # a loop over literal machines: every one of them is judged
        flow = EMPTY
        for name in names[:16]:
            flow = _inner_on(this, Hop(kind=kind, name=name))
        return flow
    return _inner_on(this, _hop(this))


def _names(this: Call) -> tuple[str, ...]:
    """Every machine a loop variable stands for."""
    if this.rule.hop is None or not this.rule.wraps or not this.line.args:
        return ()
    return this.line.args[min(this.rule.wraps, len(this.line.args)) - 1].values


def _inner_on(this: Call, hop: Hop | None) -> Flow:
    rule, line, walker, scene = this.rule, this.line, this.walker, this.scene
    label = " ".join((this.name, *this.sub, *([hop.name or "?"] if hop else ())))
    inside = scene.inside(label, hop)
    if hop is not None and hop.kind is HopKind.SSH:
        walker.find(
            "wrap.ssh", this.rule.risk, this.span, f"Goes on to the machine {hop.name or 'only known when the shell runs'}.", scene,
            (EffectKind.TARGET_ESCAPE,), hop.name,
        )  # fmt: skip
    rest = line.rest[1:] if line.rest and line.rest[0].known == "--" and rule.wraps else line.rest
    if not rest:
        return _without_command(this, inside, hop)
    cwd, walker.cwd = walker.cwd, "" if hop else walker.cwd
    try:
        match rule.inner:
            case "script":
                return script(walker, rest, inside)
            case "text":
                flow = script(walker, rest[:1], inside)
                return flow
            case _:
                return walker.command(rest, inside)
    finally:
        walker.cwd = cwd


def _hop(this: Call) -> Hop | None:
    kind = this.rule.hop
    if kind is None:
        return None
    if this.rule.wraps and this.line.args:
        word: Word | None = this.line.args[min(this.rule.wraps, len(this.line.args)) - 1]
    else:
        word = this.value("-n", "--name", "-t", "--target", "-M", "--machine")
    if word is None:
        return Hop(kind=kind, name="")
    name = word.text if word.literal else word.values[0] if len(word.values) == 1 else ""
    if kind is HopKind.SSH:
        name = name.removeprefix("ssh://").rsplit("@", 1)[-1]
    return Hop(kind=kind, name=name)


def _without_command(this: Call, inside: Scene, hop: Hop | None) -> Flow:
    walker, scene = this.walker, this.scene
    if scene.stdin.text is not None and (hop is not None and hop.kind is HopKind.SSH):
        return walker.script(scene.stdin.text, inside, this.span, None, "posix")
    if hop is not None:
        walker.change(
            "interactive.shell",
            this.span,
            f"{this.name} opens a shell; anything can be typed there.",
            scene,
            EffectKind.INTERACTIVE,
            thing=hop.name,
        )
        if scene.stdin.piped:
            fed(walker, this.span, scene, this.name)
        walker.report.advice.append(_ADVICE[hop.kind])
    return EMPTY


def script(walker: Walker, words: Sequence[Word], scene: Scene, positional: tuple[Word, ...] | None = None) -> Flow:
    """Judge words that a shell joins with blanks and reads as a new text."""
    span = (words[0].span[0], words[-1].span[1])
    scene = replace(scene, positional=positional)
    if all(word.literal for word in words):
        text = " ".join(word.text for word in words)
        shift = words[0].body if len(words) == 1 else None
        return walker.script(text, scene, span, shift)
    choices = [(word.text,) if word.literal else word.values for word in words]
    if all(choices) and _product(choices) <= 8:
        flow = EMPTY
        for texts in itertools.product(*choices):
            flow = walker.script(" ".join(texts), scene, span, None)
        return flow
    tags = frozenset[Tag]().union(*(word.tags for word in words))
    if tags & _UNTAME or any(word.text.strip() == HOLE for word in words):
        walker.unclear(
            "exec.dynamic", span, "Part of the text that a shell will run is only known when the shell runs.", scene
        )
        if tags & {Tag.NETWORK, Tag.DECODED}:
            walker.destroy(
                "exec.fetched",
                span,
                "Runs text that was fetched or decoded; nobody can review it.",
                scene,
                EffectKind.REMOTE_CODE,
            )
    text = " ".join(word.text for word in words)
    for hint in (word.hints for word in words if not word.literal):
        for one in hint[:2]:
            found = danger.in_text(one)
            if found:
                walker.destroy("danger.argument", span, f"{danger.NOTE}: {found}.", scene)
    return walker.script(text.replace(HOLE, PLACEHOLDER), scene, span, None)


def written(walker: Walker, file: Word, scene: Scene) -> None:
    """Look into a script that an earlier command of the same text wrote; what it fetched, nobody can review."""
    text = walker.written.get(paths.normal(file.text, walker.cwd))
    if text is None:
        return
    if text:
        hidden(walker, text, scene, file.span, file.text)
    else:
        walker.destroy(
            "exec.fetched", file.span, f"Runs {file.text}, which was fetched just before.", scene, EffectKind.REMOTE_CODE
        )  # fmt: skip


def hidden(walker: Walker, text: str, scene: Scene, span: tuple[int, int], label: str) -> None:
    """Look into a text that some program will run by itself; only what is destructive there is kept.

    That it runs at all was judged by the caller.
    """
    report, walker.report = walker.report, Report()
    try:
        walker.script(text.replace(HOLE, PLACEHOLDER), scene.inside(label), span, None)
    finally:
        report.findings.extend(one for one in walker.report.findings if one.risk is Risk.DESTRUCTIVE)
        walker.report = report


def _product(choices: Sequence[Sequence[str]]) -> int:
    total = 1
    for one in choices:
        total *= len(one)
    return total


def fed(walker: Walker, span: tuple[int, int], scene: Scene, name: str) -> None:
    """Judge an interpreter that runs what it reads on standard input."""
    flow = scene.stdin
    if flow.text is not None and Tag.DECODED not in flow.tags:
        walker.unclear("exec.stdin", span, f"{name} runs the text it is given on standard input.", scene)
        return
    if flow.file and Tag.NETWORK not in flow.tags:
        walker.unclear("exec.stdin", span, f"{name} runs a file that is not shown here.", scene)
        return
    walker.destroy(
        "exec.piped",
        span,
        f"{name} runs whatever the command before it prints; nobody can review that.",
        scene,
        EffectKind.REMOTE_CODE,
    )
