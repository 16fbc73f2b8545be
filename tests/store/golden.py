"""Writes a golden file for every event kind and version that has none; a released one is never written again.

    python -m tests.store.golden

A file is an event as the store holds it. Whoever changes the shape of a released event raises its version in
`codec.VERSIONS`, adds an upcaster and runs this; the old file stays and must load for ever (DESIGN §1).
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.store.samples import EVENT_CLASSES, sample

from oikos.adapters.store import codec

GOLDEN = Path(__file__).with_name("golden")


def path_of(kind: str, version: int) -> Path:
    """Where the file of a kind and version lies."""
    return GOLDEN / f"{kind}.v{version}.json"


def write_missing() -> list[Path]:
    """The files that were written."""
    written: list[Path] = []
    for cls in (*EVENT_CLASSES, codec.BlobPurged):
        encoded = codec.encode(sample(cls))
        path = path_of(encoded.kind, encoded.version)
        if not path.exists():
            path.write_text(json.dumps(json.loads(encoded.body), indent=1, ensure_ascii=False) + "\n")
            written.append(path)
    return written


if __name__ == "__main__":
    for made in write_missing():
        print(made)
