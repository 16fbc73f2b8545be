"""Which command was called, and its exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from oikos.lab.node import beside, life, look, power, snapshots
from oikos.lab.node.errors import Die

Command = Callable[[list[str]], None]

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VERBS: Mapping[str, Command] = {
    "list": look.listing,
    "status": look.status,
    "config": look.config,
    "create": life.create,
    "start": power.start,
    "stop": power.stop,
    "shutdown": power.shutdown,
    "reboot": power.reboot,
    "exec": power.execute,
    "enter": power.enter,
    "set": life.change,
    "resize": life.resize,
    "snapshot": snapshots.snapshot,
    "rollback": snapshots.rollback,
    "delsnapshot": snapshots.delete,
    "listsnapshot": snapshots.listing,
    "destroy": life.destroy,
    "clone": life.clone,
    "push": look.push,
    "pull": look.pull,
    "unlock": life.unlock,
    "df": look.df,
    "suspend": power.suspend,
    "resume": power.resume,
    "lab-startall": power.start_all,
    "lab-stopall": power.stop_all,
}
USAGE = "USAGE: pct <COMMAND> [ARGS] [OPTIONS]"


def pct(argv: list[str]) -> None:
    if not argv:
        known = "|".join(verb for verb in VERBS if not verb.startswith("lab-"))
        raise Die(f"ERROR: no command specified\n{USAGE}\n       pct {known}")
    if argv[0] not in VERBS:
        raise Die(f"ERROR: unknown command 'pct {argv[0]}'\n{USAGE}")
    VERBS[argv[0]](argv[1:])


COMMANDS: Mapping[str, Command] = {
    "pct": pct,
    "pveam": beside.pveam,
    "pvesm": beside.pvesm,
    "pvesh": beside.pvesh,
    "pveversion": beside.pveversion,
    "qm": beside.qm,
}


def main(argv: list[str]) -> int:
    """The exit status of `argv`, whose first word is the command's path."""
    os.environ["PATH"] = PATH
    try:
        COMMANDS[os.path.basename(argv[0])](argv[1:])
    except Die as refusal:
        print(refusal, file=sys.stderr)
        return refusal.code
    return 0
