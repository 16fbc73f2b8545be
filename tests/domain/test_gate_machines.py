"""Every machine a command touches is judged, not only the one that receives it (SPEC R3.5, R3.9, R3.13)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    CHANGE,
    CT131,
    CT140,
    FLEET,
    NAS,
    PVE1,
    READ,
    SELF,
    WEB1,
    WEB2,
    Session,
    action,
    onward,
    pct,
    planned,
    propose,
    step,
    verdict,
    with_entities,
)

from oikos.domain.admission import Admission
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsApproval, Outcome
from oikos.domain.inventory import AccessPath, Entity, ExternalId, Inventory, Mode, Transport
from oikos.domain.verdict import Hop, HopKind, NamedObject, Risk

BLIND = Hop(kind=HopKind.PCT, name="")
BLIND_SSH = Hop(kind=HopKind.SSH, name="")


def on_node(*machines: Entity) -> Session:
    """An approved plan for pve1, and for more machines."""
    return Session.opened().approved(propose(step(PVE1, planned("true", CHANGE)), on=(PVE1, *machines)))


def reach(session: Session, *place: Hop, risk: Risk = CHANGE, target: Entity = PVE1) -> Outcome:
    """Ask for a command whose inner part runs at `place`."""
    inner = action("touch /x", risk, *place)
    return session.ask(
        "some wrapper touch /x", verdict("w", risk, actions=(action("some wrapper", READ), inner)), target=target
    )


def name_it(session: Session, kind: str, name: str, *place: Hop, risk: Risk = CHANGE, target: Entity = PVE1) -> Outcome:
    """Ask for a command of the target itself that acts on a named object."""
    thing = NamedObject(kind=kind, name=name, place=place, risk=risk)
    return session.ask(f"act on {name}", verdict("n", risk, objects=(thing,)), target=target)


def refused(outcome: Outcome, code: Code) -> str:
    assert isinstance(outcome, Refusal), outcome
    assert outcome.code is code
    return outcome.text


def parked(outcome: Outcome) -> str:
    assert isinstance(outcome, NeedsApproval), outcome
    return outcome.why


# ---- locked, also as the inner machine -------------------------------------------------------------------------------


@pytest.mark.parametrize("risk", [READ, CHANGE])
@pytest.mark.parametrize("name", ["140", "vault", "VAULT"])
def test_nothing_runs_in_a_locked_guest(name: str, risk: Risk) -> None:
    text = refused(reach(on_node(), pct(name), risk=risk), Code.TARGET_LOCKED)
    assert text == "vault is locked: nothing runs on it, not even inside another command."


@pytest.mark.parametrize(
    "name", ["10.0.0.99", "self", "root@10.0.0.99", "oikos-host", "OIKOS-HOST.", "root@self", "a@b@self"]
)
def test_nothing_reaches_the_controller_by_ssh(name: str) -> None:
    session = on_node()
    session.inventory = with_entities(replace(SELF, aliases=("oikos-host",)))
    refused(reach(session, onward(name), risk=READ), Code.TARGET_LOCKED)


def test_a_machine_on_the_way_counts_as_much_as_the_last() -> None:
    inner = Entity(id="e-c", kind="container", slug="db", parent=CT140.id)
    session = on_node()
    session.inventory = with_entities(inner)
    refused(reach(session, pct("140"), Hop(kind=HopKind.DOCKER, name="db"), risk=READ), Code.TARGET_LOCKED)


def test_a_locked_container_in_a_guest_is_locked() -> None:
    inner = Entity(id="e-c", kind="container", slug="db", parent=CT131.id, mode=Mode.LOCKED)
    session = on_node()
    session.inventory = with_entities(inner)
    refused(reach(session, pct("131"), Hop(kind=HopKind.DOCKER, name="db"), risk=READ), Code.TARGET_LOCKED)
    assert isinstance(reach(session, pct("131"), Hop(kind=HopKind.DOCKER, name="web")), NeedsApproval)


@pytest.mark.parametrize("kind", ["lxc", "vm"])
@pytest.mark.parametrize("value", ["177", "lxc/177", "node/lxc/177"])
def test_a_guest_is_known_by_the_id_its_node_gave_it(kind: str, value: str) -> None:
    known = Entity(
        id="e-x", kind=kind, slug="x", parent=PVE1.id, mode=Mode.LOCKED,
        external=(ExternalId(source="proxmox", namespace="home", value=value),),
    )  # fmt: skip
    session = on_node()
    session.inventory = with_entities(known)
    refused(reach(session, pct("177"), risk=READ), Code.TARGET_LOCKED)
    refused(name_it(session, "guest", "177"), Code.TARGET_LOCKED)


@pytest.mark.parametrize("risk", [READ, CHANGE])
def test_a_loop_over_guests_that_only_the_shell_knows_stops_where_one_is_locked(risk: Risk) -> None:
    """`for c in $(pct list …); do pct exec $c …` could reach the locked one: the safe reading refuses."""
    refusal = reach(on_node(), BLIND, risk=risk)
    assert refusal == Refusal(
        code=Code.TARGET_LOCKED,
        text="The command reaches machines it does not name, and vault, which is locked, may be one.",
        directive="Name each machine literally.",
    )


def test_a_loop_over_guests_may_read_where_none_is_locked() -> None:
    """A guest belongs to the scope of its node; reads in guests of a machine of the plan ask nobody."""
    session = on_node()
    session.inventory = with_entities(replace(CT140, mode=Mode.ASK))
    outcome = reach(session, BLIND, risk=READ)
    assert isinstance(outcome, Admission)
    assert outcome.authority == "read_only"


def test_a_loop_over_guests_that_changes_is_asked_even_where_none_is_locked() -> None:
    session = on_node()
    session.inventory = with_entities(replace(CT140, mode=Mode.ASK))
    why = parked(reach(session, BLIND))
    assert why == "Out of scope: it changes a machine only the shell will know, which the inventory does not know."


def test_a_gone_guest_is_no_reason() -> None:
    session = on_node()
    session.inventory = with_entities(replace(CT140, gone=True))
    assert isinstance(reach(session, BLIND, risk=READ), Admission)
    assert "140" in parked(reach(session, pct("140")))


def test_a_locked_guest_of_another_node_is_no_reason() -> None:
    session = on_node()
    session.inventory = with_entities(replace(CT140, parent="e-pve2"))
    assert isinstance(reach(session, BLIND, risk=READ), Admission)


def test_a_locked_container_deep_inside_is_behind_a_blind_hop() -> None:
    deep = Entity(id="e-deep", kind="container", slug="deep", parent=CT131.id, mode=Mode.LOCKED)
    session = on_node()
    session.inventory = with_entities(replace(CT140, mode=Mode.ASK), deep)
    refused(reach(session, BLIND, Hop(kind=HopKind.DOCKER, name="deep"), risk=READ), Code.TARGET_LOCKED)
    refused(reach(session, pct("131"), Hop(kind=HopKind.DOCKER, name=""), risk=READ), Code.TARGET_LOCKED)


def test_a_circle_of_parents_ends() -> None:
    one = Entity(id="e-1", kind="lxc", slug="one", parent="e-2", mode=Mode.LOCKED)
    two = Entity(id="e-2", kind="lxc", slug="two", parent="e-1")
    session = on_node()
    session.inventory = with_entities(replace(CT140, mode=Mode.ASK), one, two)
    assert isinstance(reach(session, BLIND, risk=READ), Admission)


def test_ssh_to_a_machine_only_the_shell_knows_could_reach_every_locked_one() -> None:
    session = Session.opened().approved()
    session.inventory = with_entities(SELF, replace(CT140, mode=Mode.ASK))
    text = refused(reach(session, BLIND_SSH, risk=READ, target=WEB1), Code.TARGET_LOCKED)
    assert "self, which is locked" in text


def test_ssh_to_a_machine_only_the_shell_knows_is_asked_where_nothing_is_locked() -> None:
    session = Session.opened().approved()
    session.inventory = with_entities(replace(CT140, mode=Mode.ASK))
    why = parked(reach(session, BLIND_SSH, risk=READ, target=WEB1))
    assert why == "Out of scope: a machine only the shell will know is not a machine that the inventory knows."


# ---- mode look, also as the inner machine ----------------------------------------------------------------------------


def test_an_inner_machine_in_mode_look_is_never_changed() -> None:
    session = on_node(NAS)
    refused(reach(session, onward("nas")), Code.TARGET_LOOK_ONLY)
    assert isinstance(reach(session, onward("nas"), risk=READ), Admission)


def test_a_guest_object_in_mode_look_is_never_changed() -> None:
    session = on_node()
    session.inventory = with_entities(replace(CT131, mode=Mode.LOOK))
    refused(name_it(session, "guest", "131"), Code.TARGET_LOOK_ONLY)
    assert isinstance(name_it(session, "guest", "131", risk=READ), Admission)


# ---- scope -----------------------------------------------------------------------------------------------------------


def test_a_guest_is_in_the_scope_of_the_node_it_is_named_on() -> None:
    assert isinstance(reach(on_node(), pct("131")), Admission)
    assert isinstance(name_it(on_node(), "guest", "131"), Admission)


def test_an_unknown_guest_is_read_and_not_changed() -> None:
    assert isinstance(reach(on_node(), pct("150"), risk=READ), Admission)
    assert parked(reach(on_node(), pct("150"))) == "Out of scope: it changes 150, which the inventory does not know."


@pytest.mark.parametrize("risk", [READ, CHANGE])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("web2", "web2 is not a machine of plan 1"),
        ("root@10.0.0.2", "web2 is not a machine of plan 1"),
        ("web9", "web9 is not a machine that the inventory knows"),
        ("10.9.9.9", "10.9.9.9 is not a machine that the inventory knows"),
        ("localhost", "localhost is not a machine that the inventory knows"),
    ],
)
def test_ssh_onward_to_a_machine_outside_the_plan_is_asked(name: str, why: str, risk: Risk) -> None:
    assert parked(reach(on_node(), onward(name), risk=risk)) == f"Out of scope: {why}."


@pytest.mark.parametrize("name", ["web2", "WEB2", "root@web2", "10.0.0.2", "admin@10.0.0.2"])
def test_ssh_onward_to_a_machine_of_the_plan_is_inside(name: str) -> None:
    outcome = reach(on_node(WEB2), onward(name))
    assert isinstance(outcome, Admission)
    assert outcome.authority.startswith("window:")


def test_a_guest_reached_by_ssh_is_in_scope_only_as_a_machine_of_the_plan() -> None:
    """From another machine, the node's place in the plan does not lend its guests' names."""
    named = replace(CT131, access=replace(WEB1.access, address="10.0.0.131"))
    session = on_node(WEB1)
    session.inventory = with_entities(named)
    assert (
        parked(reach(session, onward("10.0.0.131"), target=WEB1))
        == "Out of scope: paperless is not a machine of plan 1."
    )


def test_the_address_of_a_guests_node_is_not_the_guest() -> None:
    """A pct path carries no address of its own."""
    session = on_node()
    session.inventory = with_entities(replace(CT131, access=replace(CT131.access, address="10.0.0.77")))
    assert "10.0.0.77 is not a machine that the inventory knows" in parked(reach(session, onward("10.0.0.77")))


def test_two_machines_of_one_name_are_a_question() -> None:
    twin = replace(WEB2, id="e-twin", slug="twin", aliases=("web2",), access=None)
    session = on_node(WEB2, twin)
    session.inventory = with_entities(twin)
    assert parked(reach(session, onward("web2"))) == "Out of scope: web2 could be twin or web2."


def test_two_machines_of_one_address_are_as_locked_as_either() -> None:
    twin = Entity(
        id="e-twin",
        kind="host",
        slug="twin",
        mode=Mode.LOCKED,
        access=AccessPath(transport=Transport.SSH, address="10.0.0.2"),
    )
    session = on_node(WEB2)
    session.inventory = with_entities(twin)
    refused(reach(session, onward("10.0.0.2"), risk=READ), Code.TARGET_LOCKED)


def test_two_guests_of_one_name_are_read_and_not_changed() -> None:
    session = on_node()
    session.inventory = with_entities(replace(CT131, id="e-other", slug="other", aliases=("paperless",), access=None))
    assert isinstance(reach(session, pct("paperless"), risk=READ), Admission)
    assert parked(reach(session, pct("paperless"))) == "Out of scope: paperless could be other or paperless."


def test_the_way_through_an_unknown_guest_leads_nowhere_known() -> None:
    why = parked(reach(on_node(WEB2), pct("150"), onward("web9"), risk=READ))
    assert why == "Out of scope: 150 > web9 is not a machine that the inventory knows."


def test_a_command_declared_in_the_approved_plan_was_seen_with_its_machine() -> None:
    text = "ssh web2 uptime"
    session = Session.opened().approved(propose(step(WEB1, planned(text, CHANGE))))
    said = verdict(text, CHANGE, actions=(action("uptime", CHANGE, onward("web2")),))
    assert isinstance(session.ask(text, said), Admission)


def test_what_was_declared_does_not_unlock() -> None:
    text = "pct exec 140 -- uptime"
    session = Session.opened().approved(propose(step(PVE1, planned(text, READ), planned("true", CHANGE)), on=(PVE1,)))
    refused(
        session.ask(text, verdict(text, READ, actions=(action("uptime", READ, pct("140")),)), target=PVE1),
        Code.TARGET_LOCKED,
    )


# ---- objects a rule names --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["guest", "container", "service", "dataset", "volume"])
@pytest.mark.parametrize("risk", [READ, CHANGE])
def test_an_object_that_the_inventory_holds_locked_is_locked(kind: str, risk: Risk) -> None:
    thing = Entity(id="e-thing", kind=kind, slug="pve1-thing", name="thing", parent=PVE1.id, mode=Mode.LOCKED)
    session = on_node()
    session.inventory = with_entities(thing)
    refused(name_it(session, kind, "thing", risk=risk), Code.TARGET_LOCKED)
    refused(name_it(session, kind, "THING", risk=risk), Code.TARGET_LOCKED)
    assert isinstance(name_it(session, kind, "thing2", risk=risk), Admission)


def test_a_unit_is_known_with_and_without_its_suffix() -> None:
    thing = Entity(id="e-db", kind="service", slug="pve1-db", name="db", parent=PVE1.id, mode=Mode.LOCKED)
    session = on_node()
    session.inventory = with_entities(thing)
    refused(name_it(session, "service", "db.service"), Code.TARGET_LOCKED)


def test_an_object_is_looked_for_on_the_machine_it_is_named_on() -> None:
    inside = Entity(id="e-db", kind="service", slug="paperless-db", name="db", parent=CT131.id, mode=Mode.LOCKED)
    session = on_node()
    session.inventory = with_entities(inside)
    assert isinstance(name_it(session, "service", "db"), Admission)
    refused(name_it(session, "service", "db", pct("131")), Code.TARGET_LOCKED)


def test_an_object_in_a_guest_of_the_node_is_in_scope() -> None:
    inside = Entity(id="e-db", kind="service", slug="paperless-db", name="db", parent=CT131.id)
    session = on_node()
    session.inventory = with_entities(inside)
    assert isinstance(name_it(session, "service", "db", pct("131")), Admission)


def test_another_host_that_a_command_names_is_judged_like_one_it_enters() -> None:
    refused(name_it(on_node(), "host", "nas"), Code.TARGET_LOOK_ONLY)
    assert parked(name_it(on_node(), "host", "web2")) == "Out of scope: web2 is not a machine of plan 1."
    assert isinstance(name_it(on_node(WEB2), "host", "web2"), Admission)
    assert isinstance(name_it(on_node(), "host", "pve1"), Admission)
    assert isinstance(name_it(on_node(), "host", ""), Admission)
    assert isinstance(name_it(on_node(), "host", "unheard.example"), Admission)


def test_an_object_behind_a_hop_only_the_shell_knows_may_be_locked() -> None:
    refused(name_it(on_node(), "service", "db", BLIND, risk=READ), Code.TARGET_LOCKED)


def test_an_empty_inventory_knows_no_machine() -> None:
    session = on_node()
    session.inventory = Inventory(entities={PVE1.id: FLEET.entities[PVE1.id]})
    assert isinstance(reach(session, pct("131"), risk=READ), Admission)
    assert "131" in parked(reach(session, pct("131")))
