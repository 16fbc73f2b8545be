"""A controller that can be killed: starts or attaches one run, keeps what it gets on disk, dies where it is told to.

usage: python -m tests.fleet.controller JOB.json [POINT]
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from oikos.adapters.fleet.notes import Note, Notes
from oikos.domain.inventory import AccessPath, Entity, Transport
from oikos.domain.run import RunOrder, Stream
from tests.fleet.kit import admission, order, route_to, runner, user

POINTS = ("before_note", "after_note", "after_sent", "after_started", "after_chunk", "before_end", "on_attach")


def die(point: str) -> None:
    """End without a trace of goodbye, if this is the point."""
    if sys.argv[2:] == [point]:
        os.kill(os.getpid(), signal.SIGKILL)


class DyingNotes(Notes):
    """Notes around which a controller dies."""

    async def put(self, run_id: str, note: Note) -> None:
        die("before_note")
        await super().put(run_id, note)
        die("after_note")


class Disk:
    """A sink that appends to files: their sizes are the offsets to resume from."""

    def __init__(self, home: Path) -> None:
        self.paths = {stream: home / stream.value for stream in Stream}

    async def output(self, stream: Stream, offset: int, data: bytes) -> None:
        path = self.paths[stream]
        assert offset == (path.stat().st_size if path.exists() else 0)
        with path.open("ab") as file:
            file.write(data)
        die("after_chunk")

    async def started(self, detail: str) -> None:
        die("after_started")

    def offsets(self) -> dict[Stream, int]:
        return {stream: path.stat().st_size if path.exists() else 0 for stream, path in self.paths.items()}


async def main(job: Any) -> None:
    home = Path(job["home"])
    entity = Entity(
        id="id-far", kind="host", slug="far",
        access=AccessPath(
            transport=Transport.SSH, address="127.0.0.1", port=job["port"], user=user(), key=job["key"],
            host_keys=tuple(job["host_keys"]),
        ),
    )  # fmt: skip
    made: RunOrder = order(entity, job["command"], number=job["number"], total_s=60)
    fleet = runner(home)
    follower: Any = fleet._follower
    follower._notes = DyingNotes(home / "notes")
    if sys.argv[2:] == ["after_sent"]:
        carrier: Any = fleet._carrier
        begin = carrier.start

        async def start_and_die(way: Any, program: Any, **more: Any) -> Any:
            process = await begin(way, program, **more)
            if b"OP=start" in more.get("stdin", b""):
                await asyncio.sleep(job["after_sent_s"])  # allow: test-sleep - how far the start gets before it dies
                die("after_sent")
            return process

        carrier.start = start_and_die
    sink, journal = Disk(home), home / "journal"
    if journal.exists():
        die("on_attach")
        report = await fleet.attach(made, route_to(entity), sink, sink.offsets())
    else:
        journal.touch()
        report = await fleet.start(admission(made), made, route_to(entity), sink)
    die("before_end")
    with (home / "outcome").open("x") as file:
        file.write(repr(report.outcome))
    await fleet.acknowledge(made, route_to(entity))
    await fleet.close()


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())))
