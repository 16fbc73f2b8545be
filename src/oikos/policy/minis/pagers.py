"""Pagers and editors: what their commands can start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import danger
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call


def less(this: Call) -> Flow | None:
    """`less +COMMAND` may run a program."""
    for word in this.line.args:
        if word.text.startswith("+") and not re.fullmatch(r"\+(?:[GFg]|\d+|/[^!|]*)", word.text):
            this.walker.unclear("less.command", word.span, "less runs this as its first command.", this.scene)
    return None


def vim(this: Call) -> Flow | None:
    """Editors wait for input, or run the commands they are given."""
    walker, scene = this.walker, this.scene
    for word in this.words[1:]:
        found = re.search(r"!\s*(.+)", word.text) if word.text.startswith(("+", ":", "!")) or "!" in word.text else None
        if found:
            walker.unclear("editor.shell", word.span, "The editor runs a program.", scene)
            walker.script(found.group(1), scene.inside(this.name), word.span, None)
            return None
        if danger.in_text(re.sub(r"^[+:]*!?", "", word.text)):
            walker.destroy("danger.argument", word.span, f"{danger.NOTE}.", scene)
    for line in (scene.stdin.text or "").split("\n"):
        spoken = re.match(r"[:\s\d%.,$]*(?:[rw]\s*)?!\s*(.+)", line)
        if spoken:
            walker.unclear("editor.shell", this.span, "The editor runs a program.", scene)
            walker.script(spoken.group(1), scene.inside(this.name), this.span, None)
    for word in this.words[1:]:
        if re.search(r"\(delete-(?:file|directory)\b", word.text):
            walker.destroy("editor.delete", word.span, "The editor deletes a file.", scene)
    batch = any(re.fullmatch(r"-[a-zA-Z]*[esE][a-zA-Z]*", word.text) for word in this.words[1:]) or scene.stdin.piped
    if not batch:
        walker.change(
            "interactive.editor",
            this.span,
            f"{this.name} is an editor and waits for input.",
            scene,
            EffectKind.INTERACTIVE,
        )
        walker.report.advice.append("show the file with cat or sed -n, change it with sed -i or by writing it whole")
    return None


def visudo(this: Call) -> Flow | None:
    """A mistake in the main file locks everybody out of sudo."""
    if any(word.text == "/etc/sudoers" for word in this.words[1:]) and not this.has("-c", "--check"):
        this.walker.destroy(
            "visudo.main",
            this.span,
            "A mistake in /etc/sudoers locks people out.",
            this.scene,
            EffectKind.PRIVILEGE,
            thing="/etc/sudoers",
        )
    return None
