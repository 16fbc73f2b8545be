"""What ends a turn that would not end by itself: budgets, nudges, repetition, and a provider that fails."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest

from oikos.app.service import Done
from oikos.domain import events as ev
from oikos.domain.errors import Code, ModelError, Refusal
from oikos.domain.session import Phase
from oikos.domain.state import Budgets
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec
from tests.app.conftest import LOOK, Open, ShiftedClock, finish, plan, run

pytestmark = pytest.mark.anyio


async def test_a_budget_warns_at_80_percent_and_blocks_at_100_until_it_is_raised(household: Open) -> None:
    looks = "".join(run(f"test -e {n}") for n in range(12))
    async with household(LOOK + looks, budgets=Budgets(runs=5)) as house:
        state = await house.say("look around")
        assert state.blocked == ev.SessionBlocked(
            on="limit", reason="the limit of 5 runs is used up: raise it to go on"
        )
        warned = await house.only(ev.LimitWarned)
        assert warned == [ev.LimitWarned(limit="runs", used=4, of=5)]
        assert len(await house.only(ev.RunStarted)) == 5
        state = await house.rest(await house.oikos.service.raise_limits(house.session_id, house.by))
        assert state.blocked is not None
        assert state.blocked.on == "limit"
        assert len(await house.only(ev.RunStarted)) == 10


async def test_an_iteration_of_reads_counts_a_quarter(household: Open) -> None:
    looks = "".join(run(f"test -e {n}") for n in range(12))
    async with household(LOOK + looks, budgets=Budgets(iterations=3)) as house:
        state = await house.say("look around")
        assert (state.phase, state.usage.iterations) == (Phase.BLOCKED, 3.0)
        assert len(await house.only(ev.RunStarted)) == 8  # and one whole iteration for the proposal


async def test_assent_raises_a_limit_and_a_comment_resumes_nothing_by_itself(household: Open) -> None:
    looks = "".join(run(f"test -e {n}") for n in range(12))
    async with household(LOOK + looks, budgets=Budgets(runs=5)) as house:
        await house.say("look around")
        state = await house.say("go on")
        assert state.raises == 1
        assert len(await house.only(ev.RunStarted)) == 10


async def test_wall_clock_is_a_budget_too(household: Open) -> None:
    clock = ShiftedClock()
    async with household(LOOK + run("ls", background=True) + "- text: I wait\n" + run("ls"), clock=clock) as house:
        await house.say("look around")
        clock.shift_s += 5 * 3600
        state = await house.say("and now?")
        assert state.blocked is not None
        assert (state.blocked.on, "seconds" in state.blocked.reason) == ("limit", True)


async def test_the_same_call_with_the_same_result_is_nudged_once_and_then_blocks(household: Open) -> None:
    script = (
        LOOK
        + run("ls /nowhere") * 3
        + run("ls /nowhere", expects='sees: ["same call with the same result three times"]')
    )
    async with household(script) as house:
        state = await house.say("look around")
        assert state.blocked is not None
        assert (state.blocked.on, state.repeats[1]) == ("repetition", 4)
        assert [event.about for event in await house.only(ev.Nudged) if isinstance(event, ev.Nudged)] == ["repetition"]


async def test_different_questions_with_the_same_answer_are_no_repetition(household: Open) -> None:
    searches = "".join(f"- calls: [{{tool: search_facts, args: {{query: word{n}}}}}]\n" for n in range(6))
    async with household(searches + "- text: nothing known\n") as house:
        state = await house.say("what do you know?")
        assert state.phase is Phase.IDLE
        assert await house.only(ev.Nudged) == []


async def test_polling_with_waits_in_between_is_no_repetition(household: Open) -> None:
    poll = run("ls /nowhere") + "- calls: [{tool: wait, args: {seconds: 0, reason: poll}}]\n"
    async with household(LOOK + poll * 4 + "- calls: [{tool: ask_operator, args: {question: enough}}]\n") as house:
        await house.say("look around")
        state = await house.until(lambda state: state.phase is Phase.BLOCKED)
        assert state.question is not None
        assert await house.only(ev.Nudged) == []


async def test_a_provider_that_fails_blocks_the_session_and_the_timer_asks_again(household: Open) -> None:
    clock = ShiftedClock()
    script = "- fails: {text: overloaded, retryable: true, times: 2}\n  text: here I am\n"
    async with household(script, clock=clock) as house:
        state = await house.say("hello")
        assert state.blocked is not None
        assert (state.blocked.on, state.blocked.reason) == ("model", "the model is not available: overloaded")
        first = state.blocked.retry_at
        assert first is not None
        clock.shift_s += 16
        state = await house.until(lambda state: state.model_failures == 2 and not state.turn)
        assert state.blocked is not None
        assert state.blocked.retry_at is not None
        assert state.blocked.retry_at.elapsed_since(first) > 45, "it waits longer each time"
        clock.shift_s += 61
        state = await house.until(lambda state: state.phase is Phase.IDLE and state.seq > 5)
        assert state.model_failures == 0


async def test_a_message_asks_a_failed_provider_at_once(household: Open) -> None:
    async with household("- fails: {text: overloaded}\n  text: here I am\n") as house:
        await house.say("hello")
        state = await house.say("are you there?")
        assert state.phase is Phase.IDLE


async def test_a_failure_that_no_retry_can_help_waits_for_a_person(household: Open) -> None:
    async with household("- fails: {text: the key is wrong, retryable: false}\n  text: here I am\n") as house:
        state = await house.say("hello")
        assert state.blocked == ev.SessionBlocked(
            on="model", reason="the model is not available: the key is wrong", retry_at=None
        )


async def test_a_failing_provider_touches_neither_window_nor_running_commands(household: Open) -> None:
    hold = "while test ! -e {{workshop}}/go; do sleep 0.05; done; touch {{workshop}}/made"
    script = plan(hold) + run(hold, background=True) + "- fails: {text: overloaded}\n  text: I wait\n" + finish()
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.blocked is not None
        assert state.blocked.on == "model"
        assert state.window is not None
        assert len(state.running) == 1
        (house.workshop / "go").touch()
        await house.until(lambda state: state.window is not None and not state.running)
        state = await house.say("how is it?")
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for


class Flaky:
    """A provider whose adapter tries twice before it answers, or gives up."""

    name = "flaky"

    def __init__(self, *, gives_up: bool) -> None:
        self._gives_up = gives_up

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """Two retries first."""
        yield Retrying(attempt=1, delay_s=0.5, reason="429")
        yield Retrying(attempt=2, delay_s=1.0, reason="503")
        if self._gives_up:
            raise ModelError("it stays down", retryable=True, retry_after_s=7.0)
        yield Reply(text="hello")

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("gives_up", [False, True])
async def test_the_retries_of_a_provider_are_events(household: Open, gives_up: bool) -> None:
    async with household(Flaky(gives_up=gives_up)) as house:
        state = await house.say("hello")
        assert await house.only(ev.ModelRetried) == [
            ev.ModelRetried(attempt=1, delay_s=0.5, reason="429"), ev.ModelRetried(attempt=2, delay_s=1.0, reason="503")
        ]  # fmt: skip
        assert state.phase is (Phase.BLOCKED if gives_up else Phase.IDLE)


async def test_raising_limits_where_none_is_reached_is_refused(household: Open) -> None:
    async with household("- text: hello\n") as house:
        await house.say("hello")
        refusal = await house.oikos.service.raise_limits(house.session_id, house.by)
        assert isinstance(refusal, Refusal)
        assert refusal.code is Code.WRONG_STATE


async def test_a_second_complete_in_a_turn_is_refused(household: Open) -> None:
    done = "{tool: complete_task, args: {outcome: nothing_to_do, summary: known already}}"
    script = f"- calls: [{{tool: set_goal, args: {{goal: know}}}}, {done}, {done}]\n"
    async with household(script) as house:
        state = await house.say("what is it?")
        assert state.phase is Phase.DONE
        assert await house.refusals() == ["batch_ended"]


async def test_a_message_during_a_turn_arrives_with_the_next_iteration(household: Open) -> None:
    script = (
        LOOK + run("while test ! -e {{workshop}}/go; do sleep 0.05; done") + run("ls", expects="sees: [mind the cat]")
    )
    async with household(script + "- text: a\n- text: b\n") as house:
        done = await house.send("look around")
        await house.until(lambda state: bool(state.running))
        said = await house.oikos.service.send(house.session_id, "mind the cat", house.by)
        assert isinstance(said, Done)
        (house.workshop / "go").touch()
        state = await house.rest(done)
        assert state.blocked is not None
        assert state.blocked.on == "nudge"
