"""What happens between a decision and its append: other sessions, other people, other modes, other machines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from oikos.adapters.model.scripted import Scripted, script_text
from oikos.app.service import Done
from oikos.domain import events as ev
from oikos.domain.errors import Code, Refusal
from oikos.domain.inventory import AccessPath, Entity, Mode, Transport
from oikos.domain.run import Identity
from oikos.domain.session import Phase, State
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec
from tests.app.conftest import LOOK, Hooked, Household, Open, finish, local, plan, run
from tests.wait import until_async

pytestmark = pytest.mark.anyio

MAKE = "touch {{workshop}}/made"
STRANGE = "unheard-of --of {{workshop}}"
HOLD = "touch {{workshop}}/begun; while test ! -e {{workshop}}/go; do sleep 0.05; done; touch {{workshop}}/held"


class ByTopic:
    """Plays the script that the session's first message names."""

    name = "by topic"

    def __init__(self, models: Mapping[str, Scripted]) -> None:
        self._models = models

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """As the script of the topic says."""
        async with aclosing(self._models[messages[1].text].stream(messages, tools)) as items:
            async for item in items:
                yield item

    async def close(self) -> None:
        """Nothing to close."""


# ---- one mutation at a time per target -------------------------------------------------------------------------------


async def test_two_sessions_change_one_target_one_after_the_other(household: Open, workshop: Path) -> None:
    held = HOLD.replace("{{workshop}}", str(workshop))
    script = plan(HOLD) + run(HOLD) + finish()
    async with household(script) as house:
        second = await house.also()
        for each in (house, second):
            await each.say("make it")
        card, other = await house.card(), await second.card()
        assert card is not None
        assert other is not None
        first_done = await house.oikos.service.approve(house.session_id, card, house.by)
        await until_async((workshop / "begun").exists, "the first to begin")
        second_done = await house.oikos.service.approve(second.session_id, other, house.by)
        await second.until(
            lambda state: len(state.batch.calls) == 1 and state.generation == 1 and state.window is not None
        )
        assert [row.session_id for row in await house.oikos.store.runs(unfinished=True) if row.command == held] == [
            house.session_id
        ]
        (workshop / "go").touch()
        assert (await house.rest(first_done)).phase is Phase.DONE
        assert (await second.rest(second_done)).phase is Phase.DONE
        ended = [e for e in await house.oikos.service.history(house.session_id) if isinstance(e.event, ev.RunFinished)]
        began = [e for e in await house.oikos.service.history(second.session_id) if isinstance(e.event, ev.RunStarted)]
        changes = [e for e in began if isinstance(e.event, ev.RunStarted) and e.event.order.command == held]
        assert changes[0].at.boot_s >= ended[1].at.boot_s


async def test_two_sessions_change_two_targets_at_once(household: Open, workshop: Path) -> None:
    values = {"workshop": str(workshop)}
    wait = "touch {{workshop}}/%s; while test ! -e {{workshop}}/%s; do sleep 0.05; done"
    first, second = wait % ("a", "b"), wait % ("b", "a")
    box = plan(first, target="box") + run(first) + finish()
    shed = plan(second, target="shed") + run(second, target="shed") + finish(target="shed")
    model = ByTopic({"box": Scripted(script_text(box), values), "shed": Scripted(script_text(shed), values)})
    async with household(model, targets=(local("box"), local("shed"))) as house:
        other = await house.also()
        states: dict[str, State] = {}

        async def work(each: Household, topic: str) -> None:
            await each.say(topic)
            states[topic] = await each.approve()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, house, "box")
            tasks.start_soon(work, other, "shed")
        assert [state.phase for state in states.values()] == [Phase.DONE, Phase.DONE]


# ---- the gate and the start see the same world -----------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "refusal"), [(Mode.LOCKED, "target_locked"), (Mode.LOOK, "target_look_only")])
async def test_a_mode_changed_between_gate_and_start_goes_back_to_the_gate(
    household: Open, workshop: Path, mode: Mode, refusal: str
) -> None:
    script = plan(MAKE) + run(MAKE) + f"- refused: {refusal}\n  text: a\n- text: b\n"
    model = Hooked(script, {"workshop": str(workshop)}, {})
    async with household(model) as house:

        async def change() -> None:
            await house.oikos.fleet.inventory()  # cached as it was; the store has it otherwise
            await house.oikos.store.put_entity(local("box", mode=mode))

        model.hooks[3] = change
        await house.say("make it")
        await house.approve()
        assert await house.refusals() == [refusal]
        assert not (workshop / "made").exists()
        assert await house.only(ev.RunStarted) == []


