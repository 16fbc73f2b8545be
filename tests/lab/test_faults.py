"""Faults as a client meets them."""

from __future__ import annotations

import socket
import subprocess
import threading
import time

import pytest
from tests.wait import until

from oikos.lab import Host, Lab, LabError
from oikos.lab.faults import catalogue

pytestmark = pytest.mark.needs_root


def test_a_pulled_cable_is_silence(tiny: Host) -> None:
    tiny.net_cut()
    with pytest.raises(subprocess.TimeoutExpired):
        tiny.ssh("true", timeout_s=1)
    tiny.net_restore()
    assert tiny.ssh("echo back", check=True).stdout == "back\n"


def test_a_frozen_host_takes_connections_and_says_nothing(tiny: Host) -> None:
    tiny.hang()
    with pytest.raises(subprocess.TimeoutExpired):
        tiny.ssh("true", timeout_s=1)
    tiny.unhang()
    assert tiny.ssh("echo back", check=True).stdout == "back\n"


def test_name_resolution_fails_for_one_host_only_and_heals(lab: Lab, web: Host, db: Host) -> None:
    db.dns_fault("servfail")
    assert db.ssh("getent hosts web1").returncode == 2
    assert web.ssh("getent hosts db1").returncode == 0
    db.dns_fault(None)
    assert db.ssh("getent hosts web1").returncode == 0
    lab.dns_fault("nxdomain")
    assert web.ssh("getent hosts db1").returncode == 2
    lab.heal()
    assert web.ssh("getent hosts db1").returncode == 0


def test_an_unknown_dns_fault_names_the_known_ones(db: Host) -> None:
    with pytest.raises(LabError, match=r"^unknown DNS fault 'slow': one of servfail, nxdomain, refused, drop, or none"):
        db.dns_fault("slow")


def test_an_invented_service_fails_twice_then_works(lab: Lab, tiny: Host) -> None:
    lab.http_rule("get.tool.lab", "/install", status=500, times=2)
    lab.http_rule("get.tool.lab", "/install", body="#!/bin/sh\necho tool installed\n")
    ask = "curl -s -o /dev/null -w '%{http_code}' http://get.tool.lab/install"
    assert [tiny.ssh(ask).stdout for _ in range(3)] == ["500", "500", "200"]
    lines = [entry for entry in lab.gateway_log() if entry.get("http") == "get.tool.lab/install"]
    assert [entry["status"] for entry in lines] == [500, 500, 200]
    lab.http_rule("get.tool.lab", "/cut", close=True)
    assert tiny.ssh("curl -s http://get.tool.lab/cut").returncode == 52
    assert tiny.ssh("curl -s http://get.other.lab/").returncode == 6
    lab.heal()


def test_the_gateway_serves_no_other_site(lab: Lab, tiny: Host) -> None:
    said = tiny.ssh(f"curl -s -H 'Host: example.org' http://{lab.network.gateway}/")
    assert said.stdout == "the lab gateway serves package registries only\n"


def test_a_full_disk_says_so(db: Host) -> None:
    blob = db.disk_fill("/")
    assert "No space left" in db.ssh("dd if=/dev/zero of=/root/x bs=64k count=20").stderr
    db.exec(f"rm -f /root/x {blob}")
    assert db.ssh("dd if=/dev/zero of=/root/x bs=64k count=20; rm /root/x").returncode == 0


def test_filling_the_machines_own_disk_is_refused(web: Host) -> None:
    free_kib = int(web.exec("df -P -B1024 / | awk 'NR==2{print $4}'").stdout)
    if free_kib < 20_000_000:
        web.disk_small("/srv")
        assert "No space left" in web.ssh("dd if=/dev/zero of=/srv/x bs=64k count=20").stderr
    else:
        with pytest.raises(LabError, match=r"the host has no disk of its own$"):
            web.disk_fill("/")


def test_held_apt_locks_show_their_holder_and_end(db: Host) -> None:
    holder = db.apt_lock(60)
    done = db.ssh("apt-get install -y curl")
    assert (done.returncode, "Could not get lock" in done.stderr) == (100, True)
    assert "unattended-upgrade" in db.ssh("fuser -v /var/lib/dpkg/lock-frontend 2>&1; ps axww").stdout
    db.exec("pkill -f unattended-upgrade", check=False)
    holder.wait(5)
    assert holder.stdout is not None
    holder.stdout.close()
    assert db.ssh("apt-get install -y curl").returncode == 0


