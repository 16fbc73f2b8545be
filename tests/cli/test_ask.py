"""`oikos ask` and what decides beside it: exit codes, JSON, two processes on one home."""

from __future__ import annotations

import signal

import pytest

from tests.cli.conftest import FIX, LOOK, SLOW, Cli, as_json
from tests.fleet.servers import free_port
from tests.wait import until


def test_a_question_is_answered_with_exit_code_0(cli: Cli) -> None:
    cli.plays(LOOK)
    ended = cli("ask", "what is there?")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert lines[1:3] == ["Nomos: I look.", "  refused run (no_goal): There is no goal yet."]
    assert f"[read-only] box $ ls {cli.workshop}  (step 1)" in lines
    assert "    photo.jpg" in lines
    assert lines[-1] == "✓ done: there is a photo"
    assert "\x1b" not in ended.out


def test_json_is_one_object_with_the_answer(cli: Cli) -> None:
    cli.plays(LOOK)
    ended = cli("ask", "--json", "what is there?")
    body = as_json(ended)
    runs = body.pop("runs")
    assert (ended.code, ended.err, isinstance(runs, list) and len(runs)) == (0, "", 1)
    assert body | {"session": ""} == {
        "session": "",
        "state": "done",
        "goal": "know what is there",
        "outcome": "done",
        "summary": "there is a photo",
        "generation": 1,
        "plan_generations": 1,
        "answer": "I look.",
    }


def test_a_task_that_fails_has_exit_code_2(cli: Cli) -> None:
    cli.plays(
        LOOK.replace("outcome: done, summary: there is a photo", "outcome: failed, summary: there is nothing").replace(
            "status: done}", "status: failed, note: nothing was there}"
        )
    )
    ended = cli("ask", "what is there?")
    assert (ended.code, ended.out.splitlines()[-1]) == (2, "✕ failed: there is nothing")


def test_a_plan_that_waits_has_exit_code_3_and_is_shown_once_with_what_can_be_done(cli: Cli) -> None:
    cli.plays(FIX)
    ended = cli("ask", "make a note")
    assert ended.code == 3
    assert ended.out.count("PLAN 1") == 1
    assert f"     $ touch {cli.workshop}/note" in ended.out.splitlines()
    assert ended.out.splitlines()[-1].startswith("  oikos approve ")
    assert not (cli.workshop / "note").exists()


def test_json_of_a_waiting_plan_carries_what_an_approval_needs(cli: Cli) -> None:
    cli.plays(FIX)
    ended = cli("ask", "--json", "make a note")
    body = as_json(ended)
    waits = body["waits_for"]
    assert isinstance(waits, dict)
    assert (ended.code, waits["kind"], waits["generation"]) == (3, "plan", 1)
    assert cli("approve", "--digest", str(waits["digest"])[:12], env=cli.approver()).code == 0
    assert (cli.workshop / "note").exists()


def test_an_approval_without_terminal_or_token_is_refused_with_exit_code_4(cli: Cli) -> None:
    cli.plays(FIX)
    cli("ask", "make a note")
    ended = cli("approve")
    assert (ended.code, ended.err.startswith("refused (no_terminal): ")) == (4, True)
    assert cli("ask", "-s", "-", "yes").code == 3
    assert not (cli.workshop / "note").exists()


def test_a_wrong_token_decides_nothing(cli: Cli) -> None:
    cli.plays(FIX)
    cli("ask", "make a note")
    cli.approver()
    ended = cli("approve", env={"OIKOS_APPROVER_TOKEN": "guessed"})
    assert (ended.code, ended.err) == (1, "oikos: the approver token is not the one of this home\n")


def test_another_digest_than_the_shown_one_is_not_approved(cli: Cli) -> None:
    cli.plays(FIX)
    cli("ask", "make a note")
    ended = cli("approve", "--digest", "0000", env=cli.approver())
    assert (ended.code, "look at the card again" in ended.err) == (1, True)


def test_an_approval_in_another_process_lets_a_waiting_ask_go_on_to_its_end(cli: Cli) -> None:
    cli.plays(FIX)
    waiting = cli.begin("ask", "--wait", "--json", "make a note")
    try:
        until(lambda: cli.phase() == "awaiting_approval", "a plan that waits", 30)
        decided = cli("approve", "--no-follow", env=cli.approver())
        assert (decided.code, decided.out.splitlines()[-1]) == (0, "Plan 1 approved; window 30 min on box.")
        out, err = waiting.communicate(timeout=30)
    finally:
        waiting.kill()
    assert waiting.returncode == 0
    assert b"PLAN 1" in err, "with --json the card goes to standard error"
    assert b'"state": "done"' in out
    assert (cli.workshop / "note").exists()