@pytest.mark.parametrize(("mode", "refusal"), [(Mode.LOCKED, "target_locked"), (Mode.LOOK, "target_look_only")])
async def test_so_does_the_mode_of_a_guest_that_the_command_reaches_through_its_node(
    household: Open, workshop: Path, mode: Mode, refusal: str
) -> None:
    access = AccessPath(transport=Transport.PCT, via="box", guest="131")
    guest = Entity(id="id-guest", kind="lxc", slug="guest", parent="id-box", access=access)
    inside = "pct exec 131 -- touch /root/made"
    script = plan(MAKE) + run(MAKE) + run(inside) + f"- refused: {refusal}\n  text: a\n- text: b\n"
    model = Hooked(script, {"workshop": str(workshop)}, {})
    async with household(model, targets=(local("box"), guest)) as house:

        async def change() -> None:
            await house.oikos.fleet.inventory()
            await house.oikos.store.put_entity(replace(guest, mode=mode))

        model.hooks[4] = change
        await house.say("make it")
        await house.approve()
        assert await house.refusals() == [refusal]
        assert inside not in [event.order.command for event in await house.only(ev.RunStarted)]


async def test_a_target_that_is_gone_between_gate_and_start_is_refused(household: Open, workshop: Path) -> None:
    model = Hooked(
        plan(MAKE) + run(MAKE) + "- refused: unknown_target\n  text: a\n- text: b\n", {"workshop": str(workshop)}, {}
    )
    async with household(model) as house:

        async def remove() -> None:
            await house.oikos.fleet.inventory()
            await house.oikos.store.put_entity(replace(local("box"), gone=True))

        model.hooks[3] = remove
        await house.say("make it")
        await house.approve()
        assert await house.refusals() == ["unknown_target"]
        assert not (workshop / "made").exists()


async def test_another_machine_behind_the_name_closes_the_window_with_the_evidence(household: Open) -> None:
    stranger = replace(local("box"), identity=Identity(hostname="elsewhere", machine_id="0" * 32))
    script = plan(MAKE) + run(MAKE) + "- refused: identity_mismatch\n  sees: [elsewhere]\n  text: a\n- text: b\n"
    async with household(script, targets=(stranger,)) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.window is None
        assert [e.reason for e in await house.only(ev.WindowClosed) if isinstance(e, ev.WindowClosed)] == ["identity"]
        assert not (house.workshop / "made").exists()


# ---- an operator between decision and append -------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(1, 6))
async def test_a_message_before_any_answer_of_the_model_loses_nothing(household: Open, workshop: Path, at: int) -> None:
    responses = ["- " + text for text in ("\n" + plan(MAKE) + run(MAKE) + finish()).split("\n- ")[1:]]
    if at in (2, 5):  # a call that would end the turn is not carried out over the operator's words: it is made again
        responses.insert(at, responses[at - 1].replace("- calls", "- shown: [mind the cat]\n  calls"))
    model = Hooked("\n".join(responses), {"workshop": str(workshop)}, {})
    async with household(model) as house:

        async def speak() -> None:
            await house.send("mind the cat")

        model.hooks[at] = speak
        state = await house.say("make it")
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        shown = [message.text for messages in model.asked for message in messages]
        assert "mind the cat" in shown
        started = [e.order.run_id for e in await house.only(ev.RunStarted) if isinstance(e, ev.RunStarted)]
        finished = [e.run_id for e in await house.only(ev.RunFinished) if isinstance(e, ev.RunFinished)]
        assert sorted(started) == sorted(finished)
        answered = [e.call_id for e in await house.only(ev.ToolAnswered) if isinstance(e, ev.ToolAnswered)]
        assert len(answered) == len(set(answered))


async def test_a_message_while_an_outcome_is_being_written_is_answered(household: Open, workshop: Path) -> None:
    """The session must not end idle over an operator's unanswered words."""
    model = Hooked(
        LOOK + run("ls {{workshop}}") + finish(check="ls {{workshop}}") * 2 + "- text: a\n" * 3,
        {"workshop": str(workshop)},
        {},
    )
    async with household(model) as house:
        store, real = house.oikos.store, house.oikos.store.append
        spoken: list[str] = []

        def append(session_id: str, expected: int, events: list[ev.Event], **more: object) -> object:
            if not spoken and any(isinstance(event, ev.ToolAnswered) and event.name == "run" for event in events):
                spoken.append("now")
                said = ev.OperatorSaid(
                    text="mind the cat", by="anna", channel=house.by.channel, reading="comment", wakes=True
                )
                first = real(
                    session_id, expected, [said], at=house.oikos.clock.now(), actor="operator:anna", phase="executing"
                )

                async def both() -> int:
                    await first
                    return await real(session_id, expected, events, **more)  # type: ignore[arg-type]  # passed through

                return both()
            return real(session_id, expected, events, **more)  # type: ignore[arg-type]  # passed through

        store.append = append  # type: ignore[method-assign, assignment]  # the store of this test
        state = await house.say("look")
        assert spoken
        assert state.phase is Phase.DONE, state.waits_for
        assert "mind the cat" in [message.text for messages in model.asked for message in messages]
        finished = [e.run_id for e in await house.only(ev.RunFinished) if isinstance(e, ev.RunFinished)]
        assert len(finished) == len(set(finished)) == 2


