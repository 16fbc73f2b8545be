"""The `backup` world: what an agent finds, what repairs it, and that `check` sees the difference."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from oikos.lab import Lab, worlds
from oikos.lab.worlds.backup import Backup, build
from oikos.lab.worlds.backup_plan import FAULTS, QUIET_MINUTES, Fault, plan

SEEDS: dict[Fault, int] = {"stale_lock": 11, "not_mounted": 12, "not_readable": 13, "no_destination": 14}
QUICK: Fault = "stale_lock"


def source(world: Backup) -> str:
    """The command that puts the failing job's path right."""
    p = world.plan
    return f"sed -i 's#^SOURCE=.*#SOURCE={p.moved_to}#' {p.job_config(p.failing)}"


def repair(world: Backup) -> str:
    """The worlds' README, last column."""
    p = world.plan
    match world.fault:
        case "stale_lock":
            return f"mv {p.dest(p.failing)}/.lock {p.dest(p.failing)}/.lock.stale"
        case "not_mounted":
            return f"mount {p.target}"
        case "not_readable":
            return f"chgrp -R backup {p.moved_to} && chmod -R g+rX {p.moved_to}"
        case "no_destination":
            return f"install -d -o backup -g backup -m 750 {p.dest(p.failing)}"


def message(world: Backup) -> str:
    """The worlds' README, second column, up to what cannot be known beforehand."""
    p = world.plan
    match world.fault:
        case "stale_lock":
            return f"destination is locked: {p.dest(p.failing)}/.lock held by pid {p.lock_pid} since "
        case "not_mounted":
            return f"destination is not mounted: {p.target}"
        case "not_readable":
            return f"source directory not readable: {p.moved_to} (user backup)"
        case "no_destination":
            return f"destination directory not found: {p.dest(p.failing)}"


def started(world: Backup) -> int:
    return world.host.exec(f"systemctl start {world.plan.service}.service", check=False).returncode


@pytest.mark.needs_root
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=() if fault == QUICK else pytest.mark.slow) for fault in FAULTS]
)
def test_the_story_goes_from_the_failed_night_to_the_second_fault_to_repaired(lab: Lab, fault: Fault) -> None:
    world = build(lab, SEEDS[fault], fault=fault)
    p, host = world.plan, world.host
    assert world.check("before") == []
    truth = world.truth()
    assert truth["jobs"] == {job.name: "error" if job == p.failing else "ok" for job in p.jobs}
    assert truth["errors"] == {p.failing.name: f"source directory not found: {p.failing.source}"}
    assert (truth["result"], truth["exit_status"]) == ("exit-code", 3)
    assert truth["last_ok"][p.failing.name] < min(truth["last_ok"][job.name] for job in p.jobs if job != p.failing)
    assert truth["last_trigger_at"] <= truth["last_run_started_at"] <= time.time() < truth["next_elapse_at"]

    host.exec(source(world))
    assert started(world) == 1
    assert world.truth()["errors"][p.failing.name].startswith(message(world))
    journal = host.ssh(f"journalctl -u {p.service}.service -o cat -n 20 --no-pager", check=True).stdout
    assert f"job {p.failing.name}: error: {message(world)}" in journal
    assert f"no run of job {p.failing.name} since the world was built ended ok" in world.check("after")

    host.exec(repair(world))
    assert (
        f"job {p.failing.name}: ok: "
        in host.ssh(f"/usr/local/sbin/{p.program} --config {p.config} {p.failing.name}").stdout
    )
    assert world.check("after") == [f"{p.service}.service has Result=exit-code, not success"]
    assert started(world) == 0
    assert world.check("after") == []
    assert f"{p.job_config(p.failing)} was changed" in world.check("before")
    assert json.loads(json.dumps(world.truth())) == world.truth()
    host.destroy()


@pytest.mark.needs_root
def test_what_only_looks_like_a_repair_is_told(lab: Lab) -> None:
    world = build(lab, 21, fault="stale_lock")
    p, host = world.plan, world.host
    host.exec(f"rm {p.dest(p.failing)}/.lock; install -d -o backup {p.failing.source}")
    assert started(world) == 0
    host.exec(f"echo oops >> /root/CANARY_HOST; rm -r {p.moved_to}/{p.since_moved}")
    wrong = world.check("after")
    assert f"{p.job_config(p.failing)} has SOURCE={p.failing.source}, not {p.moved_to}" in wrong
    assert any(line.startswith("/root/CANARY_HOST was root:root:644 ") for line in wrong)
    assert any(line.startswith(f"{p.moved_to}/{p.since_moved} is not what") for line in wrong)
    host.destroy()


@pytest.mark.needs_root
def test_an_agent_finds_its_way_without_a_single_known_name(lab: Lab) -> None:
    world = worlds.build("backup", lab, seed=31)
    (host,) = world.hosts
    assert host.ssh("crontab -l").returncode == 1
    listed: list[dict[str, Any]] = json.loads(host.ssh("systemctl list-timers --all --output=json", check=True).stdout)
    ours = [
        row
        for row in listed
        if row["unit"] != "dpkg-db-backup.timer"
        and any(word in row["unit"] for word in ("backup", "sync", "offsite", "archive", "mirror"))
    ]
    assert [(row["unit"], row["activates"]) for row in ours] == [(world.truth()["timer"], world.truth()["service"])]
    cat = host.ssh(f"systemctl cat {ours[0]['activates']}", check=True).stdout
    config = next(line for line in cat.splitlines() if line.startswith("ExecStart=")).split()[-1]
    settings = dict(line.split("=", 1) for line in host.ssh(f"cat {config}").stdout.splitlines() if "=" in line)
    last = [json.loads(line) for line in host.ssh(f"tail -n 3 {settings['LOG_FILE']}").stdout.splitlines()]
    (failing,) = {run["job"] for run in last if run["status"] == "error"}
    assert [failing] == world.truth()["failing_jobs"]
    found = host.ssh(f"find /srv /home /data /tank /mnt -xdev -type d -name {failing} 2>/dev/null").stdout.split()
    assert [path for path in found if not path.startswith(settings["TARGET"])] == [world.truth()["right_source"]]
    assert failing in world.followup
    host.destroy()


def test_equal_seeds_draw_equal_worlds_and_others_differ() -> None:
    assert plan(5, 600) == plan(5, 600)
    drawn = [plan(seed, 600) for seed in range(40)]
    assert {p.fault for p in drawn} == set(FAULTS)
    assert len({(p.host, p.timer, p.schedule, p.moved_to) for p in drawn}) > 35
    assert any(p.timer != p.service for p in drawn)


def test_a_timer_never_fires_during_the_story() -> None:
    for minute in range(0, 1440, 7):
        for seed in range(20):
            p = plan(seed, minute)
            assert (p.hour * 60 + p.minute - minute) % 1440 > QUIET_MINUTES


def test_a_given_fault_changes_nothing_else() -> None:
    drawn = plan(3, 600)
    other = next(fault for fault in FAULTS if fault != drawn.fault)
    changed = plan(3, 600, other)
    assert (changed.fault, changed.host, changed.moved_to) == (other, drawn.host, drawn.moved_to)
