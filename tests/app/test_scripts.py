"""Commands that run a script file: the plan holds what the file held, and a start compares (security/THREATS T6)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import anyio
import pytest

from oikos.app.service import Card
from oikos.cli.card import card_lines
from oikos.cli.paint import Paint
from oikos.domain import events as ev
from oikos.domain.scripts import Script
from oikos.domain.session import Phase
from tests.app.conftest import Hooked, Household, Open, finish, plan, run

pytestmark = pytest.mark.anyio

FIX = "sh {{workshop}}/fix.sh"
GOOD = "touch harmless\n"
PLAIN = Paint(on=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def card_of(house: Household) -> Card:
    card = await house.card()
    assert card is not None
    return card


async def readings(house: Household) -> int:
    """How often script files were read."""
    started = [event for event in await house.events() if isinstance(event, ev.RunStarted)]
    return sum("sha256sum" in event.order.command for event in started)


def text_of(card: Card) -> str:
    return "\n".join(card_lines(card, PLAIN))


async def test_the_plan_holds_what_the_script_held_and_runs_it_unchanged_without_asking_again(
    household: Open, workshop: Path
) -> None:
    script = workshop / "fix.sh"
    script.write_text(f"touch {workshop}/made\n")
    held = sha256(script.read_text())
    async with household(plan(FIX) + run(FIX, step=1) + finish()) as house:
        await house.say("fix it")
        card = await card_of(house)
        assert card.plan is not None
        assert [c.scripts for _, c in card.plan.commands()] == [(Script(path=str(script), sha256=held),)]
        assert f"runs {script} (sha256 {held[:12]})" in text_of(card)
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done")
        assert (workshop / "made").exists()
        assert await readings(house) == 2


async def test_a_script_that_another_login_rewrites_after_the_approval_asks_again_and_says_why(
    household: Open, workshop: Path
) -> None:
    script, evil = workshop / "fix.sh", f"touch {workshop}/harmful\n"
    script.write_text(GOOD)

    async def rewrite() -> None:
        await anyio.Path(script).write_text(evil)

    model = Hooked(plan(FIX) + run(FIX, step=1), {"workshop": str(workshop)}, {3: rewrite})
    async with household(model) as house:
        await house.say("fix it")
        state = await house.approve()
        assert state.phase is Phase.AWAITING
        card = await card_of(house)
        assert card.run is not None
        assert card.run.why == (
            f"The script {script} changed since it was approved (was {sha256(GOOD)[:12]}, now it is "
            f"{sha256(evil)[:12]})."
        )
        assert f"runs {script} (sha256 {sha256(evil)[:12]})" in text_of(card)
        assert not (workshop / "harmful").exists()


async def test_what_an_approver_saw_of_a_parked_script_is_all_that_the_approval_starts(
    household: Open, workshop: Path
) -> None:
    script = workshop / "other.sh"
    script.write_text(GOOD)
    other = "sh {{workshop}}/other.sh"
    async with household(plan("mkdir {{workshop}}/made") + run(other) + run(other, rerun="again")) as house:
        await house.say("fix it")
        await house.approve()
        assert (await card_of(house)).run is not None
        script.write_text(f"touch {workshop}/harmful\n")
        state = await house.approve()
        assert state.phase is Phase.AWAITING, "asked anew, with what it holds now"
        decided = [e.decision for e in await house.events() if isinstance(e, ev.RunDecided)]
        assert decided == ["approved", "void"]
        assert not (workshop / "harmful").exists()
        state = await house.approve()
        assert (workshop / "harmful").exists(), "approved as it was shown"


async def test_a_script_that_the_plan_itself_writes_needs_no_second_approval(household: Open, workshop: Path) -> None:
    write = "printf 'touch {{workshop}}/made\\n' > {{workshop}}/fix.sh"
    script = plan(write, FIX) + run(write, step=1) + run(FIX, step=2) + finish(2)
    async with household(script) as house:
        await house.say("fix it")
        assert f"runs {workshop}/fix.sh (not read)" in text_of(await card_of(house))
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done")
        assert (workshop / "made").exists()


async def test_a_script_that_is_gone_at_its_start_asks_again(household: Open, workshop: Path) -> None:
    script = workshop / "fix.sh"
    script.write_text(GOOD)

    async def remove() -> None:
        await anyio.Path(script).unlink()

    model = Hooked(plan(FIX) + run(FIX, step=1), {"workshop": str(workshop)}, {3: remove})
    async with household(model) as house:
        await house.say("fix it")
        assert (await house.approve()).phase is Phase.AWAITING
        card = await card_of(house)
        assert "now it cannot be read" in card.text


async def test_nothing_is_read_for_a_proposal_that_is_refused(household: Open, workshop: Path) -> None:
    (workshop / "fix.sh").write_text(GOOD)
    without_goal = plan(FIX).split("\n", 1)[1]
    async with household(without_goal) as house:
        await house.say("fix it")
        assert await house.refusals() == ["no_goal"]
        assert await readings(house) == 0
