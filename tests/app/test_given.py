"""What a run is given on standard input is judged with it: in a look, in a plan, and again after an approval."""

from __future__ import annotations

from pathlib import Path

import pytest

from oikos.domain import events as ev
from oikos.domain.session import Phase
from oikos.domain.verdict import Risk
from tests.app.conftest import LOOK, Open, plan, run

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("command", ["read -r a; echo $((a))", "bash", "while read -r n; do s=$((s + n)); done"])
async def test_no_look_is_given_a_command(household: Open, workshop: Path, command: str) -> None:
    given = "touch {{workshop}}/made\n" if command == "bash" else "x[$(touch {{workshop}}/made)]\n"
    script = LOOK + run(command, stdin=given) + "- text: ok\n- text: ok\n"
    async with household(script) as house:
        await house.say("look")
        assert await house.only(ev.RunStarted) == []
        assert not (workshop / "made").exists()


async def test_a_look_may_be_given_a_look(household: Open) -> None:
    script = LOOK + run("bash", stdin="stat {{workshop}}\n") + "- text: ok\n- text: ok\n"
    async with household(script) as house:
        await house.say("look")
        [started] = [event for event in await house.events() if isinstance(event, ev.RunStarted)]
        assert (started.risk, started.authority) == (Risk.READ_ONLY, "read_only")


async def test_a_planned_command_is_as_risky_as_its_input(household: Open) -> None:
    script = plan({"command": "bash", "stdin": "rm -r {{workshop}}/made\n"})
    async with household(script) as house:
        await house.say("make it")
        card = await house.card()
        assert card is not None
        assert card.plan is not None
        assert [one.risk for step in card.plan.steps for one in step.commands] == [Risk.DESTRUCTIVE]


async def test_a_window_for_changes_holds_no_destruction_by_input(household: Open, workshop: Path) -> None:
    (workshop / "kept").mkdir()
    script = plan("mkdir {{workshop}}/made") + run("bash", stdin="rm -r {{workshop}}/kept\n") + "- text: ok\n"
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is Phase.AWAITING
        card = await house.card()
        assert card is not None
        assert (card.kind, card.run is not None and card.run.risk) == ("run", Risk.DESTRUCTIVE)
        assert (workshop / "kept").exists()


async def test_what_was_approved_with_its_input_is_judged_with_it_again(household: Open, workshop: Path) -> None:
    given = "unheard-of\ntouch {{workshop}}/made\n"
    script = plan("mkdir {{workshop}}/folder") + run("bash", stdin=given) + "- text: ok\n"
    async with household(script) as house:
        await house.say("make it")
        assert (await house.approve()).phase is Phase.AWAITING
        await house.approve()
        [started] = [
            event
            for event in await house.events()
            if isinstance(event, ev.RunStarted) and event.order.stdin is not None
        ]
        assert started.risk is Risk.CONFIG_MUTATION
        assert "unclassified" in [effect.kind.value for effect in started.effects]
        assert (workshop / "made").exists()
