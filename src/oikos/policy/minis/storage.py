"""Storage tools with a small language of their own: debugfs, parted, LVM settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import Risk
from oikos.policy import paths
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

_DEBUGFS = re.compile(
    r"\s*(?:stat|ls|stats|show_super_stats|imap|icheck|ncheck|blocks|bmap|htree|features|show_inode_info|testi|testb|lsdel|ex|extents|filefrag|logdump|id|bd|ea_list|ea_get|params|quit|q|dirsearch|help)(?:\s+[^|!]*)?"
)
_PARTED = frozenset("print p align-check help unit u free all list quit".split())


def debugfs(this: Call) -> Flow | None:
    """`debugfs -R REQUEST`: only requests that look."""
    walker, scene = this.walker, this.scene
    requests = this.values("-R")
    for word in requests:
        if not _DEBUGFS.fullmatch(word.text):
            walker.unclear("debugfs.request", word.span, "The debugfs request may write or show a file.", scene)
    if not requests:
        walker.unclear("debugfs.open", this.span, "debugfs without a request waits for commands.", scene)
    return None


def parted(this: Call) -> Flow | None:
    """`parted [options] DEVICE COMMAND…`."""
    walker, scene = this.walker, this.scene
    words = [word.text for word in this.line.args[1:]]
    if this.has("-l", "--list") and not words:
        return None
    if not words:
        walker.unclear("interactive.parted", this.span, "parted without a command waits for input.", scene)
        return None
    verbs = [word for word in words if re.fullmatch(r"[a-z_-]+", word)]
    if any(
        verb
        in (
            "rm",
            "mklabel",
            "mktable",
            "mkpart",
            "resizepart",
            "rescue",
            "set",
            "toggle",
            "name",
            "disk_set",
            "disk_toggle",
            "type",
            "mkfs",
            "mkpartfs",
            "move",
            "resize",
        )
        for verb in verbs
    ):
        walker.destroy("parted.write", this.span, "Rewrites the partition table.", scene, thing=this.line.args[0].text)
    elif not verbs or verbs[0] not in _PARTED:
        walker.unclear("parted.command", this.span, "The parted command is not known.", scene)
    return None


def mkswap(this: Call) -> Flow | None:
    """On a disk or volume a swap signature destroys what was there; on a file made for it, not."""
    for word in this.line.args:
        if any(paths.is_block_device(text) for text in word.spellings()):
            this.walker.destroy(
                "mkswap.device", word.span, f"Destroys what {word.text} holds.", this.scene, thing=word.text
            )
            this.walker.report.name("device", word.text, this.scene.place, Risk.DESTRUCTIVE, "format")
    return None


def hdparm(this: Call) -> Flow | None:
    """`hdparm -B DISK` asks, `hdparm -B 127 DISK` sets: a number may stand behind most letters."""
    for word in this.line.args:
        if not word.text.startswith("/"):
            this.walker.change("hdparm.set", word.span, "Changes how a disk works.", this.scene, thing=word.text)
    return None
