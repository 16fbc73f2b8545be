"""Ansible: what runs on many hosts, and what the controller itself runs for it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Hop, HopKind, Risk
from oikos.policy import unwrap
from oikos.policy.scene import EMPTY, Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

_SCRIPT = re.compile(r"\.(?:py|sh|pl|rb|js|php)$|^/(?:tmp|var/tmp|dev/shm)/")

_LOOKS_UP = re.compile(r"\{[{%].*\b(?:lookup|query|q|pipe)\b", re.DOTALL)


def inventory(this: Call) -> Flow | None:
    """An inventory that is a program is run to learn the hosts."""
    for word in this.values("-i", "--inventory", "--inventory-file"):
        if any(_SCRIPT.search(text) for text in word.spellings()):
            why = "An inventory that is a program is run, and that one is not shown here."
            this.walker.unclear("ansible.inventory", word.span, why, this.scene)
    return None


def ansible(this: Call) -> Flow | None:
    """`ansible PATTERN -m MODULE -a ARGS`: an ad-hoc command on many hosts."""
    walker, scene = this.walker, this.scene
    inventory(this)
    if this.has("--list-hosts"):
        return EMPTY
    for word in this.values("-a", "--args"):
        if _LOOKS_UP.search(word.text):
            walker.unclear("ansible.lookup", word.span, "The text asks the controller to look something up.", scene)
        if re.search(r"\bexecutable=(?!/(?:usr/)?bin/(?:ba|da)?sh\b)", word.text):
            walker.unclear("ansible.executable", word.span, "Another program reads the command.", scene)
        if re.search(r"\bvar=(?:hostvars|vars|environment)\b|\bdatabase=(?:g?shadow)\b", word.text):
            walker.change("ansible.dump", word.span, "Shows secret material.", scene, EffectKind.SENSITIVE)
    module = this.value("-m", "--module-name")
    args = this.value("-a", "--args")
    name = (module.text if module else "command").rsplit(".", 1)[-1]
    if name in (
        "ping",
        "setup",
        "gather_facts",
        "stat",
        "service_facts",
        "package_facts",
        "debug",
        "getent",
        "find",
        "command",
        "shell",
        "raw",
    ):
        if name in ("command", "shell", "raw") and args is not None:
            text = re.sub(r"\b(?:chdir|creates|removes|executable)=\S+\s*", "", args.text)
            target = next((word.text for word in this.line.args if word.literal), "")
            inside = scene.inside(f"ansible {target}", Hop(kind=HopKind.SSH, name=""))
            flow = unwrap.script(walker, [replace(args, text=text, body=None)], inside)
            walker.find(
                "ansible.hosts",
                Risk.READ_ONLY,
                this.span,
                f"Runs on the hosts of {target or 'an inventory'}.",
                scene,
                (EffectKind.TARGET_ESCAPE,),
                target,
            )
            return flow
        if name in ("command", "shell", "raw"):
            walker.unclear("ansible.command", this.span, "No command is given.", scene)
        return EMPTY
    if args is not None and "absent" in args.text and re.search(r"\bpurge=(?:yes|true)", args.text):
        walker.destroy(f"ansible.{name}", this.span, "Deletes packages with their configuration.", scene)
    elif name in ("reboot",):
        walker.destroy("ansible.reboot", this.span, "Reboots hosts.", scene, EffectKind.OUTAGE)
    elif name in ("file", "user", "lvol", "filesystem", "parted", "zfs") and args is not None and "absent" in args.text:
        walker.destroy(f"ansible.{name}", this.span, f"The module {name} deletes.", scene)
    else:
        walker.change(f"ansible.{name}", this.span, f"The module {name} changes hosts.", scene)
    return EMPTY
