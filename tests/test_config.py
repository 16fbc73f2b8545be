"""Configuration: where each value comes from, and one line with file, key and remedy for whatever is wrong with it."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from oikos.config import DEFAULTS, Target, Value, load, resolve_secret
from oikos.domain.errors import ConfigError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def write(home: Path, text: str) -> Path:
    file = home / "oikos.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"OIKOS_HOME": str(home), **more}


def complaint(home: Path, **more: str) -> str:
    """The error, which is one line."""
    with pytest.raises(ConfigError) as caught:
        load(environ(home, **more))
    text = str(caught.value)
    assert "\n" not in text
    return text


# ---- where values come from ------------------------------------------------------------------------------------------


def test_without_a_file_every_value_is_the_default_and_says_so(home: Path) -> None:
    config = load(environ(home))
    assert config.values == {key: Value(value=value, origin="default") for key, value in DEFAULTS.items()}
    assert (config.home, config.path, config.targets, config.secrets) == (home, home / "oikos.toml", {}, {})
    assert config.database_path == home / "oikos.db"


def test_environment_wins_over_the_file_and_the_file_over_the_default(home: Path) -> None:
    file = write(home, '[model]\nkind = "provider"\nname = "small"\n[limits]\nruns = 7\n')
    config = load(environ(home, OIKOS_MODEL_NAME="large"))
    assert config.values["model.kind"] == Value(value="provider", origin=f"file {file}")
    assert config.values["model.name"] == Value(value="large", origin="environment OIKOS_MODEL_NAME")
    assert config.values["model.base_url"].origin == "default"
    assert config.number("limits.runs") == 7


def test_a_value_is_read_from_the_file_that_the_environment_names(home: Path) -> None:
    (home / "url").write_text("http://localhost:1234/v1\n", encoding="utf-8")
    config = load(environ(home, OIKOS_MODEL_BASE_URL_FILE=str(home / "url")))
    assert config.values["model.base_url"] == Value(
        value="http://localhost:1234/v1", origin="environment OIKOS_MODEL_BASE_URL_FILE"
    )


def test_numbers_and_lists_of_the_environment_are_typed(home: Path) -> None:
    config = load(environ(home, OIKOS_LIMITS_RUNS="12", OIKOS_MODEL_RUNBOOKS="/a:/b,/c"))
    assert config.number("limits.runs") == 12.0
    assert config.texts("model.runbooks") == ("/a", "/b", "/c")


def test_the_file_may_be_named_and_the_working_directory_never_counts(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere, "[limits]\nruns = 3\n")
    monkeypatch.chdir(elsewhere)
    assert load(environ(home)).number("limits.runs") == 200
    assert load(environ(home, OIKOS_CONFIG=str(elsewhere / "oikos.toml"))).number("limits.runs") == 3


def test_without_a_home_the_users_data_directory_is_taken() -> None:
    assert load({"HOME": "/nowhere/anna"}).home == Path("/nowhere/anna/.local/share/oikos")
    assert load({"HOME": "/nowhere/anna", "XDG_DATA_HOME": "/nowhere/data"}).home == Path("/nowhere/data/oikos")


def test_a_database_elsewhere_is_a_file_and_others_are_refused_for_now(home: Path) -> None:
    assert load(environ(home, OIKOS_DATABASE_URL="sqlite:////srv/o.db")).database_path == Path("/srv/o.db")
    config = load(environ(home, OIKOS_DATABASE_URL="postgresql://localhost/o"))
    with pytest.raises(ConfigError, match=r"^database\.url: postgresql is not supported yet: use sqlite:///PATH"):
        _ = config.database_path


# ---- targets ---------------------------------------------------------------------------------------------------------


def test_a_target_is_what_its_table_says(home: Path) -> None:
    write(home, '[targets.nas]\naddress = "10.0.0.5"\nuser = "anna"\nbecome = "sudo"\nbecome_password = "env:P"\n'
                'aliases = ["store"]\n'
                '[targets.ct]\ntransport = "pct"\nvia = "nas"\nguest = "101"\nmode = "look"\n')  # fmt: skip
    assert load(environ(home)).targets == {
        "nas": Target(
            name="nas", address="10.0.0.5", user="anna", become="sudo", become_password="env:P", aliases=("store",)
        ),
        "ct": Target(name="ct", transport="pct", via="nas", guest="101", mode="look"),
    }


# ---- what is wrong ---------------------------------------------------------------------------------------------------

MISTAKES = tomllib.loads((Path(__file__).parent / "config_mistakes.toml").read_text(encoding="utf-8"))["mistake"]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake["name"])
def test_a_mistake_in_the_file_is_named_with_its_place(home: Path, mistake: dict[str, str]) -> None:
    file = write(home, mistake["text"])
    said = complaint(home)
    assert said.startswith(f"{file}: ")
    assert mistake["says"] in said
    assert "hunter2" not in said
    assert "sk-123" not in said


def test_a_syntax_error_names_its_line(home: Path) -> None:
    write(home, "[model]\nkind = \n")
    assert "line 2" in complaint(home)


def test_a_file_that_is_no_text_is_named(home: Path) -> None:
    (home / "oikos.toml").write_bytes(b"\xff\xfe")
    assert complaint(home) == f"{home / 'oikos.toml'} is not UTF-8 text"


def test_a_file_that_others_may_change_is_refused(home: Path) -> None:
    file = write(home, "[model]\n")
    file.chmod(0o666)
    assert complaint(home) == f"{file} could be changed by other users: chown it to yourself and chmod 600"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_file_of_another_user_is_refused(home: Path) -> None:
    file = write(home, "[model]\n")
    os.chown(file, 65534, 65534)
    assert os.geteuid() == 0
    assert "could be changed by other users" in complaint(home)


def test_a_named_file_that_is_not_there_is_an_error_and_the_default_one_is_not(home: Path) -> None:
    assert "there is no configuration file" in complaint(home, OIKOS_CONFIG=str(home / "none.toml"))
    assert load(environ(home)).path == home / "oikos.toml"


def test_a_directory_in_place_of_the_file_is_named(home: Path) -> None:
    (home / "oikos.toml").mkdir()
    assert complaint(home) == f"{home / 'oikos.toml'} cannot be read (Is a directory)"


@pytest.mark.parametrize("name", ["OIKOS_MODEL_NMAE", "OIKOS_LIMIT_RUNS", "OIKOS_MODEL_NMAE_FILE"])
def test_a_variable_that_names_no_setting_is_an_error(home: Path, name: str) -> None:
    assert (
        complaint(home, **{name: "x"})
        == f"the environment variable {name} names no setting: `oikos config show` lists them"
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("OIKOS_LIMITS_RUNS", "many", "environment OIKOS_LIMITS_RUNS: 'many' is no number"),
        ("OIKOS_LIMITS_RUNS", "0", "environment OIKOS_LIMITS_RUNS: limits.runs must be at least 1"),
        ("OIKOS_LIMITS_RUNS", "nan", "environment OIKOS_LIMITS_RUNS: limits.runs must be a number"),
        ("OIKOS_MODEL_KIND", "gpt", "environment OIKOS_MODEL_KIND: model.kind must be one of runbook, provider, "
         "scripted"),
        ("OIKOS_MODEL_NAME_FILE", "/nowhere/name", "environment OIKOS_MODEL_NAME_FILE: /nowhere/name cannot be read "
         "(No such file or directory)"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_environment_is_named_with_its_variable(
    home: Path, name: str, value: str, expected: str
) -> None:
    assert complaint(home, **{name: value}) == expected


def test_no_endless_number_is_a_limit(home: Path) -> None:
    write(home, "[limits]\nruns = nan\n")
    assert "limits.runs must be a number" in complaint(home)
    write(home, "[limits]\nruns = inf\n")
    assert "limits.runs must be a number" in complaint(home)


# ---- secrets ---------------------------------------------------------------------------------------------------------


def test_a_reference_is_resolved_when_it_is_used(home: Path) -> None:
    (home / "key").write_text("s3cret\n", encoding="utf-8")
    write(home, f'[secrets]\na = "env:A"\nb = "file:{home}/key"\n')
    config = load(environ(home))
    assert config.secrets == {"a": "env:A", "b": f"file:{home}/key"}
    assert [resolve_secret(reference, {"A": "x"}) for reference in config.secrets.values()] == ["x", "s3cret"]
    assert resolve_secret("") == ""


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("env:NOT_SET", "the secret env:NOT_SET is not set: export NOT_SET before you start Oikos"),
        (
            "file:/nowhere/key",
            "the secret file /nowhere/key cannot be read (No such file or directory): create it with mode 0600",
        ),
        ("hunter2", "a secret is given as env:NAME or file:PATH, never as itself"),
    ],
)
def test_a_secret_that_is_not_there_says_what_to_do(reference: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(expected)}$"):
        resolve_secret(reference, {})


def test_a_key_of_the_environment_must_be_a_reference_or_come_from_a_file(home: Path) -> None:
    (home / "key").write_text("s3cret\n", encoding="utf-8")
    said = complaint(home, OIKOS_MODEL_API_KEY="sk-123")
    assert (
        said == "environment OIKOS_MODEL_API_KEY: model.api_key: write a reference, env:NAME or file:PATH, "
        "never the secret itself"
    )
    config = load(environ(home, OIKOS_MODEL_API_KEY_FILE=str(home / "key")))
    assert config.values["model.api_key"] == Value(
        value=f"file:{home / 'key'}", origin="environment OIKOS_MODEL_API_KEY_FILE"
    )
