"""Faults of a host's programs: held package locks, slow or failing commands, a shifted clock."""

from __future__ import annotations

import shlex
import subprocess

from oikos.lab.errors import LabError
from oikos.lab.faults.target import FaultTarget
from oikos.lab.places import Places

APT_HOLDER = "/usr/bin/python3 /usr/bin/unattended-upgrade"
APT_LOCK = (
    "use Fcntl qw(:DEFAULT); $0=$ARGV[0]; my @h; "
    "for my $f (qw(/var/lib/dpkg/lock-frontend /var/lib/dpkg/lock /var/lib/apt/lists/lock)) "
    "{ sysopen(my $h,$f,O_RDWR|O_CREAT,0640) or die; my $l=pack('ssqql',F_WRLCK,0,0,0,0); "
    "fcntl($h,F_SETLK,$l) or die 'held'; push @h,$h } "
    'print "locked\\n"; close STDOUT; select(undef, undef, undef, $ARGV[1]);'
)
CLOCK_CONF = "/etc/ssh/sshd_config.d/00-clock.conf"
CLOCK_LIBRARY = "/usr/lib/libclk.so.1"


class ProgramFaults(FaultTarget):
    """Mixed into Host."""

    def apt_lock(self, seconds: float = 30, who: str = APT_HOLDER) -> subprocess.Popen[str]:
        """Hold dpkg's and apt's locks for a while, from a process of the host that looks like `who`.

        Raises: LabError when another process holds them.
        """
        holder = self.popen(f"exec perl -e {shlex.quote(APT_LOCK)} {shlex.quote(who)} {seconds}")
        assert holder.stdout is not None
        if holder.stdout.readline().strip() != "locked":
            raise LabError(f"{self.spec.name}: the apt locks are held already")
        return holder

    def wrap_command(
        self, name: str, *, delay_s: float = 0, fail_times: int = 0, status: int = 1, stderr: str = ""
    ) -> None:
        """Shadow a command in /usr/local/sbin: slow, or failing its first calls; then the real one runs."""
        count = f"/run/.lab-{name}"
        lines = [
            "#!/bin/sh",
            f"n=$(cat {count} 2>/dev/null || echo 0); echo $((n+1)) > {count}",
            f"sleep {delay_s}",
            f"if [ \"$n\" -lt {fail_times} ]; then printf '%s\\n' {shlex.quote(stderr)} >&2; exit {status}; fi",
            f'PATH=$(printf %s "$PATH" | sed \'s#/usr/local/sbin:##\') exec {name} "$@"',
        ]
        self.write(f"/usr/local/sbin/{name}", "\n".join(lines) + "\n", 0o755)

    def unwrap_command(self, name: str) -> None:
        self.exec(f"rm -f /usr/local/sbin/{name} /run/.lab-{name}")

    def clock_skew(self, offset: str | None) -> None:
        """Shift the wall clock that new SSH sessions see, e.g. `-3d` or `+2h`; None heals.

        A time namespace cannot shift the wall clock and the real one belongs to the machine, so this is libfaketime,
        put into the sessions' environment by sshd itself. Raises: LabError when libfaketime could not be had.
        """
        if offset is None:
            self.exec(f"rm -f {CLOCK_CONF}; systemctl reload ssh")
            return
        library = Places.from_environment().cache / "libfaketime.so.1"
        if not library.exists():
            raise LabError("the clock fault needs libfaketime, which the base build could not fetch: see build.log")
        copy = [
            "nsenter",
            "-t",
            str(self.pid),
            "-m",
            "--",
            "/bin/sh",
            "-c",
            f"cat > {CLOCK_LIBRARY}; chmod 755 {CLOCK_LIBRARY}",
        ]
        with library.open("rb") as source:
            subprocess.run(copy, stdin=source, check=True, cwd="/")
        skew = f"LD_PRELOAD={CLOCK_LIBRARY} FAKETIME={offset} FAKETIME_DONT_FAKE_MONOTONIC=1"
        self.write(CLOCK_CONF, f"SetEnv {skew}\n")
        self.exec("systemctl reload ssh")
