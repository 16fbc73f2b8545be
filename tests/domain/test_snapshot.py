"""Snapshots: offered from the inventory, chosen with the plan, taken before the first change (SPEC R5.12)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    BEN,
    CHANGE,
    CT131,
    DESTROY,
    FIX,
    NAS,
    PVE1,
    READ,
    SESSION,
    WEB1,
    Session,
    action,
    check,
    effect,
    planned,
    propose,
    step,
    verdict,
    with_entities,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.consent import SNAPSHOT_ITEM
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import admit, admit_snapshot, plan_consent
from oikos.domain.inventory import AccessPath, Entity, ExternalId, Inventory, Mode, Transport, UnknownName
from oikos.domain.plan import Snapshot
from oikos.domain.run import Identity, RunOrder
from oikos.domain.snapshot import offers
from oikos.domain.verdict import EffectKind, Hop, HopKind, NamedObject, Verdict

OFFER = Snapshot(target_id=CT131.id, target="paperless", node_id=PVE1.id, node="pve1", tool="pct", guest="131")
COMMAND = "pct snapshot 131 oikos-s1-1"
SAYS_SNAPSHOT = verdict(COMMAND, CHANGE)
CHANGE_131 = step(CT131, planned(FIX, CHANGE), title="Fix")


def change_plan(*snapshots: Snapshot) -> it.Propose:
    return replace(propose(CHANGE_131, checks=(check(CT131),), on=(CT131,)), snapshots=snapshots or (OFFER,))


def chosen(*, snapshot: bool = True) -> Session:
    return Session.opened().approved(change_plan(), consent_id="k", snapshot=snapshot)


# ---- the offer -------------------------------------------------------------------------------------------------------


def vm(**more: object) -> Entity:
    return replace(
        Entity(id="e-vm", kind="vm", slug="desk", parent=PVE1.id, identity=Identity(guest_id="999"),
               external=(ExternalId(source="proxmox", namespace="home", value="qemu/400"),),
               access=AccessPath(transport=Transport.SSH, address="10.0.0.40")), **more,
    )  # fmt: skip


BELOW_ITS_NODE = ExternalId(source="proxmox", namespace="home", value="pve1/qemu/400")
VM_OFFER = Snapshot(target_id="e-vm", target="desk", node_id=PVE1.id, node="pve1", tool="qm", guest="400")


@pytest.mark.parametrize(
    ("name", "guest", "offered"),
    [
        ("a container reached through its node", CT131, (OFFER,)),
        ("a machine that is no guest", WEB1, ()),
        ("a node", PVE1, ()),
        ("a VM that an importer found", vm(), (VM_OFFER,)),
        ("a container reached by ssh", vm(kind="lxc"), (replace(VM_OFFER, tool="pct"),)),
        ("a VM that an importer found below its node", vm(external=(BELOW_ITS_NODE,)), (VM_OFFER,)),
        ("a VM of which only it said its id itself", vm(external=()), ()),
        ("a VM that another source numbers", vm(external=(ExternalId(source="x", namespace="", value="400"),)), ()),
        ("an id that is no number", vm(external=(ExternalId(source="proxmox", namespace="", value="400; x"),)), ()),
        ("digits of another script", replace(CT131, access=replace(CT131.access, guest="\u0661\u0663\u0661")), ()),
        ("a VM of no node", vm(parent=""), ()),
        ("a VM on something that is no node", vm(parent=WEB1.id), ()),
        ("a Docker container", replace(CT131, kind="container"), ()),
        ("on a node that nobody knows", replace(CT131, access=replace(CT131.access, via="pve9")), ()),
    ],
)
def test_a_guest_of_a_node_can_be_kept(name: str, guest: Entity, offered: tuple[Snapshot, ...]) -> None:
    assert offers((guest,), with_entities(guest)) == offered, name


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("locked", replace(PVE1, mode=Mode.LOCKED)),
        ("look only", replace(PVE1, mode=Mode.LOOK)),
        ("without a way in", replace(PVE1, access=None)),
        ("gone", replace(PVE1, gone=True)),
    ],
)
@pytest.mark.parametrize("guest", [CT131, vm()], ids=["through its node", "by ssh"])
def test_nothing_is_offered_that_the_node_may_not_or_cannot_do(name: str, node: Entity, guest: Entity) -> None:
    assert offers((guest,), with_entities(guest, node)) == (), name


def test_each_guest_is_offered_once_in_the_order_of_its_changes() -> None:
    assert offers((PVE1, vm(), CT131, WEB1, vm()), with_entities(vm())) == (VM_OFFER, OFFER)
    assert offers((), with_entities(vm())) == ()


@pytest.mark.parametrize(
    ("offer", "takes", "puts_back"),
    [
        (OFFER, "pct snapshot 131 oikos-0123456789ab-2", "pct rollback 131 oikos-0123456789ab-2 --start 1"),
        (VM_OFFER, "qm snapshot 400 oikos-0123456789ab-2", "qm rollback 400 oikos-0123456789ab-2"),
    ],
)
def test_its_name_says_which_plan_of_which_session(offer: Snapshot, takes: str, puts_back: str) -> None:
    session_id = "0123456789abcdef0123456789abcdef"
    assert (offer.command(session_id, 2), offer.way_back(session_id, 2)) == (takes, puts_back)


def test_a_proposal_shows_its_offers() -> None:
    session = Session.opened().begin()
    session.must(change_plan())
    assert session.state.plan is not None
    assert session.state.plan.snapshots == (OFFER,)


# ---- the choice ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("snapshot", [True, False])
def test_the_consent_says_whether_it_was_chosen(snapshot: bool) -> None:
    consent = plan_consent(chosen(snapshot=snapshot).state)
    assert consent is not None
    assert consent.snapshot is snapshot


def test_who_approves_is_told_that_a_snapshot_comes_first() -> None:
    session = Session.opened().begin()
    session.must(change_plan())
    decision = session.do(session.approve(snapshot=True))
    told = "Plan 1 approved; window 30 min on paperless. A snapshot of paperless comes before the first change."
    assert getattr(decision, "notice", "") == told


NO_OFFER = Refusal(
    code=Code.WRONG_STATE,
    text="Plan 1 offers no snapshot: none of its targets is a guest of a node that can be reached.",
)


def test_what_is_not_offered_cannot_be_chosen() -> None:
    session = Session.opened().begin()
    session.must(propose(step(WEB1, planned(FIX, CHANGE)), checks=(check(),)))
    assert session.refuse(session.approve(snapshot=True)) == NO_OFFER
    assert session.refuse(session.confirm("snapshot")) == NO_OFFER


@pytest.mark.parametrize("typed", ["snapshot", " Snapshot\n"])
@pytest.mark.parametrize("by_chat", [True, False])
def test_typed_on_the_card_it_counts_for_every_way_of_approving(typed: str, by_chat: bool) -> None:
    """It destroys nothing and grants nothing, so an assent in chat keeps it, unlike a destructive item."""
    session = Session.opened().begin()
    session.must(change_plan())
    (ticked,) = session.must(session.confirm(typed, by=BEN))
    assert ticked == ev.ItemTicked(generation=1, item=SNAPSHOT_ITEM, by="ben", text=typed)
    assert session.state.decided == "the snapshot was ticked by ben"
    session.must(session.send("go") if by_chat else session.approve())
    consent = plan_consent(session.state)
    assert consent is not None
    assert (consent.snapshot, consent.items, consent.by) == (True, (), "anna")
    assert session.state.items == ()


# ---- the taking ------------------------------------------------------------------------------------------------------


def order(**more: object) -> RunOrder:
    made = RunOrder(run_id="snap", session_id=SESSION, generation=1, target_id=PVE1.id, command=COMMAND)
    return replace(made, **more)


def take(
    session: Session, *, wanted: RunOrder | None = None, offer: Snapshot = OFFER, said: Verdict = SAYS_SNAPSHOT,
    target: Entity = CT131, fleet: Inventory | None = None, command: str = FIX, touches: Verdict | None = None,
    elsewhere: Session | None = None,
) -> Admission | Refusal:  # fmt: skip
    """The snapshot before a change of the target that was admitted; `elsewhere`: admitted in another session."""
    question = (elsewhere or session).question(command, touches or verdict(command, CHANGE), target=target)
    change = admit(question)
    assert isinstance(change, Admission), change
    before = replace(question, state=session.state, inventory=fleet or session.inventory)
    return admit_snapshot(before, change, wanted or order(), offer, said)


def test_it_is_admitted_before_a_change_that_is_admitted() -> None:
    session = chosen()
    admitted = take(session)
    assert isinstance(admitted, Admission)
    assert (admitted.kind, admitted.digest, admitted.target_id, admitted.authority, admitted.seq) == (
        "run", order().digest(), PVE1.id, "snapshot:k", session.state.seq,
    )  # fmt: skip
    admitted.spend(kind="run", digest=order().digest())


def test_nobody_chose_it() -> None:
    nobody = Refusal(code=Code.INTERNAL, text="No approver chose this snapshot; nothing was started.")
    session = chosen(snapshot=False)
    assert take(session) == nobody
    session = chosen()
    assert take(session, offer=replace(OFFER, guest="140")) == nobody
    fresh = Session.opened().begin()
    assert take(fresh, elsewhere=session) == nobody, "there is no plan"
    fresh.must(change_plan())
    assert take(fresh, elsewhere=session) == nobody, "nobody has decided about the plan"


@pytest.mark.parametrize(
    "wanted",
    [
        order(session_id="s2"), order(generation=2), order(target_id=CT131.id), order(command=COMMAND + " --vmstate 1"),
        order(command="pct snapshot 140 oikos-s1-1"), order(stdin="y\n"),
    ],
)  # fmt: skip
def test_no_other_bytes_pass_as_it(wanted: RunOrder) -> None:
    other = Refusal(code=Code.INTERNAL, text="The order is not the snapshot that was offered; nothing was started.")
    assert take(chosen(), wanted=wanted) == other


OTHER = Refusal(code=Code.INTERNAL, text="The order is not the snapshot that was offered; nothing was started.")


def test_no_run_id_starts_twice() -> None:
    session = chosen()
    run_id = session.run(FIX, verdict(FIX, CHANGE), target=CT131)
    assert take(session, wanted=order(run_id=run_id), command="mkdir /x") == OTHER


def test_only_the_admission_of_that_very_change_will_do() -> None:
    session = chosen()
    change = admit(session.question(FIX, verdict(FIX, CHANGE), target=CT131))
    assert isinstance(change, Admission)
    before = session.question("mkdir /x", verdict("mkdir /x", CHANGE), target=CT131)
    assert admit_snapshot(before, change, order(), OFFER, SAYS_SNAPSHOT) == OTHER


def test_the_change_of_a_name_that_means_no_machine_takes_none() -> None:
    session = chosen()
    question = session.question(FIX, verdict(FIX, CHANGE), target=CT131)
    change = admit(question)
    assert isinstance(change, Admission)
    nowhere = replace(question, target=UnknownName(name="paperless"))
    assert admit_snapshot(nowhere, change, order(), OFFER, SAYS_SNAPSHOT) == OTHER
    assert isinstance(admit_snapshot(question, change, order(), OFFER, SAYS_SNAPSHOT), Admission)


def test_the_change_of_another_machine_takes_no_snapshot_of_this_one() -> None:
    session = Session.opened()
    both = replace(propose(CHANGE_131, step(WEB1, planned(FIX, CHANGE)), on=(CT131, WEB1)), snapshots=(OFFER,))
    session.approved(both, consent_id="k", snapshot=True)
    assert take(session, target=WEB1) == OTHER
    assert isinstance(take(session), Admission)


@pytest.mark.parametrize(
    "reaching",
    [
        verdict("x", CHANGE, actions=(action("touch /x", CHANGE, Hop(kind=HopKind.PCT, name="131")),)),
        verdict("x", CHANGE, objects=(NamedObject(kind="guest", name="131", verb="stop", risk=CHANGE),)),
    ],
)
def test_a_change_by_way_of_the_node_is_a_change_of_the_guest(reaching: Verdict) -> None:
    session = Session.opened()
    plan = replace(propose(step(PVE1, planned("x", CHANGE)), on=(PVE1,)), snapshots=(OFFER,))
    session.approved(plan, consent_id="k", snapshot=True)
    assert isinstance(take(session, target=PVE1, command="x", touches=reaching), Admission)
    assert take(session, target=PVE1) == OTHER, "a change of the node alone"


@pytest.mark.parametrize(
    "said",
    [
        verdict(COMMAND, READ),
        verdict(COMMAND, DESTROY),
        verdict(COMMAND, CHANGE, effects=(effect(EffectKind.UNCLASSIFIED),)),
        verdict(COMMAND, CHANGE, effects=(effect(EffectKind.SELF),)),
    ],
)
def test_it_must_be_a_plain_change_as_the_classifier_sees_it(said: Verdict) -> None:
    plain = Refusal(code=Code.INTERNAL, text=f"`{COMMAND}` is not a plain snapshot; nothing was started.")
    assert take(chosen(), said=said) == plain


def test_an_effect_that_a_window_covers_is_no_hindrance() -> None:
    said = verdict(COMMAND, CHANGE, effects=(effect(EffectKind.OUTAGE, "131"),))
    assert isinstance(take(chosen(), said=said), Admission)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (replace(PVE1, mode=Mode.LOCKED), Code.TARGET_LOCKED),
        (replace(PVE1, mode=Mode.LOOK), Code.TARGET_LOOK_ONLY),
        (replace(CT131, mode=Mode.LOCKED), Code.TARGET_LOCKED),
        (replace(CT131, mode=Mode.LOOK), Code.TARGET_LOOK_ONLY),
        (replace(PVE1, gone=True), Code.UNKNOWN_TARGET),
        (replace(CT131, gone=True), Code.UNKNOWN_TARGET),
    ],
)
def test_the_modes_of_node_and_guest_count_at_that_moment(changed: Entity, code: Code) -> None:
    refusal = take(chosen(), fleet=with_entities(changed))
    assert isinstance(refusal, Refusal)
    assert refusal.code is code


def test_a_node_that_is_gone_from_the_inventory_takes_none() -> None:
    session = chosen()
    left = {key: entity for key, entity in session.inventory.entities.items() if key != PVE1.id}
    refusal = take(session, fleet=Inventory(entities=left))
    assert refusal == Refusal(code=Code.UNKNOWN_TARGET, text="paperless or its node pve1 is gone.")


def test_the_mode_of_another_machine_is_no_matter() -> None:
    assert NAS.mode is Mode.LOOK
    assert isinstance(take(chosen()), Admission)


@pytest.mark.parametrize(
    "moved",
    [
        replace(CT131, access=replace(CT131.access, guest="555")),
        replace(CT131, access=replace(CT131.access, via="web1")),
        replace(CT131, kind="container"),
    ],
)
def test_a_guest_that_is_another_one_by_now_is_not_kept_under_the_old_number(moved: Entity) -> None:
    refusal = take(chosen(), fleet=with_entities(moved))
    assert refusal == Refusal(
        code=Code.STALE_DIGEST,
        text="paperless is not guest 131 of pve1 any more.",
        directive="Propose the plan anew: its offer is made from the inventory.",
    )
