"""`oikos lab` as a person meets it: real processes, what they print, how they end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oikos.lab import Lab, layers, network
from oikos.lab.places import Places

pytestmark = pytest.mark.needs_root


def oikos_lab(*words: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", "oikos.lab", *words],
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
        timeout=120,
    )


@pytest.fixture(scope="module")
def up(lab_name: Callable[[str], str]) -> Iterator[str]:
    """A lab that another process brought up, and left."""
    name = lab_name("k")
    done = oikos_lab("up", "one", "two", "--name", name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["LAB", "HOST", "KIND", "ADDRESS", "STATE"]
    yield name
    assert oikos_lab("down", "--name", name).stdout == f"down: {name}\n"


def test_list_shows_state_address_and_kind(up: str) -> None:
    number = Lab.attach(up).network.number
    rows = [line.split() for line in oikos_lab("list", "--name", up).stdout.splitlines()[1:]]
    assert rows == [
        [up, "one", "host", f"10.{number}.1.1", "running"],
        [up, "two", "host", f"10.{number}.1.2", "running"],
    ]
    assert f"{up} " in oikos_lab("list").stdout


def test_ssh_runs_a_command_and_ends_as_it_ends(up: str) -> None:
    done = oikos_lab("ssh", "--name", up, "one", "hostname; exit 7")
    assert (done.stdout, done.returncode) == ("one\n", 7)


def test_fault_lists_faults_and_puts_one_in(up: str) -> None:
    assert "net_cut" in oikos_lab("fault", "--name", up, "two").stdout
    assert oikos_lab("fault", "--name", up, "two", "power_off").stdout == "two: power_off done\n"
    assert "stopped (crashed)" in oikos_lab("list", "--name", up).stdout


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["up"], "name at least one host, e.g. `oikos lab up web1 pve1:pve`, or a --world"),
        (["up", "a:vm"], "unknown kind of host 'vm': one of host, pve, docker, machine"),
        (["list", "--name", "nothere"], "no lab 'nothere' is up: start one with `oikos lab up`"),
        (["ssh", "--name", "nothere", "a"], "no lab 'nothere' is up: start one with `oikos lab up`"),
    ],
)
def test_an_error_is_one_line_and_exit_status_one(words: list[str], why: str) -> None:
    done = oikos_lab(*words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {why}\n")


def test_an_unknown_host_names_the_known_ones(up: str) -> None:
    done = oikos_lab("ssh", "--name", up, "three")
    assert (done.returncode, done.stderr) == (1, f"Error: no host 'three' in lab '{up}': it has one, two\n")


def test_down_of_nothing_is_nothing(lab_name: Callable[[str], str]) -> None:
    assert oikos_lab("down", "--name", lab_name("n")).returncode == 0


def test_a_state_directory_on_an_overlay_is_refused_by_name(tmp_path: Path) -> None:
    for part in ("lower", "upper", "work", "merged"):
        (tmp_path / part).mkdir()
    layers_ = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    script = f'mount -t overlay overlay -o {layers_} {tmp_path}/merged && exec "$@"'
    state = f"{tmp_path}/merged/state"
    done = oikos_lab("up", "web1", prefix=("unshare", "-m", "sh", "-c", script, "sh"), OIKOS_LAB_STATE=state)
    assert (done.returncode, done.stderr) == (
        1,
        f"Error: {state} is on an overlay filesystem, where lab hosts cannot live: "
        "set OIKOS_LAB_STATE to a directory on a real disk or a tmpfs\n",
    )


def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, lab_name: Callable[[str], str]) -> None:
    script = f'mount -t tmpfs -o size=16k tmpfs {tmp_path} && {{ "$@"; s=$?; ls {tmp_path}; exit $s; }}'
    prefix = ("unshare", "-m", "sh", "-c", script, "sh")
    name = lab_name("f")
    done = oikos_lab("up", "web1", "--name", name, prefix=prefix, OIKOS_LAB_STATE=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert "No space left on device" in line
    assert network.namespaces(name) == []


@pytest.mark.slow
def test_a_base_build_without_network_names_its_step_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    done = oikos_lab("build", "host", prefix=("unshare", "-n"), OIKOS_LAB_CACHE=str(cache))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("Error: building the lab's root filesystem failed at step `base: Debian bookworm")
    assert f"see {cache}/build.log; a build needs the Debian mirror of this machine's apt sources and 1 GB free" in last
    assert "Traceback" not in done.stderr
    assert not layers.path(cache, "base").exists()
    assert (cache / "build.log").read_text() != ""
    assert list(cache.glob("*.part")) == []
    assert str(cache) not in Path("/proc/self/mounts").read_text()


def test_a_build_that_has_nothing_to_do_says_where_it_is() -> None:
    done = oikos_lab("build", "host", "pve")
    assert done.stdout == f"the lab is ready to start: root filesystems in {Places.from_environment().cache}\n"
