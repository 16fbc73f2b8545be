"""One host: power, snapshots, limits, services and packages."""

from __future__ import annotations

import time

import pytest
from tests.wait import until

from oikos.lab import Host, Lab, LabError

pytestmark = pytest.mark.needs_root


def test_a_reboot_is_survived_and_in_the_journal(web: Host) -> None:
    boots = web.state.boots
    web.ssh("systemctl reboot")
    web.wait_boot(boots + 1)
    assert web.state.last == "rebooted"
    assert float(web.ssh("cut -d' ' -f1 /proc/uptime", check=True).stdout) < 60
    assert len(web.ssh("journalctl --list-boots --no-pager -q", check=True).stdout.splitlines()) >= 2


def test_a_timer_fires_by_itself(web: Host) -> None:
    web.write("/etc/systemd/system/tick.service", '[Service]\nExecStart=/bin/sh -c "date >> /root/ticks"\n')
    web.write("/etc/systemd/system/tick.timer", "[Timer]\nOnActiveSec=0\nOnUnitActiveSec=200ms\nAccuracySec=10ms\n")
    web.ssh("systemctl daemon-reload; systemctl start tick.timer", check=True)
    until(lambda: len(web.exec("cat /root/ticks", check=False).stdout.splitlines()) >= 2, "two ticks")
    web.ssh("systemctl stop tick.timer", check=True)


def test_pulling_the_plug_and_halting_are_told_apart(tiny: Host, web: Host) -> None:
    tiny.power_off()
    assert (tiny.state.state, tiny.state.last) == ("stopped", "crashed")
    with pytest.raises(LabError, match=r"^host tiny1 is not running"):
        tiny.exec("true")
    tiny.start()
    tiny.wait_ready()
    web.stop()
    assert (web.state.state, web.state.last) == ("stopped", "halted")
    web.start()
    web.wait_ready()


def test_a_rollback_brings_the_files_back(tiny: Host) -> None:
    tiny.snapshot("clean")
    tiny.ssh("rm -f /usr/bin/curl; touch /root/junk", check=True)
    tiny.rollback("clean")
    tiny.wait_ready()
    assert tiny.ssh("test -x /usr/bin/curl -a ! -e /root/junk").returncode == 0
    with pytest.raises(LabError, match=r"^host tiny1 has no snapshot 'dirty'$"):
        tiny.rollback("dirty")


def test_a_memory_limit_ends_the_process_that_passes_it(lab: Lab) -> None:
    small = lab.add("small1", systemd=False, memory="100M")
    assert small.ssh("perl -e '$x = \"a\" x 400000000'").returncode != 0
    small.limit(memory="1G")
    assert small.ssh("perl -e '$x = \"a\" x 400000000'").returncode == 0
    small.destroy()


def test_the_console_reports_what_failed(web: Host) -> None:
    with pytest.raises(LabError) as failure:
        web.exec("echo oh no >&2; exit 4")
    assert str(failure.value) == "web1: 'echo oh no >&2; exit 4': exit 4: oh no"


def test_the_console_works_while_the_cable_is_pulled(db: Host) -> None:
    db.net_cut()
    assert db.exec("hostname").stdout == "db1\n"
    db.net_restore()
    assert db.ssh("echo back", check=True).stdout == "back\n"


@pytest.mark.slow
def test_packages_install_through_the_gateway_and_serve(lab: Lab, web: Host, db: Host) -> None:
    install = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nginx-light"
    done = web.ssh(f"{install} && systemctl is-active nginx")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("active\n")
    assert "200 OK" in db.ssh("curl -sI http://web1/", check=True).stdout
    assert "nginx" in web.ssh("journalctl -u nginx --no-pager", check=True).stdout
    begun = time.monotonic()
    assert db.ssh(install).returncode == 0
    cached = [entry for entry in lab.gateway_log() if entry.get("cached") and entry["peer"] == db.address]
    assert cached, f"nothing came from the .deb cache within {time.monotonic() - begun:.0f} s"


@pytest.mark.slow
def test_a_host_of_kind_machine_hides_what_is_private(lab: Lab) -> None:
    machine = lab.add("self1", kind="machine", systemd=False)
    assert machine.ssh("hostname", check=True).stdout == "self1\n"
    assert machine.exec("ls -A /home /srv /opt").stdout.split() == ["/home:", "/opt:", "/srv:"]
    assert machine.exec("ls -A /root").stdout == ".ssh\n"
    machine.destroy()


@pytest.mark.slow
def test_a_docker_host_runs_a_container(lab: Lab) -> None:
    docker = lab.add("dock1", kind="docker")
    until(lambda: docker.exec("docker info", check=False).returncode == 0, "the engine to answer", 60)
    loader = "usr/lib/*-linux-gnu/ld-linux-*.so.* usr/lib/*-linux-gnu/libc.so.6"
    docker.exec(f"cd / && tar -c lib lib64 usr/lib64 {loader} usr/bin/echo | docker import - tiny")
    assert docker.ssh("docker run --rm tiny /usr/bin/echo hello").stdout == "hello\n"
    docker.destroy()
