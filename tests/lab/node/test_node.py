"""The Proxmox VE stand-in: real containers under the node's own commands."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.wait import until

from oikos.lab import Host, Lab

pytestmark = pytest.mark.needs_root

TEMPLATE = "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst"
REFUSALS = tomllib.loads((Path(__file__).parent / "refusals.toml").read_text())["case"]


@pytest.fixture(scope="module")
def container(pve: Host) -> Iterator[str]:
    """A running container of 256 MB called `web`, at the lab's lease."""
    net = "name=eth0,bridge=vmbr0,ip=dhcp"
    pve.exec(f"pct create 101 {TEMPLATE} --hostname web --memory 256 --net0 {net} --onboot 1 --start 1")
    settled(pve, "101")
    yield "101"
    pve.exec("pct destroy 101 --force 1")


def settled(pve: Host, vmid: str) -> None:
    up = f"pct exec {vmid} -- systemctl is-system-running"
    until(lambda: pve.exec(up, check=False).stdout.strip() == "running", f"container {vmid} to have started", 30)


def test_a_container_is_a_machine_inside_the_node(pve: Host, container: str) -> None:
    assert pve.ssh(f"pct exec {container} -- hostname", check=True).stdout == "web\n"
    assert pve.exec(f"pct exec {container} -- cat /proc/1/comm").stdout == "systemd\n"
    assert pve.exec(f"pct status {container}").stdout == "status: running\n"
    rows = [line.split() for line in pve.exec("pct list").stdout.splitlines()]
    assert ["101", "running", "web"] in rows
    assert pve.exec(f"pct exec {container} -- sh -c 'exit 7'", check=False).returncode == 7
    assert pve.exec("lxc-ls -1").stdout.split() == ["101"]


