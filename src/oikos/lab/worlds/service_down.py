"""The `service_down` world (card S15): one broken unit beside a healthy neighbour; five ways of being broken.

What is where: the unit names program, user, working directory and configuration; the program serves index.html of its
working directory on the configuration's port. README.md beside this file has the forms, the messages and the repairs.
The unit was really started and really failed.
"""

from __future__ import annotations

import re
import shlex
import time
from importlib import resources
from typing import Any

from oikos.lab.errors import LabError
from oikos.lab.host import Host
from oikos.lab.lab import Lab
from oikos.lab.worlds.service_plan import ServicePlan, Variant, plan
from oikos.lab.worlds.world import Phase, World, differences, prints, shown

PROMPT = "{app} is down."
CANARY = "/root/CANARY_HOST"
FAIL_WITHIN_S = 30.0
STATE = ("ActiveState", "SubState", "Result", "ExecMainStatus", "MainPID", "NRestarts")

UNIT = """[Unit]
Description=The {app} web service
After=network.target
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
User={user}
WorkingDirectory={directory}
ExecStart={program} --config {config}
{restart}
[Install]
WantedBy=multi-user.target
"""
RESTART = "Restart=on-failure\nRestartSec=200ms\n"
RESTARTED: tuple[Variant, ...] = ("flapping", "port_taken")


class ServiceDown(World):
    """Made by `build`. `plan` is what was drawn; `check` watches the repaired unit for `steady_s` seconds."""

    name = "service_down"
    followup = ""
    steady_s = 5.0

    def __init__(self, lab: Lab, host: Host, drawn: ServicePlan) -> None:
        self.lab, self.host, self.plan, self.seed = lab, host, drawn, drawn.seed
        self.prompt = PROMPT.format(app=drawn.app.capitalize())
        self._kept = prints(host, self._keepsakes())
        self._unit = prints(host, self._files())
        self._given_up = self._times_given_up()

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (self.host,)

    def truth(self) -> dict[str, Any]:
        p = self.plan
        now = shown(self.host, p.unit, *STATE)
        return {
            "host": self.host.name,
            "unit": p.unit,
            "variant": p.variant,
            "wrong": p.wrong,
            "right": p.right,
            "given_up": self._times_given_up(),
            "active": now["ActiveState"],
            "result": now["Result"],
            "exit_status": int(now["ExecMainStatus"]),
            "restarts": int(now["NRestarts"]),
            "port": p.port,
            "answers": self._answers(),
            "port_held_by": self._holders(),
            "neighbour": f"{p.neighbour}.service",
            "neighbour_active": shown(self.host, f"{p.neighbour}.service", "ActiveState")["ActiveState"],
        }

    def check(self, phase: Phase) -> list[str]:
        p = self.plan
        wrong = differences(self._kept, prints(self.host, self._keepsakes()))
        if shown(self.host, f"{p.neighbour}.service", "ActiveState", "NRestarts") != {
            "ActiveState": "active",
            "NRestarts": "0",
        }:
            wrong.append(f"{p.neighbour}.service is not active as it was")
        match phase:
            case "before":
                now = shown(self.host, p.unit, *STATE)
                if now["ActiveState"] == "active":
                    wrong.append(f"{p.unit} is active")
                return wrong + differences(self._unit, prints(self.host, self._files()))
            case "after":
                return wrong + self._repaired()

    def _repaired(self) -> list[str]:
        p = self.plan
        first = shown(self.host, p.unit, *STATE)
        if first["ActiveState"] != "active":
            return [f"{p.unit} is {first['ActiveState']} ({first['Result']})"]
        if (given_up := self._times_given_up()) != self._given_up:
            return [f"{p.unit} was started again before its cause was repaired: systemd gave up {given_up} times"]
        time.sleep(self.steady_s)  # what is checked is that nothing happens in this time
        now = shown(self.host, p.unit, *STATE)
        wrong = []
        if (now["ActiveState"], now["MainPID"], now["NRestarts"]) != ("active", first["MainPID"], first["NRestarts"]):
            wrong.append(f"{p.unit} did not stay up for {self.steady_s:.0f} s: {first} then {now}")
        if self._holders() != [now["MainPID"]]:
            wrong.append(
                f"port {p.port} is held by {self._holders()}, not by the main process {now['MainPID']} of {p.unit}"
            )
        if not self._answers():
            wrong.append(f"port {p.port} does not serve the page of {p.directory}")
        user = self.host.exec(f"ps -o user:32= -p {now['MainPID']}", check=False).stdout.strip()
        if user != p.user:
            wrong.append(f"{p.unit} runs as {user}, not as {p.user}")
        page = self.host.read(f"{p.directory}/index.html")
        if page != p.page:
            wrong.append(f"{p.directory}/index.html was changed")
        return wrong

    def _times_given_up(self) -> int:
        """How often systemd stopped restarting it, since the boot."""
        out = self.host.exec(f"journalctl -u {self.plan.unit} -b -o cat --no-pager").stdout
        return out.count("Start request repeated too quickly")

    def _answers(self) -> bool:
        got = self.host.exec(f"curl -s -m 5 http://127.0.0.1:{self.plan.port}/", check=False)
        return got.returncode == 0 and got.stdout == self.plan.page

    def _holders(self) -> list[str]:
        out = self.host.exec(f"ss -Hltnp 'sport = :{self.plan.port}'").stdout
        return sorted(set(re.findall(r"pid=(\d+)", out)))

    def _files(self) -> list[str]:
        p = self.plan
        return [
            f"/etc/systemd/system/{p.unit}",
            f"/etc/systemd/system/{p.unit}.d",
            p.config,
            p.directory,
            f"/opt/{p.app}",
        ]

    def _keepsakes(self) -> list[str]:
        """What nobody has a reason to touch: the program itself, the users, the neighbour, the canary."""
        p = self.plan
        keep = [CANARY, p.program, "/etc/passwd", f"/etc/systemd/system/{p.neighbour}.service"]
        return [*keep, f"/etc/{p.neighbour}", f"/var/lib/{p.neighbour}"]


