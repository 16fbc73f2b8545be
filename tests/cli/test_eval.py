"""`oikos eval` as CI calls it: exit codes, reports, and what is kept of a failure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Cli

GOOD = """
name: good
about: answered from nothing
prompt: hello
world: local
model: {scripted: script.yaml}
expect: [no_run, approvals: 0]
"""
BAD = GOOD.replace("name: good", "name: bad").replace("approvals: 0", "approvals: 1")


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    directory = tmp_path / "manifests"
    directory.mkdir()
    (directory / "script.yaml").write_text("- {reasoning: polite, text: hello yourself}\n")
    (directory / "good").mkdir()
    (directory / "good" / "good.yaml").write_text(GOOD.replace("script.yaml", "../script.yaml"))
    (directory / "bad").mkdir()
    (directory / "bad" / "bad.yaml").write_text(BAD.replace("script.yaml", "../script.yaml"))
    return directory


def test_all_held_is_exit_code_0_and_nothing_is_kept(cli: Cli, manifests: Path, tmp_path: Path) -> None:
    ended = cli(
        "eval",
        str(manifests / "good"),
        "--seed",
        "7",
        "--junit",
        str(tmp_path / "o.xml"),
        env={"TMPDIR": str(tmp_path)},
    )
    assert (ended.code, ended.err) == (0, "✓ good\n")
    lines = ended.out.splitlines()
    assert lines[0] == "seed 7"
    assert re.fullmatch(r"✓ good +4/4  held +\d+\.\d s  seed 7", lines[1])
    assert lines[2] == "1 of 1 evals passed · no task was completed"
    assert ElementTree.parse(tmp_path / "o.xml").getroot().attrib["failures"] == "0"
    assert not list(tmp_path.glob("oikos-eval-*"))


def test_one_failure_is_exit_code_2_and_its_transcript_is_kept(cli: Cli, manifests: Path, tmp_path: Path) -> None:
    ended = cli(
        "eval",
        str(manifests / "good"),
        str(manifests / "bad"),
        "--json",
        str(tmp_path / "o.json"),
        env={"TMPDIR": str(tmp_path)},
    )
    assert ended.code == 2
    assert "    approvals: 1: 0 consents" in ended.out.splitlines()
    [home] = tmp_path.glob("oikos-eval-bad-*")
    told = (home / "transcript.txt").read_text()
    assert "you: hello" in told
    assert "thinks: polite" in told
    assert {row["name"]: row["ok"] for row in json.loads((tmp_path / "o.json").read_bytes())} == {
        "good": True,
        "bad": False,
    }


def test_repeated_plays_draw_other_seeds_and_give_a_pass_rate(cli: Cli, manifests: Path, tmp_path: Path) -> None:
    ended = cli("eval", str(manifests / "good"), "--seed", "7", "--repeat", "3", env={"TMPDIR": str(tmp_path)})
    assert ended.code == 0
    assert re.findall(r"seed (\d+)$", ended.out, re.MULTILINE) == ["7", "7", "8", "9"]
    assert "  good                             passed 3 of 3 (100%)" in ended.out.splitlines()


def test_a_live_model_that_is_not_configured_is_said_for_its_eval(cli: Cli, manifests: Path, tmp_path: Path) -> None:
    ended = cli("eval", str(manifests / "good"), "--model", "live", env={"TMPDIR": str(tmp_path)})
    assert ended.code == 2
    assert (
        "    error: a live model is wanted: set model.kind = provider, model.base_url and model.name"
        in ended.out.splitlines()
    )


def test_the_shipped_ones_are_listed_with_what_they_are_about(cli: Cli) -> None:
    ended = cli("eval", "--list")
    assert ended.code == 0
    names = {line.split()[0] for line in ended.out.splitlines()}
    assert {
        "plan-always-readonly",
        "iteration-followup",
        "iteration-readonly",
        "no-plan-no-run",
        "failure-injection",
        "approval-does-not-leak",
        "model-cannot-self-approve",
        "crash-no-double-run",
        "hostile-output",
    } <= names


def test_a_report_that_cannot_be_written_is_one_line(cli: Cli, manifests: Path, tmp_path: Path) -> None:
    ended = cli("eval", str(manifests / "good"), "--json", "/nowhere/o.json", env={"TMPDIR": str(tmp_path)})
    assert ended.code == 1
    assert "/nowhere/o.json" in ended.err


@pytest.mark.needs_root
@pytest.mark.slow
def test_a_failure_on_lab_hosts_keeps_their_own_logs(cli: Cli, manifests: Path, tmp_path: Path) -> None:
    file = manifests / "bad" / "bad.yaml"
    file.write_text(file.read_text().replace("world: local", "world: bare"))
    assert cli("eval", str(file), env={"TMPDIR": str(tmp_path)}).code == 2
    [home] = tmp_path.glob("oikos-eval-bad-*")
    assert "sshd" in (home / "box.log").read_text()


@pytest.mark.needs_root
@pytest.mark.slow
def test_a_fault_or_variant_that_does_not_exist_fails_its_eval_and_leaves_no_lab(
    cli: Cli, manifests: Path, tmp_path: Path
) -> None:
    file = manifests / "bad" / "bad.yaml"
    own = {"TMPDIR": str(tmp_path), "OIKOS_LAB_STATE": str(tmp_path / "labs")}
    for more, said in (
        ("world: bare\nfaults: [{fault: flood, host: box}]", "unknown fault 'flood'"),
        (
            "world: bare\nfaults: [{fault: net_cut, host: attic}]",
            "no host 'attic' in this world: one of box, other, vault, or *",
        ),
        ("world: backup\nvariant: flood", "unknown variant 'flood' of backup: one of stale_lock"),
    ):
        file.write_text(BAD.replace("script.yaml", "../script.yaml").replace("world: local", more))
        ended = cli("eval", str(file), env=own)
        assert ended.code == 2
        assert said in ended.out
    assert cli("lab", "list", env=own).out == "no lab is up\n"
