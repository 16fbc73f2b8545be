"""What a plan creates: nothing runs on it before it exists and said its name; nothing but it is meant (SPEC R2.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.world import (
    CHANGE,
    CT131,
    DESTROY,
    FIX,
    LOOK,
    PVE1,
    READ,
    WEB1,
    Session,
    check,
    planned,
    propose,
    step,
    verdict,
    with_entities,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.creation import candidates, entity_of, is_named, made_by
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import NeedsTypedConfirmation, admit, preauthorised_guests
from oikos.domain.inventory import AccessPath, Entity, Transport, UnknownName
from oikos.domain.plan import Creates, PreAuthorisation, Scope
from oikos.domain.run import Exited, Identity
from oikos.domain.verdict import Hop, HopKind, NamedObject
from oikos.policy import default_classifier

CREATED = Creates(name="web", kind="lxc", on_target_id=PVE1.id)
CREATE = "pct create 150 local:vztmpl/debian.tar.zst --hostname web"
DESTROY_150 = NamedObject(kind="guest", name="150", verb="destroy", risk=DESTROY)


def making(guest: str = "150", verb: str = "create", **more: object) -> NamedObject:
    return NamedObject(kind="guest", name=guest, verb=verb, risk=CHANGE, **more)


SAYS_CREATE = verdict(CREATE, CHANGE, objects=(making(),))
SAYS_WEB = Identity(hostname="web", guest_id="150")
WEB = Entity(
    id="e-new", kind="lxc", slug="web", name="web", parent=PVE1.id,
    access=AccessPath(transport=Transport.PCT, via="pve1", guest="150"), identity=SAYS_WEB,
)  # fmt: skip
"""What the plan creates, once it is there."""


def create_plan(*, destroys: PreAuthorisation | None = None, makes: bool = True) -> it.Propose:
    """Create a container, set it up, perhaps throw it away again."""
    create = planned(CREATE, CHANGE, objects=(making(),)) if makes else planned("sh make.sh", CHANGE)
    steps = [
        step(PVE1, create, title="Create"),
        replace(step(WEB1, planned(FIX, CHANGE), title="Set up"), target="web", target_id=""),
    ]
    if destroys is not None:
        gone = planned("pct destroy 150", DESTROY, objects=(DESTROY_150,), preauthorise=destroys)
        steps.append(step(PVE1, gone, title="Throw away"))
    checks = (check(PVE1), replace(check(), target="web", target_id=""))
    return replace(propose(*steps, checks=checks, on=(PVE1,)), creates=(CREATED,))


def created(session: Session, entity: Entity = WEB, run_id: str = "r1") -> Session:
    """The name means the entity, in the record and in the inventory."""
    session.inventory = with_entities(entity, of=session.inventory)
    return session.record(ev.EntityCreated(generation=session.state.generation, entity=entity, run_id=run_id))


@pytest.mark.parametrize(
    ("objects", "made"),
    [
        ((making(),), ("150",)),
        ((making(verb="restore"),), ("150",)),
        ((making(), making("151")), ("150", "151")),
        ((making(verb="start"),), ()),
        ((making(verb="clone"),), ()),
        ((replace(making(), kind="container"),), ()),
        ((making(place=(Hop(kind=HopKind.SSH, name="pve2"),)),), ()),
        ((), ()),
    ],
)
def test_a_command_makes_the_guests_it_creates_on_its_own_target(
    objects: tuple[NamedObject, ...], made: tuple[str, ...]
) -> None:
    assert made_by(verdict(CREATE, CHANGE, objects=objects)) == made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (CREATE, ("150",)),
        (f"sudo {CREATE}", ("150",)),
        (f"{CREATE} --description 'my web'", ("150",)),
        (f"{CREATE} || true", ()),
        (f"{CREATE}; true", ()),
        (f"{CREATE} && pct start 150", ()),
        (f"! {CREATE}", ()),
        (f"{CREATE} &", ()),
        (f"{CREATE} | cat", ()),
        (f"if {CREATE}; then :; fi", ()),
        (f"echo 'local:x' | xargs {CREATE}", ()),
        (f"{CREATE} > /dev/null", ()),
        (f"systemd-run {CREATE}", ()),
        (f"{CREATE} --force 1", ()),
        ("pct restore 150 local:backup/x --force 1", ()),
        ("pct restore 150 local:backup/x", ("150",)),
        ('pct create "$ID" local:vztmpl/debian.tar.zst --hostname web', ()),
        (f"{CREATE} --description $'it\\'s'", ("150",)),
        (f'{CREATE} --description "$(cat <<<"it\'s")"', ()),
        ("ssh pve2 pct create 150 local:vztmpl/debian.tar.zst", ()),
    ],
)
def test_only_an_exit_code_that_is_the_makings_own_proves_it(text: str, made: tuple[str, ...]) -> None:
    """As the classifier reads it: a plan that says `… || true` would else take over the guest that was there."""
    assert made_by(default_classifier().classify(text)) == made


def test_a_text_whose_words_cannot_be_told_apart_proves_nothing() -> None:
    assert made_by(replace(SAYS_CREATE, canonical=f"{CREATE} 'my web")) == ()


def test_a_new_container_is_reached_through_its_node() -> None:
    assert entity_of(CREATED, PVE1, "150", entity_id="e-new", identity=SAYS_WEB) == WEB


def test_before_it_is_asked_it_has_no_identity() -> None:
    assert entity_of(CREATED, PVE1, "150", entity_id="e-new") == replace(WEB, identity=None)


def test_what_a_lab_node_makes_is_of_the_lab() -> None:
    made = entity_of(CREATED, replace(PVE1, lab=True), "150", entity_id="e-new", identity=SAYS_WEB)
    assert made == replace(WEB, lab=True)


@pytest.mark.parametrize(
    ("hostname", "is_it"),
    [("web", True), ("WEB", True), ("web.home.arpa", True), ("web2", False), ("CT150", False), ("", False)],
)
def test_it_is_what_the_plan_creates_when_it_says_so(hostname: str, is_it: bool) -> None:
    assert is_named(Identity(hostname=hostname, guest_id="150"), CREATED) is is_it


def test_a_plan_may_give_it_its_full_name() -> None:
    full = replace(CREATED, name="web.home.arpa")
    said = [is_named(Identity(hostname=name), full) for name in ("web", "web.home.arpa", "web.elsewhere", "home")]
    assert said == [True, True, True, False]


def test_nothing_runs_on_it_before_it_exists() -> None:
    session = Session.opened().approved(create_plan())
    asked = session.question(LOOK, verdict(LOOK, READ), target=replace(WEB1, slug="web"))
    refusal = session.ask(LOOK, verdict(LOOK, READ), target=replace(WEB1, slug="web"), order=asked.order)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.NOT_CREATED_YET


def test_only_runs_of_this_plan_that_succeeded_on_its_machine_made_something() -> None:
    session = Session.opened().approved(create_plan())
    session.run(CREATE, SAYS_CREATE, target=PVE1, step=1, outcome=Exited(code=255))
    assert candidates(session.state, CREATED) == ()
    first = session.run(CREATE, SAYS_CREATE, target=PVE1, step=1, rerun="again")
    other = CREATE.replace("150", "151")
    second = session.run(other, verdict(other, CHANGE, objects=(making("151"),)), target=PVE1, step=1)
    session.run(FIX, verdict(FIX, CHANGE), target=PVE1, step=1)
    found = [(run.order.run_id, guest) for run, guest in candidates(session.state, CREATED)]
    assert found == [(second, "151"), (first, "150")], "the newest first"
    assert candidates(session.state, replace(CREATED, on_target_id=WEB1.id)) == ()


def test_from_then_on_its_name_is_a_machine_of_the_plan_and_of_its_window() -> None:
    session = Session.opened().approved(create_plan())
    run_id = session.run(CREATE, SAYS_CREATE, target=PVE1, step=1)
    created(session, run_id=run_id)
    plan, window = session.state.plan, session.state.window
    assert plan is not None
    assert window is not None
    assert [one.target_id for one in plan.steps] == [PVE1.id, "e-new"]
    assert [one.target_id for one in plan.checks] == [PVE1.id, "e-new"]
    assert plan.scope[-1] == Scope(target_id="e-new", slug="web")
    assert window.machines == (PVE1.id, "e-new")
    admitted = session.ask(FIX, verdict(FIX, CHANGE), target=WEB, step=2)
    assert isinstance(admitted, Admission)
    assert admitted.authority.startswith("window:")


def test_a_plan_that_is_history_gains_no_machine() -> None:
    session = Session.opened().approved(create_plan())
    before = session.state
    session.record(ev.EntityCreated(generation=before.generation - 1, entity=WEB, run_id="r1"))
    assert (session.state.plan, session.state.window) == (before.plan, before.window)


def test_without_a_window_it_only_joins_the_plan() -> None:
    session = Session.opened().approved(create_plan())
    session.must(it.Revoke(by=session.send("x").by))
    created(session)
    assert session.state.window is None
    assert session.state.plan is not None
    assert "e-new" in session.state.plan.machines()


# ---- throwing away what was created --------------------------------------------------------------------------------


def thrown_away(session: Session) -> object:
    said = verdict("pct destroy 150", DESTROY, objects=(DESTROY_150,))
    return session.ask("pct destroy 150", said, target=PVE1, step=3)


def allowed(pre: PreAuthorisation, *, makes: bool = True) -> Session:
    """Approved with its destructive item ticked, whether or not the plan says how the guest is made."""
    plan = create_plan(destroys=pre, makes=makes)
    return Session.opened().approved(plan, consent_id="k", items=(1,), phrases=("destroy 150",))


@pytest.mark.parametrize("makes", [True, False])
@pytest.mark.parametrize("created", ["web", ""])
def test_what_this_plan_made_may_be_thrown_away_as_allowed(created: str, makes: bool) -> None:
    session = allowed(PreAuthorisation(object=DESTROY_150, created=created), makes=makes)
    session.run(CREATE, SAYS_CREATE, target=PVE1, step=1)
    admitted = thrown_away(session)
    assert isinstance(admitted, Admission)
    assert admitted.authority == "preauthorised:k:1"


@pytest.mark.parametrize(("created", "makes"), [("web", True), ("", True), ("web", False)])
def test_a_guest_that_was_there_before_is_not_what_was_allowed(created: str, makes: bool) -> None:
    """`pct create 150` fails because 150 exists: throwing "it" away would destroy somebody's container."""
    session = allowed(PreAuthorisation(object=DESTROY_150, created=created), makes=makes)
    session.run(CREATE, SAYS_CREATE, target=PVE1, step=1, outcome=Exited(code=255))
    asked = thrown_away(session)
    assert isinstance(asked, NeedsTypedConfirmation)
    assert asked.why == "No run of this plan has created guest 150: it may be another one. It is destructive."
    assert asked.phrase == "destroy 150"