def test_a_command_outlives_its_connection(tiny: Host) -> None:
    cut = threading.Thread(target=lambda: tiny.kill_ssh_sessions(when_running="^sleep 4321"))
    cut.start()
    done = tiny.ssh("echo begun; sleep 4321; :")
    cut.join()
    assert (done.returncode, done.stdout) == (255, "begun\n")
    assert tiny.exec("pgrep -f '^sleep 4321'").returncode == 0
    tiny.exec("pkill -f '^sleep 4321'")


def test_sessions_are_cut_and_nobody_comes_in_until_the_cable_is_back(tiny: Host) -> None:
    cut = threading.Thread(target=lambda: catalogue.apply(tiny, "ssh_cut", ["30", "^sleep 4322"], pace=0.05))
    cut.start()
    begun = time.monotonic()
    done = tiny.ssh("echo begun; sleep 4322; :")
    cut.join()
    assert (done.returncode, done.stdout) == (255, "begun\n")
    with pytest.raises(OSError):
        socket.create_connection((tiny.address, 22), timeout=0.3)
    until(lambda: tiny.ssh("pgrep -f '^sleep 4322'").returncode == 0, "the cable to be back", 10)
    assert time.monotonic() - begun > 1.5
    tiny.exec("pkill -f '^sleep 4322'")


def test_a_command_is_slow_and_fails_once_then_is_itself(tiny: Host) -> None:
    tiny.wrap_command(
        "rsync", delay_s=0.3, fail_times=1, status=12, stderr="rsync error: timeout in data send (code 30)"
    )
    begun = time.monotonic()
    first = tiny.ssh("rsync --version")
    assert (first.returncode, first.stderr) == (12, "rsync error: timeout in data send (code 30)\n")
    assert time.monotonic() - begun > 0.3
    assert tiny.ssh("rsync --version").returncode == 0
    tiny.unwrap_command("rsync")
    assert tiny.ssh("command -v rsync").stdout == "/usr/bin/rsync\n"


def test_ssh_sessions_see_another_time(db: Host) -> None:
    def offset_days() -> int:
        said = db.ssh("date +%s").stdout
        return round((int(said) - time.time()) / 86400) if said else 0

    db.clock_skew("-400d")
    until(lambda: offset_days() == -400, "the sessions' clock to be 400 days behind")
    db.clock_skew(None)
    until(lambda: offset_days() == 0, "the sessions' clock to be right again")


def test_every_fault_of_the_catalogue_is_described_in_one_line() -> None:
    lines = catalogue.describe()
    assert [line.split()[0] for line in lines] == list(catalogue.FAULTS)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["boom"], "unknown fault 'boom': `oikos lab fault tiny1` lists them"),
        (["net_slow"], "usage: oikos lab fault tiny1 net_slow KBIT"),
        (["net_cut", "now"], "usage: oikos lab fault tiny1 net_cut"),
        (["net_slow", "fast"], "not a whole number: 'fast'"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(tiny: Host, words: list[str], why: str) -> None:
    with pytest.raises(LabError) as refusal:
        catalogue.apply(tiny, words[0], words[1:])
    assert str(refusal.value) == why


def test_the_duration_of_a_fault_is_scaled_and_nothing_else_of_it() -> None:
    scaled = [
        catalogue.scaled(catalogue.FAULTS[name], words, 1 / 30)
        for name, words in (("apt_lock", ["90"]), ("wrap_command", ["cp", "6", "2"]), ("limit", ["256M"]), ("hang", []))
    ]
    assert scaled == [["3"], ["cp", "0.2", "2"], ["256M"], []]


def test_a_lock_of_ninety_seconds_ends_after_three_at_that_pace(web: Host) -> None:
    [seconds] = catalogue.scaled(catalogue.FAULTS["apt_lock"], ["90"], 1 / 30)
    began = time.monotonic()
    with web.apt_lock(float(seconds)) as holder:
        assert holder.wait(60) == 0
    assert 2.9 < time.monotonic() - began < 60
