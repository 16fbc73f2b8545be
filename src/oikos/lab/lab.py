"""A lab: real hosts on this machine. `with Lab("t1") as lab: lab.add("web1")`."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from oikos.lab import build, cgroups, control, furnish, network, owner, packages, spec, teardown
from oikos.lab.command import run
from oikos.lab.errors import LabError
from oikos.lab.faults.world import WorldFaults
from oikos.lab.gateway import journal
from oikos.lab.host import Host, HostState
from oikos.lab.layers import Kind
from oikos.lab.network import Network
from oikos.lab.places import Places, need_root

LAB_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")
HOST_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")
GATEWAY_WITHIN_S = 15.0
SSH_OPTIONS = """Host *
  User root
  IdentityFile {dir}/id
  IdentitiesOnly yes
  UserKnownHostsFile {dir}/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
  KexAlgorithms curve25519-sha256
  ConnectTimeout 10
  LogLevel ERROR
"""


def _silent(_: str) -> None:
    return


class Lab(WorldFaults):
    """Hosts on a private network, a gateway to package registries, and one supervisor process.

    A context manager: up on entry, down on exit; should the process be killed, the next lab to come up takes it down.
    Several labs run side by side under different names.
    """

    def __init__(
        self, name: str = "lab", *, log: Callable[[str], object] = _silent, places: Places | None = None
    ) -> None:
        if LAB_NAME.fullmatch(name) is None:
            raise LabError(f"not a lab name: {name!r}; use 1 to 8 lower-case letters and digits, a letter first")
        self.name, self.log = name, log
        self.places = places or Places.from_environment()
        self.hosts: dict[str, Host] = {}
        self._network: Network | None = None

    @property
    def dir(self) -> Path:
        """The lab's state directory; there while it is up."""
        return self.places.state / self.name

    @property
    def network(self) -> Network:
        """Raises: LabError while the lab is down."""
        if self._network is None:
            self._network = Network.load(self.dir)
        return self._network

    @property
    def private_key(self) -> Path:
        """The SSH key every host lets in as root."""
        return self.dir / "id"

    @property
    def ssh_config(self) -> Path:
        """For `ssh -F`; knows every host by name."""
        return self.dir / "ssh_config"

    @property
    def known_hosts(self) -> Path:
        return self.dir / "known_hosts"

    def __enter__(self) -> Self:
        return self.up(owned=True)

    def __exit__(self, *_: object) -> None:
        self.down()

    @classmethod
    def attach(cls, name: str = "lab", *, log: Callable[[str], object] = _silent) -> Lab:
        """A lab that some process brought up. Raises: LabError when there is none."""
        lab = cls(name, log=log)
        need_root("the lab")
        lab._network = Network.load(lab.dir)
        for found in furnish.specs(lab.dir):
            lab.hosts[found.name] = Host(lab, found)
        return lab

    def up(self, *, owned: bool = False) -> Self:
        """Bring up an empty lab; what a crashed one of the same name left is cleared first.

        An `owned` lab belongs to this process: once that has ended, the next `up` of any lab takes it down. Otherwise
        it stays until somebody takes it down. Raises: LabError.
        """
        need_root("the lab")
        self.places.check()
        absent = packages.missing()
        if absent:
            remedy = f"run `oikos lab build`, or `apt-get install {' '.join(absent)}`"
            raise LabError(f"the lab needs packages that are not installed: {remedy}")
        for gone in teardown.abandoned(self.places.state):
            self.log(f"taking down {gone.name}, whose process is gone")
            teardown.take_down(gone.name, gone)
        self.down()
        with self._whole_or_not_at_all():
            (self.dir / teardown.MARKER).mkdir(parents=True)
            (self.dir / "hosts").mkdir()
            if owned:
                owner.claim(self.dir)
            self._network = network.claim(self.name, self.places.state)
            self._network.save(self.dir)
            self._network.raise_up()
            key = ["-t", "ed25519", "-N", "", "-C", f"oikos-lab-{self.name}", "-f", str(self.private_key)]
            run(["ssh-keygen", "-q", *key])
            self._write_ssh_files()
            self._start_supervisor()
        return self

    @contextlib.contextmanager
    def _whole_or_not_at_all(self) -> Iterator[None]:
        """Take the lab down again when it did not come up, and say in one line what the disk or the kernel refused."""
        try:
            yield
        except OSError as exc:
            self.down()
            raise LabError(f"cannot make lab {self.name} in {self.dir}: {exc.strerror}") from exc
        except BaseException:
            self.down()
            raise

    def _start_supervisor(self) -> None:
        own = cgroups.top(self.name, "_lab")
        own.mkdir(parents=True)
        source = str(Path(__file__).resolve().parents[2])
        places = {"OIKOS_LAB_STATE": str(self.places.state), "OIKOS_LAB_CACHE": str(self.places.cache)}
        log = self.dir / "supervisor.log"
        with log.open("wb") as out:
            # Returns when the supervisor proper, a child of its own, listens: nothing is left to wait for here.
            begun = subprocess.run(
                [sys.executable, "-m", "oikos.lab.supervisor", str(self.dir)],
                env={**os.environ, **places, "PYTHONPATH": source},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=functools.partial(_join, own / "cgroup.procs"),
                check=False,
            )
        end = time.monotonic() + GATEWAY_WITHIN_S
        while begun.returncode or not (self.dir / "gateway.pid").exists():
            if begun.returncode or time.monotonic() > end:
                why = log.read_text(encoding="utf-8", errors="replace").strip()[-600:]
                raise LabError(f"the lab's supervisor did not start: {why}")
            time.sleep(0.01)

    def down(self) -> None:
        """Take everything away; also what a crash left, and twice. Raises: LabError."""
        need_root("taking a lab down")
        teardown.take_down(self.name, self.dir)
        self.hosts.clear()
        self._network = None

    @classmethod
    def down_all(cls) -> list[str]:
        """Take every lab down, crashed ones included; their names."""
        root = Places.from_environment().state
        names = {place.parent.name for place in root.glob(f"*/{teardown.MARKER}")}
        names |= {namespace.split("-")[1] for namespace in network.namespaces()}
        for name in sorted(names):
            cls(name).down()
        return sorted(names)

    @classmethod
    def names(cls) -> list[str]:
        """Labs that are up, or crashed and not cleared."""
        return sorted(file.parent.name for file in Places.from_environment().state.glob("*/lab.json"))

    def add(
        self,
        *names: str,
        kind: Kind = "host",
        wait: bool = True,
        timeout_s: float = 120,
        memory: str | int | None = None,
        cpus: float | None = None,
        disk: str | int | None = None,
        files: dict[str, str] | None = None,
        systemd: bool = True,
    ) -> Host:
        """Make and boot hosts; all are booted before any is waited for. Returns the last.

        `disk` gives each a filesystem of its own of that size. `files` maps absolute paths to text that is there before
        the first boot. Without `systemd`, PID 1 is a shell and sshd: a tenth of the cost, no services.
        Raises: LabError.
        """
        for name in names:
            if HOST_NAME.fullmatch(name) is None:
                raise LabError(f"not a host name: {name!r}; use up to 31 lower-case letters, digits and hyphens")
        taken = [name for name in names if name in self.hosts] or [n for n in names if names.count(n) > 1]
        if taken or not names:
            raise LabError(f"host {taken[0]} is there already: choose another name" if taken else "no host was named")
        build.ensure([kind], self.places, self.log)
        limits = cgroups.Limits(memory_bytes=spec.size_bytes(memory), cpus=cpus)
        plans = [
            furnish.Plan(
                name=name,
                kind=kind,
                init=spec.SYSTEMD if systemd else spec.TINY_INIT,
                limits=limits,
                disk_bytes=spec.size_bytes(disk),
                files=files or {},
            )
            for name in names
        ]
        try:
            made = [self._furnish(plan) for plan in plans]
            self._write_ssh_files()
        except OSError as exc:
            raise LabError(f"cannot make {' '.join(names)} in {self.dir}: {exc.strerror}") from exc
        self.log(f"booting {' '.join(names)} ({kind})")
        control.call(self.dir, [{"op": "boot", "spec": host.spec.to_json()} for host in made])
        if wait:
            self.wait_ready(made, timeout_s)
        return made[-1]

    def _furnish(self, plan: furnish.Plan) -> Host:
        others = [host.spec for host in self.hosts.values()]
        host = Host(self, furnish.furnish(self.dir, self.network, self.places.cache, others, plan))
        self.hosts[plan.name] = host
        return host

    def wait_ready(self, hosts: Sequence[Host], timeout_s: float = 60) -> None:
        """Until the SSH server of each greets. Raises: LabError naming those that do not."""
        end = time.monotonic() + timeout_s
        waiting = list(hosts)
        while waiting := [host for host in waiting if not _greets(host.address)]:
            if time.monotonic() > end:
                raise LabError(
                    f"no SSH server answers on {', '.join(host.name for host in waiting)} after {timeout_s:.0f} s"
                )
            time.sleep(0.02)

    def forget(self, host: Host) -> None:
        """Drop a destroyed host from the lab's books."""
        (self.dir / teardown.MARKER / host.name).unlink(missing_ok=True)
        self.hosts.pop(host.name, None)
        self._write_ssh_files()

    def _write_ssh_files(self) -> None:
        hosts = self.hosts.values()
        known = [f"{host.name},{host.address} {key}\n" for host in hosts for key in host.host_keys()]
        self.known_hosts.write_text("".join(known), encoding="utf-8")
        entries = [f"Host {host.name}\n  HostName {host.address}\n" for host in hosts]
        self.ssh_config.write_text("".join(entries) + SSH_OPTIONS.format(dir=self.dir), encoding="utf-8")

    def states(self) -> dict[str, HostState]:
        """What the supervisor says of every host."""
        return {name: HostState(**state) for name, state in self.call("status")["hosts"].items()}

    def call(self, op: str, **arguments: object) -> dict[str, Any]:
        """One request to the supervisor. Raises: LabError."""
        return control.call(self.dir, [{"op": op, **arguments}])[0]

    def gateway_log(self) -> list[dict[str, Any]]:
        """Every DNS question, HTTP request and TLS connection so far."""
        return journal.read(self.dir)


def _join(procs: Path) -> None:
    """In the child: into the supervisor's own cgroup, so that it too is found after a crash."""
    procs.write_text("0")


def _greets(address: str) -> bool:
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            connection.settimeout(2)
            return connection.recv(64).startswith(b"SSH-")
    except OSError:
        return False
