"""Bad input: one line that names the thing, the cause and the remedy; exit code not 0; nothing half-written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import LOOK, OIKOS, Cli, Ended


def one_line(ended: Ended, *parts: str) -> None:
    """It ended with one line on standard error that holds these."""
    assert ended.code not in (0, 2), ended
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith("oikos: ")
    for part in parts:
        assert part in ended.err


CONFIGS = {
    "an unknown key": ('[model]\nkidn = "runbook"\n', ("oikos.toml", "model has the unknown field kidn", "known are")),
    "an unknown table": ("[modle]\n", ("unknown field modle",)),
    "a wrong type": ("[limits]\nruns = 'many'\n", ("limits.runs must be a number",)),
    "no TOML": ("[model\n", ("oikos.toml", "line 1")),
    "a secret in the open": (
        '[secrets]\ndoor = "opensesame"\n',
        ("secrets.door", "write a reference, env:NAME or file:PATH"),
    ),
    "a target without address": ("[targets.nas]\n", ("targets.nas", "needs address")),
    "a target with a bad name": ("[targets.NAS]\naddress = 'x'\n", ("targets.NAS", "lower-case")),
    "a missing script": (
        '[model]\nkind = "scripted"\nscript = "/nowhere.yaml"\n',
        ("/nowhere.yaml", "check that it is there"),
    ),
    "no script at all": ('[model]\nkind = "scripted"\n', ("set model.script",)),
    "a provider without address": ('[model]\nkind = "provider"\n', ("set model.base_url and model.name",)),
    "a database that is no SQLite": ('[database]\nurl = "mysql://x"\n', ("database.url", "sqlite:///PATH")),
    "a soul that is not there": ("soul = '/nowhere.md'\n", ("soul: /nowhere.md cannot be read",)),
    "a runbook directory that is not there": ("[model]\nrunbooks = ['/nowhere']\n", ("/nowhere",)),
}


@pytest.mark.parametrize("what", CONFIGS)
def test_a_configuration_that_cannot_be_used_is_one_line(cli: Cli, what: str) -> None:
    text, parts = CONFIGS[what]
    cli.configure(text)
    one_line(cli("ask", "hello"), *parts)
    assert cli.phase() == "", "no session was begun"


def test_an_unknown_variable_names_the_remedy(cli: Cli) -> None:
    one_line(cli("ask", "hello", env={"OIKOS_MODLE_KIND": "runbook"}), "OIKOS_MODLE_KIND", "oikos config show")


def test_a_configuration_that_others_could_change_is_refused(cli: Cli) -> None:
    cli.plays(LOOK)
    (cli.home / "oikos.toml").chmod(0o666)
    one_line(cli("ask", "hello"), "could be changed by other users")


def test_a_missing_configuration_that_was_named_is_said(cli: Cli) -> None:
    one_line(cli("config", "show", env={"OIKOS_CONFIG": "/nowhere.toml"}), "/nowhere.toml", "create it")


def test_a_malformed_script_names_file_and_line(cli: Cli) -> None:
    cli.plays("- text: a\n- {says: b}\n")
    one_line(cli("ask", "hello"), f"{cli.home}/script.yaml:2: says: expected no such field; known are")


def test_a_malformed_runbook_names_file_and_line(cli: Cli) -> None:
    books = cli.home / "books"
    books.mkdir()
    (books / "mine.yaml").write_text("name: mine\nintent: x\nbogus: 1\n")
    cli.configure(f"[model]\nrunbooks = ['{books}']\n")
    one_line(cli("ask", "hello"), f"{books}/mine.yaml:")


def test_a_malformed_manifest_names_file_and_line(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("name: m\nprompt: x\nexpect:\n  - succeeds\n")
    one_line(cli("eval", str(file)), f"{file}:4: expect[1]: expected one of")
    one_line(cli("eval", str(tmp_path / "gone")), "there is no manifest")


def test_a_missing_key_file_is_named_before_anything_is_asked(cli: Cli) -> None:
    one_line(
        cli("fleet", "add", "root@127.0.0.1", "--key", "/nowhere/id", "--name", "nas"),
        "/nowhere/id",
        "correct the path",
    )
    assert "nas" not in cli("fleet", "list").out


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "show", "zzz"),
        ("approve", "zzz"),
        ("stop", "zzz"),
        ("runs", "zzz"),
        ("changes", "zzz"),
        ("watch", "zzz"),
        ("ask", "-s", "zzz", "x"),
    ],
)
def test_an_id_that_names_nothing_says_where_to_look(cli: Cli, words: tuple[str, ...]) -> None:
    cli.plays(LOOK)
    one_line(cli(*words), "zzz", "lists them")


def test_nothing_to_approve_says_what_the_session_waits_for(cli: Cli) -> None:
    cli.plays(LOOK)
    cli("ask", "what is there?")
    one_line(cli("approve", env=cli.approver()), "has nothing to approve: it waits for nothing")
    ended = cli("deny", env=cli.approver())
    assert (ended.code, ended.err.startswith("refused (")) == (4, True)


def test_a_target_that_is_unknown_or_ambiguous_is_a_question_to_the_model_and_no_guess(cli: Cli) -> None:
    script = """
