"""Runs that wait for a decision: why they park, what decides them, and what their approval is worth."""

from __future__ import annotations

import pytest

from oikos.app.service import Done
from oikos.domain import events as ev
from oikos.domain.consent import Grant
from oikos.domain.errors import Code, Refusal
from oikos.domain.session import Phase
from tests.app.conftest import Open, ShiftedClock, finish, local, plan, run

pytestmark = pytest.mark.anyio

MAKE = "mkdir {{workshop}}/made"
STRANGE = "unheard-of --of {{workshop}}"
"""Carries the guarded effect `unclassified`."""
REMOVE = "rm -r {{workshop}}/made"


async def test_a_guarded_effect_parks_in_spite_of_the_window_and_one_approval_answers_the_very_call(
    household: Open,
) -> None:
    script = plan(MAKE) + run(STRANGE) + run(MAKE, expects='sees: ["exit 127"]') + finish()
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        card = await house.card()
        assert card is not None
        assert (state.phase, card.kind) == (Phase.AWAITING, "run")
        assert card.run is not None
        assert [effect.kind.value for effect in card.run.effects] == ["unclassified"]
        assert not card.run.offers_reopen
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done")
        grants = [
            event.consent.grant for event in await house.only(ev.ConsentGranted) if isinstance(event, ev.ConsentGranted)
        ]
        assert grants == [Grant.PLAN, Grant.RUN]
        [parked] = [event for event in await house.only(ev.RunParked) if isinstance(event, ev.RunParked)]
        [answer] = [
            event
            for event in await house.events()
            if isinstance(event, ev.ToolAnswered) and event.call_id == parked.call_id
        ]
        assert answer.run_id == parked.order.run_id


async def test_an_approval_admits_once_the_same_command_asks_again(household: Open) -> None:
    script = plan(MAKE) + run(STRANGE) + run(STRANGE, rerun="once more")
    async with household(script) as house:
        await house.say("make it")
        await house.approve()
        state = await house.approve()
        assert state.phase is Phase.AWAITING
        parked = [event.order.run_id for event in await house.only(ev.RunParked) if isinstance(event, ev.RunParked)]
        assert len(parked) == len(set(parked)) == 2


async def test_a_declined_run_is_answered_so_and_never_asked_again_in_this_plan(household: Open) -> None:
    script = (
        plan(MAKE) + run(STRANGE) + run(STRANGE, expects='sees: [declined, "use another way"]\nrefused: declined')
        + run(MAKE, expects="refused: declined") + finish()
    )  # fmt: skip
    async with household(script) as house:
        await house.say("make it")
        await house.approve()
        state = await house.rest(await house.oikos.service.reject(house.session_id, house.by, reason="use another way"))
        assert (state.phase, state.outcome) == (Phase.DONE, "done")
        assert await house.refusals() == ["declined", "declined"]
        assert len(await house.only(ev.RunParked)) == 1


async def test_a_machine_outside_the_plan_parks(household: Open) -> None:
    script = plan(MAKE) + run("touch {{workshop}}/elsewhere", target="shed") + finish()
    async with household(script, targets=(local("box"), local("shed"))) as house:
        await house.say("make it")
        await house.approve()
        card = await house.card()
        assert card is not None
        assert card.text == "Out of scope: shed is not a machine of plan 1."
        assert not (house.workshop / "elsewhere").exists()
        await house.approve()
        assert (house.workshop / "elsewhere").exists()


