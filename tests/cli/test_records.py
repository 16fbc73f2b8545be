"""What happened, from the record alone: sessions, runs, changes, audit; settings; what the rules say."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess

import pytest

from tests.cli.conftest import FIX, LOOK, OIKOS, Cli


@pytest.fixture
def looked(cli: Cli) -> Cli:
    """A home in which a question was answered."""
    cli.plays(LOOK)
    assert cli("ask", "what is there?").code == 0
    return cli


@pytest.fixture
def fixed(cli: Cli) -> Cli:
    """A home in which a change was approved and made."""
    cli.plays(FIX)
    assert cli("ask", "make a note").code == 3
    assert cli("approve", env=cli.approver()).code == 0
    return cli


def test_a_session_replays_whole_with_reasoning_calls_and_refusals_in_order(looked: Cli) -> None:
    ended = looked("sessions", "show")
    assert (ended.code, ended.err) == (0, "")
    told = [line[7:] for line in ended.out.splitlines()]
    wanted = [
        "you: what is there?",
        "  thinks: they want to know what is there",
        "Nomos: I look.",
        f'  calls run {{"target": "box", "command": "ls {looked.workshop}"}}',
        "  refused run (no_goal): There is no goal yet.",
        "goal: know what is there",
        "PLAN 1 · read-only: no approval needed · goal: know what is there",
        f"[read-only] box $ ls {looked.workshop}  (step 1)",
        "    photo.jpg",
        "✓ step 1 done: look",
        "✓ done: there is a photo",
    ]
    places = [told.index(line) for line in wanted]
    assert places == sorted(places)
    assert any(line.startswith("✎ inventory: seen=yes") for line in told)


def test_a_session_as_json_is_one_event_a_line_without_a_gap(looked: Cli) -> None:
    rows = [json.loads(line) for line in looked("sessions", "show", "--json").out.splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [rows[0]["kind"], rows[1]["kind"]] == ["session.opened", "operator.said"]
    assert {"assistant.said", "tool.answered", "plan.accepted", "run.started", "run.finished", "session.completed"} <= {
        row["kind"] for row in rows
    }


def test_sessions_are_listed_with_what_they_wait_for(cli: Cli) -> None:
    cli.plays(FIX)
    cli("ask", "make a note")
    [line] = cli("sessions").out.splitlines()
    assert line.endswith("make a note  waits for you: plan 1: a note is there")


def test_nothing_yet_says_how_to_begin(cli: Cli) -> None:
    assert cli("sessions").out.startswith("No sessions yet: oikos ask ")
    assert cli("sessions", "show").err == "oikos: 0 sessions begin with -: `oikos sessions` lists them\n"


def test_a_run_is_shown_with_its_whole_output_and_its_authority(looked: Cli) -> None:
    [line] = looked("runs").out.splitlines()
    run = line.split()[0]
    assert "→ exit 0" in line
    ended = looked("runs", run)
    assert ended.code == 0
    assert ended.out.splitlines()[1].startswith("  authority read_only · session ")
    assert ended.out.splitlines()[2:] == ["photo.jpg"]
    assert looked("runs", run, "--stderr").out.splitlines()[2:] == []


def test_changes_are_listed_with_their_undo_and_authority(fixed: Cli) -> None:
    lines = fixed("changes").out.splitlines()
    assert lines[0].endswith(f"[changes] box $ touch {fixed.workshop}/note")
    assert " · authority window:" in lines[1]
    assert lines[2:] == [f"    undo: rm {fixed.workshop}/note"]


def test_a_session_that_only_looked_changed_nothing(looked: Cli) -> None:
    assert looked("changes").out == "Nothing was changed in this session.\n"


def test_an_untouched_record_verifies(fixed: Cli) -> None:
    ended = fixed("audit", "verify")
    assert ended.code == 0
    assert ended.out.startswith("audit ok: ")
    assert ", 1 consents, head " in ended.out


FORGERIES = {
    "an event's text": "UPDATE events SET body = replace(body, 'a note', 'a vote') WHERE kind = 'goal.set'",
    "an event's time": "UPDATE events SET wall_s = wall_s - 3600 WHERE kind = 'plan.approved'",
    "a missing event": "DELETE FROM events WHERE kind = 'plan.approved'",
    "a consent": "UPDATE consents SET body = replace(body, '1800', '9800')",
    "a run's outcome": "UPDATE runs SET outcome = 'exit 7'",
    "a fact": "UPDATE facts SET value = '\"forged\"'",
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_record_that_was_tampered_with_is_found_out(fixed: Cli, what: str) -> None:
    with sqlite3.connect(fixed.home / "oikos.db") as database:
        assert database.execute(FORGERIES[what]).rowcount > 0
    ended = fixed("audit", "verify")
    assert ended.code == 2
    assert ended.out.startswith("✕ ")
    assert ended.out.splitlines()[-1].startswith("audit: ")


def test_settings_are_shown_with_their_origin_and_no_secret(cli: Cli) -> None:
    cli.configure('[model]\nkind = "provider"\nbase_url = "http://127.0.0.1:9/v1"\nname = "m"\napi_key = "env:DOOR"\n')
    ended = cli("config", "show", env={"OIKOS_LIMITS_RUNS": "7", "DOOR": "sk-4711"})
    assert ended.code == 0
    told = {words[0]: line for line in ended.out.splitlines() if (words := line.split())}
    assert told["model.name"].split() == ["model.name", "m", "file", f"{cli.home}/oikos.toml"]
    assert told["limits.runs"].split() == ["limits.runs", "7.0", "environment", "OIKOS_LIMITS_RUNS"]
    assert told["limits.iterations"].endswith("default")
    assert told["model.api_key"].split()[:2] == ["model.api_key", "env:DOOR"]
    assert "sk-4711" not in ended.out


def test_classify_explains_and_answers_malformed_lines_one_by_one(cli: Cli) -> None:
    assert cli("classify", "ls -l").out.startswith("read_only")
    ended = cli(
        "classify",
        "--jsonl",
        stdin='{"id":1,"command":"rm -rf /"}\nnonsense\n\n[]\n{"id":4}\n{"id":5,"command":"ls"}\n',
    )
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 1
    assert [(row["id"], row.get("risk")) for row in rows] == [
        (1, "destructive"),
        (None, None),
        (None, None),
        (4, None),
        (5, "read_only"),
    ]
    assert [row.get("error", "")[:7] for row in rows] == ["", "line 2:", "line 4:", "line 5:", ""]


def test_assent_explains_and_answers_malformed_lines_one_by_one(cli: Cli) -> None:
    assert cli("assent", "go ahead").out.startswith("assent")
    ended = cli(
        "assent", "--jsonl", stdin='{"id":1,"text":"don\'t do it"}\n\xff\n{"id":3,"text":7}\n{"id":4,"text":"yes"}\n'
    )
    rows = [json.loads(line) for line in ended.out.splitlines()]
    assert ended.code == 1
    assert [(row["id"], row.get("verdict")) for row in rows] == [
        (1, "not_assent"),
        (None, None),
        (3, None),
        (4, "assent"),
    ]


@pytest.mark.parametrize("words", [("classify",), ("assent",)])
def test_rules_without_a_question_say_what_to_give(cli: Cli, words: tuple[str, ...]) -> None:
    ended = cli(*words)
    assert ended.code == 2
    assert ", or --jsonl" in ended.err


def test_help_needs_no_home_and_loads_nothing_heavy(cli: Cli) -> None:
    ended = cli("--help", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ended.code == 0
    assert not list(cli.home.iterdir())
    heavy = {"sqlalchemy", "asyncssh", "mcp", "pydantic_ai", "yaml", "tree_sitter"}
    assert not heavy & {line.rpartition("|")[2].strip() for line in ended.err.splitlines()}


def test_a_reader_that_goes_away_is_no_error(looked: Cli) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [OIKOS, "sessions", "show"], stdout=writing, stderr=subprocess.PIPE, env=looked.env, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")