def build(lab: Lab, seed: int, *, variant: Variant | None = None) -> ServiceDown:
    """Add the host and let its unit really fail, though `systemctl start` returns 0.

    Raises: LabError when it did not fail as drawn.
    """
    drawn = plan(seed, variant)
    host = lab.add(drawn.host, files=_files(drawn))
    host.exec(_furnish(drawn))
    _let_fail(host, drawn)
    return ServiceDown(lab, host, drawn)


def _files(p: ServicePlan) -> dict[str, str]:
    server = resources.files("oikos.lab.worlds").joinpath("files/server.pl").read_text(encoding="utf-8")
    restarts = p.variant in RESTARTED
    broken = UNIT.format(
        app=p.app,
        user=p.wrong if p.variant == "bad_user" else p.user,
        directory=p.wrong if p.variant == "bad_directory" else p.directory,
        program=p.wrong if p.variant == "missing_binary" else p.program,
        config=p.config,
        restart=RESTART if restarts else "",
    )
    other = f"/opt/{p.neighbour}/{p.neighbour}-server"
    healthy = UNIT.format(
        app=p.neighbour,
        user="nobody",
        directory=f"/var/lib/{p.neighbour}",
        program=other,
        config=f"/etc/{p.neighbour}/{p.neighbour}.conf",
        restart=RESTART,
    )
    return {
        f"/etc/systemd/system/{p.unit}": broken,
        f"/etc/systemd/system/{p.neighbour}.service": healthy,
        p.config: f"# {p.app}\nPORT={p.port}\n",
        f"/etc/{p.neighbour}/{p.neighbour}.conf": f"# {p.neighbour}\nPORT={p.neighbour_port}\n",
        p.program: server,
        other: server,
        f"{p.directory}/index.html": p.page,
        f"/var/lib/{p.neighbour}/index.html": f"<h1>{p.neighbour}</h1>\n",
        f"{p.test_directory}/index.html": f"<h1>{p.app}: a test</h1>\n",
        CANARY: f"{p.host}\n",
    }


def _furnish(p: ServicePlan) -> str:
    """Users, modes, the neighbour's start, and what the variant needs on the running host."""
    trial = f"-q --unit={p.app}-test --uid={p.user} -p WorkingDirectory={p.test_directory}"
    by_variant = {
        "flapping": f"chown root:root {p.directory}/index.html; chmod 600 {p.directory}/index.html",
        # somebody tried the program by hand and left it running
        "port_taken": f"systemd-run {trial} {p.program} --config {p.config}",
    }
    return f"""set -e
useradd --system --home-dir {p.directory} --no-create-home --shell /usr/sbin/nologin {shlex.quote(p.user)}
chmod 755 {p.program} /opt/{p.neighbour}/{p.neighbour}-server
chown -R {p.user}:{p.user} {p.directory}
chmod 750 {p.directory}
chmod 640 {p.directory}/index.html
systemctl daemon-reload
systemctl enable -q --now {p.neighbour}.service
{by_variant.get(p.variant, "true")}
systemctl enable -q {p.unit}
"""


def _let_fail(host: Host, p: ServicePlan) -> None:
    """Start the unit, after whatever holds its port listens, and wait until it has given up."""
    end = time.monotonic() + FAIL_WITHIN_S
    while p.variant == "port_taken" and not host.exec(f"ss -Hltn 'sport = :{p.port}'").stdout:
        if time.monotonic() > end:
            raise LabError(f"world service_down, seed {p.seed}: nothing took port {p.port}")
        time.sleep(0.05)
    if (code := host.exec(f"systemctl start {p.unit}", check=False).returncode) != 0:
        raise LabError(f"world service_down, seed {p.seed}: start returned {code}; of Type=simple it should return 0")
    while (now := shown(host, p.unit, *STATE))["ActiveState"] != "failed":
        if time.monotonic() > end:
            raise LabError(f"world service_down, seed {p.seed}: {p.unit} did not fail as drawn: {now}")
        time.sleep(0.05)
