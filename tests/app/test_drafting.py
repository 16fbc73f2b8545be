"""What a proposal is refused for before anybody is asked: the modes of every machine it reaches (SPEC R2.3, R3.9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oikos.domain import events as ev
from oikos.domain.inventory import AccessPath, Entity, Mode, Transport
from tests.app.conftest import Open, local, plan

pytestmark = pytest.mark.anyio

NODE = replace(local("box"), kind="node")


def guest(slug: str, number: str, mode: Mode) -> Entity:
    access = AccessPath(transport=Transport.PCT, via="box", guest=number)
    return Entity(id=f"id-{slug}", kind="lxc", slug=slug, parent=NODE.id, mode=mode, access=access)


FLEET = (NODE, guest("vault", "140", Mode.LOCKED), guest("notes", "141", Mode.LOOK))


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        ("pct exec 140 -- touch /x", "target_locked"),
        ("pct exec 140 -- cat /etc/hostname", "target_locked"),
        ("sh -c 'lxc-attach -n 140 -- ls'", "target_locked"),
        ("pct stop 140", "target_locked"),
        ("for i in $(pct list); do pct exec $i -- ls; done", "target_locked"),
        ("pct exec 141 -- touch /x", "target_look_only"),
        ("pct set 141 --memory 512", "target_look_only"),
        ("pct exec 141 -- ls", ""),
        ("pct list", ""),
    ],
)
@pytest.mark.parametrize("place", ["step", "check"])
async def test_a_plan_reaches_no_machine_that_a_run_could_not(
    household: Open, command: str, refusal: str, place: str
) -> None:
    script = plan(command) if place == "step" else plan("ls", check=command)
    async with household(script + "- text: so\n" * 2, targets=FLEET) as house:
        await house.say("go in")
        assert await house.refusals() == ([refusal] if refusal else [])
        assert bool(await house.only(ev.PlanProposed)) is not bool(refusal)


@pytest.mark.parametrize("script", [plan("ls", target="vault"), plan("ls", check="ls").replace('["ls"]', "[]", 1)])
async def test_a_locked_machine_is_no_target_of_a_step(household: Open, script: str) -> None:
    script = script.replace("target: box, commands: []", "target: vault, commands: []")
    async with household(script + "- text: so\n" * 2, targets=FLEET) as house:
        await house.say("go in")
        assert await house.refusals() == ["target_locked"]
