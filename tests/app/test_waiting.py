"""Waiting without a person: timers, background runs, runs that outlive their limit."""

from __future__ import annotations

import os
from collections.abc import Sequence

import anyio
import pytest

from oikos.domain import events as ev
from oikos.domain.errors import Refusal
from oikos.domain.run import Stream
from oikos.domain.session import Phase
from oikos.ports import RunRow
from tests.app.conftest import WAIT_S, Household, Open, finish, plan, run
from tests.wait import until_async

pytestmark = pytest.mark.anyio

HOLD = "while test ! -e {{workshop}}/go; do sleep 0.05; done; touch {{workshop}}/made"
WAIT = "- calls: [{tool: wait, args: {run: '{{run:last}}', seconds: 3600, reason: it works}}]\n"


async def test_a_timer_ends_a_wait_and_answers_its_call(household: Open) -> None:
    script = """
- calls: [{tool: wait, args: {seconds: 0.2, reason: let it settle}}]
- sees: ['"ended_by": "timer"']
  text: up
"""
    async with household(script) as house:
        state = await house.say("is it up?")
        assert state.phase is Phase.IDLE
        assert [type(event).__name__ for event in await house.only(ev.WaitBegun, ev.WaitEnded)] == [
            "WaitBegun",
            "WaitEnded",
        ]


async def test_a_message_ends_a_wait(household: Open) -> None:
    script = """
- calls: [{tool: wait, args: {seconds: 3600, reason: lunch}}]
- sees: ['"ended_by": "message"', hurry]
  text: on it
"""
    async with household(script) as house:
        await house.send("is it up?")
        await house.until(lambda state: state.phase is Phase.WAITING)
        state = await house.say("do hurry")
        assert state.phase is Phase.IDLE


async def test_a_background_run_wakes_its_session_when_it_ends_and_its_output_is_kept(household: Open) -> None:
    command = HOLD + "; echo finished at last"
    begun = WAIT.replace("- calls", '- sees: [\'"status":"running"\']\n  calls')
    ended = """
- sees: ['"ended_by": "run"', 'has finished: exit 0']
  calls: [{tool: read_output, args: {run: '{{run:last}}'}}]
"""
    script = plan(command) + run(command, background=True) + begun + ended + finish()
    async with household(script) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(house.session_id, card, house.by)
        await house.until(lambda state: state.phase is Phase.WAITING)
        (house.workshop / "go").touch()
        state = await house.rest(done)
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        [read] = await house.answers("read_output")
        assert read["text"] == "1: finished at last"
        assert len(await house.only(ev.OperatorSaid)) == 1


async def test_a_text_only_reply_while_a_run_goes_on_waits_for_it(household: Open) -> None:
    script = plan(HOLD) + run(HOLD, background=True) + "- text: I wait.\n" + finish()
    async with household(script) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(house.session_id, card, house.by)
        await house.until(lambda state: state.phase is Phase.WAITING)
        (house.workshop / "go").touch()
        state = await house.rest(done)
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        assert await house.only(ev.Nudged) == []


async def test_a_run_that_may_go_on_detaches_at_its_limit_and_is_not_killed(household: Open) -> None:
    script = plan(HOLD) + run(HOLD, timeout_s=1, keep=True) + WAIT + finish()
    async with household(script) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(house.session_id, card, house.by)
        await house.until(lambda state: state.phase is Phase.WAITING)
        assert await house.only(ev.RunDetached) == [
            ev.RunDetached(run_id=(await house.state()).waiting.run_id, reason="time limit")
        ]  # type: ignore[union-attr]  # it waits
        (house.workshop / "go").touch()
        state = await house.rest(done)
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for


async def test_a_run_over_its_limit_says_that_the_remote_process_was_killed(household: Open) -> None:
    command = "touch {{workshop}}/made; sleep 60"
    script = (
        plan(command)
        + run(command, timeout_s=1)
        + "- sees: ['timed out (total); remote process killed']\n  text: a\n- text: b\n"
    )
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is Phase.BLOCKED
        assert state.blocked is not None
        assert state.blocked.on == "nudge"


