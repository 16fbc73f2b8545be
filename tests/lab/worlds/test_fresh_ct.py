"""The `fresh_ct` world: no name resolves in the container, the lasting repair, and one that does not last."""

from __future__ import annotations

import pytest

from oikos.lab import Lab
from oikos.lab.worlds.fresh_ct import build, plan


@pytest.mark.needs_root
@pytest.mark.slow
def test_names_resolve_after_the_repair_that_lasts_and_not_after_the_other(lab: Lab) -> None:
    world = build(lab, 71)
    node, vmid, package = world.node, world.plan.vmid, world.plan.package
    assert world.check("before") == []
    warned = node.exec(f"pct exec {vmid} -- apt-get update")
    assert "Temporary failure resolving" in warned.stdout + warned.stderr
    good = f"nameserver {lab.network.gateway}"
    install = f"pct exec {vmid} -- apt-get update && pct exec {vmid} -- apt-get install -y {package.name}"
    node.exec(f"echo '{good}' | pct exec {vmid} -- tee /etc/resolv.conf && {install}")
    assert [line.split(" {")[0] for line in world.check("after")][:2] == [
        f"the configuration of {vmid} is",
        f"names do not resolve in {vmid} after a restart",
    ]
    node.exec(f"pct set {vmid} --nameserver {lab.network.gateway}")
    assert world.check("after") == []
    node.destroy()


def test_equal_seeds_draw_equal_worlds() -> None:
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
