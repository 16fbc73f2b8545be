"""The `fresh_ct` world: no name resolves in the container, the lasting repair, and one that does not last."""

from __future__ import annotations

import pytest

from oikos.lab import Lab
from oikos.lab.worlds.fresh_ct import STUB, build, plan


@pytest.mark.needs_root
@pytest.mark.slow
def test_names_resolve_after_the_repair_that_lasts_and_not_after_the_other(lab: Lab) -> None:
    world = build(lab, 71)
    node, vmid = world.node, world.plan.vmid
    assert world.check("before") == []
    assert "nameserver" not in node.exec(f"pct config {vmid}").stdout
    assert f"nameserver {STUB}\n" in node.exec(f"pct exec {vmid} -- cat /etc/resolv.conf").stdout
    assert node.exec(f"getent hosts {node.name}").returncode == 0, "the node's own stub answers the node"

    warned = node.exec(f"pct exec {vmid} -- apt-get update", check=False)
    assert (warned.returncode, f"Temporary failure resolving '{node.name}'" in warned.stderr) == (0, True)
    failed = node.exec(f"pct exec {vmid} -- apt-get install -y nginx", check=False)
    assert (failed.returncode, "Unable to locate package nginx" in failed.stderr) == (100, True)
    assert node.exec(f"pct exec {vmid} -- getent hosts {node.name}", check=False).returncode == 2

    good = f"nameserver {lab.network.gateway}"
    install = f"pct exec {vmid} -- apt-get update && pct exec {vmid} -- apt-get install -y nginx"
    node.exec(f"echo '{good}' | pct exec {vmid} -- tee /etc/resolv.conf && {install}")
    assert world.truth()["answers"] is True
    assert [line.split(" {")[0] for line in world.check("after")][:2] == [
        f"the configuration of {vmid} is",
        f"names do not resolve in {vmid} after a restart",
    ]
    node.exec(f"pct set {vmid} --nameserver {lab.network.gateway}")
    assert world.check("after") == []
    node.exec(f"pct exec {vmid} -- systemctl disable -q --now nginx")
    assert world.check("after") == [
        f"port 80 of {vmid} does not answer",
        f"port 80 of {vmid} does not answer after a restart",
    ]
    node.destroy()


def test_equal_seeds_draw_equal_worlds() -> None:
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
