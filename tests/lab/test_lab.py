"""Labs as a whole: what hosts share and do not, how they come up and go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.wait import until

from oikos.lab import Host, Lab, LabError, cgroups, network
from oikos.lab.places import Places

pytestmark = pytest.mark.needs_root


def test_hosts_are_machines_of_their_own(lab: Lab, web: Host, db: Host) -> None:
    assert web.ssh("hostname; cat /proc/1/comm", check=True).stdout.split() == ["web1", "systemd"]
    web.ssh("echo mine > /root/only-here", check=True)
    assert db.ssh("test -e /root/only-here").returncode == 1
    ids = {host.read("/etc/machine-id") for host in (web, db)}
    assert len(ids) == 2


def test_hosts_reach_each_other_by_name(web: Host, db: Host) -> None:
    assert web.ssh("ping -c1 -W2 db1", check=True).returncode == 0
    assert web.ssh("getent hosts db1.lab", check=True).stdout.split()[0] == db.address


def test_no_unit_of_a_fresh_host_has_failed(web: Host) -> None:
    until(lambda: web.exec("systemctl is-system-running", check=False).stdout == "running\n", "web1 to have started")
    assert web.exec("systemctl --failed --no-legend").stdout == ""


def test_the_machine_is_out_of_reach_of_its_hosts(lab: Lab, web: Host) -> None:
    assert web.ssh("date -s 2001-01-01").returncode != 0
    assert web.ssh("echo 1 > /proc/sys/vm/swappiness").returncode != 0
    assert web.ssh("mknod /root/d b 254 0 && head -c1 /root/d").returncode != 0
    assert web.exec("date -s 2001-01-01", check=False).returncode != 0


def test_names_outside_the_registries_do_not_exist(lab: Lab, web: Host) -> None:
    assert web.ssh("getent hosts example.org").returncode == 2
    asked = [(entry["peer"], entry["rcode"]) for entry in lab.gateway_log() if entry.get("dns") == "example.org"]
    assert set(asked) == {(web.address, 3)}


def test_a_guard_route_keeps_the_subnet_on_this_machine(lab: Lab) -> None:
    guards = subprocess.run(["ip", "-4", "route", "show", "type", "unreachable"], capture_output=True, text=True)
    assert lab.network.subnet in guards.stdout


def test_the_files_for_ssh_name_every_host_with_its_key(lab: Lab, web: Host) -> None:
    (key,) = web.host_keys()
    assert key.startswith("ssh-ed25519 ")
    assert f"web1,{web.address} {key}" in lab.known_hosts.read_text().splitlines()
    direct = ["-i", str(lab.private_key), "-o", f"UserKnownHostsFile={lab.known_hosts}", "-o", "BatchMode=yes"]
    said = subprocess.run(
        ["ssh", "-F", "none", *direct, f"root@{web.address}", "hostname"], capture_output=True, text=True
    )
    assert said.stdout == "web1\n", said.stderr


def test_attaching_gives_the_same_hosts(lab: Lab) -> None:
    again = Lab.attach(lab.name)
    assert {name: host.spec for name, host in again.hosts.items()} == {
        name: host.spec for name, host in lab.hosts.items()
    }
    assert again.hosts["web1"].exec("hostname").stdout == "web1\n"


def test_attaching_to_nothing_says_how_to_start_a_lab() -> None:
    with pytest.raises(LabError, match=r"^no lab 'nothere' is up: start one with `oikos lab up`$"):
        Lab.attach("nothere")


def test_a_host_that_is_destroyed_leaves_nothing(lab: Lab) -> None:
    gone = lab.add("gone1", systemd=False)
    gone.destroy()
    assert "gone1" not in lab.hosts
    assert not gone.dir.exists()
    assert gone.spec.netns not in network.namespaces()
    assert "gone1" not in lab.ssh_config.read_text()
    assert lab.add("gone1", systemd=False).address == gone.address
    lab.hosts["gone1"].destroy()


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["web1"], "host web1 is there already: choose another name"),
        (["new1", "new1"], "host new1 is there already: choose another name"),
        (["Bad_Name"], "not a host name: 'Bad_Name'; use up to 31 lower-case letters, digits and hyphens"),
        ([], "no host was named"),
    ],
)
def test_a_host_that_cannot_be_is_refused(lab: Lab, names: list[str], why: str) -> None:
    before = dict(lab.hosts)
    with pytest.raises(LabError) as refusal:
        lab.add(*names)
    assert str(refusal.value) == why
    assert lab.hosts == before


def test_a_host_without_systemd_still_takes_ssh(tiny: Host) -> None:
    assert tiny.ssh("cat /proc/1/comm; hostname", check=True).stdout.split() == ["sh", "tiny1"]


def test_files_are_there_before_the_first_boot(lab: Lab) -> None:
    host = lab.add("files1", systemd=False, files={"/srv/new/place/note.txt": "kept\n"}, memory="200M")
    assert host.read("/srv/new/place/note.txt") == "kept\n"
    host.destroy()


CRASH = """
import os, signal, sys
from oikos.lab import Lab
lab = Lab(sys.argv[1]).up(owned="owned" in sys.argv)
lab.add("disk1", disk="100M", systemd=False)
if "pve" in sys.argv:
    node = lab.add("node1", kind="pve")
    node.ssh("pct create 100 local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst "
             "--net0 name=eth0,bridge=vmbr0,ip=dhcp --start 1", check=True)
    node.ssh("pct exec 100 -- sleep 4321 > /dev/null 2>&1 &", check=True)