def test_a_denied_plan_ends_a_waiting_ask_with_exit_code_4(cli: Cli) -> None:
    cli.plays(FIX)
    waiting = cli.begin("ask", "--wait", "make a note")
    try:
        until(lambda: cli.phase() == "awaiting_approval", "a plan that waits", 30)
        assert cli("deny", "--reason", "not today", "--no-follow", env=cli.approver()).code == 0
        out, _ = waiting.communicate(timeout=30)
    finally:
        waiting.kill()
    assert waiting.returncode == 4
    assert "✕ plan 1 rejected by" in out.decode()
    assert not (cli.workshop / "note").exists()


def test_stop_ends_a_running_command_of_another_process_and_says_that_it_is_dead(cli: Cli) -> None:
    cli.plays(SLOW)
    cli("ask", "make a note")
    cli.env |= cli.approver()
    working = cli.begin("approve")
    try:
        until((cli.workshop / "begun").exists, "the command's beginning", 30)
        stopped = cli("stop")
        assert stopped.code == 0
        assert "remote process killed" in stopped.out
        working.wait(30)
    finally:
        working.kill()
        working.communicate()
    assert cli.phase() == "stopped"
    assert not (cli.workshop / "note").exists()


def test_a_killed_process_loses_nothing_that_was_said(cli: Cli) -> None:
    cli.plays(FIX)
    waiting = cli.begin("ask", "--wait", "make a note")
    until(lambda: cli.phase() == "awaiting_approval", "a plan that waits", 30)
    waiting.send_signal(signal.SIGKILL)
    waiting.communicate()
    assert cli("audit", "verify").code == 0
    assert "goal: a note is there" in cli("sessions", "show").out


def test_a_follow_up_goes_into_the_same_session(cli: Cli) -> None:
    cli.plays(LOOK + "- text: it is still there\n")
    cli("ask", "what is there?")
    ended = cli("ask", "--session", "-", "and now?")
    assert ended.code == 0
    assert ended.out.splitlines()[1:] == [
        "— reopened after done; generation 1 is history —",
        "Nomos: it is still there",
    ]


def test_a_session_that_may_only_look_refuses_a_plan_that_changes(cli: Cli) -> None:
    cli.plays(FIX.partition("\n- calls: [{tool: run")[0] + "\n- {refused: look_only_session, text: I may only look.}\n")
    ended = cli("ask", "--look", "make a note")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Nomos: I may only look.")


@pytest.mark.parametrize("words", [("ask",), ("ask", "a", "b"), ("approve", "--minutes", "5"), ("frobnicate",)])
def test_wrong_use_is_explained_with_exit_code_2(cli: Cli, words: tuple[str, ...]) -> None:
    ended = cli(*words)
    assert ended.code == 2
    assert "Error: " in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.slow  # the provider is tried four times
def test_a_model_that_cannot_be_reached_is_said_with_exit_code_3_and_the_question_is_kept(cli: Cli) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    cli.configure(f'[model]\nkind = "provider"\nbase_url = "{url}"\nname = "m"\n')
    ended = cli("ask", "hello")
    assert ended.code == 3
    assert url.removesuffix("/v1") in ended.out
    assert "BLOCKED  the model is not available" in ended.out
    assert cli("sessions").out.splitlines()[0].count("hello") == 1


def test_watch_follows_what_other_processes_do_to_the_end(cli: Cli) -> None:
    cli.plays(FIX)
    waiting = cli.begin("ask", "--wait", "make a note")
    watching = None
    try:
        until(lambda: cli.phase() == "awaiting_approval", "a plan that waits", 30)
        watching = cli.begin("watch")
        assert cli("approve", "--no-follow", env=cli.approver()).code == 0
        out, err = watching.communicate(timeout=30)
    finally:
        for process in filter(None, (waiting, watching)):
            process.kill()
            process.communicate()
    assert (watching.returncode, err) == (0, b"")
    assert out.decode().splitlines()[0] == "you: make a note"
    assert out.decode().splitlines()[-1] == "✓ done: the note is there"
