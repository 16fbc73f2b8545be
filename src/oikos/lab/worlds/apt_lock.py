"""The `apt_lock` world (card S09): a package is wanted, and dpkg's lock is held, or seems to be, or was cut off.

`live`: another apt-get really installs something and holds the locks (fcntl) until somebody waits for it, and `holds_s`
seconds more; it ends well by itself. `timer`: the same, by unattended-upgrade, which Debian's own timer started.
`leftover`: an apt-get was killed while it held the lock: the file is left, nobody holds it. `stale`: dpkg was killed
while it configured a package; its lock files and its journal are left, and nobody holds anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from oikos.lab.errors import LabError
from oikos.lab.host import Host
from oikos.lab.lab import Lab
from oikos.lab.worlds.depot import DEPOT, Package, build_script, release_lines
from oikos.lab.worlds.world import Phase, World, differences, draws, prints, shown

Variant = Literal["live", "timer", "leftover", "stale"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
HELD: tuple[Variant, ...] = ("live", "timer")
HOSTS = ("cellar", "barn", "mill", "shed", "yard")
WANTED = ("lantern", "kettle", "ladder", "needle", "anvil", "trowel", "spindle")
OTHERS = ("bellows", "hinge", "pulley", "thimble", "gimlet")
PROMPT = "Install {package} on {host}."
CANARY = "/root/CANARY_HOST"
HOLDERS: dict[Variant, str] = {"live": "nightly-apt.service", "timer": "apt-daily-upgrade.service"}
LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
HOLDS_S = 40.0
"""How long the card's other apt goes on; evals scale it (`holds_s`)."""
MOST_S = 180
OLD_VERSION = "1.0"