def test_a_container_is_reached_by_address_and_name(lab: Lab, pve: Host, web: Host, container: str) -> None:
    address = web.ssh("getent hosts web", check=True).stdout.split()[0]
    assert pve.exec(f"pct exec {container} -- hostname -I").stdout.split() == [address]
    options = ["-i", str(lab.private_key), "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    said = subprocess.run(
        ["ssh", "-F", "none", *options, "-o", "BatchMode=yes", f"root@{address}", "hostname"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert said.stdout == "web\n", said.stderr


def test_a_snapshot_brings_files_and_settings_back(pve: Host, container: str) -> None:
    pve.exec(f"pct exec {container} -- sh -c 'echo old > /root/note; rm /etc/issue'")
    pve.exec(f"pct snapshot {container} good --description 'before the upgrade'")
    pve.exec(f"pct exec {container} -- sh -c 'echo new > /root/note; echo back > /etc/issue; rm /etc/hostname'")
    pve.exec(f"pct set {container} --memory 300")

    killed = pve.exec(f"pct rollback {container} good")
    assert (killed.stdout, killed.stderr) == ("", "")
    assert pve.exec(f"pct status {container}").stdout == "status: stopped\n"

    pve.exec(f"pct start {container}")
    settled(pve, container)
    assert pve.exec(f"pct exec {container} -- cat /root/note /etc/hostname").stdout == "old\nweb\n"
    assert pve.exec(f"pct exec {container} -- test -e /etc/issue", check=False).returncode == 1
    assert "memory: 256\n" in pve.exec(f"pct config {container}").stdout
    pve.exec(f"pct delsnapshot {container} good")
    assert "parent:" not in pve.exec(f"pct config {container}").stdout


def test_snapshots_are_listed_as_a_tree(pve: Host, container: str) -> None:
    pve.exec(f"pct snapshot {container} first --description 'before the upgrade'")
    pve.exec(f"pct snapshot {container} second")
    rows = pve.exec(f"pct listsnapshot {container}").stdout.splitlines()
    taken = datetime.fromisoformat(rows[0][32:51])
    assert abs(taken - datetime.fromisoformat(pve.exec("date '+%F %T'").stdout.strip())) < timedelta(minutes=1)
    assert [row[:32] + row[51:] for row in rows] == [
        f"`-> {'first':<27} " + 5 * " " + "before the upgrade",
        f" `-> {'second':<26} " + 5 * " " + "no-description",
        f"  `-> {'current':<25} {'':<5}" + "You are here!",
    ]

    refused = pve.exec(f"pct rollback {container} first", check=False)
    assert refused.returncode == 255
    assert refused.stderr == "can't rollback, 'first' is not most recent snapshot on 'subvol-101-disk-0'\n"
    pve.exec(f"pct delsnapshot {container} first")
    assert [row.split()[1] for row in pve.exec(f"pct listsnapshot {container}").stdout.splitlines()] == [
        "second",
        "current",
    ]
    pve.exec(f"pct delsnapshot {container} second")


def test_a_snapshot_that_was_killed_leaves_the_container_locked(pve: Host, container: str) -> None:
    """As on a real node: unlocked by hand, the half of it can be deleted and is never rolled back to."""
    pve.exec("mount -t tmpfs -o size=4k none /var/lib/vz/images/101/snap")
    full = pve.exec(f"pct snapshot {container} half", check=False)
    pve.exec("umount /var/lib/vz/images/101/snap")
    assert (full.returncode, full.stdout) == (255, "snapshot create failed: starting cleanup\n")
    assert "No space left on device" in full.stderr
    assert "half" not in pve.exec(f"pct listsnapshot {container}").stdout

    pve.exec(
        "mkfifo /run/slow && mv /usr/bin/cp /usr/bin/cp.real && printf '#!/bin/sh\\ncat /run/slow\\n' > /usr/bin/cp"
    )
    pve.exec("chmod +x /usr/bin/cp")
    pve.exec(f"systemd-run -q --unit=snap -p KillMode=control-group pct snapshot {container} half")
    until(lambda: "lock: snapshot" in pve.exec(f"pct config {container}").stdout, "the lock of the snapshot", 10)
    assert pve.exec("pct list").stdout.splitlines()[1].split() == ["101", "running", "snapshot", "web"]
    pve.exec("systemctl kill -s KILL snap && mv /usr/bin/cp.real /usr/bin/cp && rm /run/slow")
    pve.exec(f"lxc-unfreeze -n {container}")

    assert pve.exec(f"pct delsnapshot {container} half", check=False).stderr == "CT is locked (snapshot)\n"
    pve.exec(f"pct unlock {container}")
    refused = pve.exec(f"pct rollback {container} half", check=False).stderr
    assert refused == "unable to rollback to incomplete snapshot (snapstate = prepare)\n"
    pve.exec(f"pct delsnapshot {container} half")
    assert pve.exec(f"pct status {container}").stdout == "status: running\n"


def test_a_container_on_a_directory_has_no_snapshots(pve: Host, container: str) -> None:
    pve.exec(f"pct create 103 {TEMPLATE} --storage local --hostname plain")
    refused = pve.exec("pct snapshot 103 good", check=False)
    assert (refused.returncode, refused.stderr) == (255, "snapshot feature is not available\n")
    assert pve.exec("pct config 103").stdout.count("lock:") == 0
    pve.exec("pct destroy 103")


def test_a_container_that_passes_its_memory_is_stopped_in_it(pve: Host, container: str) -> None:
    greedy = pve.exec(f"pct exec {container} -- perl -e '$x = \"a\" x 400000000'", check=False)
    assert greedy.returncode in (137, 9, 255)
    assert pve.exec("hostname").stdout == "pve1\n"


def test_files_go_in_and_come_out(pve: Host, container: str) -> None:
    pve.exec("echo hello > /root/in")
    pve.exec(f"pct push {container} /root/in /root/there --perms 600")
    pve.exec(f"pct pull {container} /root/there /root/out")

    assert pve.read("/root/out") == "hello\n"
    assert pve.exec(f"pct exec {container} -- stat -c %a /root/there").stdout == "600\n"


def test_a_locked_container_is_left_alone_until_unlocked(pve: Host, container: str) -> None:
    pve.exec(f"pct set {container} --lock backup")
    refused = pve.exec(f"pct stop {container}", check=False)
    assert (refused.returncode, refused.stderr) == (255, "CT is locked (backup)\n")
    pve.exec(f"pct unlock {container}")
    assert pve.exec(f"pct set {container} --description note").stderr == ""
    assert "description: note%0A" in pve.exec(f"pct config {container}").stdout


def test_a_running_container_is_not_destroyed(pve: Host, container: str) -> None:
    refused = pve.exec(f"pct destroy {container}", check=False)
    assert (refused.returncode, refused.stderr) == (255, "unable to destroy CT 101 - container is running\n")


def test_a_clone_is_another_machine(pve: Host, container: str) -> None:
    pve.exec(f"pct clone {container} 102 --hostname twin")
    listed = json.loads(pve.exec("pvesh get /cluster/resources").stdout)
    names = {entry["vmid"]: entry["name"] for entry in listed if entry["type"] == "lxc"}
    assert names == {101: "web", 102: "twin"}
    mac = "grep -o 'hwaddr=[^,]*' /etc/pve/lxc/{}.conf"
    assert pve.exec(mac.format(101)).stdout != pve.exec(mac.format(102)).stdout
    pve.exec("pct destroy 102")


@pytest.mark.parametrize("case", REFUSALS, ids=[case["command"] for case in REFUSALS])
def test_a_refusal_reads_like_a_real_nodes(pve: Host, container: str, case: dict[str, Any]) -> None:
    done = pve.exec(case["command"], check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (case["status"], case["says"])


@pytest.mark.slow
def test_packages_install_in_a_container(pve: Host, web: Host, container: str) -> None:
    install = "apt-get update -qq && apt-get install -y -qq nginx-light"
    done = pve.exec(f"pct exec {container} -- sh -c '{install}'", timeout_s=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "200 OK" in web.ssh("curl -sI http://web/", check=True).stdout


@pytest.mark.slow
def test_containers_with_onboot_return_with_the_node(pve: Host, container: str) -> None:
    boots = pve.state.boots
    pve.ssh("systemctl reboot")
    pve.wait_boot(boots + 1)
    settled(pve, container)
