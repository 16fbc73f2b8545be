"""What the tests of the fleet share: a sink that checks offsets, entities, orders, and a runner."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from oikos.adapters.fleet.runner import FleetRunner
from oikos.adapters.fleet.spool import Filled
from oikos.domain import secret_files
from oikos.domain.admission import Admission, seal
from oikos.domain.instant import Instant
from oikos.domain.inventory import AccessPath, Entity, Inventory, Route, Transport
from oikos.domain.run import Limits, RunOrder, RunReport, Stream
from tests.fleet.servers import Server


class RealClock:
    """The clock of this machine."""

    def __init__(self, offset_s: float = 0.0) -> None:
        self.offset_s = offset_s

    def now(self) -> Instant:
        """This moment, by a wall clock that may be wrong."""
        return Instant(wall_s=time.time() + self.offset_s, boot_s=time.monotonic(), boot_id="here")

    async def sleep(self, seconds: float) -> None:
        """Wait in earnest."""
        await anyio.sleep(seconds)  # allow: test-sleep - the Clock port of this machine


@dataclass
class Collect:
    """A sink that keeps everything and refuses gaps and repeats."""

    data: dict[Stream, bytearray] = field(default_factory=lambda: {stream: bytearray() for stream in Stream})
    base: dict[Stream, int] = field(default_factory=lambda: dict.fromkeys(Stream, 0))
    details: list[str] = field(default_factory=list)
    seen: anyio.Event = field(default_factory=anyio.Event)
    """Set when the first byte or the start came."""

    async def output(self, stream: Stream, offset: int, data: bytes) -> None:
        """Take bytes that must follow what is here."""
        assert offset == self.base[stream] + len(self.data[stream]), "a gap or a repeat"
        self.data[stream] += data
        self.seen.set()

    async def started(self, detail: str) -> None:
        """Take the claim."""
        self.details.append(detail)

    @property
    def out(self) -> bytes:
        """All of standard output."""
        return bytes(self.data[Stream.OUT])

    @property
    def err(self) -> bytes:
        """All of standard error."""
        return bytes(self.data[Stream.ERR])

    def offsets(self) -> Mapping[Stream, int]:
        """Where a follower would resume."""
        return {stream: self.base[stream] + len(data) for stream, data in self.data.items()}


def local(slug: str = "here") -> Entity:
    """This machine."""
    return Entity(id=f"id-{slug}", kind="host", slug=slug, access=AccessPath(transport=Transport.LOCAL))


def remote(server: Server, *, port: int = 0, host_keys: tuple[str, ...] | None = None, slug: str = "far") -> Entity:
    """A machine behind a server."""
    return Entity(
        id=f"id-{slug}", kind="host", slug=slug,
        access=AccessPath(
            transport=Transport.SSH, address="127.0.0.1", port=port or server.port, user=user(), key=str(server.key),
            host_keys=server.host_keys() if host_keys is None else host_keys,
        ),
    )  # fmt: skip


def guest(number: str, via: str) -> Entity:
    """A container on a node."""
    return Entity(
        id=f"id-ct{number}", kind="lxc", slug=f"ct{number}",
        access=AccessPath(transport=Transport.PCT, guest=number, via=via),
    )  # fmt: skip


def user() -> str:
    """Who the tests log in as."""
    import getpass

    return getpass.getuser()


def route_to(entity: Entity, *others: Entity) -> Route:
    """The way to an entity."""
    found = Inventory(entities={e.id: e for e in (entity, *others)}).route(entity)
    assert found is not None
    return found


def order(
    entity: Entity,
    command: str,
    *,
    number: int = 1,
    supervised: bool = True,
    total_s: float = 30.0,
    idle_s: float = 0.0,
    kill_bytes: int = 1 << 30,
    stdin: str | None = None,
    keep: bool = False,
    not_after_s: float | None = None,
    connect_s: float = 5.0,
) -> RunOrder:
    """A journalled run."""
    return RunOrder(
        run_id=f"{number:032x}", session_id="s", generation=1, target_id=entity.id, command=command, stdin=stdin,
        supervised=supervised, keep=keep, not_after_s=not_after_s,
        limits=Limits(total_s=total_s, idle_s=idle_s, kill_bytes=kill_bytes, connect_s=connect_s),
    )  # fmt: skip


def admission(made: RunOrder) -> Admission:
    """What the gate would give for it."""
    return seal(kind="run", digest=made.digest(), target_id=made.target_id, authority="a test", seq=1)


def runner(
    home: Path, *, patience_s: float = 20.0, offset_s: float = 0.0, secret: str = "", files: str = ""
) -> FleetRunner:
    """A runner whose notes lie in `home`; every secret file that an order names holds `files`."""

    async def fill(made: RunOrder) -> Filled:
        return filled(made, files)

    return FleetRunner(
        clock=RealClock(offset_s), notes=home / "notes", secret=lambda _: secret, fill=fill if files else None,
        agent="", patience_s=patience_s,
    )  # fmt: skip


def filled(made: RunOrder, value: str) -> Filled:
    """An order as it travels, when every secret file that it names holds the same."""
    return Filled.of(
        made, command=secret_files.placed(made.command, made.run_id), stdin=made.stdin,
        files=dict.fromkeys(secret_files.named_in(made.command), value),
    )  # fmt: skip


async def run(fleet: FleetRunner, made: RunOrder, entity: Entity, sink: Collect, *others: Entity) -> RunReport:
    """Start an order and wait for its end."""
    return await fleet.start(admission(made), made, route_to(entity, *others), sink)
