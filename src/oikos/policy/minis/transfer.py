"""rsync, scp, rclone: what is sent where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import danger, paths
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call


def _remote_host(text: str) -> str:
    found = re.match(r"(?:rsync://)?(?:[^@/]+@)?(\[[^\]]+\]|[\w.-]+)(?:::?|/)", text)
    return found.group(1).strip("[]") if found and (":" in text) and not text.startswith(("/", ".")) else ""


def rsync(this: Call) -> Flow | None:
    """Secrets that leave, places that must not be overwritten, programs at the other end."""
    walker, scene = this.walker, this.scene
    for used in this.line.used:
        if used.name in ("--rsync-path", "-e", "--rsh") and used.value is not None:
            text = used.value.text
            if used.name != "--rsync-path" and re.fullmatch(
                r"ssh(?:\s+(?:-p\s*\d+|-i\s*\S+|-o\s*(?:BatchMode|ConnectTimeout|StrictHostKeyChecking)=[\w-]+|-[46TxCq]+|-l\s*\w+))*",
                text,
            ):
                continue
            if used.name == "--rsync-path" and re.fullmatch(r"(?:sudo\s+)?(?:/usr/bin/)?rsync", text):
                continue
            walker.unclear("rsync.program", used.word.span, f"{used.name} runs a program.", scene)
            found = danger.in_text(text)
            if found:
                walker.destroy("danger.argument", used.word.span, f"{danger.NOTE}: {found}.", scene)
    return _outward(this)


def _outward(this: Call) -> Flow | None:
    walker, scene, args = this.walker, this.scene, this.line.args
    if len(args) < 2:
        return None
    target = args[-1].text
    host = _remote_host(target)
    if host:
        walker.find(
            "transfer.host", Risk.READ_ONLY, args[-1].span, f"Copies to {host}.", scene, (EffectKind.EGRESS,), host
        )
        for word in args[:-1]:
            if any(
                paths.is_secret(text.rstrip("/") + "/id_rsa" if text.rstrip("/").endswith(".ssh") else text)
                for text in word.spellings()
            ):
                walker.destroy(
                    "egress.secret",
                    word.span,
                    f"Secret material goes to {host}; that cannot be taken back.",
                    scene,
                    EffectKind.EGRESS,
                    EffectKind.SENSITIVE,
                    thing=host,
                )
    elif not any(used.name in this.rule.dry for used in this.line.used):
        where = paths.normal(target, walker.cwd)
        if paths.is_critical(where) or where == "/":
            walker.destroy(
                "write.critical",
                args[-1].span,
                f"Overwrites {where}: a mistake there locks people out or loses a disk.",
                scene,
                *paths.write_effects(where),
                thing=where,
            )
    return None


def restic(this: Call) -> Flow | None:
    """`restic restore --target /` overwrites the system."""
    target = this.value("-t", "--target")
    if "restore" in this.sub and target is not None and paths.is_system_tree(target.text) and not this.has("--dry-run"):
        this.walker.destroy(
            "restic.restore.system", target.span, f"Overwrites {target.text}.", this.scene, thing=target.text
        )
    return None


def scp(this: Call) -> Flow | None:
    """scp copies; secrets that leave are gone."""
    return _outward(this)


def rclone(this: Call) -> Flow | None:
    """On-the-fly remotes and secrets that leave."""
    walker, scene = this.walker, this.scene
    for word in this.line.args:
        if re.match(r":?[\w.-]+,(?:[^:]*,)?(?:ssh|server_command|\w*command\w*|\w*exec\w*)=", word.text):
            walker.unclear("rclone.backend", word.span, "An option of this remote runs a program.", scene)
    for word in this.line.args[:-1]:
        target = this.line.args[-1].text
        if (":" in target) and paths.is_secret(word.text):
            found = re.search(r"https?://([^/:,]+)", target)
            host = found.group(1) if found else target.partition(":")[0]
            walker.destroy(
                "egress.secret",
                word.span,
                f"Secret material goes to {host}; that cannot be taken back.",
                scene,
                EffectKind.EGRESS,
                EffectKind.SENSITIVE,
                thing=host,
            )
    return None
