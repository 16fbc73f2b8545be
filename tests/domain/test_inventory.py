"""Names, ways and ages (SPEC R6.1, R6.2): an ambiguous name is a question, a circle is no way, age is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import CT131, FLEET, PVE1, WEB1, WEB2, guest, ssh, with_entities

from oikos.domain.inventory import (
    NAME,
    AccessPath,
    AmbiguousName,
    Entity,
    Fact,
    Inventory,
    Transport,
    UnknownName,
)


@pytest.mark.parametrize("name", ["web1", "WEB1", " web1 ", "www", "WWW", "e-web1"])
def test_a_machine_is_found_by_slug_id_name_or_alias(name: str) -> None:
    assert FLEET.resolve(name) == WEB1


def test_a_slug_goes_before_another_machines_name() -> None:
    fleet = with_entities(replace(WEB2, name="web1", aliases=("web1",)))
    assert fleet.resolve("web1") == WEB1


def test_two_machines_of_one_name_are_a_question() -> None:
    fleet = with_entities(replace(WEB1, aliases=("db",)), replace(WEB2, name="DB"))
    assert fleet.resolve("db") == AmbiguousName(name="db", slugs=("web1", "web2"))


def test_two_machines_of_one_slug_are_a_question() -> None:
    """Slugs should be unique; where they are not, the safe reading asks."""
    fleet = with_entities(replace(WEB2, slug="web1"))
    assert fleet.resolve("web1") == AmbiguousName(name="web1", slugs=("web1", "web1"))


def test_a_gone_machine_is_not_found_and_leaves_its_name_free() -> None:
    fleet = with_entities(replace(WEB1, gone=True), replace(WEB2, aliases=("web1",)))
    assert fleet.resolve("web1") == replace(WEB2, aliases=("web1",))
    assert isinstance(with_entities(replace(WEB1, gone=True)).resolve("www"), UnknownName)


@pytest.mark.parametrize("name", ["", "  ", "\n"])
def test_no_name_is_no_machine(name: str) -> None:
    """Also where an entity has no name of its own."""
    assert isinstance(with_entities(replace(WEB1, name="")).resolve(name), UnknownName)


def test_an_unknown_name_says_which_are_near() -> None:
    assert FLEET.resolve("web") == UnknownName(name="web", near=("web1", "web2"))
    assert FLEET.resolve("web1.lan") == UnknownName(name="web1.lan", near=("web1",))


def test_where_none_is_near_all_that_can_be_reached_are_told_up_to_eight() -> None:
    unreachable = Entity(id="e-a", kind="host", slug="aaa")
    assert with_entities(unreachable).resolve("xyz") == UnknownName(
        name="xyz", near=("nas", "paperless", "pve1", "vault", "web1", "web2")
    )
    many = {f"e{n}": Entity(id=f"e{n}", kind="host", slug=f"host{n}", access=ssh("10.0.0.1")) for n in range(9)}
    found = Inventory(entities=many).resolve("zz")
    assert isinstance(found, UnknownName)
    assert found.near == tuple(f"host{n}" for n in range(8))


def test_an_entity_is_got_by_id_only() -> None:
    assert FLEET.get("e-web1") == WEB1
    assert FLEET.get("web1") is None


# ---- ways ------------------------------------------------------------------------------------------------------------


def test_a_direct_way_is_one_hop() -> None:
    route = FLEET.route(WEB1)
    assert route is not None
    assert (route.target, route.hops) == (WEB1, ((WEB1, WEB1.access),))
    assert str(route) == "ssh root@10.0.0.1:22"


def test_a_way_through_others_begins_at_the_nearest() -> None:
    container = Entity(
        id="e-c",
        kind="container",
        slug="app",
        access=AccessPath(transport=Transport.DOCKER, via="paperless", guest="app"),
    )
    bastion = Entity(id="e-b", kind="host", slug="bastion", access=ssh("198.51.100.1", user="ops", port=2222))
    node = replace(PVE1, access=replace(PVE1.access, via="bastion"))
    route = with_entities(container, bastion, node).route(container)
    assert route is not None
    assert [entity.slug for entity, _ in route.hops] == ["bastion", "pve1", "paperless", "app"]
    assert str(route) == "ssh ops@198.51.100.1:2222 > ssh root@10.0.0.9:22 > pct 131 on paperless > docker app on app"


def test_the_controller_itself_is_local() -> None:
    here = Entity(id="e-l", kind="host", slug="here", access=AccessPath(transport=Transport.LOCAL))
    route = Inventory(entities={"e-l": here}).route(here)
    assert str(route) == "local"


def circle(length: int) -> Inventory:
    """Machines that are each reached through the next, and the last through the first."""
    slugs = [f"m{n}" for n in range(length)]
    machines = [
        Entity(id=f"e-{slug}", kind="host", slug=slug, access=ssh("10.0.0.1", via=slugs[(n + 1) % length]))
        for n, slug in enumerate(slugs)
    ]
    return Inventory(entities={machine.id: machine for machine in machines})


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_way_in_a_circle_is_none(length: int) -> None:
    fleet = circle(length)
    assert [fleet.route(entity) for entity in fleet.entities.values()] == [None] * length


@pytest.mark.parametrize(
    "broken",
    [
        replace(CT131, access=None),
        replace(CT131, access=replace(guest("131"), via="nowhere")),
        replace(CT131, access=replace(guest("131"), via="twins")),
        replace(CT131, access=replace(guest("131"), via="gone")),
        replace(CT131, access=replace(guest("131"), via="mute")),
    ],
    ids=["no access", "unknown", "ambiguous", "gone", "via one without access"],
)
def test_a_way_that_breaks_off_is_none(broken: Entity) -> None:
    fleet = with_entities(
        broken, replace(WEB1, aliases=("twins",)), replace(WEB2, aliases=("twins",)),
        Entity(id="e-g", kind="host", slug="gone", access=ssh("10.0.0.3"), gone=True),
        Entity(id="e-m", kind="host", slug="mute"),
    )  # fmt: skip
    assert fleet.route(broken) is None


# ---- facts and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ttl_s", "now_s", "stale"), [(60.0, 160.0, False), (60.0, 160.1, True), (None, 1e12, False), (0.0, 100.0, False)]
)
def test_a_fact_is_stale_when_its_time_is_over(ttl_s: float | None, now_s: float, stale: bool) -> None:
    fact = Fact(entity_id="e", key="k", value='"v"', source="run:r", observed_s=100.0, ttl_s=ttl_s)
    assert fact.stale(now_s) is stale


@pytest.mark.parametrize("good", ["a", "web1", "web-1.lan", "a" * 63, "0", "a_b"])
def test_a_name_is_plain(good: str) -> None:
    assert NAME.fullmatch(good)


@pytest.mark.parametrize("bad", ["", "-oProxyCommand=x", "a b", "a;b", "$(id)", "a" * 64, "a-", ".a", "A", "a\n", "ä"])
def test_nothing_a_shell_or_ssh_could_read_is_a_name(bad: str) -> None:
    assert not NAME.fullmatch(bad)