def test_each_item_says_by_itself_whether_it_means_what_the_plan_creates() -> None:
    """What a later item is about takes nothing from the first, and asks nothing for it."""
    gone = planned("pct destroy 150", DESTROY, objects=(DESTROY_150,))
    born = replace(gone, preauthorise=PreAuthorisation(object=DESTROY_150, created="web"))
    there = planned("pct destroy 131", DESTROY, objects=(DESTROY_KNOWN,))
    there = replace(there, preauthorise=PreAuthorisation(object=DESTROY_KNOWN))
    ticked = {"items": (1, 2), "phrases": ("destroy 150", "destroy 131")}
    plan = replace(propose(step(PVE1, born, there), on=(PVE1,)), creates=(CREATED,))
    session = Session.opened().approved(plan, consent_id="k", **ticked)
    asked = session.ask("pct destroy 150", verdict("pct destroy 150", DESTROY, objects=(DESTROY_150,)), target=PVE1)
    assert asked == NeedsTypedConfirmation(
        why="No run of this plan has created guest 150: it may be another one. It is destructive.",
        phrase="destroy 150",
    )
    assert isinstance(session.ask("pct destroy 131", SAYS_DESTROY, target=PVE1), Admission)


@pytest.mark.parametrize(
    "besides",
    [
        NamedObject(kind="volume", name="vm-150-disk-0", verb="destroy", risk=DESTROY),
        NamedObject(kind="guest", name="160", verb="destroy", risk=DESTROY),
    ],
)
def test_what_was_allowed_is_one_object_and_nothing_with_it(besides: NamedObject) -> None:
    session = allowed(PreAuthorisation(object=DESTROY_150, created="web"))
    session.run(CREATE, SAYS_CREATE, target=PVE1, step=1)
    said = verdict("pct destroy 150", DESTROY, objects=(DESTROY_150, besides))
    asked = session.ask("pct destroy 150", said, target=PVE1, step=3)
    assert isinstance(asked, NeedsTypedConfirmation)
    assert asked.phrase == "destroy 150 and 1 more"


