"""The command line at a terminal: a person types, watches, halts; and colours only where they are wanted."""

from __future__ import annotations

from tests.cli.conftest import FIX, LOOK, SLOW, Cli
from tests.wait import until


def test_a_conversation_from_question_to_approved_change(cli: Cli) -> None:
    cli.plays(FIX)
    with cli.terminal("chat", env={"NO_COLOR": "1"}) as terminal:
        terminal.until("> ")
        terminal.type("make a note\n")
        terminal.until("digest")
        terminal.type("\n")  # Enter alone decides nothing
        terminal.until("> ", times=3)
        assert cli.phase() == "awaiting_approval"
        terminal.type("yes\n")
        terminal.until(": the note is there")
        terminal.until("> ", times=4)
        terminal.type("\x04")
        assert terminal.ended() == 0
    assert (cli.workshop / "note").exists()
    assert terminal.shown.count("make a note") == 1, "what was typed is not told again"
    assert terminal.shown.count("PLAN 1") == 1


def test_a_card_left_with_ctrl_d_stays_open(cli: Cli) -> None:
    cli.plays(FIX)
    with cli.terminal("ask", "make a note") as terminal:
        terminal.until("digest")
        terminal.until("> ")
        terminal.type("\x04")
        assert terminal.ended() == 3
    assert cli.phase() == "awaiting_approval"


def test_what_another_process_decides_is_seen_at_the_prompt(cli: Cli) -> None:
    cli.plays(FIX)
    with cli.terminal("ask", "make a note") as terminal:
        terminal.until("digest")
        assert cli("approve", "--no-follow", env=cli.approver()).code == 0
        terminal.until(": the note is there")
        assert terminal.ended() == 0


def test_ctrl_c_halts_before_anything_else_starts_and_go_resumes(cli: Cli) -> None:
    cli.plays(SLOW.replace("sleep 60", "until test -e {{workshop}}/go; do sleep 0.1; done"))
    with cli.terminal("ask", "make a note") as terminal:
        terminal.until("digest")
        terminal.type("yes\n")
        terminal.until("box running")
        until((cli.workshop / "begun").exists, "the command's beginning", 30)
        terminal.type("\x03")
        terminal.until("Suspended: nothing more starts")
        (cli.workshop / "go").touch()
        terminal.until("HALTED")
        assert cli.phase() == "blocked"
        terminal.type("go\n")
        terminal.until(": the note is there")
        assert terminal.ended() == 0


def test_approve_at_a_terminal_needs_no_token(cli: Cli) -> None:
    cli.plays(FIX)
    cli("ask", "make a note")
    with cli.terminal("approve") as terminal:
        assert terminal.ended() == 0
    assert (cli.workshop / "note").exists()


def test_colours_are_for_terminals_that_want_them(cli: Cli) -> None:
    cli.plays(LOOK)
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with cli.terminal("ask", "what is there?", env=env) as terminal:
            assert terminal.ended() == 0
        assert ("\x1b[32m" in terminal.shown) is coloured, env


def test_hidden_and_control_characters_of_a_host_are_made_visible(cli: Cli) -> None:
    (cli.workshop / "photo.jpg").rename(cli.workshop / "a\x1b]0;owned\x07\u202eb")
    cli.plays(LOOK.replace('"ls {{workshop}}"', '"ls -N {{workshop}}"'))
    with cli.terminal("ask", "what is there?") as terminal:
        assert terminal.ended() == 0
    assert "\x1b]0;" not in terminal.shown
    assert "\u202e" not in terminal.shown
    assert "a\\u{202e}b" in terminal.shown
