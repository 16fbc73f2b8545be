"""What the lab decides without a kernel: sizes, kinds, places, addresses, rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oikos.lab import Lab, LabError, layers, packages, places
from oikos.lab.gateway import rules
from oikos.lab.network import Network
from oikos.lab.places import Places
from oikos.lab.spec import Bind, HostSpec, size_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("512M", 512 << 20), ("1G", 1 << 30), ("64KiB", 64 << 10), ("100", 100), ("2gb", 2 << 30), (7, 7), (None, None)],
)
def test_a_size_is_read(text: str | int | None, size: int | None) -> None:
    assert size_bytes(text) == size


def test_a_bad_size_shows_good_ones() -> None:
    with pytest.raises(LabError) as refusal:
        size_bytes("lots")
    assert str(refusal.value) == "not a size: 'lots'; write e.g. 512M or 1G"


def test_a_spec_survives_json() -> None:
    spec = HostSpec(
        name="a",
        kind="pve",
        address="10.77.1.1",
        dir="/d",
        lower=("/x", "/y"),
        netns="n",
        port="p",
        binds=(Bind(source="/s", target="/t", readonly=True),),
    )
    assert HostSpec.from_json(spec.to_json()) == spec


def test_a_changed_recipe_is_another_layer() -> None:
    cache = Path("/cache")
    assert len({layers.path(cache, layer) for layer in layers.PACKAGES}) == 3
    assert layers.lower(cache, "pve") == [str(layers.path(cache, "pve")), str(layers.path(cache, "base"))]
    assert layers.lower(cache, "machine") == ["/"]


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(LabError) as refusal:
        layers.parse_kind("vm")
    assert str(refusal.value) == "unknown kind of host 'vm': one of host, pve, docker, machine"


def test_addresses_of_a_subnet_are_all_different_and_fixed_to_their_hardware() -> None:
    network = Network(lab="x", number=80)
    addresses = [network.host(index) for index in range(1, 1000)]
    assert addresses[:2] == ["10.80.1.1", "10.80.1.2"]
    assert len(set(addresses)) == len({network.hardware_address(a) for a in addresses}) == 999
    assert not {network.gateway, network.machine} & set(addresses)


def test_places_come_from_the_environment() -> None:
    named = Places.from_environment({"OIKOS_LAB_STATE": "/a", "OIKOS_LAB_CACHE": "/b"})
    assert named == Places(state=Path("/a"), cache=Path("/b"))
    assert Places.from_environment({}) == Places(state=Path("/var/lib/oikos-lab"), cache=Path("/var/cache/oikos-lab"))


def test_the_filesystem_of_a_path_that_is_not_there_yet_is_its_parents() -> None:
    assert places.filesystem(Path("/proc/none/such")) == "proc"


@pytest.mark.parametrize("name", ["", "A", "1a", "toolongname", "a-b"])
def test_a_bad_lab_name_is_refused(name: str) -> None:
    with pytest.raises(LabError, match=r"^not a lab name: .*; use 1 to 8 lower-case letters and digits"):
        Lab(name)


def test_an_error_is_one_line() -> None:
    assert str(LabError("a\n  b\tc\n")) == "a b c"


def test_missing_packages_are_those_whose_program_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packages.PROGRAMS, "no-such-package", "no-such-program")
    assert "no-such-package" in packages.missing()


def test_rules_are_read_again_when_they_change_and_used_up(tmp_path: Path) -> None:
    live = rules.LiveRules(tmp_path)
    assert (live.http("a", "/"), live.dns("10.0.0.1")) == (None, None)
    once = rules.HttpRule(id="1", host="a", path="^/x", times=1)
    rules.edit(tmp_path, lambda now: rules.Faults(dns={rules.EVERYONE: "drop"}, http=(once,)))
    assert (live.http("a", "/y"), live.http("b", "/x")) == (None, None)
    assert [live.http("a", "/x"), live.http("a", "/x")] == [once, None]
    assert live.dns("10.0.0.1") == "drop"
    rules.edit(tmp_path, lambda _: rules.NONE)
    assert live.dns("10.0.0.1") is None


def test_product_layers_never_import_the_lab() -> None:
    source = Path(__file__).parents[2] / "src/oikos"
    outside = [p for p in source.rglob("*.py") if p.relative_to(source).parts[0] not in ("lab", "cli")]
    assert [str(p) for p in outside if "oikos.lab" in p.read_text()] == []


def test_the_lab_imports_nothing_of_the_product_and_click_only_for_its_commands() -> None:
    lab = Path(__file__).parents[2] / "src/oikos/lab"
    lines = [(p.name, line.strip()) for p in lab.rglob("*.py") for line in p.read_text().splitlines()]
    imports = [(name, line.split()[1]) for name, line in lines if line.startswith(("from ", "import "))]
    assert {
        module for _, module in imports if module.startswith("oikos") and not module.startswith("oikos.lab")
    } == set()
    assert {name for name, module in imports if module.partition(".")[0] == "click"} == {"cli.py"}


def test_without_root_one_line_says_what_needs_it_and_how_to_go_on() -> None:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            Lab("x").up()
        except LabError as refusal:
            os.write(write_end, str(refusal).encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as said:
        text = said.read()
    os.waitpid(child, 0)
    assert text == (
        "the lab needs root (network and mount namespaces, cgroups): run it with sudo, "
        "or go on without the lab: `oikos fleet add` takes any host you reach by ssh"
    )