async def test_the_outcome_of_a_detached_run_is_journalled_once_by_the_next_process(household: Open) -> None:
    script = plan(HOLD) + run(HOLD, background=True) + WAIT + finish()
    async with household(script) as house:
        session_id = house.session_id
        await house.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(session_id, card, house.by)
        await house.until(lambda state: state.phase is Phase.WAITING)
        assert await house.only(ev.RunFinished) != [], "the probe's"
    (house.workshop / "go").touch()
    async with household(script, session_id=session_id) as house:
        state = await house.rest(done)
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        started = [event.order.run_id for event in await house.only(ev.RunStarted) if isinstance(event, ev.RunStarted)]
        finished = [event.run_id for event in await house.only(ev.RunFinished) if isinstance(event, ev.RunFinished)]
        assert sorted(started) == sorted(finished)


async def test_leaving_while_a_command_runs_records_no_false_outcome(household: Open) -> None:
    command = "touch {{workshop}}/begun; " + HOLD
    script = plan(command) + run(command) + finish()
    async with household(script) as house:
        session_id = house.session_id
        await house.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(session_id, card, house.by)
        await until_async((house.workshop / "begun").exists, "the command to begin")
    (house.workshop / "go").touch()
    async with household(script, session_id=session_id) as house:
        state = await house.rest(done)
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        outcomes = [
            event.report.outcome.kind for event in await house.only(ev.RunFinished) if isinstance(event, ev.RunFinished)
        ]
        assert outcomes == ["exited", "exited", "exited"]


async def test_waiting_for_a_run_that_is_over_is_refused(household: Open) -> None:
    script = (
        plan("touch {{workshop}}/made")
        + run("touch {{workshop}}/made")
        + WAIT
        + "- refused: unknown_run\n  text: a\n- text: b\n"
    )
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is Phase.BLOCKED
        assert await house.refusals() == ["unknown_run"]


async def test_the_spool_of_a_finished_run_is_given_back(household: Open) -> None:
    script = plan("touch {{workshop}}/made") + run("touch {{workshop}}/made") + finish()
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert not isinstance(state, Refusal)
        runs = house.oikos.config.home / "runs"
        await until_async(lambda: not [name for name in os.listdir(runs) if name[0] != "."], "the end of all notes")


async def test_a_run_followed_by_the_next_process_shows_its_whole_output(household: Open) -> None:
    noisy = "while test ! -e {{workshop}}/go; do echo tick; sleep 0.05; done"
    command = "echo early; touch {{workshop}}/begun; " + noisy + "; echo late"
    script = plan(command) + run(command) + finish()
    async with household(script) as house:
        session_id = house.session_id
        await house.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(session_id, card, house.by)
        [run_id] = [row.run_id for row in await started(house, command) if row.authority != "probe"]
        with anyio.fail_after(WAIT_S):
            while b"early" not in await house.oikos.store.output(run_id, Stream.OUT):  # noqa: ASYNC110 - as below
                await anyio.sleep(0.01)  # allow: test-sleep - the store tells nobody of output
    (house.workshop / "go").touch()
    async with household(script, session_id=session_id) as house:
        state = await house.rest(done)
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        [first, *_] = await house.answers("run")
        output = (await house.oikos.store.output(run_id, Stream.OUT)).decode()
        assert first["stdout"] == output
        assert output.splitlines()[0] == "early"
        assert output.splitlines()[-1] == "late"
        assert set(output.splitlines()[1:-1]) == {"tick"}


async def started(house: Household, command: str) -> Sequence[RunRow]:
    """The rows of a command's runs, once it has begun on the target."""
    await until_async((house.workshop / "begun").exists, "the command to begin")
    text = command.replace("{{workshop}}", str(house.workshop))
    return [row for row in await house.oikos.service.runs(session_id=house.session_id) if row.command == text]
