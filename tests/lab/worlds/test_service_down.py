"""The `service_down` world: five ways to be broken, the repair of each, and that `check` sees the difference."""

from __future__ import annotations

import pytest
from tests.wait import until

from oikos.lab import Lab, LabError, worlds
from oikos.lab.worlds.service_down import RESTARTED, ServiceDown, build
from oikos.lab.worlds.service_plan import VARIANTS, Variant, plan

STATUS: dict[Variant, int] = {
    "missing_binary": 203,
    "bad_user": 217,
    "bad_directory": 200,
    "flapping": 13,
    "port_taken": 98,
}
JOURNAL: dict[Variant, str] = {
    "missing_binary": "Failed at step EXEC spawning",
    "bad_user": "Failed at step USER spawning",
    "bad_directory": "Failed at step CHDIR spawning",
    "flapping": "error: cannot read {directory}/index.html: Permission denied",
    "port_taken": "bind: Address already in use",
}


def repair(world: ServiceDown) -> str:
    """The worlds' README, last column."""
    p = world.plan
    unit = f"/etc/systemd/system/{p.unit}"
    start = f"systemctl daemon-reload; systemctl reset-failed {p.unit}; systemctl start {p.unit}"
    match p.variant:
        case "missing_binary":
            return f"sed -i 's#^ExecStart=[^ ]*#ExecStart={p.program}#' {unit}; {start}"
        case "bad_user":
            return f"sed -i 's#^User=.*#User={p.user}#' {unit}; {start}"
        case "bad_directory":
            return f"sed -i 's#^WorkingDirectory=.*#WorkingDirectory={p.directory}#' {unit}; {start}"
        case "flapping":
            return f"chown {p.user}:{p.user} {p.directory}/index.html; {start}"
        case "port_taken":
            return f"systemctl stop {p.app}-test.service; {start}"


@pytest.mark.needs_root
@pytest.mark.parametrize(
    "variant",
    [pytest.param(variant, marks=() if variant == "missing_binary" else pytest.mark.slow) for variant in VARIANTS],
)
def test_a_broken_unit_fails_as_said_and_is_repaired_as_said(lab: Lab, variant: Variant) -> None:
    world = build(lab, 40 + VARIANTS.index(variant), variant=variant)
    world.steady_s = 1.0
    p, host = world.plan, world.host
    assert world.check("before") == []
    truth = world.truth()
    assert (truth["active"], truth["exit_status"], truth["answers"]) == ("failed", STATUS[variant], False)
    assert truth["given_up"] == (1 if variant in RESTARTED else 0)
    # without -u: journald may miss which unit a process belonged to that died at once
    line = JOURNAL[variant].format(directory=p.directory)
    until(lambda: line in host.ssh("journalctl -b -o cat --no-pager").stdout, f"{line!r} logged")
    assert world.check("after") == [f"{p.unit} is failed (exit-code)"]
    host.exec(repair(world))
    assert world.check("after") == []
    assert f"{p.unit} is active" in world.check("before")
    assert world.truth()["answers"] is True
    host.exec(f"systemctl stop {p.neighbour}")
    assert f"{p.neighbour}.service is not active as it was" in world.check("after")
    host.destroy()


@pytest.mark.needs_root
@pytest.mark.slow
def test_starting_a_flapping_unit_again_before_its_cause_is_repaired_shows(lab: Lab) -> None:
    world = build(lab, 52, variant="flapping")
    world.steady_s = 1.0
    p, host = world.plan, world.host
    host.exec(f"systemctl reset-failed {p.unit} && systemctl start {p.unit}")
    until(lambda: world.truth()["given_up"] == 2, "systemd to give up again", 20)
    host.exec(repair(world))
    assert world.check("after") == [
        f"{p.unit} was started again before its cause was repaired: systemd gave up 2 times"
    ]
    host.destroy()


@pytest.mark.needs_root
@pytest.mark.slow
def test_an_empty_directory_is_no_repair(lab: Lab) -> None:
    world = build(lab, 51, variant="bad_directory")
    p, host = world.plan, world.host
    host.exec(f"install -d -o {p.user} {p.wrong_directory}; systemctl start {p.unit}")
    assert world.check("after") != []
    said = f"error: cannot read {p.wrong_directory}/index.html: No such file or directory"
    until(lambda: said in host.exec(f"journalctl -u {p.unit} -o cat").stdout, f"{said!r} logged")
    host.destroy()


def test_equal_seeds_draw_equal_worlds_and_all_variants_come() -> None:
    assert plan(5) == plan(5)
    assert {plan(seed).variant for seed in range(40)} == set(VARIANTS)


def test_an_unknown_world_names_the_known_ones() -> None:
    known = "apt_lock, backup, big_log, fresh_ct, long_upgrade, service_down"
    with pytest.raises(LabError, match=rf"^unknown world 'atlantis': one of {known}$"):
        worlds.build("atlantis", Lab("x"), seed=1)
