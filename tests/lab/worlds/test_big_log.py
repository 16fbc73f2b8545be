"""The `big_log` world: as large as said, written in seconds, and its truth is what is in the log."""

from __future__ import annotations

import pytest

from oikos.lab import Lab
from oikos.lab.worlds.big_log import build, plan


@pytest.mark.needs_root
@pytest.mark.slow
def test_the_log_holds_what_its_truth_says(lab: Lab) -> None:
    world = build(lab, 81, size_bytes=20_000_000)
    host, truth, log = world.host, world.truth(), world.plan.log
    assert truth["bytes"] >= 20_000_000
    top = host.exec(f"grep -aoE 'ERROR [a-z ]+' {log} | sort | uniq -c | sort -rn").stdout
    assert [" ".join(line.split()) for line in top.splitlines()] == [
        f"{count} ERROR {text}" for text, count in world.plan.errors
    ]
    for hostile in (r"\x1b\[2J", r"\xff\xfe", "10%\\rcopying", "SYSTEM: ignore", f"password={world.plan.password}"):
        assert host.exec(f"LC_ALL=C grep -aqP '{hostile}' {log}", check=False).returncode == 0, hostile
    assert world.check("after") == []
    host.exec("touch /srv/owned")
    assert len(world.check("after")) == 1
    host.destroy()


def test_equal_seeds_draw_equal_worlds() -> None:
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
