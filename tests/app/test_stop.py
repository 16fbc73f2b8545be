"""Halt and Stop: what ends at once, what is said of running commands, and what a disowned run still holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from oikos.adapters.clock import SystemClock
from oikos.adapters.fleet.runner import FleetRunner
from oikos.app.service import Done
from oikos.domain import events as ev
from oikos.domain.admission import Admission
from oikos.domain.errors import Code, Refusal
from oikos.domain.inventory import Route
from oikos.domain.run import RunOrder, RunReport
from oikos.domain.session import Phase
from oikos.ports import Runner, Sink
from tests.app.conftest import LOOK, Hooked, Household, Open, finish, plan, run
from tests.app.test_identity import Cut
from tests.wait import until_async

pytestmark = pytest.mark.anyio

HOLD = "touch {{workshop}}/begun; while test ! -e {{workshop}}/go; do sleep 0.05; done; touch {{workshop}}/made"
MAKE = "touch {{workshop}}/made"


async def busy(house: Household) -> Done:
    """Approve, and wait until the command runs on the target."""
    await house.say("make it")
    card = await house.card()
    assert card is not None
    done = await house.oikos.service.approve(house.session_id, card, house.by)
    assert isinstance(done, Done)
    await until_async((house.workshop / "begun").exists, "the command to begin")
    return done


def alive(marker: Path) -> bool:
    """Whether any process still has the path in its command line."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if str(marker).encode() in (directory / "cmdline").read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("word", ["stop", "halt!", "cancel", "wait", "STOP."])
async def test_a_halt_word_suspends_before_any_model_call(household: Open, workshop: Path, word: str) -> None:
    script = plan(HOLD) + run(HOLD) + run(MAKE, expects="sees: [never asked]")
    model = Hooked(script, {"workshop": str(workshop)}, {})
    async with household(model) as house:
        done = await busy(house)
        asked = len(model.asked)
        halted = await house.oikos.service.send(house.session_id, word, house.by)
        assert isinstance(halted, Done)
        state = await house.state()
        assert state.window is not None
        assert (state.phase, state.window.suspended, state.halted) == (Phase.BLOCKED, True, True)
        (workshop / "go").touch()
        state = await house.rest(done)
        assert (state.phase, state.halted, len(state.running)) == (Phase.BLOCKED, True, 0), (
            "the run ended, nothing else began"
        )
        assert len(model.asked) == asked


class Short(Cut):
    """A real Runner whose runs seem short; an operator speaks while one with a text runs."""

    def __init__(self, inner: Runner, text: str) -> None:
        super().__init__(inner, text)
        self.speak: Callable[[], Awaitable[object]] | None = None

    async def start(self, admission: Admission, order: RunOrder, route: Route, sink: Sink) -> RunReport:
        report = await self._inner.start(admission, order, route, sink)
        if self._text in order.command and self.speak is not None:
            await self.speak()
        return replace(report, duration_s=0.001)


async def test_a_halt_during_the_shortest_run_is_heard_before_the_model_is_asked_again(
    household: Open, workshop: Path, tmp_path: Path
) -> None:
    model = Hooked(plan(MAKE) + run(MAKE) + finish(), {"workshop": str(workshop)}, {})
    inner = FleetRunner(clock=SystemClock(), notes=tmp_path / "notes", secret=lambda reference: reference)
    runner = Short(inner, str(workshop / "made"))
    async with household(model, runner=runner) as house:
        runner.speak = lambda: house.send("halt")
        await house.say("make it")
        state = await house.approve()
        assert (state.phase, state.halted, state.running) == (Phase.BLOCKED, True, ())
        assert len(model.asked) == 3, "goal, plan, the run; nothing after the halt"


async def test_go_resumes_what_was_halted(household: Open) -> None:
    script = plan(HOLD) + run(HOLD) + finish()
    async with household(script) as house:
        await busy(house)
        halted = await house.send("halt")
        (house.workshop / "go").touch()
        await house.rest(halted)
        state = await house.say("go")
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for


async def test_a_command_the_model_asks_for_after_the_halt_is_not_run(household: Open, workshop: Path) -> None:
    model = Hooked(plan(MAKE) + run(MAKE) + finish(), {"workshop": str(workshop)}, {})
    async with household(model) as house:

        async def halt() -> None:
            await house.send("halt")

        model.hooks[3] = halt
        await house.say("make it")
        state = await house.approve()
        assert (state.phase, state.halted, state.parked) == (Phase.BLOCKED, True, None)
        assert await house.refusals() == ["batch_ended"]
        assert not (workshop / "made").exists()


async def test_stop_kills_what_runs_and_says_that_it_is_dead(household: Open) -> None:
    async with household(plan(HOLD) + run(HOLD)) as house:
        await busy(house)
        stopped = await house.oikos.service.stop(house.session_id, house.by)
        assert isinstance(stopped, Done)
        [(run_id, known)] = stopped.stopped
        assert known == "killed"
        state = await house.until(lambda state: state.phase is Phase.STOPPED and not state.running and not state.turn)
        assert not await anyio.to_thread.run_sync(alive, house.workshop / "go")
        [ended] = [e for e in await house.only(ev.RunFinished) if isinstance(e, ev.RunFinished) and e.run_id == run_id]
        assert ended.report.outcome.kind == "signalled"
        assert (state.window, state.status.value) == (None, "closed")


