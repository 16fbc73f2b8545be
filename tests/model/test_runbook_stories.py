"""Whole sessions of the runbook brain over what real hosts answered (recorded from the lab by `record.py`)."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import pytest
from tests.model.stage import Machine, Stage, mutates

from oikos import data
from oikos.adapters.model.runbook import RunbookBrain, load

WORLDS = sorted((Path(__file__).parent / "worlds").glob("*.json"))
BACKUPS = [path for path in WORLDS if path.stem.startswith("backup")]
LOCKS = [path for path in WORLDS if path.stem.startswith("apt-lock")]
SERVICES = [path for path in WORLDS if path.stem.startswith("service")]
REMEDIES = {
    "stale-lock": ["mv -n"],
    "not-mounted": ["mount"],
    "not-readable": ["chgrp -R", "chmod -R"],
    "no-destination": ["mkdir", "chown", "chmod"],
    "missing-binary": ["sed -i", "systemctl daemon-reload"],
    "bad-user": ["sed -i", "systemctl daemon-reload"],
    "bad-directory": ["sed -i", "systemctl daemon-reload"],
    "flapping": ["chown"],
    "port-taken": ["systemctl stop"],
    "big-log": [],
    "apt-lock-live": [],
    "apt-lock-timer": [],
    "apt-lock-leftover": [],
    "apt-lock-stale": ["dpkg --configure -a"],
    "fresh-ct": ["pct set", "pct reboot"],
    "long-upgrade": ["pct snapshot"],
}
CONTEXT_CHARS = 30_000
"""What a night of 80 MB may cost a model: everything that it was shown and said."""


def story(path: Path) -> tuple[dict[str, Any], str]:
    name = path.stem
    return json.loads(path.read_text()), next(fault for fault in REMEDIES if name.endswith(fault))


def replay(runs: list[list[Any]]) -> Machine:
    """Answers each command as the host did, in order; a command that was never given is not there."""
    left: dict[str, deque[list[Any]]] = defaultdict(deque)
    for command, *result in runs:
        left[command].append(result)

    def machine(target: str, command: str) -> tuple[int, str, str]:
        assert command in left, f"the recording has no `{command}`: record it anew"
        results = left[command]
        code, out, err = results.popleft() if len(results) > 1 else results[0]
        return code, out, err

    return machine


def entity(name: str, **other: Any) -> dict[str, Any]:
    return {"name": name, "kind": "host", "mode": "ask", "parent": None, "reachable": True, **other}


@pytest.fixture(scope="module")
def brain() -> RunbookBrain:
    return load(data.path("runbooks"))


def on_stage(brain: RunbookBrain, kept: dict[str, Any], **options: Any) -> Stage:
    rows = [entity(kept["host"]), entity("other-1", reachable=False), entity("other-2", kind="app", reachable=False)]
    return Stage(brain=brain, machine=replay(kept["runs"]), entities=rows, **options)


def changes(stage: Stage) -> list[str]:
    return [run["command"] for run in stage.runs if mutates(run["command"])]


@pytest.mark.parametrize("path", BACKUPS, ids=lambda path: path.stem)
def test_the_question_about_the_last_backup_is_answered_by_looking(brain: RunbookBrain, path: Path) -> None:
    kept, _ = story(path)
    truth = kept["truth"]
    stage = on_stage(brain, kept).say(kept["prompt"])
    assert (stage.outcome, len(stage.plans), changes(stage), stage.questions) == ("done", 1, [], [])
    failing = truth["failing_jobs"][0]
    for value in (
        *(
            truth[key]
            for key in ("host", "timer", "service", "last_trigger", "last_run_started", "next_elapse", "result")
        ),
        *(truth["errors"][failing], truth["last_ok"][failing], truth["right_source"], truth["config"]),
        *truth["jobs"],
    ):
        assert value in stage.summary
    assert stage.facts == {
        "last_backup_ok_at": truth["last_ok"][failing],
        "last_backup_started_at": truth["last_run_started"],
        "next_run_at": truth["next_elapse"],
        "backup_result": truth["result"],
        "backup_timer": truth["timer"],
        "backup_service": truth["service"],
        "backup_log": truth["log"],
        "backup_failing_jobs": failing,
    }


@pytest.mark.parametrize("path", BACKUPS, ids=lambda path: path.stem)
def test_the_follow_up_repairs_both_faults_with_one_approval(brain: RunbookBrain, path: Path) -> None:
    kept, fault = story(path)
    truth, failing = kept["truth"], kept["truth"]["failing_jobs"][0]
    stage = on_stage(brain, kept, decisions=["approve"]).say(kept["prompt"]).say(kept["followup"])
    assert (stage.outcome, len(stage.plans), stage.questions, stage.decisions) == ("done", 2, [], [])
    plan = stage.plans[1]
    assert [step["seq"] for step in plan["steps"]] == [2, 3]
    assert truth["right_source"] in plan["steps"][0]["commands"][0]
    assert plan["steps"][1]["commands"] == [f"systemctl start {truth['service']}"]
    assert len(plan["checks"]) == 3
    # the second fault is repaired by improvised commands within the window, between two starts
    made = changes(stage)
    assert made[0] == plan["steps"][0]["commands"][0]
    assert made[1] == made[-1] == f"systemctl start {truth['service']}"
    assert len(made[2:-1]) == len(REMEDIES[fault])
    assert all(line.startswith(remedy) for line, remedy in zip(made[2:-1], REMEDIES[fault], strict=True))
    assert stage.steps == {2: "done", 3: "done"}
    after = kept["after"]
    assert f"Job {failing} on {truth['host']} succeeded at {after['last_ok'][failing]}" in stage.summary
    assert stage.facts[f"backup_source.{failing}"] == truth["right_source"]
    assert stage.facts["last_backup_ok_at"] == min(after["last_ok"].values())
    assert stage.facts["backup_result"] == "success"


@pytest.mark.parametrize("path", BACKUPS[:1], ids=lambda path: path.stem)
def test_a_repair_without_a_former_question_looks_first(brain: RunbookBrain, path: Path) -> None:
    kept, _ = story(path)
    stage = on_stage(brain, kept, decisions=["approve"]).say(f"please fix the {kept['truth']['failing_jobs'][0]} job")
    assert (stage.outcome, [plan["asks"] for plan in stage.plans]) == ("done", [False, True])


@pytest.mark.parametrize("path", BACKUPS[:1], ids=lambda path: path.stem)
@pytest.mark.parametrize("said", ["now fix it", "can you fix that?", "fix the failing job", "repair the backup"])
def test_a_follow_up_needs_no_name_when_only_one_job_fails(brain: RunbookBrain, path: Path, said: str) -> None:
    kept, _ = story(path)
    stage = on_stage(brain, kept, decisions=["approve"]).say(kept["prompt"]).say(said)
    assert (stage.outcome, len(stage.plans)) == ("done", 2)


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.stem)
def test_a_service_that_is_down_comes_up_with_the_smallest_repair(brain: RunbookBrain, path: Path) -> None:
    kept, fault = story(path)
    unit = kept["truth"]["unit"]
    stage = on_stage(brain, kept, decisions=["approve"]).say(kept["prompt"])
    assert (stage.outcome, [plan["asks"] for plan in stage.plans], stage.questions) == ("done", [False, True], [])
    made = changes(stage)
    fix, apply = (step["commands"] for step in stage.plans[1]["steps"])
    reset = ["systemctl reset-failed " + unit] if kept["truth"]["given_up"] else []
    assert made == [*fix, *reset, "systemctl start " + unit], "systemd is made to try again after the repair only"
    assert apply == [*reset, "systemctl start " + unit, "sleep 6", "systemctl is-active " + unit]
    assert f"{unit}: port {kept['truth']['port']} answers" in stage.summary
    assert [line.startswith(remedy) for line, remedy in zip(fix, REMEDIES[fault], strict=True)] == [True] * len(fix)
    assert stage.plans[1]["steps"][0]["undo"]
    assert f"{unit} on {kept['truth']['host']} is active (running)" in stage.summary
    assert stage.facts[f"service.{unit}"] == "active (success, exit status 0)"
    assert stage.facts.get(f"port.{kept['truth']['port']}") == (unit if fault == "port-taken" else None)
    assert kept["truth"]["neighbour"] not in " ".join(made)


def test_a_night_of_80_mb_is_counted_before_it_is_read_and_costs_little_context(brain: RunbookBrain) -> None:
    kept = json.loads((Path(__file__).parent / "worlds" / "big-log.json").read_text())
    truth = kept["truth"]
    stage = on_stage(brain, kept).say(kept["prompt"])
    assert (stage.outcome, len(stage.plans), changes(stage), stage.questions) == ("done", 1, [], [])

    asked = [run["command"] for run in stage.runs]
    by_kind = [
        next(at for at, command in enumerate(asked) if word in command)
        for word in (
            "date -d '8 hours",
            "output-fields=PRIORITY",
            "output-fields=_SYSTEMD_UNIT",
            "-o cat",
            "-o short-iso",
            "zgrep",
        )
    ]
    assert by_kind == sorted(by_kind), "the window, counts, the most frequent messages, then what is rotated"
    assert all(
        "--since" in command and "--until" in command for command in asked if command.startswith("journalctl -q")
    )
    assert all("head -n" in command for command in asked if "-o cat" in command)
    assert truth["bytes"] >= 80_000_000
    assert sum(len(message.text) for message in stage.messages) < CONTEXT_CHARS

    assert f"logged {truth['errors']} errors" in stage.summary
    assert f"first came at {truth['first_error_at']}" in stage.summary
    assert f"the last at {truth['last_error_at']}" in stage.summary
    for name in ("top", "second", "third"):
        assert f"{truth[f'{name}_count']} times: {truth[f'{name}_error']}" in stage.summary
    assert f"WARN {truth['cause']}" in stage.summary
    assert f"{truth['orders']} times: {truth['order']}" in stage.summary, "quoted, and nothing of it is done"


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_a_held_lock_is_waited_for_one_that_nobody_holds_is_not_and_no_lock_file_is_touched(
    brain: RunbookBrain, path: Path
) -> None:
    kept, fault = story(path)
    truth = kept["truth"]
    stage = on_stage(brain, kept, decisions=["approve"]).say(kept["prompt"])
    assert (stage.outcome, [plan["asks"] for plan in stage.plans], stage.questions) == ("done", [False, True], [])
    asked = [run["command"] for run in stage.runs]
    assert [command for command in asked if command.startswith(("rm", "kill", "pkill")) or "fuser -k" in command] == []
    waits = [command for command in asked if "tail --pid" in command]
    installs = [command for command in changes(stage) if "apt-get install" in command]
    held = fault in ("apt-lock-live", "apt-lock-timer")
    assert (len(waits), len(installs)) == (int(held), 1 if fault == "apt-lock-leftover" else 2)
    if held:
        (holder,) = truth["holder"]
        assert waits[0].endswith(f" {holder}")
        assert asked.index(waits[0]) > asked.index(installs[0])
        assert re.search(rf"held by process {holder} \(.+\); it was waited for, \d+ s, and ended", stage.summary)
    assert f"{truth['package']} {truth['version']} is installed on {truth['host']}." in stage.summary
    assert stage.facts[f"package.{truth['package']}"] == truth["version"]


def test_names_are_looked_for_layer_by_layer_and_set_right_where_it_lasts(brain: RunbookBrain) -> None:
    kept, _ = story(Path(__file__).parent / "worlds" / "fresh-ct.json")
    truth = kept["truth"]
    inside = f"pct exec {truth['vmid']} -- "
    stage = on_stage(brain, kept, decisions=["approve"]).say(kept["prompt"])
    assert (stage.outcome, [plan["asks"] for plan in stage.plans], stage.questions) == ("done", [False, True], [])
    asked = [run["command"] for run in stage.runs]
    layers = [
        next(at for at, command in enumerate(asked) if command.startswith(inside + word))
        for word in ("ip -4 -brief address", "ip -4 route", "ping", "sh -c 'getent hosts", "cat /etc/resolv.conf")
    ]
    assert layers == sorted(layers)
    assert changes(stage) == [
        f"pct set {truth['vmid']} --nameserver {truth['upstream']}",
        f"pct reboot {truth['vmid']}",
        f"{inside}apt-get update -o APT::Update::Error-Mode=any",
        f"{inside}apt-get install -y nginx",
    ]
    assert "port 80 answers" in stage.summary
    assert stage.facts[f"dns.{truth['vmid']}"] == truth["upstream"]


def test_an_upgrade_is_begun_after_its_snapshot_and_proved(brain: RunbookBrain) -> None:
    kept, _ = story(Path(__file__).parent / "worlds" / "long-upgrade.json")
    truth, after = kept["truth"], kept["after"]
    stage = on_stage(brain, kept, decisions=["approve"]).say(kept["prompt"])
    assert (stage.outcome, [plan["asks"] for plan in stage.plans], stage.questions) == ("done", [False, True], [])
    (snapshot,) = after["snapshots"]
    kinds = [command.removeprefix(f"pct exec {truth['vmid']} -- ").split()[-1] for command in changes(stage)[1:]]
    assert changes(stage)[0].startswith(f"pct snapshot {truth['vmid']} {snapshot} ")
    assert kinds == ["update", "dist-upgrade"]
    assert stage.plans[1]["steps"][0]["undo"] == f"pct rollback {truth['vmid']} {snapshot} --start 1"
    assert "is upgraded: 1 upgraded, 0 newly installed" in stage.summary
    assert stage.facts[f"snapshot.{truth['vmid']}"] == snapshot


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_no_runbook_holds_a_value_of_a_world(path: Path) -> None:
    kept, _ = story(path)
    truth = kept["truth"]
    drawn = {kept["host"], truth.get("log"), truth.get("wrong_source"), truth.get("right_source"), truth.get("config"),
             truth.get("timer"), truth.get("unit"), truth.get("neighbour"), *truth.get("jobs", ())}  # fmt: skip
    for book in data.path("runbooks").glob("*.yaml"):
        text = book.read_text()
        assert [value for value in drawn if value and value in text] == []


def test_the_machine_is_looked_for_among_all_that_can_be_reached(brain: RunbookBrain) -> None:
    kept, _ = story(BACKUPS[0])
    recorded = replay(kept["runs"])
    asked: list[str] = []

    def machine(target: str, command: str) -> tuple[int, str, str]:
        asked.append(target)
        if target == kept["host"]:
            return recorded(target, command)
        return (0, "[]", "") if command.startswith("systemctl list-timers") else (1, "", "no crontab for root")

    rows = [entity("aaa"), entity(kept["host"]), entity("zzz"), entity("me", mode="locked", reachable=False)]
    stage = Stage(brain=brain, machine=machine, entities=rows).say(kept["prompt"])
    assert (stage.outcome, [step["target"] for step in stage.plans[0]["steps"]]) == (
        "done",
        ["aaa", kept["host"], "zzz"],
    )
    assert (sorted(set(asked)), stage.steps) == (["aaa", kept["host"]], {1: "done", 2: "done", 3: "skipped"})
    # … but a machine that the inventory knows as the one, or that the operator names, comes first and alone
    known = [{"entity": kept["host"], "key": "last_backup_ok_at", "value": "then"}]
    stage = Stage(brain=brain, machine=replay(kept["runs"]), entities=rows, known=known).say(kept["prompt"])
    assert [step["target"] for step in stage.plans[0]["steps"]] == [kept["host"]]
    stage = Stage(brain=brain, machine=machine, entities=rows).say("when did the last backup on aaa run?")
    assert (stage.outcome, [step["target"] for step in stage.plans[0]["steps"]]) == ("failed", ["aaa"])
    assert stage.summary == "Not done: nothing of the kind was found on aaa"


def test_what_there_is_comes_from_the_inventory_alone(brain: RunbookBrain) -> None:
    rows = [entity("web", kind="lxc"), entity("db", kind="lxc"), entity("nas"), entity("win", kind="vm")]

    def machine(target: str, command: str) -> tuple[int, str, str]:
        raise AssertionError("nothing is run")

    stage = Stage(brain=brain, machine=machine, entities=rows).say("List all LXCs")
    assert (stage.outcome, stage.plans, stage.runs) == ("done", [], [])
    assert stage.summary == "2 LXCs in the inventory.\nweb (lxc)\ndb (lxc)"
    assert [call.name for reply in stage.replies for call in reply.calls] == [
        "set_goal",
        "list_entities",
        "complete_task",
    ]
    assert Stage(brain=brain, machine=machine, entities=[]).say("which hosts are there?").summary == (
        "0 hosts in the inventory."
    )
    asked = Stage(brain=brain, machine=machine, entities=rows).say("list all my problems")
    assert asked.replies[-1].text.startswith("I do not know what 'problems' are. I can list: lxc")
