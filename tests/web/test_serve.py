"""`oikos serve` on the command line: where it listens, and who may make tokens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.cli.conftest import FIX, Cli
from tests.web.conftest import Served, serving


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A home without a server."""
    with serving(tmp_path, FIX) as served:
        served.end()
    return served.cli


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_beyond_this_machine_only_with_tls_or_an_explicit_word(cli: Cli, host: str) -> None:
    ended = cli("serve", "--host", host, "--port", "0")
    assert (ended.code, ended.out) == (1, "")
    assert "tokens would travel in the clear" in ended.err
    assert ended.err.count("\n") == 1


def test_half_a_certificate_and_none_at_all_are_one_line(cli: Cli, tmp_path: Path) -> None:
    half = cli("serve", "--port", "0", "--tls-cert", str(tmp_path / "none.pem"))
    assert (half.code, half.err) == (1, "oikos: --tls-cert and --tls-key belong together: give both\n")
    none = cli(
        "serve", "--port", "0", "--tls-cert", str(tmp_path / "none.pem"), "--tls-key", str(tmp_path / "none.key")
    )
    assert none.code == 1
    assert "cannot be used" in none.err


def test_a_port_that_is_taken_is_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = cli("serve", "--port", str(other.getsockname()[1]))
    assert (ended.code, ended.out) == (1, "")
    assert "Address already in use" in ended.err


def test_a_token_that_may_approve_is_not_made_through_a_pipe(cli: Cli) -> None:
    for role in ("approver", "admin"):
        ended = cli("serve", "token", "add", "eve", "--role", role)
        assert (ended.code, ended.out) == (1, "")
        assert "at a terminal" in ended.err
    assert cli("serve", "token", "add", "otto", "--role", "operator").code == 0
    listed = [line.split()[:2] for line in cli("serve", "token", "list").out.splitlines()]
    assert listed == [["anna", "approver"], ["otto", "operator"]]


def test_a_server_of_whom_nobody_has_a_token_says_how_to_make_one(cli: Cli) -> None:
    assert cli("serve", "token", "revoke", "anna").code == 0
    served = Served(cli)
    served.start()
    assert served.process is not None
    assert served.process.stdout is not None
    assert b"oikos serve token add NAME" in served.process.stdout.readline()
    assert served.end() == (0, "")
