"""Snapshots that are offered before a plan's first change of a guest (SPEC R5.12).

A guest of a Proxmox node can be put back as a whole. The offer is made from the inventory alone, stands on the card
with its command, and is part of what an approver chooses; nothing a model says makes, changes or takes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from oikos.domain.inventory import Entity, Inventory, Mode, Transport
from oikos.domain.plan import Snapshot

SNAPSHOT = "snapshot:"
"""How the authority of a snapshot begins; the consent's id follows."""
_TOOLS = {"lxc": "pct", "vm": "qm"}
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


def offers(changed: Iterable[Entity], inventory: Inventory) -> tuple[Snapshot, ...]:
    """One for each guest that is changed and whose node can be reached, in their order."""
    found = {entity.id: _offer(entity, inventory) for entity in changed}
    return tuple(offer for offer in found.values() if offer is not None)


def _offer(guest: Entity, inventory: Inventory) -> Snapshot | None:
    tool, number, node = _TOOLS.get(guest.kind), _number(guest), _node(guest, inventory)
    if not tool or not _NUMBER.fullmatch(number) or node is None or node.mode is not Mode.ASK:
        return None
    if inventory.route(node) is None:
        return None
    return Snapshot(
        target_id=guest.id, target=guest.slug, node_id=node.id, node=node.slug, tool=tool, guest=number
    )  # fmt: skip


def _number(guest: Entity) -> str:
    """As an operator or an importer said it: what a guest says of itself would let it have another one put back."""
    if guest.access is not None and guest.access.transport is Transport.PCT:
        return guest.access.guest
    known = (each.value.rpartition("/")[2] for each in guest.external if each.source == "proxmox")
    return next(known, "")


def _node(guest: Entity, inventory: Inventory) -> Entity | None:
    if guest.access is not None and guest.access.transport is Transport.PCT:
        found = inventory.resolve(guest.access.via)
        return found if isinstance(found, Entity) else None
    parent = inventory.get(guest.parent)
    return parent if parent is not None and parent.kind == "node" and not parent.gone else None
