"""What a stale approval is answered with: every change of effect is said, words are not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.test_plan import CHANGES_EFFECT, CHANGES_WORDS, PLAN
from tests.domain.world import CHANGE, WEB1, planned, scope, step

from oikos.domain.plan import Plan
from oikos.domain.plan_diff import differences

SMALL = Plan(
    generation=1, goal="fix it", steps=(step(WEB1, planned("systemctl restart demo", CHANGE)),), scope=scope(WEB1)
)


@pytest.mark.parametrize("change", [name for name in CHANGES_EFFECT if CHANGES_EFFECT[name].steps])
def test_whatever_changes_the_digest_is_said(change: str) -> None:
    found = differences(PLAN, CHANGES_EFFECT[change])
    assert found
    assert all(line[:2] in ("- ", "+ ") for line in found)


@pytest.mark.parametrize("change", CHANGES_WORDS)
def test_what_leaves_the_digest_alone_changes_no_command(change: str) -> None:
    assert not [line for line in differences(PLAN, CHANGES_WORDS[change]) if "$ apply" in line and "runs" in line]


def test_a_changed_command_shows_what_was_and_what_is() -> None:
    now = replace(SMALL, steps=(step(WEB1, planned("systemctl stop demo", CHANGE)),))
    assert differences(SMALL, now) == ("- web1 $ systemctl restart demo", "+ web1 $ systemctl stop demo")


def test_the_same_plan_differs_in_nothing_wherever_its_steps_stand() -> None:
    assert differences(SMALL, replace(SMALL, generation=2, steps=(replace(SMALL.steps[0], seq=7),))) == ()


def test_a_step_without_commands_and_a_plan_without_steps_are_said() -> None:
    bare = replace(SMALL, steps=(step(WEB1),))
    assert differences(SMALL, bare) == ("- web1 $ systemctl restart demo", "+ web1: commands not fixed")
    assert differences(replace(SMALL, steps=()), SMALL) == ("+ web1 $ systemctl restart demo",)
