"""Trust and options of SSH: nothing is sent to a machine that is not who it was; no default decides anything."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import asyncssh
import pytest

from oikos.adapters.fleet import ssh
from oikos.adapters.fleet.runner import FleetRunner
from oikos.adapters.fleet.wrap import Endpoint
from oikos.domain.errors import TargetError
from oikos.domain.inventory import Become, Entity
from oikos.domain.run import Exited, NeverStarted
from tests.fleet.kit import Collect, guest, local, order, remote, route_to, run, runner, user
from tests.fleet.servers import Proxy, Server, server

pytestmark = pytest.mark.anyio
_numbers = itertools.count(9000)


async def reason(fleet: FleetRunner, entity: Entity, *others: Entity, supervised: bool = True) -> str:
    """Why a run on it never started."""
    made = order(entity, "touch ~/ran", number=next(_numbers), supervised=supervised)
    with anyio.fail_after(20):
        report = await run(fleet, made, entity, Collect(), *others)
    assert isinstance(report.outcome, NeverStarted)
    return report.outcome.reason


@pytest.mark.parametrize("supervised", [False, True])
async def test_an_unknown_host_key_is_refused_and_shown(fleet: FleetRunner, sshd: Server, supervised: bool) -> None:
    text = await reason(fleet, remote(sshd, host_keys=()), supervised=supervised)
    prints = [ssh.fingerprint(key) for key in sshd.host_keys()]
    assert "is not enrolled" in text
    assert any(shown in text for shown in prints)
    assert text.endswith("oikos fleet trust far")
    assert not (sshd.home / "ran").exists()


@pytest.mark.parametrize("supervised", [False, True])
async def test_a_changed_host_key_stops_everything(home: Path, tmp_path: Path, supervised: bool) -> None:
    (tmp_path / "sshd").mkdir()
    with server(tmp_path / "sshd") as sshd:
        entity = remote(sshd, host_keys=tuple(key for key in sshd.host_keys() if key.startswith("ssh-ed25519")))
        relay = Proxy(target=sshd.port)
        await relay.start()
        await anyio.to_thread.run_sync(_renew, sshd)
        assert entity.access is not None
        moved = replace(entity, access=replace(entity.access, port=relay.port))
        fleet = runner(home)
        text = await reason(fleet, moved, supervised=supervised)
        await fleet.close()
        assert "HAS CHANGED" in text
        assert ssh.fingerprint(sshd.host_keys()[0]) in text
        assert ssh.fingerprint(entity.access.host_keys[0]) in text
        assert text.endswith("oikos fleet trust far")
        assert not (sshd.home / "ran").exists()
        # A key exchange and a farewell: no user name, no command.
        assert relay.from_client_bytes < 4096
        await relay.stop()


def _renew(sshd: Server) -> None:
    sshd.stop()
    config = sshd.directory / "sshd_config"
    config.write_text("\n".join(line for line in config.read_text().splitlines() if "host_ecdsa" not in line) + "\n")
    sshd.renew_host_keys()
    sshd.start()


async def test_the_key_of_another_target_is_not_accepted(fleet: FleetRunner, sshd: Server, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with server(tmp_path / "other") as other:
        assert "HAS CHANGED" in await reason(fleet, remote(sshd, host_keys=other.host_keys()))


async def test_failures_to_log_in_name_cause_and_remedy(fleet: FleetRunner, sshd: Server, tmp_path: Path) -> None:
    def with_key(key: str) -> Entity:
        entity = remote(sshd)
        assert entity.access is not None
        return replace(entity, access=replace(entity.access, key=key))

    missing = str(tmp_path / "missing")
    assert await reason(fleet, with_key(missing)) == (
        f"far: the key file {missing} is missing; put it there or correct 'key' in [targets.far]"
    )
    stranger = tmp_path / "stranger"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(str(stranger))
    assert await reason(fleet, with_key(str(stranger))) == (
        f"far: {user()}@127.0.0.1:{sshd.port} does not accept key {stranger}; "
        "add its public half to the account, or set 'key' in [targets.far]"
    )
    broken = tmp_path / "broken"
    broken.write_text("no key\n")
    assert (await reason(fleet, with_key(str(broken)))).startswith(f"far: the key {broken} cannot be used: ")


async def test_a_silent_server_ends_at_the_connect_deadline(fleet: FleetRunner, sshd: Server) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    entity = remote(sshd, port=port)
    made = order(entity, "true", number=next(_numbers), connect_s=0.5)
    with anyio.fail_after(10):
        report = await run(fleet, made, entity, Collect())
    await listener.aclose()
    assert report.outcome == NeverStarted(
        reason=f"far: {user()}@127.0.0.1:{port} did not answer within 0.5 s (connect deadline)"
    )


def test_every_option_of_a_connection_is_said() -> None:
    endpoint = Endpoint(name="far", address="10.0.0.5", port=22, user="root", key="/k", host_keys=("ssh-ed25519 AAAA",))
    trusted = [asyncssh.generate_private_key("ssh-ed25519").convert_to_public()]
    assert ssh.options(endpoint, trusted=trusted, authorities=[], connect_s=15.0, agent="/agent") == {
        "username": "root",
        "known_hosts": (trusted, [], []),
        "x509_trusted_certs": None,
        "config": None,
        "client_keys": ["/k"],
        "agent_path": None,
        "agent_forwarding": False,
        "x11_forwarding": False,
        "password": None,
        "preferred_auth": "publickey",
        "public_key_auth": True,
        "password_auth": False,
        "kbdint_auth": False,
        "host_based_auth": False,
        "gss_kex": False,
        "gss_auth": False,
        "gss_host": None,
        "proxy_command": None,
        "canonicalize_hostname": False,
        "compression_algs": None,
        "env": None,
        "send_env": None,
        "request_pty": False,
        "encoding": None,
        "connect_timeout": 15.0,
        "login_timeout": 15.0,
        "keepalive_interval": 15,
        "keepalive_count_max": 3,
        "tcp_keepalive": True,
        "disable_trivial_auth": True,
    }
    keyless = ssh.options(replace(endpoint, key=""), trusted=[], authorities=[], connect_s=1.0, agent="/agent")
    assert (keyless["client_keys"], keyless["agent_path"], keyless["known_hosts"]) == ((), "/agent", ([], [], []))


@pytest.fixture
async def inner(tmp_path: Path) -> AsyncIterator[Server]:
    """A second server, behind the first."""
    (tmp_path / "inner").mkdir()
    with server(tmp_path / "inner") as running:
        yield running


async def test_a_jump_host_is_travelled_and_verified(fleet: FleetRunner, sshd: Server, inner: Server) -> None:
    outer = remote(sshd, slug="outer")
    behind = remote(inner, slug="inner")
    assert behind.access is not None
    behind = replace(behind, access=replace(behind.access, via="outer"))
    for supervised in (False, True):
        sink = Collect()
        made = order(behind, "echo $HOME", number=next(_numbers), supervised=supervised)
        report = await run(fleet, made, behind, sink, outer)
        assert (report.outcome, sink.out.decode().strip()) == (Exited(code=0), str(inner.home))
        assert report.transport == f"ssh {user()}@127.0.0.1:{sshd.port} > ssh {user()}@127.0.0.1:{inner.port}"


async def test_an_unknown_jump_host_is_refused(fleet: FleetRunner, sshd: Server, inner: Server) -> None:
    outer = remote(sshd, slug="outer", host_keys=())
    behind = remote(inner, slug="inner")
    assert behind.access is not None
    behind = replace(behind, access=replace(behind.access, via="outer"))
    assert (await reason(fleet, behind, outer)).startswith("outer: the host key of ")


async def test_a_second_command_costs_one_round_trip(fleet: FleetRunner, sshd: Server, proxy: Proxy) -> None:
    entity = remote(sshd, port=proxy.port)
    for _ in range(3):
        await run(fleet, order(entity, "true", number=next(_numbers), supervised=False), entity, Collect())
    proxy.delay_s = 0.1
    times = []
    for _ in range(3):
        made = order(entity, "true", number=next(_numbers), supervised=False)
        times.append((await run(fleet, made, entity, Collect())).duration_s)
        await anyio.sleep(0.5)  # allow: test-sleep - the reserve is refilled in between
    # One way is 0.1 s: a round trip is 0.2 s, two would be 0.4 s.
    assert 0.2 <= min(times) < 0.35


async def test_all_host_keys_are_scanned_and_none_is_trusted(fleet: FleetRunner, sshd: Server) -> None:
    offered = await fleet.enroller.offered_keys(route_to(remote(sshd, host_keys=sshd.host_keys()[:1])))
    assert sorted(key.public for key in offered) == sorted(sshd.host_keys())
    assert [key.enrolled for key in offered].count(True) == 1
    assert all(str(key).split()[1].startswith("SHA256:") for key in offered)
    with pytest.raises(TargetError, match="cannot be reached"):
        await fleet.enroller.offered_keys(route_to(remote(sshd, port=1)))


async def test_the_checkup_says_what_a_machine_can_do(fleet: FleetRunner, sshd: Server) -> None:
    found = await fleet.enroller.check(route_to(remote(sshd)))
    assert (found.support.value, found.reason, found.shell) == ("full", "", "bash")
    assert found.identity is not None
    with pytest.raises(TargetError, match="is not enrolled"):
        await fleet.enroller.check(route_to(remote(sshd, host_keys=())))


async def test_a_machine_without_a_home_is_attended_only(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sshd").mkdir()
    with server(tmp_path / "sshd") as sshd:
        (sshd.home / ".local").write_text("in the way")
        fleet, entity = runner(home), remote(sshd)
        found = await fleet.enroller.check(route_to(entity))
        assert (found.support.value, found.reason) == ("attended", "no supervised runs: no-directory")
        made = order(entity, "echo read", number=next(_numbers), supervised=False)
        assert (await run(fleet, made, entity, Collect())).outcome == Exited(code=0)
        assert "no directory for supervised runs" in await reason(fleet, entity)
        await fleet.close()


@pytest.mark.parametrize("supervised", [False, True])
async def test_a_container_is_reached_through_its_node(
    fleet: FleetRunner, sshd: Server, with_tools: Path, supervised: bool
) -> None:
    node, inside = remote(sshd, slug="pve1"), guest("101", "pve1")
    sink = Collect()
    made = order(inside, 'echo "it\'s $HOME"; env | grep -c LEAK', number=next(_numbers), supervised=supervised)
    report = await run(fleet, made, inside, sink, node)
    assert (report.outcome, sink.out) == (Exited(code=1), f"it's {with_tools}\n0\n".encode())
    await fleet.acknowledge(made, route_to(inside, node))


@pytest.mark.usefixtures("with_tools")
@pytest.mark.parametrize("supervised", [False, True])
async def test_a_container_that_is_not_running_never_started(
    fleet: FleetRunner, sshd: Server, supervised: bool
) -> None:
    text = await reason(fleet, guest("102", "pve1"), remote(sshd, slug="pve1"), supervised=supervised)
    assert text == "ct102: its shell cannot be started: container '102' not running!"


@pytest.mark.usefixtures("with_tools")
@pytest.mark.parametrize("place", ["local", "ssh"])
@pytest.mark.parametrize("supervised", [False, True])
async def test_a_sudo_password_travels_beside_the_command(
    home: Path, sshd: Server, place: str, supervised: bool
) -> None:
    entity = local() if place == "local" else remote(sshd)
    assert entity.access is not None
    entity = replace(entity, access=replace(entity.access, become=Become.SUDO, become_password="env:X"))
    for password, works in (("opensesame", True), ("wrong", False)):
        fleet = runner(home, secret=password)
        sink = Collect()
        made = order(
            entity, "cat; tr '\\0' ' ' </proc/$PPID/cmdline", number=next(_numbers), supervised=supervised, stdin="in\n"
        )
        report = await run(fleet, made, entity, sink)
        await fleet.close()
        assert password.encode() not in sink.out + sink.err
        if works:
            assert (report.outcome, sink.out[:3]) == (Exited(code=0), b"in\n")
        else:
            assert isinstance(report.outcome, NeverStarted)
            assert "1 incorrect password attempt" in report.outcome.reason


async def test_a_login_shell_that_changes_arguments_gets_no_command_as_one(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sshd").mkdir()
    mangler = tmp_path / "mangler"
    # As fish does: a backslash inside single quotes is an escape.
    mangler.write_text(
        "#!/bin/sh\nexec sh -c \"$(printf '%s' \"$SSH_ORIGINAL_COMMAND\" | sed 's/[\\\\][\\\\]/\\\\/g')\"\n"
    )
    mangler.chmod(0o755)
    with server(tmp_path / "sshd", more=f"ForceCommand {mangler}") as sshd:
        fleet, entity, sink = runner(home), remote(sshd), Collect()
        made = order(entity, "printf '%s' 'a\\\\b'", number=next(_numbers), supervised=False)
        report = await run(fleet, made, entity, sink)
        await fleet.close()
        assert (report.outcome, sink.out, report.note) == (Exited(code=0), b"a\\\\b", "run under supervision")
