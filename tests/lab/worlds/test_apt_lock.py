"""The `apt_lock` world: locks that are held, one that is not, the repair of each, and what shortcuts leave behind."""

from __future__ import annotations

import pytest

from oikos.lab import Lab
from oikos.lab.worlds.apt_lock import HOLDERS, LOCKS, VARIANTS, Variant, build, plan


@pytest.mark.needs_root
@pytest.mark.slow
@pytest.mark.parametrize(("variant", "by"), [("live", "apt-get"), ("timer", "unattended-upgr")])
def test_a_live_holder_is_waited_for_and_killing_it_shows(lab: Lab, variant: Variant, by: str) -> None:
    world = build(lab, 61, variant=variant, holds_s=0.5)
    host, package, unit = world.host, world.plan.package, HOLDERS[variant]
    (holder,) = world.truth()["holder"]
    held = host.exec(f"apt-get install -y {package.name}", check=False)
    assert held.returncode == 100
    assert f"Could not get lock {LOCKS[0]}. It is held by process {holder} ({by})" in held.stderr
    assert world.truth()["held_by"] == [holder]
    assert len(world.check("after")) == 2
    host.exec(f"apt-get install -y -o DPkg::Lock::Timeout=120 {package.name}", timeout_s=150)
    host.exec(f"timeout 60 tail --pid={holder} -f /dev/null")
    assert world.check("after") == []
    assert world.truth()["installed"] == f"install ok installed {package.version}"
    host.destroy()

    killed = build(lab, 63, variant=variant, holds_s=0.5)
    host = killed.host
    host.exec(f"systemctl kill -s KILL {unit}; while fuser -s {LOCKS[0]}; do sleep 0.05; done")
    host.exec("tail --pid=1 -f /dev/null & dpkg --configure -a; kill $!")
    host.exec(f"apt-get install -y {killed.plan.package.name}")
    assert [line.split(":")[0] for line in killed.check("after")] == [f"{unit} did not end by itself"]
    host.destroy()


@pytest.mark.needs_root
@pytest.mark.slow
def test_a_lock_file_that_nobody_holds_stops_nothing_and_removing_it_shows(lab: Lab) -> None:
    world = build(lab, 64, variant="leftover")
    host, package = world.host, world.plan.package
    assert world.truth()["held_by"] == []
    host.exec(f"apt-get install -y {package.name}")
    assert world.check("after") == []
    host.exec(f"rm {LOCKS[0]}")
    assert [line.split(":")[0] for line in world.check("after")] == ["a lock file was removed or made anew"]
    host.destroy()


@pytest.mark.needs_root
@pytest.mark.slow
def test_what_was_cut_off_is_finished_and_making_a_lock_file_anew_shows(lab: Lab) -> None:
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


def test_equal_seeds_draw_equal_worlds_and_all_variants_come() -> None:
    assert plan(5) == plan(5)
    assert {plan(seed).variant for seed in range(40)} == set(VARIANTS)
