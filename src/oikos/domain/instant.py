"""A moment as two clocks tell it, so that neither can be played against the other.

Wall time is what people read; boot time is what a wrong or moved wall clock cannot touch. A window ends at
the earlier of both (DESIGN §6.5).
"""

from __future__ import annotations

from oikos.domain.value import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """One reading of the clocks of the controller."""

    wall_s: float
    """Seconds since the Unix epoch."""
    boot_s: float
    """Seconds since boot, suspend included (CLOCK_BOOTTIME)."""
    boot_id: str
    """The kernel's random id of this boot; boot times of different ids cannot be compared."""

    def elapsed_since(self, earlier: Instant) -> float:
        """Seconds from `earlier` to this moment, by whichever clock says more.

        On another boot only the wall clock is left. A negative answer means that the wall clock went
        backwards across a boot: callers treat it as "cannot be proven" and fail closed.
        """
        wall_s = self.wall_s - earlier.wall_s
        if self.boot_id and self.boot_id == earlier.boot_id:
            return max(wall_s, self.boot_s - earlier.boot_s)
        return wall_s
