"""Hosts by SSH that do not answer or are not who they were, as `oikos ask` and `oikos fleet` tell it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.fleet.servers import Server, free_port, server

ON_NAS = """
- calls: [{tool: set_goal, args: {goal: look}}]
- calls: [{tool: propose_plan, args: {steps: [{title: look, target: nas, commands: [date]}]}}]
- calls: [{tool: run, args: {target: nas, command: date, step: 1}}]
- text: that is all
- text: that is all
"""


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Server]:
    directory = tmp_path / "sshd"
    directory.mkdir()
    with server(directory) as running:
        yield running


def knows(cli: Cli, port: int, key: Path) -> None:
    """A home in which nas is configured."""
    target = f'[targets.nas]\naddress = "127.0.0.1"\nport = {port}\nkey = "{key}"\n'
    cli.plays(ON_NAS, config=f'[model]\nkind = "scripted"\nscript = "{cli.home}/script.yaml"\n{target}')


def test_a_host_that_does_not_answer_is_one_line_and_is_not_added(cli: Cli) -> None:
    port = free_port()
    ended = cli("fleet", "add", f"root@127.0.0.1:{port}", "--name", "nas", "--trust")
    assert (ended.code, ended.err.count("\n")) == (1, 1)
    assert f"127.0.0.1:{port}" in ended.err
    assert "nas" not in cli("fleet", "list").out


def test_a_key_that_does_not_exist_is_told_in_the_outcome(cli: Cli) -> None:
    knows(cli, free_port(), cli.home / "gone")
    ended = cli("ask", "look")
    assert "gone" in ended.out
    assert "Traceback" not in ended.out + ended.err


def test_a_host_nobody_trusted_yet_gets_nothing_and_the_remedy_is_named(cli: Cli, sshd: Server) -> None:
    knows(cli, sshd.port, sshd.key)
    ended = cli("ask", "look")
    assert ended.code == 3
    assert "oikos fleet trust nas" in ended.out
    assert cli("fleet", "trust", "--yes", "nas").code == 0
    assert "✓ exit 0" in cli("ask", "look").out


def test_a_host_with_another_key_than_before_gets_nothing_and_is_told(cli: Cli, sshd: Server) -> None:
    knows(cli, sshd.port, sshd.key)
    assert cli("fleet", "trust", "--yes", "nas").code == 0
    sshd.stop()
    sshd.renew_host_keys()
    sshd.start()
    ended = cli("ask", "look")
    assert "✓ exit 0" not in ended.out
    assert "HAS CHANGED" in ended.out