def test_a_thing_that_is_no_guest_is_not_what_the_plan_creates_whatever_its_name() -> None:
    box = NamedObject(kind="container", name="150", verb="remove", risk=DESTROY)
    gone = planned("docker rm -f 150", DESTROY, objects=(box,), preauthorise=PreAuthorisation(object=box))
    plan = create_plan()
    plan = replace(plan, steps=(*plan.steps, replace(step(PVE1, gone), seq=3)))
    session = Session.opened().approved(plan, consent_id="k", items=(1,), phrases=("remove 150",))
    said = verdict("docker rm -f 150", DESTROY, objects=(box,))
    assert isinstance(session.ask("docker rm -f 150", said, target=PVE1, step=3), Admission)


# ---- a guest that the inventory knows ------------------------------------------------------------------------------

KNOWN = replace(CT131, identity=Identity(hostname="paperless", machine_id="m1", guest_id="131"))
DESTROY_KNOWN = NamedObject(kind="guest", name="131", verb="destroy", risk=DESTROY)
SAYS_DESTROY = verdict("pct destroy 131", DESTROY, objects=(DESTROY_KNOWN,))


def may_destroy_131(*, ticked: bool = True) -> Session:
    pre = PreAuthorisation(object=DESTROY_KNOWN)
    gone = planned("pct destroy 131", DESTROY, objects=(DESTROY_KNOWN,), preauthorise=pre)
    session = Session.opened()
    session.inventory = with_entities(KNOWN)
    items = {"items": (1,), "phrases": ("destroy 131",)} if ticked else {}
    plan = propose(step(PVE1, gone, title="Destroy"), checks=(check(PVE1),), on=(PVE1,))
    return session.approved(plan, consent_id="k", **items)


