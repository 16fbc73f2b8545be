"""The Admission: the sealed, single-use token without which no Runner starts anything.

Only `oikos.domain.gate` makes one. Being Python, the seal cannot stop a determined programmer; it makes every
bypass loud: the constructor wants a private key, `copy`, `pickle` and `dataclasses.replace` are refused, changed
fields break the seal, and a second use is an error (DESIGN §1, "The gate is a type").
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final, Never, SupportsIndex, final

from oikos.domain.errors import SealError

_KEY: Final = secrets.token_bytes(32)
"""Of this process: an Admission never leaves it."""


class _Maker:
    """Identifies the gate; there is one instance, and it is not exported."""


_GATE: Final = _Maker()


@final
class Admission:
    """Leave to start one order, or one probe, once."""

    __slots__ = ("_mac", "_spent", "authority", "digest", "kind", "seq", "target_id")

    kind: str
    """`run` or `probe`."""
    digest: str
    """Of the RunOrder; for a probe, the target's id."""
    target_id: str
    authority: str
    """What admitted it, in the words of RunStarted.authority."""
    seq: int
    """The session's last seq that the gate saw: RunStarted is appended right after it."""
    _mac: bytes
    _spent: bool

    def __init__(self, maker: _Maker, *, kind: str, digest: str, target_id: str, authority: str, seq: int) -> None:
        if maker is not _GATE:
            raise SealError("an Admission is made by the gate only")
        put = object.__setattr__
        put(self, "kind", kind)
        put(self, "digest", digest)
        put(self, "target_id", target_id)
        put(self, "authority", authority)
        put(self, "seq", seq)
        put(self, "_mac", self._seal())
        put(self, "_spent", False)

    def spend(self, *, kind: str, digest: str) -> None:
        """Use it up for exactly this order or probe.

        Raises:
            SealError: altered, used before, or made for something else.
        """
        if self._spent:
            raise SealError("this Admission was used before; nothing was started")
        if not hmac.compare_digest(self._mac, self._seal()):
            raise SealError("this Admission was altered; nothing was started")
        if (self.kind, self.digest) != (kind, digest):
            raise SealError("this Admission is for another order; nothing was started")
        object.__setattr__(self, "_spent", True)
        object.__setattr__(self, "_mac", b"")  # so that resetting `_spent` alone revives nothing

    def _seal(self) -> bytes:
        words = (self.kind, self.digest, self.target_id, self.authority, str(self.seq), str(id(self)))
        return hmac.digest(_KEY, hashlib.sha256("\0".join(words).encode()).digest(), "sha256")

    def __setattr__(self, name: str, value: object) -> Never:
        raise SealError("an Admission cannot be changed")

    def __delattr__(self, name: str) -> Never:
        raise SealError("an Admission cannot be changed")

    def __copy__(self) -> Never:
        raise SealError("an Admission cannot be copied")

    def __deepcopy__(self, memo: object) -> Never:
        raise SealError("an Admission cannot be copied")

    def __reduce_ex__(self, protocol: SupportsIndex) -> Never:
        raise SealError("an Admission cannot be pickled")

    def __init_subclass__(cls) -> Never:
        raise SealError("an Admission has no subclasses")

    def __repr__(self) -> str:
        return f"Admission(kind={self.kind!r}, target_id={self.target_id!r}, authority={self.authority!r})"


def seal(*, kind: str, digest: str, target_id: str, authority: str, seq: int) -> Admission:
    """Make an Admission. Called by `oikos.domain.gate` alone; a lint rule and a test hold that."""
    return Admission(_GATE, kind=kind, digest=digest, target_id=target_id, authority=authority, seq=seq)
