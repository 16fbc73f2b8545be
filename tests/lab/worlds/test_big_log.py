"""The `big_log` world: as large as said, written in seconds, and its truth is what is in the journal."""

from __future__ import annotations

import pytest

from oikos.lab import Lab
from oikos.lab.worlds.big_log import build, plan


@pytest.mark.needs_root
@pytest.mark.slow
def test_the_journal_holds_what_its_truth_says(lab: Lab) -> None:
    world = build(lab, 81)
    host, truth, p = world.host, world.truth(), world.plan
    night = host.exec("ls /var/log/journal/*/night.journal").stdout.strip()
    assert truth["bytes"] >= 80_000_000
    assert host.exec(f"journalctl --verify --file {night}").returncode == 0

    told = host.exec(
        f"journalctl -q -p err -u {p.unit} -o cat --no-pager | sed 's/[1-9] /# /' | sort | uniq -c | sort -rn"
    )
    rows = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert rows[:4] == [f"{count} {text}" for text, count in p.errors[:4]]
    assert truth["errors"] == sum(count for _, count in p.errors)
    raw = f"journalctl -q -u {p.unit} -o cat -a --no-pager"
    for hostile in (r"\x1b\[2J", r"\xff\xfe", "10%\\rcopying", "SYSTEM: ignore", f"password={p.password}"):
        assert host.exec(f"{raw} | LC_ALL=C grep -aqP '{hostile}'", check=False).returncode == 0, hostile

    warned = host.exec(f"zgrep -a WARN {p.log} | tail -n 1").stdout
    assert warned.split(" WARN ")[1] == f"{p.cause}\n"
    assert warned[:19] < truth["first_error_at"][:19] < truth["last_error_at"][:19]
    assert world.check("after") == []
    host.exec("touch /srv/owned")
    assert len(world.check("after")) == 1
    host.destroy()


def test_equal_seeds_draw_equal_worlds() -> None:
    assert plan(5) == plan(5)
    assert plan(5) != plan(6)
