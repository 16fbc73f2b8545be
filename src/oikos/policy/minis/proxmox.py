"""Proxmox: paths of pvesh, and settings of guests that need care."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE

if TYPE_CHECKING:
    from oikos.policy.call import Call

_GUEST = re.compile(r"/nodes/[^/]+/(?:qemu|lxc)/(\d+)")


def pvesh(this: Call) -> Flow | None:
    """`pvesh VERB PATH`: the path names guest and action."""
    walker, scene = this.walker, this.scene
    verb = this.sub[0] if this.sub else ""
    path = this.line.args[0].text if this.line.args else ""
    guest = _GUEST.search(path)
    name = guest.group(1) if guest else ""
    if verb == "get":
        if re.search(r"/access/(?:tfa|users/[^/]+/token)|/ticket|/config/.*(?:token|secret)", path):
            walker.change("pvesh.secret", this.span, "Shows access data.", scene, EffectKind.SENSITIVE)
        if name:
            walker.report.name("guest", name, scene.place, Risk.READ_ONLY, "get")
        return None
    command = this.value("--command", "-command")
    text = command.text if command else ""
    if verb == "delete":
        kind = "guest" if name and re.search(r"/(?:qemu|lxc)/\d+/?$", path) else ""
        walker.destroy(
            "pvesh.delete",
            this.span,
            f"Deletes {path.replace(HOLE, '…')}.",
            scene,
            EffectKind.IRREVERSIBLE,
            thing=name or path,
        )
        if kind:
            walker.report.name("guest", name, scene.place, Risk.DESTRUCTIVE, "destroy")
    elif re.search(r"/nodes/[^/]+/status$", path) and verb == "create":
        walker.destroy(
            "pvesh.node.status",
            this.span,
            f"Takes the node down ({text or 'reboot or shutdown'}).",
            scene,
            EffectKind.OUTAGE,
        )
    elif re.search(r"/(?:stopall|suspendall)$", path):
        walker.destroy("pvesh.stopall", this.span, "Stops every guest of the node.", scene, EffectKind.OUTAGE)
    elif re.search(r"/rollback$|/(?:wipedisk|initgpt)$|/prunebackups$", path):
        walker.destroy("pvesh.rollback", this.span, "Discards newer data.", scene, EffectKind.IRREVERSIBLE, thing=name)
    elif re.search(r"/status/(?:stop|shutdown|reboot|reset|suspend)$", path):
        walker.change(
            "pvesh.guest.status", this.span, f"Takes guest {name} down.", scene, EffectKind.OUTAGE, thing=name
        )
        walker.report.name("guest", name, scene.place, Risk.CONFIG_MUTATION, path.rsplit("/", 1)[-1])
    elif re.search(r"/(?:execute|termproxy|vncshell|spiceshell|agent/exec)$", path):
        walker.unclear("pvesh.execute", this.span, "Runs commands through the API.", scene)
    elif re.search(r"^/access(?:/|$)", path):
        walker.change("pvesh.access", this.span, "Changes who may do what.", scene, EffectKind.PRIVILEGE)
    elif re.search(r"/(?:network|firewall)(?:/|$)", path):
        walker.change("pvesh.network", this.span, "Changes the network of the node.", scene, EffectKind.CONNECTIVITY)
    if name and verb != "delete":
        walker.report.name("guest", name, scene.place, Risk.CONFIG_MUTATION, verb)
    return None


def pctset(this: Call) -> Flow | None:
    """`pct set` and `qm set`: features that open a way to the host."""
    text = " ".join(word.text for word in this.words[1:])
    if re.search(
        r"--?(?:unprivileged[ =]0|features\b.*(?:nesting|mknod|mount)|hookscript|args|lxc\.|dev\d|hostpci\d|mp\d[ =]/)",
        text,
    ):
        effects = (
            (EffectKind.PRIVILEGE,)
            if re.search(r"unprivileged[ =]0|hookscript|--?args|lxc\.|hostpci|dev\d", text)
            else ()
        )
        if effects:
            this.walker.change(
                f"{this.id}.host", this.span, "Gives the guest power over the host.", this.scene, *effects
            )
    if re.search(r"--?(?:force)\b", text) and re.search(r"--?delete\b", text):
        this.walker.destroy(f"{this.id}.force", this.span, "Deletes the disk as well.", this.scene)
    return None