os.kill(int((lab.dir / "supervisor.pid").read_text()), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


def crash(name: str, *what: str) -> None:
    """A lab whose supervisor and client were killed; its hosts run on."""
    done = subprocess.run([sys.executable, "-c", CRASH, name, *what], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert cgroups.populated(name)


def remains(name: str) -> list[str]:
    """All that a lab can leave on this machine."""
    state = Places.from_environment().state / name
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout
    left = [str(state)] if state.exists() else []
    left += [mount for mount in mounts if mount.startswith(f"{state}/")]
    left += [line for line in loops.splitlines() if f"{state}/" in line]
    left += network.namespaces(name)
    left += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{cgroups.PREFIX}/{name}")]
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = command.read_bytes()
        except OSError:  # it ended while we looked
            continue
        left += [words.decode(errors="replace")] if str(state).encode() in words else []
    return left


def test_a_killed_lab_is_cleaned_up_by_down_and_a_second_down_is_nothing(lab_name: Callable[[str], str]) -> None:
    name = lab_name("c")
    crash(name, "pve")
    lost = Lab.attach(name)
    assert sorted(lost.hosts) == ["disk1", "node1"]
    with pytest.raises(LabError, match=rf"lab '{name}' is not running .*`oikos lab down --name {name}` clears"):
        lost.states()
    Lab(name).down()
    assert remains(name) == []
    Lab(name).down()
    assert remains(name) == []


def test_a_killed_lab_is_cleaned_up_by_the_next_up(lab_name: Callable[[str], str]) -> None:
    name = lab_name("u")
    crash(name)
    with Lab(name) as again:
        assert again.hosts == {}
        assert again.add("disk1", systemd=False).ssh("hostname").stdout == "disk1\n"
    assert remains(name) == []


def test_an_owned_lab_of_a_killed_process_is_cleaned_up_by_the_next_up_of_any(lab_name: Callable[[str], str]) -> None:
    lost, kept = lab_name("o"), lab_name("p")
    crash(kept)
    crash(lost, "owned")
    lines: list[str] = []
    with Lab(lab_name("q"), log=lines.append):
        assert lines == [f"taking down {lost}, whose process is gone"]
        assert remains(lost) == []
        assert remains(kept) != []
    Lab(kept).down()


def test_a_directory_that_is_no_labs_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    lab = Lab("mine", places=Places(state=tmp_path, cache=Places.from_environment().cache))
    for refused in (lab.up, lab.down):
        with pytest.raises(LabError, match=r"mine is there and is no lab's: choose another lab name"):
            refused()
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_two_labs_side_by_side_do_not_meet(lab: Lab, web: Host, lab_name: Callable[[str], str]) -> None:
    with Lab(lab_name("s")) as other:
        other.add("web1", systemd=False)
        assert other.network.subnet != lab.network.subnet
        assert other.hosts["web1"].ssh(f"ping -c1 -W1 {web.address}").returncode != 0
    assert web.ssh("hostname", check=True).stdout == "web1\n"


def test_the_gateway_is_started_again_when_it_dies(lab: Lab, web: Host) -> None:
    pid_file = lab.dir / "gateway.pid"
    old = pid_file.read_text()
    os.kill(int(old), signal.SIGKILL)
    until(lambda: pid_file.read_text() not in ("", old), "a new gateway")
    assert web.ssh("getent hosts db1").returncode == 0
