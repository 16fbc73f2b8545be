"""Who may do what, and over which channel (SPEC R3.6, R3.13, R10.4)."""

from __future__ import annotations

import pytest

from oikos.app.service import Done
from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import Code, OikosError, Refusal
from oikos.domain.session import Phase
from tests.app.conftest import Household, Open, local, plan, run

pytestmark = pytest.mark.anyio

MAKE = "touch {{workshop}}/made"
VIEWER = Principal(id="vera", role=Role.VIEWER, channel=Channel.CLI)
OPERATOR = Principal(id="otto", role=Role.OPERATOR, channel=Channel.CLI)
PIPE = Principal(id="anna", role=Role.ADMIN, channel=Channel.CLI, attended=False)
CHAT_PIPE = Principal(id="anna", role=Role.ADMIN, channel=Channel.CHAT, attended=False)
SCRIPT = Principal(id="script", role=Role.ADMIN, channel=Channel.SCRIPT, attended=False)


async def decide(house: Household, by: Principal) -> Done | Refusal:
    card = await house.card()
    assert card is not None
    return await house.oikos.service.approve(house.session_id, card, by)


async def test_a_viewer_can_neither_open_nor_speak_nor_decide(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        with pytest.raises(OikosError, match="vera is a viewer"):
            await house.oikos.open_session(VIEWER)
        await house.say("make it")
        before = await house.state()
        service = house.oikos.service
        for done in (
            await service.send(house.session_id, "hello", VIEWER), await decide(house, VIEWER),
            await service.reject(house.session_id, VIEWER), await service.stop(house.session_id, VIEWER),
            await service.revoke(house.session_id, VIEWER),
            await service.confirm(house.session_id, "x", VIEWER, shown=None),
            await service.raise_limits(house.session_id, VIEWER),
            await service.ask_for_changes(house.session_id, "x", VIEWER),
        ):  # fmt: skip
            assert isinstance(done, Refusal)
            assert done.code is Code.NOT_APPROVER
        assert await house.state() == before


@pytest.mark.parametrize(
    ("by", "code"),
    [
        (OPERATOR, Code.NOT_APPROVER),
        (PIPE, Code.NO_TERMINAL),
        (CHAT_PIPE, Code.NO_TERMINAL),
        (SCRIPT, Code.NOT_APPROVER),
    ],
    ids=["operator", "pipe", "chat over a pipe", "script outside the lab"],
)
async def test_consent_needs_the_role_a_terminal_and_for_scripts_a_lab_home(
    household: Open, by: Principal, code: Code
) -> None:
    async with household(plan(MAKE)) as house:
        await house.say("make it")
        refusal = await decide(house, by)
        assert isinstance(refusal, Refusal)
        assert refusal.code is code
        card = await house.card()
        sent = await house.oikos.service.send(house.session_id, "yes, go", by, shown=card)
        assert isinstance(sent, Done), "it is recorded and decides nothing"
        assert "Still waiting" in sent.notice
        state = await house.state()
        assert (state.phase, state.window) == (Phase.AWAITING, None)
        assert await house.oikos.store.consents() == []


async def test_who_may_not_approve_a_plan_may_not_approve_a_run(household: Open) -> None:
    async with household(plan(MAKE) + run("unheard-of {{workshop}}")) as house:
        await house.say("make it")
        await house.approve()
        for by in (OPERATOR, PIPE, SCRIPT):
            assert isinstance(await decide(house, by), Refusal)
        assert (await house.state()).phase is Phase.AWAITING


async def test_an_operator_may_reject_and_stop(household: Open) -> None:
    async with household(plan(MAKE)) as house:
        await house.say("make it")
        assert isinstance(await house.oikos.service.reject(house.session_id, OPERATOR), Done)
        assert isinstance(await house.oikos.service.stop(house.session_id, OPERATOR), Done)


async def test_a_script_decides_in_a_lab_home_where_every_target_is_a_lab_host(household: Open) -> None:
    async with household(plan(MAKE), lab=True, targets=(local("box", lab=True),)) as house:
        assert house.oikos.lab
        await house.say("make it")
        assert isinstance(await decide(house, SCRIPT), Done)


async def test_one_real_machine_in_a_lab_home_ends_the_scripts_leave(household: Open) -> None:
    async with household(plan(MAKE), lab=True, targets=(local("box", lab=True), local("nas"))) as house:
        assert not house.oikos.lab
        await house.say("make it")
        assert isinstance(await decide(house, SCRIPT), Refusal)


async def test_lab_targets_in_a_home_that_the_lab_did_not_make_give_no_leave(household: Open) -> None:
    async with household(plan(MAKE), targets=(local("box", lab=True),)) as house:
        assert not house.oikos.lab


async def test_the_controller_itself_is_locked(household: Open) -> None:
    script = plan(MAKE, target="self") + "- refused: no_access\n  text: a\n"
    async with household(script) as house:
        await house.say("make it")
        assert await house.refusals() in (["no_access"], ["target_locked"])


async def test_an_unknown_session_is_refused_in_one_line(household: Open) -> None:
    async with household("- text: hello\n") as house:
        for done in (
            await house.oikos.service.send("nowhere", "hello", house.by),
            await house.oikos.service.stop("nowhere", house.by),
        ):
            assert isinstance(done, Refusal)
            assert done.code is Code.NO_SUCH_SESSION
