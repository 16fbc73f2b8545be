"""Command texts of programs with a language of their own: each must be one that only shows something."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.policy import carried
from oikos.policy.scene import EMPTY, Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

_SHOWS = {
    # `report -f FILE` writes, so the letters are listed.
    "xfs_quota": r"(?:df|report|quota|state|free|print|path|help)(?:\s+-[gpubirahnNtlLvU]+|\s+[\w./][\w./-]*)*",
    "xfs_db": r"(?:frag|freesp|sb|agf|agi|agfl|info|inode|print|p|label|uuid|version|help|quit|ring|rmapbt)(?:\s+-?\w+)*",
    "xfs_io": r"(?:stat|statfs|fsmap|fiemap|bmap|lsattr|lsproj|help|quit)(?:\s+-?\w+)*",
    # Not the running configuration and no technical report: they hold passwords.
    "vtysh": r"(?:show|sh)(?!\s+(?:run|start|tech|conf))(?:\s+[\w.:/,*-]+)+",
    "birdc": r"(?:show)(?:\s+[\w.:/,*-]+)+",
    "smbclient": r"(?:ls|dir|du|pwd|l|allinfo|stat|showacls|volume|queue|help|exit|quit|q)(?:\s+[\w./\\*?-]+)?",
    "asterisk": r"(?:core|sip|pjsip|iax2|dialplan|queue|database|module|voicemail|agents?|channels?|bridge|manager|cdr|logger|help)\s+show(?:\s+[\w/@.-]+)*",
    "fs_cli": r"(?:status|version|uptime|show\s+[\w ]+|sofia\s+status(?:\s+[\w/@.-]+)*)",
    "lftp": r"(?:ls|nlist|cls|du|pwd|quit|exit|bye|open|set net:timeout)(?:\s+[\w.:/*?-]+)*",
}
"""What a text may be, by program; anything else is not understood."""


def lines(this: Call) -> Flow | None:
    """Options with a command text: `xfs_quota -c TEXT`, `vtysh -c TEXT`, `smbclient -c TEXT`."""
    shows = re.compile(_SHOWS.get(this.name, r"(?!)"))
    for word in this.values("-c", "--command", "-e", "-x", "-rx"):
        parts = re.split(r"[;\n]", word.text) if word.literal else [""]
        if not any(parts) or not all(shows.fullmatch(part.strip()) for part in parts if part.strip()):
            if any(carried.loses(part) for part in parts):
                this.walker.destroy(
                    f"lines.{this.name}.delete", word.span, f"The text for {this.name} deletes something.", this.scene
                )
            this.walker.unclear(
                f"lines.{this.name}", word.span, f"The text for {this.name} may do more than look.", this.scene
            )
    return EMPTY


def complete(this: Call) -> Flow | None:
    """Rules that hold only with all their arguments: `gluster volume heal VOLUME info` looks, without `info` it heals."""
    needed = sum(arg.required for arg in this.rule.args or ())
    if len(this.line.args) < needed:
        this.walker.unclear(
            f"arg.few.{this.id}", this.span, f"{this.name} with fewer words does something else.", this.scene
        )
    return None
