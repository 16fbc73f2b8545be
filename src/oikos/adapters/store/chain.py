"""The hash chain over all events, and the one over the consent ledger (SPEC R10.1).

Each row's hash covers the hash before it and every chained column, so that an edited, deleted, reordered or
inserted row is seen by `oikos audit verify` alone; a cut-off end or a rewritten chain is seen against a head that
was exported before (security/THREATS T28).
"""

from __future__ import annotations

import hashlib

import orjson

GENESIS = bytes(32)
"""What comes before the first row."""


def link(prev: bytes, *columns: str | float) -> bytes:
    """The hash of a row after `prev`: SHA-256 over it and the columns as a JSON list."""
    return hashlib.sha256(prev + orjson.dumps(columns)).digest()