async def test_an_ended_window_parks_and_offers_to_reopen_and_reopening_covers_what_follows(household: Open) -> None:
    clock = ShiftedClock()
    script = (
        plan(MAKE) + "- calls: [{tool: ask_operator, args: {question: now}}]\n" + run(MAKE)
        + run("touch {{workshop}}/made/two") + finish()
    )  # fmt: skip
    async with household(script, clock=clock) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is Phase.BLOCKED
        clock.shift_s += 1801
        await house.until(lambda state: state.generation == 1 and state.phase is Phase.BLOCKED and state.window is None)
        state = await house.say("it is time")
        card = await house.card()
        assert card is not None
        assert card.run is not None
        assert (card.text, card.run.offers_reopen) == ("The window has ended.", True)
        assert not (house.workshop / "made").exists()
        state = await house.rest(
            await house.oikos.service.reopen_with(house.session_id, card, house.by, duration_s=1800)
        )
        assert (state.phase, state.outcome) == (Phase.DONE, "done")
        closed = [event.reason for event in await house.only(ev.WindowClosed) if isinstance(event, ev.WindowClosed)]
        assert closed == ["expired", "completed"]
        started = [event.authority for event in await house.only(ev.RunStarted) if isinstance(event, ev.RunStarted)]
        reopened = (await house.oikos.store.consents(session_id=house.session_id))[-1]
        assert reopened.grant is Grant.REOPEN
        assert started == ["probe", f"approval:{reopened.id}", f"window:{reopened.id}", "read_only"]


async def test_a_run_that_offers_no_reopening_opens_no_window(household: Open) -> None:
    async with household(plan(MAKE) + run(STRANGE)) as house:
        await house.say("make it")
        await house.approve()
        card = await house.card()
        assert card is not None
        refusal = await house.oikos.service.reopen_with(house.session_id, card, house.by, duration_s=1800)
        assert isinstance(refusal, Refusal)
        assert refusal.code is Code.WRONG_STATE


async def test_an_approval_older_than_ten_minutes_starts_nothing(household: Open) -> None:
    clock = ShiftedClock()
    script = plan(MAKE) + run(STRANGE)
    async with household(script, clock=clock) as house:
        await house.say("make it")
        await house.approve()
        session_id = house.session_id
    async with household(script, clock=clock, session_id=session_id, work=False) as house:
        card = await house.card()
        assert card is not None
        assert isinstance(await house.oikos.service.approve(session_id, card, house.by), Done)
    clock.shift_s += 601
    async with household(
        script + run(STRANGE, expects="refused: expired"), clock=clock, session_id=session_id
    ) as house:
        state = await house.until(
            lambda state: state.phase is Phase.AWAITING and state.awaiting_run and len(state.consents) == 2
        )
        assert state.parked is not None
        assert await house.only(ev.RunStarted) == []


async def test_a_destructive_run_needs_its_phrase_and_neither_enter_nor_chat_nor_a_button(household: Open) -> None:
    script = plan(MAKE) + run(MAKE) + run(REMOVE) + finish()
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert (state.phase, state.parked and state.parked.event.phrase) == (Phase.AWAITING, "delete made")
        card = await house.card()
        assert card is not None
        service = house.oikos.service
        for tried in (
            await service.approve(house.session_id, card, house.by),
            await service.confirm(house.session_id, "", house.by, shown=card),
            await service.confirm(house.session_id, "delete mad", house.by, shown=card),
        ):
            assert isinstance(tried, Refusal)
            assert tried.code is Code.WRONG_PHRASE
        state = await house.say("yes, go", shown=True)
        assert state.phase is Phase.AWAITING
        assert (house.workshop / "made").is_dir()
        state = await house.rest(await service.confirm(house.session_id, "delete made", house.by, shown=card))
        assert (state.phase, state.outcome) == (Phase.DONE, "done")
        assert not (house.workshop / "made").exists()


async def test_a_pre_authorised_item_runs_without_asking_as_often_as_was_ticked(household: Open) -> None:
    script = (
        "- calls: [{tool: set_goal, args: {goal: clean}}]\n"
        "- calls:\n    - tool: propose_plan\n      args:\n"
        "        steps:\n          - title: clean\n            target: box\n            commands:\n"
        f"              - {{command: '{REMOVE}', preauthorise: {{object: made}}}}\n"
        "        checks: [{target: box, command: 'stat {{workshop}}'}]\n"
    ) + run(REMOVE, step=1) + run(REMOVE, step=1, rerun="again")  # fmt: skip
    async with household(script) as house:
        (house.workshop / "made").mkdir()
        await house.say("clean up")
        state = await house.approve(items=(1,), phrases=("delete made",))
        assert not (house.workshop / "made").exists()
        assert state.phase is Phase.AWAITING, "one use was ticked"
        authorities = [event.authority for event in await house.only(ev.RunStarted) if isinstance(event, ev.RunStarted)]
        [consent] = await house.oikos.store.consents()
        assert authorities == ["probe", f"preauthorised:{consent.id}:1"]


