"""Commands on machines: Oikos's Runner beside bare asyncssh, ssh with ControlMaster and a local spawn, in one run.

    python bench/runs.py [--rounds 3] [--count 50] [--megabytes 100]

Rounds are interleaved, cells are medians over rounds of each round's median; only ratios inside one run mean anything.
The server is a private OpenSSH on loopback; `20 ms` goes through a relay that delays each direction by 10 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import asyncssh
from tests.fleet.kit import admission, local, order, remote, route_to, runner, user
from tests.fleet.servers import Proxy, Server, server

from oikos.adapters.fleet.runner import FleetRunner
from oikos.domain.inventory import Entity
from oikos.domain.run import Exited, Stream

RTT_S = 0.02
One = Callable[[], Awaitable[None]]
_numbers = itertools.count(1)


class Nowhere:
    """A sink that only counts."""

    def __init__(self) -> None:
        self.bytes = 0

    async def output(self, stream: Stream, offset: int, data: bytes) -> None:
        self.bytes += len(data)

    async def started(self, detail: str) -> None:
        pass


def cpu_s() -> float:
    """CPU of this process and its finished children."""
    return sum(
        u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def oikos(fleet: FleetRunner, entity: Entity, *, supervised: bool, command: str = "true", least: int = 0) -> One:
    """One command through the Runner."""
    route = route_to(entity)

    async def one() -> None:
        made, sink = order(entity, command, number=next(_numbers), supervised=supervised, total_s=300), Nowhere()
        report = await fleet.start(admission(made), made, route, sink)
        assert report.outcome == Exited(code=0), report
        assert sink.bytes >= least

    return one


async def bare(sshd: Server, port: int) -> asyncssh.SSHClientConnection:
    """asyncssh as its documentation shows it, with host keys checked."""
    trusted = [asyncssh.import_public_key(key) for key in sshd.host_keys()]
    return await asyncssh.connect(
        "127.0.0.1", port, username=user(), client_keys=[str(sshd.key)], known_hosts=(trusted, [], []), config=None,
        agent_path=None,
    )  # fmt: skip


def asyncssh_run(connection: asyncssh.SSHClientConnection) -> One:
    """One command through asyncssh."""

    async def one() -> None:
        assert (await connection.run("true", encoding=None, stdin=asyncssh.DEVNULL)).exit_status == 0

    return one


def asyncssh_stream(connection: asyncssh.SSHClientConnection, command: str, least: int) -> One:
    """One large output through asyncssh."""

    async def one() -> None:
        total = 0
        async with connection.create_process(command, encoding=None, stdin=asyncssh.DEVNULL) as process:
            while data := await process.stdout.read(262_144):
                total += len(data)
            await process.wait()
        assert total >= least

    return one


@contextlib.asynccontextmanager
async def control_master(sshd: Server, place: Path) -> AsyncIterator[One]:
    """ssh with a running master."""
    (place / "known").write_text("".join(f"[127.0.0.1]:{sshd.port} {key}\n" for key in sshd.host_keys()))
    common = [
        "ssh", "-F", "none", "-o", f"UserKnownHostsFile={place}/known", "-o", "LogLevel=ERROR", "-i", str(sshd.key),
        "-p", str(sshd.port), "-S", str(place / "cm"), "-l", user(),
    ]  # fmt: skip
    master = await asyncio.create_subprocess_exec(*common, "-M", "-N", "127.0.0.1", stdin=subprocess.DEVNULL)
    while not (place / "cm").exists():  # noqa: ASYNC110 - ssh says nothing when its master is ready
        await asyncio.sleep(0.01)

    async def one() -> None:
        done = await asyncio.create_subprocess_exec(*common, "127.0.0.1", "true", stdin=subprocess.DEVNULL)
        assert await done.wait() == 0

    yield one
    master.terminate()
    await master.wait()


async def spawn() -> None:
    """A local process, as the standard library starts it."""
    subprocess.run(["/bin/sh", "-c", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=True)  # noqa: ASYNC221 - the floor is the blocking call


async def spawn_bash() -> None:
    """The same with the shell that Oikos uses."""
    words = ["bash", "--noprofile", "--norc", "-c", "true"]
    subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)  # noqa: ASYNC221 - as above


async def measure(table: dict[str, One], rounds: int, count: int) -> dict[str, tuple[float, float]]:
    """Median milliseconds and CPU milliseconds of one call."""
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in table}
    for one in table.values():
        await one()
    for _ in range(rounds):
        for name, one in table.items():
            times, cpu = [], cpu_s()
            for _ in range(count):
                began = time.perf_counter()
                await one()
                times.append((time.perf_counter() - began) * 1e3)
            seen[name].append((statistics.median(times), (cpu_s() - cpu) * 1e3 / count))
    return {name: (statistics.median(a for a, _ in v), statistics.median(b for _, b in v)) for name, v in seen.items()}


def show(title: str, found: dict[str, tuple[float, float]], base: str) -> None:
    """Print one table."""
    print(f"\n{title:<34} {'ms':>9} {'CPU ms':>8}   ratio to {base}")
    for name, (wall, cpu) in found.items():
        ratios = f"{wall / found[base][0]:5.2f}  CPU {cpu / max(found[base][1], 1e-3):5.2f}"
        print(f"  {name:<32} {wall:9.2f} {cpu:8.2f}   {ratios}")


async def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--count", type=int, default=50)
    arguments.add_argument("--megabytes", type=int, default=100)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        place = Path(name)
        for part in ("sshd", "home"):
            (place / part).mkdir()
        os.environ["HOME"] = str(place / "home")
        sshd = stack.enter_context(server(place / "sshd"))
        fleet = runner(place / "home")
        far = remote(sshd)
        connection = await bare(sshd, sshd.port)
        found = await measure(
            {
                "local spawn (sh)": spawn,
                "local spawn (bash)": spawn_bash,
                "oikos local, read": oikos(fleet, local(), supervised=False),
                "oikos local, supervised": oikos(fleet, local(), supervised=True),
            },
            given.rounds, given.count,
        )  # fmt: skip
        show("local `true`", found, "local spawn (sh)")
        async with control_master(sshd, place) as mux:
            found = await measure(
                {
                    "bare asyncssh": asyncssh_run(connection),
                    "ssh + ControlMaster": mux,
                    "oikos ssh, read": oikos(fleet, far, supervised=False),
                    "oikos ssh, supervised": oikos(fleet, far, supervised=True),
                },
                given.rounds, given.count,
            )  # fmt: skip
        show("`true` over ssh on loopback", found, "bare asyncssh")

        relay = Proxy(target=sshd.port)
        await relay.start()
        delayed, slow = remote(sshd, port=relay.port, slug="slow"), await bare(sshd, relay.port)
        reads, bares = oikos(fleet, delayed, supervised=False), asyncssh_run(slow)

        def at(rtt_s: float, one: One) -> One:
            """The same command, over a link that takes `rtt_s` there and back."""

            async def call() -> None:
                relay.delay_s = rtt_s / 2
                await one()

            return call

        found = await measure(
            {
                "bare asyncssh, no delay": at(0, bares),
                "oikos ssh, read, no delay": at(0, reads),
                "bare asyncssh": at(RTT_S, bares),
                "oikos ssh, read": at(RTT_S, reads),
            },
            given.rounds, 20,
        )  # fmt: skip
        show("`true` over ssh at 20 ms", found, "bare asyncssh")
        for name in ("bare asyncssh", "oikos ssh, read"):
            whole, near = found[name][0], found[f"{name}, no delay"][0]
            print(
                f"  {name}: {whole / RTT_S / 1e3:.2f} round trips with the server's own work, "
                f"{(whole - near) / RTT_S / 1e3:.2f} of the network alone (goal <= 1.3)"
            )
        slow.close()

        size = given.megabytes * 1_000_000
        command = f"yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -c {size}"
        found = await measure(
            {
                "bare asyncssh": asyncssh_stream(connection, command, size),
                "oikos ssh, read": oikos(fleet, far, supervised=False, command=command, least=size),
                "oikos ssh, supervised": oikos(fleet, far, supervised=True, command=command, least=size),
            },
            given.rounds, 1,
        )  # fmt: skip
        show(f"{given.megabytes} MB over ssh", found, "bare asyncssh")
        print(f"  peak memory of all of this: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")

        async def connect_bare() -> None:
            made = await bare(sshd, sshd.port)
            await asyncssh_run(made)()
            made.close()

        async def connect_oikos() -> None:
            made = runner(place / "home")
            await oikos(made, far, supervised=False)()
            await made.close()

        show(
            "connect and one `true`",
            await measure({"bare asyncssh": connect_bare, "oikos ssh, read": connect_oikos}, given.rounds, 5),
            "bare asyncssh",
        )
        connection.close()
        await fleet.close()
        await relay.stop()


if __name__ == "__main__":
    asyncio.run(main())
