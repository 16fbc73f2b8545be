"""crontab and at: replacing, removing and listing scheduled commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import danger
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call


def crontab(this: Call) -> Flow | None:
    """`crontab -l` looks; a file, `-` or nothing replaces; -r deletes."""
    walker, scene = this.walker, this.scene
    if this.has("-r", "-d"):
        walker.destroy("crontab.remove", this.span, "Deletes the whole crontab.", scene)
        return None
    if this.has("-e"):
        walker.change("interactive.editor", this.span, "crontab -e opens an editor.", scene, EffectKind.INTERACTIVE)
        walker.report.advice.append("write the new table to a file and load it: crontab FILE")
        return None
    if this.has("-l", "-V") and not this.line.args:
        return None
    walker.change("crontab.replace", this.span, "Replaces the crontab.", scene)
    found = danger.scheduled(scene.stdin.text or scene.source.text)
    if found:
        walker.destroy("danger.scheduled", this.span, f"{danger.NOTE}: {found}.", scene)
    return None


def at(this: Call) -> Flow | None:
    """`at -l` looks, `at -r` deletes, else a job is queued."""
    walker, scene = this.walker, this.scene
    if (this.has("-l", "-V") and not this.has("-r", "-d")) or this.has("-c"):
        return None
    if this.has("-r", "-d"):
        walker.destroy("at.remove", this.span, "Deletes a queued job and its text.", scene)
        return None
    walker.unclear("at.queue", this.span, "Queues a job that runs later.", scene)
    text = scene.stdin.text
    if text is not None:
        walker.script(text, scene.inside(this.name), this.span, None)
    return None