async def test_an_item_that_was_not_ticked_still_asks(household: Open) -> None:
    script = (
        "- calls: [{tool: set_goal, args: {goal: clean}}]\n"
        "- calls:\n    - tool: propose_plan\n      args:\n"
        "        steps:\n          - title: clean\n            target: box\n            commands:\n"
        f"              - {{command: '{REMOVE}', preauthorise: {{object: made}}}}\n"
    ) + run(REMOVE, step=1)  # fmt: skip
    async with household(script) as house:
        (house.workshop / "made").mkdir()
        await house.say("clean up")
        state = await house.approve()
        assert (state.phase, state.awaiting_run) == (Phase.AWAITING, True)
        assert (house.workshop / "made").is_dir()


async def test_a_comment_while_a_run_is_parked_wakes_nobody_and_arrives_with_the_decision(household: Open) -> None:
    script = plan(MAKE) + run(STRANGE) + run(MAKE, expects='sees: ["exit 127", "mind the cat"]') + finish()
    async with household(script) as house:
        await house.say("make it")
        await house.approve()
        state = await house.say("mind the cat")
        assert state.phase is Phase.AWAITING
        assert len(await house.only(ev.AssistantSaid)) == 3
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done")


async def test_asking_for_changes_to_a_parked_run_declines_it_with_the_text(household: Open) -> None:
    script = plan(MAKE) + run(STRANGE) + run(MAKE, expects='sees: [declined, "with mkdir please"]') + finish()
    async with household(script) as house:
        await house.say("make it")
        await house.approve()
        state = await house.rest(
            await house.oikos.service.ask_for_changes(house.session_id, "with mkdir please", house.by)
        )
        assert (state.phase, state.outcome) == (Phase.DONE, "done")


async def test_what_follows_a_refused_or_parked_call_in_one_response_is_not_run(household: Open) -> None:
    batch = (
        "- calls:\n    - {tool: run, args: {target: box, command: 'ls {{workshop}}'}}\n"
        "    - {tool: run, args: {target: nowhere, command: ls}}\n"
        "    - {tool: run, args: {target: box, command: 'touch {{workshop}}/later'}}\n"
        "    - {tool: list_entities, args: {}}\n"
        f"- calls:\n    - {{tool: run, args: {{target: box, command: '{STRANGE}'}}}}\n"
        "    - {tool: run, args: {target: box, command: 'touch {{workshop}}/later'}}\n"
    )
    async with household(plan(MAKE) + batch) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is Phase.AWAITING
        assert await house.refusals() == ["unknown_target", "batch_ended", "batch_ended", "batch_ended"]
        assert not (house.workshop / "later").exists()


async def test_a_parked_run_nobody_answers_for_a_day_is_over_and_says_so(household: Open) -> None:
    clock = ShiftedClock()
    script = plan(MAKE) + run(STRANGE) + "- sees: [Nobody answered]\n  text: then not\n- text: really\n"
    async with household(script, clock=clock) as house:
        await house.say("make it")
        await house.approve()
        clock.shift_s += 24 * 3600 + 1
        state = await house.until(lambda state: state.phase is Phase.BLOCKED and not state.turn)
        assert state.decided.endswith("was unanswered")
        assert len(await house.only(ev.ApprovalUnanswered)) == 1


async def test_a_plan_nobody_answers_for_a_day_expires(household: Open) -> None:
    clock = ShiftedClock()
    async with household(plan(MAKE), clock=clock) as house:
        await house.say("make it")
        clock.shift_s += 24 * 3600 + 1
        state = await house.until(lambda state: state.phase is Phase.IDLE and state.generation == 1)
        assert state.status.value == "expired"
