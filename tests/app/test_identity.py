"""When a machine is asked again who it is: once a generation, and after a run was cut off (SPEC R5.8)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from oikos.adapters.clock import SystemClock
from oikos.adapters.fleet.runner import FleetRunner
from oikos.domain import events as ev
from oikos.domain.admission import Admission
from oikos.domain.inventory import Identity, Route
from oikos.domain.run import Lost, RemoteState, RunOrder, RunReport, Stream
from oikos.domain.session import Phase
from oikos.ports import Runner, Sink
from tests.app.conftest import Hooked, Open, finish, plan, run
from tests.fleet.kit import remote
from tests.fleet.servers import Proxy, server

pytestmark = pytest.mark.anyio

ONE, TWO, THREE = (f"touch {{{{workshop}}}}/{name}" for name in ("one", "two", "three"))
LOOK = "cat {{workshop}}/one"


class Cut:
    """A real Runner whose connection dies under the commands that contain a text."""

    def __init__(self, inner: Runner, text: str) -> None:
        self._inner, self._text = inner, text

    async def start(self, admission: Admission, order: RunOrder, route: Route, sink: Sink) -> RunReport:
        report = await self._inner.start(admission, order, route, sink)
        return RunReport(outcome=Lost(reason="the line was cut")) if self._text in order.command else report

    async def attach(self, order: RunOrder, route: Route, sink: Sink, offsets: Mapping[Stream, int]) -> RunReport:
        return await self._inner.attach(order, route, sink, offsets)

    async def kill(self, order: RunOrder, route: Route) -> RemoteState:
        return await self._inner.kill(order, route)

    async def acknowledge(self, order: RunOrder, route: Route) -> None:
        await self._inner.acknowledge(order, route)

    async def probe(self, admission: Admission, route: Route) -> Identity:
        return await self._inner.probe(admission, route)

    def connection(self, route: Route) -> str:
        return self._inner.connection(route)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.parametrize(("cut", "probes"), [("cat ", 2), ("no such", 1)])
async def test_a_change_after_a_run_that_was_cut_off_asks_the_machine_again_who_it_is(
    household: Open, tmp_path: Path, cut: str, probes: int
) -> None:
    script = plan(ONE, TWO) + run(ONE, step=1) + run(LOOK) + run(TWO, step=2) + finish(2)
    runner = Cut(FleetRunner(clock=SystemClock(), notes=tmp_path / "notes", secret=lambda reference: reference), cut)
    async with household(script, runner=runner) as house:
        await house.say("make both")
        state = await house.approve()
        assert state.phase is Phase.DONE
        started = [event for event in await house.events() if isinstance(event, ev.RunStarted)]
        assert sum(event.authority == "probe" for event in started) == probes


async def test_another_process_asks_again(household: Open) -> None:
    first = plan(ONE, TWO) + run(ONE, step=1) + "- text: resting\n- text: still resting\n"
    async with household(first) as house:
        await house.say("make both")
        state = await house.approve()
        assert state.phase is Phase.BLOCKED
        session_id = house.session_id
    async with household(first + run(TWO, step=2) + finish(2), session_id=session_id) as house:
        state = await house.say("and now the other")
        assert state.phase is Phase.DONE
        started = [event for event in await house.events() if isinstance(event, ev.RunStarted)]
        assert sum(event.authority == "probe" for event in started) == 2


async def test_a_change_over_a_new_connection_asks_the_machine_again_who_it_is(
    household: Open, workshop: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The pool connects again by itself; the machine at the other end may be another one since."""
    script = plan(ONE, TWO, THREE) + run(ONE, step=1) + run(TWO, step=2) + run(THREE, step=3) + finish(3)
    with server(tmp_path_factory.mktemp("sshd")) as sshd:
        relay = Proxy(target=sshd.port)
        await relay.start()
        try:
            box = remote(sshd, port=relay.port, slug="box")

            async def cut() -> None:
                relay.cut()

            model = Hooked(script, {"workshop": str(workshop)}, {4: cut})
            async with household(model, targets=(box,)) as house:
                await house.say("make all three")
                state = await house.approve()
                assert state.phase is Phase.DONE, state
                started = [event for event in await house.events() if isinstance(event, ev.RunStarted)]
                assert [event.authority == "probe" for event in started] == [True, False, True, False, False, False]
        finally:
            await relay.stop()


async def test_a_host_key_that_changed_closes_the_window_for_that_machine(
    household: Open, workshop: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    script = plan(ONE, TWO) + run(ONE, step=1) + run(TWO, step=2) + run(TWO, expects="refused: identity_mismatch")
    with server(tmp_path_factory.mktemp("sshd")) as sshd:

        def renew() -> None:
            sshd.kill_sessions()
            sshd.stop()
            sshd.renew_host_keys()
            sshd.start()

        async def another_machine() -> None:
            await anyio.to_thread.run_sync(renew)

        model = Hooked(script, {"workshop": str(workshop)}, {4: another_machine})
        async with household(model, targets=(remote(sshd, slug="box"),)) as house:
            await house.say("make both")
            state = await house.approve()
            assert (state.phase, state.window) == (Phase.AWAITING, None), "the next change asks"
            [closed] = [event for event in await house.events() if isinstance(event, ev.WindowClosed)]
            assert closed == ev.WindowClosed(generation=1, reason="identity", target_id="id-box")
            [told] = [answer for answer in await house.answers("run") if "refused" in answer]
            assert "THE HOST KEY OF" in str(told["text"])
            assert not (workshop / "two").exists()