async def test_a_stop_before_the_answer_is_final(household: Open, workshop: Path) -> None:
    for at in range(1, 6):
        model = Hooked(plan(MAKE + str(at)) + run(MAKE + str(at)) + finish(), {"workshop": str(workshop)}, {})
        async with household(model) as house:

            async def stop(house: Household = house) -> None:
                assert isinstance(await house.oikos.service.stop(house.session_id, house.by), Done)

            model.hooks[at] = stop
            await house.send("make it")
            if at > 2:
                await house.until(lambda state: state.phase is Phase.AWAITING and not state.turn)
                card = await house.card()
                assert card is not None
                await house.oikos.service.approve(house.session_id, card, house.by)
            await house.until(lambda state: state.phase is Phase.STOPPED and not state.turn)
            answers = len(model.asked)
        async with household(model, session_id=house.session_id) as house:
            state = await house.state()
            assert (state.phase, state.running, len(model.asked)) == (Phase.STOPPED, (), answers)


# ---- consent is for one thing ----------------------------------------------------------------------------------------


async def test_an_approval_of_one_session_is_worth_nothing_in_another(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        second = await house.also()
        await house.say("make it")
        await second.say("make it")
        card = await house.card()
        assert card is not None
        done = await house.oikos.service.approve(second.session_id, replace(card, digest=card.digest), house.by)
        consents = await house.oikos.store.consents()
        if isinstance(done, Done):  # both plans are the same: the consent is the second session's alone
            assert [consent.session_id for consent in consents] == [second.session_id]
        first = await house.state()
        assert (first.phase, first.window) == (Phase.AWAITING, None)


async def test_an_approval_of_a_parked_run_is_worth_nothing_in_another_session(household: Open) -> None:
    async with household(plan(MAKE) + run(STRANGE)) as house:
        second = await house.also()
        for each in (house, second):
            await each.say("make it")
            await each.approve()
        card = await house.card()
        assert card is not None
        refusal = await house.oikos.service.approve(second.session_id, card, house.by)
        assert isinstance(refusal, Refusal)
        assert refusal.code is Code.WRONG_STATE
        assert len(await house.oikos.store.consents()) == 2, "the two plans'"


async def test_an_approval_of_what_was_not_shown_is_refused(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        service = house.oikos.service
        for wrong, code in (
            (replace(card, digest="0" * 64), Code.STALE_DIGEST),
            (replace(card, generation=7), Code.STALE_GENERATION),
        ):
            refusal = await service.approve(house.session_id, wrong, house.by)
            assert isinstance(refusal, Refusal)
            assert refusal.code is code
        state = await house.say("yes")  # nothing was shown with it
        assert (state.phase, state.window) == (Phase.AWAITING, None)
        state = await house.say("yes", shown=True)
        assert state.status.value == "approved"


async def test_a_parked_run_swapped_after_it_was_shown_is_not_approved(household: Open) -> None:
    async with household(
        plan(MAKE) + run(STRANGE) + run("other-thing " + "{{workshop}}") + "- text: a\n- text: b\n"
    ) as house:
        await house.say("make it")
        await house.approve()
        old = await house.card()
        assert old is not None
        await house.rest(await house.oikos.service.reject(house.session_id, house.by))
        refusal = await house.oikos.service.approve(house.session_id, old, house.by)
        assert isinstance(refusal, Refusal)
        new = await house.card()
        assert new is not None
        mixed = await house.oikos.service.approve(house.session_id, replace(new, digest=old.digest), house.by)
        assert isinstance(mixed, Refusal)
        assert mixed.code is Code.STALE_DIGEST


async def test_of_many_approvers_at_once_one_approves_and_the_others_are_told_who(household: Open) -> None:
    async with household(plan(MAKE)) as house, household(plan(MAKE), session_id=house.session_id, work=False) as other:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        results: list[Done | Refusal] = []

        async def approve(each: Household, name: str) -> None:
            results.append(await each.oikos.service.approve(house.session_id, card, replace(house.by, id=name)))

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(approve, house if number % 2 else other, f"approver{number}")
        [consent] = await house.oikos.store.consents()
        refused = [result for result in results if isinstance(result, Refusal)]
        assert len(refused) == 19
        assert all(consent.by in refusal.text for refusal in refused), {refusal.text for refusal in refused}


async def test_two_workers_on_one_home_do_each_thing_once(household: Open, workshop: Path) -> None:
    command = "echo x >> {{workshop}}/count"
    script = plan(command) + run(command) + finish()
    async with household(script) as house, household(script, session_id=house.session_id) as other:
        await house.say("make it")
        state = await other.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        assert (workshop / "count").read_text(encoding="utf-8") == "x\n"
        started = await house.only(ev.RunStarted)
        assert len(started) == 3
        assert (await house.oikos.store.verify()).problems == ()
