"""Approvals of what is no longer so, the way back after a failure, and approvers who are approvers no more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from oikos.app.changes import changes_of, way_back
from oikos.bootstrap import local_principal, standing_of
from oikos.config import Config, load
from oikos.domain import events as ev
from oikos.domain.consent import Role
from oikos.domain.errors import Code, Refusal
from oikos.domain.session import Phase
from oikos.web.tokens import Tokens
from tests.app.conftest import ANNA, Open, finish, plan, run

pytestmark = pytest.mark.anyio

MAKE = "touch {{workshop}}/made"
OTHER = "touch {{workshop}}/other"


async def test_approving_an_older_plan_is_refused_and_shows_what_differs(household: Open, workshop: Path) -> None:
    script = plan(MAKE) + plan(OTHER).split("\n", 1)[1]
    async with household(script) as house:
        await house.say("make it")
        shown = await house.card()
        assert shown is not None
        await house.rest(await house.oikos.service.ask_for_changes(house.session_id, "the other one", house.by))
        done = await house.oikos.service.approve(house.session_id, shown, house.by)
        assert isinstance(done, Refusal)
        assert done.code is Code.STALE_GENERATION
        assert done.details == (f"- box $ touch {workshop}/made", f"+ box $ touch {workshop}/other")
        forged = replace(shown, generation=2, digest="0" * 64)
        done = await house.oikos.service.approve(house.session_id, forged, house.by)
        assert isinstance(done, Refusal)
        assert (done.code, done.details) == (Code.STALE_DIGEST, ())
        assert await house.oikos.service.differs(house.session_id, "") == ()


FAILED = (
    "- calls:\n"
    "    - {tool: update_plan_step, args: {seq: 1, status: failed, note: it does not help}}\n"
    "    - tool: update_entity_attributes\n"
    "      args: {entity: box, attributes: {seen: 'yes'}, run: '{{run:last}}'}\n"
    "    - {tool: complete_task, args: {outcome: failed, summary: tried touch on box; the file is there}}\n"
)


async def test_after_a_failure_the_way_back_is_a_new_plan_that_asks(household: Open, workshop: Path) -> None:
    undo = "- calls: [{tool: set_goal, args: {goal: undo it}}]\n" + plan("rm {{workshop}}/made").split("\n", 1)[1]
    script = plan(MAKE) + run(MAKE, step=1) + FAILED + undo
    async with household(script) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is Phase.FAILED
        state = await house.rest(await house.oikos.service.plan_way_back(house.session_id, house.by))
        assert (state.phase, state.generation, state.window) == (Phase.AWAITING, 2, None)
        assert (workshop / "made").exists(), "asked for, not done"
        [asked] = [e.text for e in await house.events() if isinstance(e, ev.OperatorSaid) and "way back" in e.text]
        assert f"- box $ touch {workshop}/made  (exit 0)\n  undo: none was named; work it out" in asked


async def test_without_changes_there_is_no_way_back_to_plan(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        await house.say("make it")
        done = await house.oikos.service.plan_way_back(house.session_id, house.by)
        assert isinstance(done, Refusal)
        assert done.code is Code.NOTHING_PENDING


async def test_the_way_back_names_each_undo_newest_first_and_leaves_out_what_never_began(household: Open) -> None:
    async with household(plan(MAKE, OTHER) + run(MAKE, step=1) + run(OTHER, step=2) + finish(2)) as house:
        await house.say("make both")
        await house.approve()
        changes = changes_of(await house.oikos.service.history(house.session_id))
        assert [change.run.step for change in changes] == [1, 2]
        named = [replace(changes[0], undo="rm made"), replace(changes[1], began=False)]
        assert way_back(named).splitlines()[1:] == [
            f"- box $ touch {house.workshop}/made  (exit 0)", "  undo: rm made",
        ]  # fmt: skip


@pytest.mark.parametrize(("role", "phase"), [("approver", Phase.DONE), ("operator", Phase.AWAITING)])
async def test_the_window_of_an_approver_who_lost_the_role_closes_before_the_next_change(
    household: Open, role: str, phase: Phase
) -> None:
    by = replace(ANNA, id="olga")
    toml = f'[operator]\nname = "olga"\nrole = "{role}"\n'  # what she is by the time it runs
    async with household(plan(MAKE) + run(MAKE, step=1) + finish(), toml=toml, by=by) as house:
        await house.say("make it")
        state = await house.approve()
        assert state.phase is phase
        closed = [e.reason for e in await house.events() if isinstance(e, ev.WindowClosed)]
        assert closed == (["completed"] if phase is Phase.DONE else ["role"])
        assert (house.workshop / "made").exists() is (phase is Phase.DONE)


async def test_an_approval_of_one_run_is_void_once_its_giver_is_no_approver(household: Open) -> None:
    by = replace(ANNA, id="olga")
    toml = '[operator]\nname = "olga"\nrole = "operator"\n'
    async with household(plan(MAKE) + run(MAKE, step=1), toml=toml, by=by) as house:
        await house.say("make it")
        await house.approve()
        await house.approve()
        assert [e.decision for e in await house.events() if isinstance(e, ev.RunDecided)] == ["approved", "void"]
        assert not (house.workshop / "made").exists()


async def test_a_token_stands_as_long_as_its_file_says_so(tmp_path: Path) -> None:
    def prepare() -> tuple[Config, Tokens]:
        tokens = Tokens(tmp_path)
        tokens.add("phone", Role.APPROVER, now_s=1.0)
        tokens.add("board", Role.VIEWER, now_s=1.0)
        return load({"OIKOS_HOME": str(tmp_path)}), tokens

    def expose() -> None:
        for file in tmp_path.iterdir():
            file.chmod(0o644)

    config, tokens = await anyio.to_thread.run_sync(prepare)
    standing = standing_of(config)
    assert await standing("api:phone")
    assert not await standing("api:board")
    await anyio.to_thread.run_sync(tokens.revoke, "board")
    assert not await standing("api:board")
    assert await standing(local_principal(config).id)
    await anyio.to_thread.run_sync(expose)
    assert not await standing("api:phone")