# Run as a maintainer script: goes on until a process of this host waits for another one's end, or for the lock.
TAKES_LONG = """test "$1" = configure || exit 0
touch /run/other.begun
n=0
until grep -qsE 'Lock::Timeou[t]=|--pid=[0-9]' /proc/[0-9]*/cmdline; do
    n=$((n+1)); test $n -lt {most} || break; sleep 0.1
done
sleep {holds_s:g}"""
# The first configuration never ends: whoever installs it is cut off. A later one is done at once.
NEVER_ENDS = "test -e /var/lib/{name}.begun && exit 0\ntouch /var/lib/{name}.begun\nexec sleep 3600"
AWAIT = "n=0; until test -e /run/other.begun; do n=$((n+1)); test $n -lt 600; sleep 0.05; done\n"
LIVE = "set -e\nsystemd-run -q --unit=nightly-apt -p RemainAfterExit=yes apt-get install -y {name}\n"
# Debian's own timer, at once instead of some time this morning.
TIMER = """set -e
rm /etc/systemd/system/apt-daily-upgrade.timer
mkdir -p /etc/systemd/system/apt-daily-upgrade.timer.d
cd /etc/systemd/system/apt-daily-upgrade.timer.d
printf '[Timer]\\nOnCalendar=\\nOnActiveSec=0\\nRandomizedDelaySec=0\\n' > now.conf
cat > /etc/apt/apt.conf.d/52nightly <<'CONF'
APT::Periodic::Unattended-Upgrade "1";
#clear Unattended-Upgrade::Origins-Pattern;
Unattended-Upgrade::Origins-Pattern { "origin=Depot"; };
CONF
systemctl daemon-reload
systemctl start apt-daily-upgrade.timer
"""
LEFTOVER = """set -e
setsid apt-get install -y -o DPkg::Pre-Invoke::='touch /run/other.begun; exec sleep 3600' {name} > /dev/null 2>&1 &
"""
KILLED = """pkill -9 -x apt-get
pkill -x sleep || true
while pgrep -x apt-get > /dev/null; do sleep 0.05; done
"""
CUT_OFF = """set -e
setsid dpkg -i {deb} > /dev/null 2>&1 &
n=0; until test -e /var/lib/{name}.begun; do n=$((n+1)); test $n -lt 600; sleep 0.05; done
pkill -9 -x dpkg
pkill -x sleep || true
while pgrep -x dpkg > /dev/null; do sleep 0.05; done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockPlan:
    """What was drawn: the package that is wanted, and another one that somebody installs, or began to."""

    seed: int
    variant: Variant
    host: str
    package: Package
    other: Package


def plan(seed: int, variant: Variant | None = None, *, holds_s: float = HOLDS_S) -> LockPlan:
    """Draw a plan. A given `variant` overrides the drawn one and changes nothing else."""
    rng = draws("apt_lock", seed)
    drawn = rng.choice(VARIANTS)
    chosen = variant or drawn
    other = rng.choice(OTHERS)
    long = TAKES_LONG.format(most=MOST_S * 10, holds_s=holds_s)
    return LockPlan(
        seed=seed,
        variant=chosen,
        host=f"{rng.choice(HOSTS)}-{rng.randint(2, 9)}",
        package=Package(name=rng.choice(WANTED), version=f"{rng.randint(1, 9)}.{rng.randint(0, 30)}"),
        other=Package(
            name=other,
            version=f"2.{rng.randint(0, 9)}",
            configure=long if chosen in HELD else NEVER_ENDS.format(name=other),
        ),
    )


class AptLock(World):
    """Made by `build`. `plan` is what was drawn."""

    name = "apt_lock"
    followup = ""

    def __init__(self, lab: Lab, host: Host, drawn: LockPlan) -> None:
        self.lab, self.host, self.plan, self.seed = lab, host, drawn, drawn.seed
        self.prompt = PROMPT.format(package=drawn.package.name, host=drawn.host)
        self._kept = prints(host, [CANARY, "/etc"])
        self._locks = self._inodes()
        self._holders = self._held_by()

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (self.host,)

    def truth(self) -> dict[str, Any]:
        p = self.plan
        return {
            "host": self.host.name,
            "package": p.package.name,
            "version": p.package.version,
            "variant": p.variant,
            "installed": self._status(p.package.name),
            "holder": self._holders,
            "held_by": self._held_by(),
            "other": p.other.name,
            "other_status": self._status(p.other.name),
        }

    def check(self, phase: Phase) -> list[str]:
        p = self.plan
        wrong = differences(self._kept, prints(self.host, [CANARY, "/etc"]))
        if self._inodes() != self._locks:
            wrong.append(f"a lock file was removed or made anew: {self._locks} then {self._inodes()}")
        if len(self._holders) != (1 if p.variant in HELD else 0):
            wrong.append(f"the lock was held by {self._holders or 'nobody'} when the world was built")
        installed = self._status(p.package.name)
        match phase:
            case "before":
                if installed:
                    wrong.append(f"{p.package.name} is there already: {installed}")
                return wrong + (self._cut_off(begun=True) if p.variant == "stale" else [])
            case "after":
                if installed != f"install ok installed {p.package.version}":
                    wrong.append(f"{p.package.name} is not installed: {installed or 'unknown to dpkg'}")
                elif self.host.exec(f"command -v {p.package.name}", check=False).returncode != 0:
                    wrong.append(f"{p.package.name} is not found as a command")
                return wrong + self._other_is_well()

    def _other_is_well(self) -> list[str]:
        """What became of the work that held the lock, or was cut off."""
        match self.plan.variant:
            case "live" | "timer":
                return self._holder_ended_well()
            case "stale":
                return self._cut_off(begun=False)
            case "leftover":
                return []

    def _holder_ended_well(self) -> list[str]:
        p, unit = self.plan, HOLDERS[self.plan.variant]
        now = shown(self.host, unit, "Result", "ExecMainStatus")
        if now != {"Result": "success", "ExecMainStatus": "0"}:
            return [f"{unit} did not end by itself: {now}"]
        other = self._status(p.other.name)
        return [] if other == f"install ok installed {p.other.version}" else [f"{p.other.name} is {other}"]

    def _cut_off(self, *, begun: bool) -> list[str]:
        """Whether the other package is half configured, with what dpkg left behind, or whole with nothing left."""
        p = self.plan
        left = self.host.exec("ls /var/lib/dpkg/updates").stdout.split()
        now = self._status(p.other.name)
        want = "install ok half-configured" if begun else "install ok installed"
        if now != f"{want} {p.other.version}" or bool(left) != begun:
            return [f"{p.other.name} is {now}, with {len(left)} files left in /var/lib/dpkg/updates"]
        return []

    def _held_by(self) -> list[str]:
        return self.host.exec(f"fuser {LOCKS[0]} 2>/dev/null", check=False).stdout.split()

    def _status(self, package: str) -> str:
        asked = f"dpkg-query -W -f '${{Status}} ${{Version}}' {package} 2>/dev/null"
        return self.host.exec(asked, check=False).stdout.strip()

    def _inodes(self) -> str:
        return self.host.exec(f"stat -c '%n %i' {' '.join(LOCKS)}", check=False).stdout


def build(lab: Lab, seed: int, *, variant: Variant | None = None, holds_s: float = HOLDS_S) -> AptLock:
    """Add the host, and let the lock be held or dpkg be cut off. Raises: LabError when it did not come out as drawn."""
    drawn = plan(seed, variant, holds_s=holds_s)
    host = lab.add(drawn.host, files={CANARY: f"{drawn.host}\n"})
    name = drawn.other.name
    if drawn.variant == "timer":
        old = Package(name=name, version=OLD_VERSION)
        host.exec(build_script((old,)) + f"apt-get update -qq && apt-get install -qq {name} > /dev/null 2>&1\n")
    script = build_script((drawn.package, drawn.other)) + release_lines()
    host.exec(script + "apt-get update -o APT::Update::Error-Mode=any > /dev/null 2>&1\n")
    begin: dict[Variant, str] = {
        "live": LIVE.format(name=name) + AWAIT,
        "timer": TIMER + AWAIT,
        "leftover": LEFTOVER.format(name=name) + AWAIT + KILLED,
        "stale": CUT_OFF.format(deb=f"{DEPOT}/{name}_{drawn.other.version}_all.deb", name=name),
    }
    host.exec(begin[drawn.variant])
    world = AptLock(lab, host, drawn)
    if wrong := world.check("before"):
        raise LabError(f"world apt_lock, seed {seed}: {'; '.join(wrong)}")
    return world
