"""What a plan creates becomes an entity: its maker's guest is asked who it is, and the name means it (SPEC R2.3)."""

from __future__ import annotations

from dataclasses import replace

from oikos.app.identity import Identities
from oikos.app.log import SessionLog
from oikos.domain import events as ev
from oikos.domain.creation import candidates, entity_of, is_named
from oikos.domain.errors import Code, NameTaken, Refusal
from oikos.domain.gate import not_created_yet
from oikos.domain.inventory import Entity, Inventory
from oikos.domain.plan import Creates
from oikos.domain.run import Identity
from oikos.ports import Ids


class Creations:
    """Binding of created names, for one process."""

    def __init__(self, *, identities: Identities, ids: Ids) -> None:
        self._identities = identities
        self._ids = ids

    async def bind(self, log: SessionLog, created: Creates, inventory: Inventory) -> Refusal | None:
        """Make the name mean the guest that a run of this plan made; a refusal says what is missing.

        The new entity is journalled and in the inventory when this returns None.

        Raises:
            SeqConflict, TargetChanged: as `SessionLog.append`; back to the gate.
        """
        node, name = inventory.get(created.on_target_id), created.name
        if node is None or node.gone:
            return not_created_yet(f"{name} does not exist yet, and the machine it was to be made on is gone.")
        why = f"No run of this plan has created {name} yet."
        for run, guest in candidates(log.state, created):
            known = _known(inventory, node, guest)
            if known is not None:
                why = f"Guest {guest} of {node.slug} is {known.slug} in the inventory."
                continue
            made = entity_of(created, node, guest, entity_id=self._ids())
            found = await self._meet(log, created, made, node, inventory)
            if isinstance(found, Identity):
                made = replace(made, identity=found)
                event = ev.EntityCreated(generation=log.state.generation, entity=made, run_id=run.order.run_id)
                try:
                    await log.append(event)
                except NameTaken:  # by another process, since the inventory was read
                    return not_created_yet(f"The name {name} was given to another entity meanwhile.")
                return None
            says = "does not answer" if found.code is Code.UNREACHABLE else f"is not {name}"
            why = f"Guest {guest} of {node.slug} {says}: {found.text}"
        return not_created_yet(why)

    async def _meet(
        self, log: SessionLog, created: Creates, made: Entity, node: Entity, inventory: Inventory
    ) -> Identity | Refusal:
        route = replace(inventory, entities={**inventory.entities, made.id: made}).route(made)
        if route is None:
            return Refusal(code=Code.NO_ACCESS, text=f"{node.slug} has no way in.")

        def wrong(found: Identity) -> str:
            return "" if is_named(found, created) else f"it says it is {found.hostname!r}"

        return await self._identities.meet(log, made, route, wrong, held=node)


def _known(inventory: Inventory, node: Entity, guest: str) -> Entity | None:
    for entity in inventory.entities.values():
        if entity.parent == node.id and not entity.gone and entity.access is not None and entity.access.guest == guest:
            return entity
    return None
