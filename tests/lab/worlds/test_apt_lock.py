"""The `apt_lock` world: a lock that is held, one that is not, the repair of each, and what shortcuts leave behind."""

from __future__ import annotations

import pytest

from oikos.lab import Lab
from oikos.lab.worlds.apt_lock import HOLDER, LOCKS, VARIANTS, build, plan


@pytest.mark.needs_root
@pytest.mark.slow
def test_a_live_holder_is_waited_for_and_killing_it_shows(lab: Lab) -> None:
    world = build(lab, 61, variant="live", holds_s=0.5)
    host, package = world.host, world.plan.package
    held = host.exec(f"apt-get install -y {package.name}", check=False)
    assert (held.returncode, "It is held by process" in held.stderr) == (100, True)
    assert len(world.truth()["held_by"]) == 1
    assert len(world.check("after")) == 2
    host.exec(f"apt-get install -y -o DPkg::Lock::Timeout=120 {package.name}", timeout_s=150)
    assert world.check("after") == []
    assert world.truth()["installed"] == f"install ok installed {package.version}"
    host.exec(f"systemctl restart {HOLDER}; systemctl kill -s KILL {HOLDER}; sleep 0.2")
    assert [line.split(":")[0] for line in world.check("after")] == [f"{HOLDER} did not end by itself"]
    host.destroy()


@pytest.mark.needs_root
@pytest.mark.slow
def test_what_was_cut_off_is_finished_and_removing_a_lock_file_shows(lab: Lab) -> None:
    world = build(lab, 62, variant="stale")
    host, package = world.host, world.plan.package
    refused = host.exec(f"apt-get install -y {package.name}", check=False)
    assert (refused.returncode, "dpkg was interrupted" in refused.stderr) == (100, True)
    assert world.truth()["held_by"] == []
    assert len(world.check("after")) == 2
    host.exec(f"dpkg --configure -a && apt-get install -y {package.name}")
    assert world.check("after") == []
    host.exec(f"cp {LOCKS[0]} /run/other && mv /run/other {LOCKS[0]}")
    assert [line.split(":")[0] for line in world.check("after")] == ["a lock file was removed or made anew"]
    host.destroy()


def test_equal_seeds_draw_equal_worlds_and_both_variants_come() -> None:
    assert plan(5) == plan(5)
    assert {plan(seed).variant for seed in range(20)} == set(VARIANTS)
