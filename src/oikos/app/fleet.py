"""The application's view of the fleet: the inventory, read once and kept for a moment."""

from __future__ import annotations

from oikos.domain.inventory import Inventory
from oikos.ports import Clock, Store

KEEP_S = 2.0
"""How long a reading is used. Nothing slips through: a start looks at its target's mode again (ports.Guard)."""


class Fleet:
    """Cached inventory of one process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._inventory: Inventory | None = None
        self._read_s = 0.0

    async def inventory(self) -> Inventory:
        """The inventory, at most `KEEP_S` old."""
        now_s = self._clock.now().boot_s
        if self._inventory is None or now_s - self._read_s > KEEP_S:
            self._inventory = await self._store.inventory()
            self._read_s = now_s
        return self._inventory

    def forget(self) -> None:
        """Read it anew next time."""
        self._inventory = None
