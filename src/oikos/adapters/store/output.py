"""What is stored of a run's output stream, as one piece: whole up to its cap, else head, gap and tail (SPEC R5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oikos.adapters.store import statements as sql
from oikos.domain.run import Stream

if TYPE_CHECKING:
    from oikos.adapters.store.dialect import Connection


def read(connection: Connection, run_id: str, stream: Stream) -> bytes:
    """Head and tail are exact halves of the cap, though whole chunks are kept around the gap."""
    row = connection.execute(sql.OUTPUT_STREAM, (run_id, stream)).fetchone()
    if row is None:
        return b""
    total, cap = row[0], row[1]
    chunks = [(position, bytes(data)) for position, data in connection.execute(sql.CHUNKS, (run_id, stream))]
    if not chunks:
        return b"[purged: %d bytes]" % total if total else b""
    if total <= cap:
        return b"".join(data for _, data in chunks)
    head_end, tail_start = cap // 2, total - cap // 2
    head = b"".join(data[: head_end - position] for position, data in chunks if position < head_end)
    tail = b"".join(
        data[max(0, tail_start - position) :] for position, data in chunks if position + len(data) > tail_start
    )
    return head + b"\n[%d bytes left out here]\n" % (tail_start - head_end) + tail