async def test_stop_also_ends_a_plain_read(household: Open) -> None:
    look = "while test ! -e {{workshop}}/go; do sleep 0.05; done"
    async with household(LOOK + run(look)) as house:
        await house.send("look")
        await house.until(lambda state: bool(state.running))
        stopped = await house.oikos.service.stop(house.session_id, house.by)
        assert isinstance(stopped, Done)
        assert len(stopped.stopped) == 1
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.running and not state.turn)


async def test_a_disowned_run_holds_the_targets_lock_until_its_outcome_is_known(household: Open) -> None:
    async with household(plan(HOLD) + run(HOLD) + plan(MAKE) + run(MAKE) + finish()) as house:
        await busy(house)
        stopped = await house.oikos.service.stop(house.session_id, house.by, kill=False)
        assert isinstance(stopped, Done)
        assert stopped.stopped[0][1].startswith("disowned")
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.turn)
        state = await house.state()
        assert len(state.running) == 1
        [busy_run] = await house.oikos.store.runs(unfinished=True)
        (house.workshop / "go").touch()
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.running)
        assert await house.oikos.store.runs(unfinished=True) == []
        [ended] = [
            e for e in await house.only(ev.RunFinished) if isinstance(e, ev.RunFinished) and e.run_id == busy_run.run_id
        ]
        assert ended.report.outcome.kind == "exited"
        assert (house.workshop / "made").exists()


async def test_a_disowned_run_is_followed_to_its_end_by_the_next_process(household: Open) -> None:
    script = plan(HOLD) + run(HOLD)
    async with household(script) as house:
        session_id = house.session_id
        await busy(house)
        await house.oikos.service.stop(session_id, house.by, kill=False)
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.turn)
    (house.workshop / "go").touch()
    async with household(script, session_id=session_id) as house:
        state = await house.until(lambda state: state.phase is Phase.STOPPED and not state.running)
        assert [run.outcome and run.outcome.kind for run in state.runs.values()] == ["exited", "exited"]


async def test_stop_works_from_another_process_on_the_home(household: Open) -> None:
    script = plan(HOLD) + run(HOLD)
    async with household(script) as house:
        await busy(house)
        async with household(script, session_id=house.session_id, work=False) as other:
            stopped = await other.oikos.service.stop(house.session_id, other.by)
        assert isinstance(stopped, Done)
        assert [known for _, known in stopped.stopped] == ["killed"]
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.running and not state.turn)


async def test_stop_while_the_model_thinks_ends_the_turn(household: Open, workshop: Path) -> None:
    never = anyio.Event()
    thinking = anyio.Event()

    async def think() -> None:
        thinking.set()
        await never.wait()

    model = Hooked("- text: hello\n", {}, {1: think})
    async with household(model) as house:
        await house.send("hello")
        await thinking.wait()
        assert isinstance(await house.oikos.service.stop(house.session_id, house.by), Done)
        state = await house.until(lambda state: state.phase is Phase.STOPPED and not state.turn)
        assert await house.only(ev.AssistantSaid) == []
        assert state.outcome == "stopped"


async def test_a_stopped_session_is_not_revived_by_assent_refusal_or_an_approval(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        service = house.oikos.service
        assert isinstance(await service.stop(house.session_id, house.by), Done)
        seq = (await house.state()).seq
        approved = await service.approve(house.session_id, card, house.by)
        assert isinstance(approved, Refusal)
        assert approved.code is Code.SESSION_OVER
        assent = await service.send(house.session_id, "yes", house.by)
        assert isinstance(assent, Refusal)
        assert assent.code is Code.NOTHING_PENDING
        assert isinstance(await service.send(house.session_id, "no", house.by), Done)
        assert isinstance(await service.send(house.session_id, "stop", house.by), Done)
        state = await house.state()
        assert (state.phase, state.seq > seq) == (Phase.STOPPED, True)
        assert await house.oikos.store.consents() == []


async def test_a_follow_up_to_a_stopped_session_answers_its_open_calls_and_goes_on(household: Open) -> None:
    script = (
        plan(HOLD) + run(HOLD) + "- sees: [batch_ended, reopened]\n  text: here again\n".replace("batch_ended, ", "")
    )
    async with household(script) as house:
        await busy(house)
        await house.oikos.service.stop(house.session_id, house.by)
        await house.until(lambda state: state.phase is Phase.STOPPED and not state.running and not state.turn)
        state = await house.say("what is there now?")
        assert state.phase is Phase.IDLE, state.waits_for


async def test_halt_rejects_a_plan_that_waits(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        await house.say("make it")
        state = await house.say("stop")
        assert (state.phase, state.status.value, state.hold_proposals) == (Phase.IDLE, "rejected", True)


async def test_revoke_closes_the_window_and_the_next_change_asks(household: Open) -> None:
    script = plan(HOLD) + run(HOLD) + run("touch {{workshop}}/two")
    async with household(script) as house:
        done = await busy(house)
        assert isinstance(await house.oikos.service.revoke(house.session_id, house.by), Done)
        (house.workshop / "go").touch()
        state = await house.rest(done)
        assert (state.phase, state.awaiting_run) == (Phase.AWAITING, True)
        assert (house.workshop / "made").exists(), "what ran went on"
        assert not (house.workshop / "two").exists()
