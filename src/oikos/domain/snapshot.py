"""Snapshots that are offered before a plan's first change of a guest (SPEC R5.12).

A guest of a Proxmox node can be put back as a whole. The offer is made from the inventory alone, stands on the card
with its command, and is part of what an approver chooses; nothing a model says makes, changes or takes one.
"""

from __future__ import annotations

from collections.abc import Iterable

from oikos.domain.inventory import Entity, Inventory, Mode, Transport
from oikos.domain.plan import Snapshot, Step
from oikos.domain.verdict import Risk

_TOOLS = {"lxc": "pct", "vm": "qm"}


def offers(steps: Iterable[Step], inventory: Inventory) -> tuple[Snapshot, ...]:
    """One for each guest that the steps may change and whose node can be reached, in the order of the steps."""
    found: dict[str, Snapshot] = {}
    for step in steps:
        guest = inventory.get(step.target_id)
        if step.risk is Risk.READ_ONLY or guest is None or guest.id in found:
            continue
        offer = _offer(guest, inventory)
        if offer is not None:
            found[guest.id] = offer
    return tuple(found.values())


def _offer(guest: Entity, inventory: Inventory) -> Snapshot | None:
    tool, number = _TOOLS.get(guest.kind, ""), _number(guest)
    node = _node(guest, inventory)
    if not tool or not number.isdecimal() or node is None or node.mode is not Mode.ASK:
        return None
    if inventory.route(node) is None:
        return None
    return Snapshot(
        target_id=guest.id, target=guest.slug, node_id=node.id, node=node.slug, tool=tool, guest=number
    )  # fmt: skip


def _number(guest: Entity) -> str:
    if guest.access is not None and guest.access.transport is Transport.PCT:
        return guest.access.guest
    return guest.identity.guest_id if guest.identity is not None else ""


def _node(guest: Entity, inventory: Inventory) -> Entity | None:
    if guest.access is not None and guest.access.transport is Transport.PCT:
        found = inventory.resolve(guest.access.via)
        return found if isinstance(found, Entity) else None
    parent = inventory.get(guest.parent)
    return parent if parent is not None and parent.kind == "node" and not parent.gone else None