def test_a_guest_that_said_who_it_is_may_be_destroyed_as_allowed() -> None:
    session = may_destroy_131()
    outcome = session.ask("pct destroy 131", SAYS_DESTROY, target=PVE1, identified=frozenset({KNOWN.id}))
    assert isinstance(outcome, Admission)


def test_a_guest_that_did_not_say_who_it_is_asks_for_the_phrase() -> None:
    session = may_destroy_131()
    outcome = session.ask("pct destroy 131", SAYS_DESTROY, target=PVE1, identified=frozenset({PVE1.id}))
    assert isinstance(outcome, NeedsTypedConfirmation)
    why = "paperless could not be asked whether it is still the machine that was enrolled. It is destructive."
    assert outcome.why == why


def test_a_guest_without_an_enrolled_identity_has_nothing_to_say() -> None:
    session = may_destroy_131()
    session.inventory = with_entities(CT131)
    assert isinstance(session.ask("pct destroy 131", SAYS_DESTROY, target=PVE1), Admission)


def test_another_guest_named_by_the_command_need_not_say_anything() -> None:
    """Only what the command destroys must be what was allowed."""
    session = may_destroy_131()
    other = NamedObject(kind="guest", name="141", verb="list", risk=READ)
    session.inventory = with_entities(
        KNOWN, Entity(id="e-141", kind="lxc", slug="notes", parent=PVE1.id, identity=Identity(hostname="notes"),
                      access=AccessPath(transport=Transport.PCT, via="pve1", guest="141")),
    )  # fmt: skip
    for objects in ((DESTROY_KNOWN, other), (other, DESTROY_KNOWN)):
        said = replace(SAYS_DESTROY, objects=objects)
        outcome = session.ask("pct destroy 131", said, target=PVE1, identified=frozenset({KNOWN.id}))
        assert isinstance(outcome, Admission)
        unheard = session.ask("pct destroy 131", said, target=PVE1)
        assert isinstance(unheard, NeedsTypedConfirmation)


def test_only_guests_are_asked_who_they_are() -> None:
    """What else the inventory knows cannot tell who it is."""
    service = NamedObject(kind="service", name="db", verb="remove", risk=DESTROY)
    known = Entity(
        id="e-db", kind="service", slug="pve1-db", name="db", parent=PVE1.id, identity=Identity(hostname="d")
    )
    command = planned("drop db", DESTROY, objects=(service,), preauthorise=PreAuthorisation(object=service))
    plan = propose(step(PVE1, command), on=(PVE1,))
    session = Session.opened().approved(plan, consent_id="k", items=(1,), phrases=("remove db",))
    session.inventory = with_entities(known)
    question = session.question("drop db", verdict("drop db", DESTROY, objects=(service,)), target=PVE1)
    assert preauthorised_guests(question) == ()
    assert isinstance(admit(question), Admission)


@pytest.mark.parametrize(
    ("said", "ticked", "asked"),
    [
        (SAYS_DESTROY, True, (KNOWN,)),
        (verdict("pct stop 131", CHANGE, objects=(replace(DESTROY_KNOWN, verb="stop", risk=CHANGE),)), True, (KNOWN,)),
        (verdict("pct stop 140", CHANGE, objects=(replace(DESTROY_KNOWN, name="140"),)), True, ()),
        (SAYS_DESTROY, False, ()),
    ],
)
def test_a_guest_that_may_be_destroyed_is_asked_when_a_command_names_it(
    said: object, ticked: bool, asked: tuple[Entity, ...]
) -> None:
    session = may_destroy_131(ticked=ticked)
    question = session.question("pct stop 131", said, target=PVE1)
    assert preauthorised_guests(question) == asked
    session.inventory = with_entities(CT131)
    assert preauthorised_guests(session.question("pct stop 131", said, target=PVE1)) == (), "nothing to compare"


def test_without_a_plan_or_a_machine_nobody_is_asked_who_it_is() -> None:
    session = Session.opened().begin()
    session.inventory = with_entities(KNOWN)
    assert preauthorised_guests(session.question("pct destroy 131", SAYS_DESTROY, target=PVE1)) == ()
    question = may_destroy_131().question("pct destroy 131", SAYS_DESTROY, target=PVE1)
    assert preauthorised_guests(question) == (KNOWN,)
    assert preauthorised_guests(replace(question, target=UnknownName(name="pve1"))) == ()
