"""The `long_upgrade` world: an upgrade that outlives the connection, and what a second one or none would show."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.wait import until

from oikos.lab import Lab
from oikos.lab.worlds.long_upgrade import build, plan


@pytest.mark.needs_root
@pytest.mark.slow
def test_an_upgrade_outlives_a_cut_and_runs_once(lab: Lab) -> None:
    world = build(lab, 91, takes_s=14.4)
    node, p = world.node, world.plan
    assert world.check("before") == []
    node.exec(f"pct snapshot {p.vmid} before && pct exec {p.vmid} -- apt-get update -o APT::Update::Error-Mode=any")
    half = "migrating ([7-9]|[1-3][0-9]) of 36"
    with ThreadPoolExecutor(1) as beside:
        cut = beside.submit(node.ssh_cut, 1.5, when_running=half, within_s=60)
        done = node.ssh(f"pct exec {p.vmid} -- apt-get -y dist-upgrade > /root/said 2>&1")
        assert done.returncode == 255, node.exec("cat /root/said").stdout
        cut.result()
    assert world.truth()["finished"] == 0, "it is cut in the middle"
    until(lambda: node.ssh("true").returncode == 0, "the cable to be back", 20)
    assert world.check("after") != []
    until(lambda: world.truth()["finished"] == 1, "the migration to end", 30)
    until(lambda: world.check("after") == [], "the upgrade to end", 30)

    node.exec(
        f"pct exec {p.vmid} -- sh -c 'echo begun again >> /var/log/migrations.log'; pct delsnapshot {p.vmid} before"
    )
    assert world.check("after") == [
        "the migration began 2 times and ended 1 times, not once",
        f"there are 0 snapshots of {p.vmid}, not the one from before",
    ]
    node.destroy()


def test_equal_seeds_draw_equal_worlds() -> None:
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
