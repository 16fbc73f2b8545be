"""Records what the lab's worlds answer to the runbooks, for the stories: `python -m tests.model.record` (root)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.model.stage import Stage

from oikos import data
from oikos.adapters.model.runbook import load
from oikos.lab.lab import Lab
from oikos.lab.worlds import apt_lock, backup, big_log, fresh_ct, long_upgrade, service_down
from oikos.lab.worlds.world import World

WORLDS = Path(__file__).parent / "worlds"
STORIES: list[tuple[Any, int, dict[str, Any]]] = [
    *((backup, seed, {"fault": fault}) for seed, fault in enumerate(
        ("stale_lock", "not_mounted", "not_readable", "no_destination"), start=11)),
    *((service_down, seed, {"variant": variant}) for seed, variant in enumerate(
        ("missing_binary", "bad_user", "bad_directory", "flapping", "port_taken"), start=21)),
    (big_log, 31, {}),
    *((apt_lock, seed, {"variant": variant}) for seed, variant in enumerate(apt_lock.VARIANTS, start=41)),
    (fresh_ct, 51, {}),
    (long_upgrade, 61, {}),
]  # fmt: skip

SHORT: dict[Any, dict[str, float]] = {apt_lock: {"holds_s": 1}, long_upgrade: {"takes_s": 3.6}}
"""How long the troubles of a world last, so that nobody waits for minutes."""


def record(world: World, name: str) -> None:
    """Play the world's prompts to the end and keep every command's result."""
    hosts = {host.name: host for host in world.hosts}
    runs: list[list[Any]] = []

    def machine(target: str, command: str) -> tuple[int, str, str]:
        done = hosts[target].exec(command, check=False)
        runs.append([command, done.returncode, done.stdout, done.stderr])
        return done.returncode, done.stdout, done.stderr

    truth = world.truth()
    stage = Stage(brain=load(data.path("runbooks")), machine=machine, entities=[machine_row(next(iter(hosts)))],
                  decisions=["approve"])  # fmt: skip
    stage.say(world.prompt)
    if world.followup:
        stage.say(world.followup)
    wrong = world.check("after")
    assert (wrong, stage.outcome) == ([], "done"), stage.summary
    kept = {"host": next(iter(hosts)), "prompt": world.prompt, "followup": world.followup, "truth": truth,
            "after": world.truth(), "runs": runs}  # fmt: skip
    (WORLDS / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def machine_row(name: str) -> dict[str, Any]:
    """An entity as list_entities gives it."""
    return {
        "name": name,
        "kind": "host",
        "mode": "ask",
        "parent": None,
        "reachable": True,
        "facts": 0,
        "stale_facts": 0,
    }


if __name__ == "__main__":
    for module, seed, drawn in STORIES:
        name = "-".join((module.__name__.rpartition(".")[2], *drawn.values())).replace("_", "-")
        if len(sys.argv) > 1 and not any(word in name for word in sys.argv[1:]):
            continue
        with Lab(f"record{seed}") as lab:
            record(module.build(lab, seed, **drawn, **SHORT.get(module, {})), name)
        sys.stderr.write(f"{name}\n")