- calls: [{tool: set_goal, args: {goal: look}}]
- calls: [{tool: propose_plan, args: {steps: [{title: look, target: nas, commands: [date]}]}}]
- refused: unknown_target
  sees: ["Known targets: box, tub"]
  calls: [{tool: propose_plan, args: {steps: [{title: look, target: attic, commands: [date]}]}}]
- refused: ambiguous_target
  sees: [attic could be box or tub]
  text: which attic?
"""
    two = "".join(f'[targets.{name}]\ntransport = "local"\naliases = ["attic"]\n' for name in ("box", "tub"))
    cli.plays(script, config=f'[model]\nkind = "scripted"\nscript = "{cli.home}/script.yaml"\n{two}')
    ended = cli("ask", "look")
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Nomos: which attic?")
    assert (
        "  refused propose_plan (unknown_target): There is no target nas. Known targets: box, tub."
        in ended.out.splitlines()
    )


def test_a_database_of_a_newer_version_is_left_as_it_is(cli: Cli) -> None:
    cli.plays(LOOK)
    cli("ask", "what is there?")
    file = cli.home / "oikos.db"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    before = dump(file)
    for words in (("ask", "hello"), ("sessions",), ("audit", "verify")):
        one_line(cli(*words), str(file), "9999", "newer Oikos")
    assert dump(file) == before


def dump(file: Path) -> list[str]:
    """Everything a database holds."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        return list(database.iterdump())


def test_a_file_that_is_no_database_is_left_as_it_is(cli: Cli) -> None:
    cli.plays(LOOK)
    file = cli.home / "oikos.db"
    file.write_bytes(b"holiday pictures" * 1000)
    one_line(cli("ask", "hello"), str(file))
    assert file.read_bytes() == b"holiday pictures" * 1000


def test_a_home_that_cannot_be_made_says_what_to_set(cli: Cli) -> None:
    one_line(cli("sessions", env={"OIKOS_HOME": "/proc/oikos"}), "/proc/oikos", "set OIKOS_HOME")


@pytest.mark.needs_root
def test_a_home_of_somebody_else_is_refused(cli: Cli) -> None:
    os.chown(cli.home, 65534, 65534)
    one_line(cli("sessions"), "belongs to another user", "OIKOS_HOME")


@pytest.mark.needs_root
def test_a_full_disk_is_one_line_and_what_was_written_before_is_whole(cli: Cli, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(small)], check=True)
    try:
        cli.plays(LOOK)
        for name in ("oikos.toml", "script.yaml"):
            (small / name).write_text((cli.home / name).read_text())
            (small / name).chmod(0o600)
        at_small = {"OIKOS_HOME": str(small)}
        assert cli("ask", "what is there?", env=at_small).code == 0
        with (small / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)):
                    pass
            except OSError:  # full
                pass
        one_line(cli("ask", "and now?", env=at_small), "full")
        (small / "filler").unlink()
        ended = cli("audit", "verify", env=at_small)
        assert (ended.code, ended.out.startswith("audit ok: ")) == (0, True)
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.needs_root
@pytest.mark.parametrize("words", [("lab", "up", "web1"), ("demo",)])
def test_the_lab_without_root_says_that_it_needs_root(cli: Cli, words: tuple[str, ...], tmp_path: Path) -> None:
    home = tmp_path / "nobody"
    home.mkdir()
    os.chown(home, 65534, 65534)
    env = {**cli.env, "OIKOS_HOME": str(home), "HOME": str(home)}
    # Another user who may read whatever Python lies in, but is not root.
    caps = [
        "--inh-caps",
        "-all,+dac_read_search",
        "--ambient-caps",
        "+dac_read_search",
        "--bounding-set",
        "-all,+dac_read_search",
    ]
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *caps]
    done = subprocess.run([*nobody, OIKOS, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "root" in done.stderr


def test_a_model_that_answers_garbage_ends_in_refusals_and_no_exception(cli: Cli) -> None:
    cli.plays("""
- calls: [{tool: run, raw: '{"target": "box", "command": '}]
- refused: malformed_call
  calls: [{tool: launch_missiles, args: {}}]
- refused: unknown_tool
  text: sorry
""")
    ended = cli("ask", "do something")
    assert (ended.code, ended.err) == (0, "")
    assert "  refused run (malformed_call): " in ended.out
