"""What the gate says: every refusal names the thing, the cause and the way on; every approval asked for says why."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.domain.test_gate_order import COMMAND, CONDITIONS, Breaker, admissible, in_mode, in_state
from tests.domain.world import (
    CHANGE,
    CT140,
    PVE1,
    SELF,
    SESSION,
    WEB1,
    Session,
    onward,
    pct,
    planned,
    propose,
    ssh,
    step,
    verdict,
    with_entities,
)

from oikos.domain.admission import Admission
from oikos.domain.errors import Code, Refusal, SealError
from oikos.domain.gate import NeedsApproval, Question, admit, admit_probe, admit_reading
from oikos.domain.inventory import Mode, UnknownName
from oikos.domain.plan import Creates, PlanStatus
from oikos.domain.run import RunOrder
from oikos.domain.scripts import reading
from oikos.domain.state import Phase
from oikos.domain.verdict import Action, Effect, EffectKind, Hop, NamedObject, Reason

NO_PLAN = (
    "No plan for this session. Call set_goal, then propose_plan, before run; even read-only work needs a one-step plan."
)
LEAVE_ALONE = "Leave it alone; only an admin can change its mode."


def going(q: Question, *hops: Hop) -> Question:
    """The same change, made somewhere else."""
    action = Action(argv=tuple(COMMAND.split()), place=hops, risk=CHANGE, span=(0, len(COMMAND)))
    return replace(q, verdict=replace(q.verdict, actions=(action,)))


def accepted(q: Question) -> Question:
    return in_state(q, status=PlanStatus.ACCEPTED)


def creating(q: Question) -> Question:
    assert q.state.plan is not None
    plan = replace(q.state.plan, creates=(Creates(name="newbox", kind="lxc", on_target_id=PVE1.id),))
    asked = replace(q, target=UnknownName(name="newbox"), request=replace(q.request, target="newbox"))
    return in_state(asked, plan=plan)


def with_order(q: Question) -> Question:
    return replace(q, order=replace(q.order, run_id="0123456789", stdin="other"))


def with_advice(q: Question) -> Question:
    asks = replace(q.verdict, effects=(Effect(kind=EffectKind.INTERACTIVE),), advice="Use it with -y.")
    return replace(q, verdict=asks)


def without_access(q: Question) -> Question:
    bare = replace(WEB1, access=None)
    return replace(q, target=bare, inventory=with_entities(bare, of=q.inventory))


def broken(name: str) -> Breaker:
    return CONDITIONS[name][0]


REFUSED: dict[str, tuple[Breaker, Refusal]] = {
    "no goal": (
        broken("goal set"), Refusal(code=Code.NO_GOAL, text="There is no goal yet.", directive=NO_PLAN),
    ),
    "an older plan": (
        broken("plan of this order"),
        Refusal(
            code=Code.STALE_GENERATION, text="The command was asked under plan 7; plan 1 is the newest now.",
            directive="Ask for it again if the new plan still needs it.",
        ),
    ),
    "a plan that waits": (
        broken("plan approved"),
        Refusal(
            code=Code.AWAITING_OPERATOR, text="Plan 1 waits for the operator's decision.",
            directive="Only read-only commands run before that.",
        ),
    ),
    "a plan that only reads": (
        accepted,
        Refusal(
            code=Code.NO_PLAN, text="Plan 1 is read-only and this command is config_mutation.",
            directive="Propose a plan that contains the change; it may replace this one at once.",
        ),
    ),
    "a machine to come": (
        creating,
        Refusal(
            code=Code.NOT_CREATED_YET, text="newbox does not exist yet.",
            directive="Run the step that creates and starts it first, under this very host name; then repeat this.",
        ),
    ),
    "another order": (
        with_order,
        Refusal(code=Code.INTERNAL, text="The order of run 01234567 is not what was asked; nothing was started."),
    ),
    "a locked machine": (
        broken("target not locked"),
        Refusal(
            code=Code.TARGET_LOCKED,
            text="web1 is locked: nothing runs on it, not even inside another command.", directive=LEAVE_ALONE,
        ),
    ),
    "a machine to look at": (
        lambda q: in_mode(q, Mode.LOOK),
        Refusal(
            code=Code.TARGET_LOOK_ONLY, text="web1 is in mode look: only read-only commands run on it.",
            directive="Report what would have to change; only an admin can change its mode.",
        ),
    ),
    "a machine only the shell knows": (
        lambda q: going(q, onward("")),
        Refusal(
            code=Code.TARGET_LOCKED,
            text="The command reaches machines it does not name, and vault, which is locked, may be one.",
            directive="Name each machine literally.",
        ),
    ),
    "a session that looks": (
        broken("session may change"),
        Refusal(
            code=Code.LOOK_ONLY_SESSION, text="This session may only look.",
            directive="Report what would have to change.",
        ),
    ),
    "no way in": (
        without_access,
        Refusal(
            code=Code.NO_ACCESS, text="web1 has no way in.",
            directive="Ask the operator to add it: `oikos fleet add`.",
        ),
    ),
    "an interactive command": (
        broken("not interactive"),
        Refusal(
            code=Code.INTERACTIVE, text="The command is interactive; nobody sits at its terminal.",
            directive="Use a non-interactive form of it.",
        ),
    ),
    "an interactive command that has another form": (
        with_advice,
        Refusal(
            code=Code.INTERACTIVE, text="The command is interactive; nobody sits at its terminal.",
            directive="Use it with -y.",
        ),
    ),
    "a declined command": (
        broken("not declined"),
        Refusal(
            code=Code.DECLINED, text="The operator declined this command in this plan.",
            directive="Take another way, or complete as failed.",
        ),
    ),
    "a duplicate": (
        broken("no duplicate"),
        Refusal(
            code=Code.DUPLICATE, text="The same command already succeeded on web1: run r3.",
            directive="Read that run with read_output; to repeat it on purpose pass rerun with a reason.",
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_what_is_wrong_and_what_to_do(name: str) -> None:
    break_it, expected = REFUSED[name]
    assert admit(break_it(admissible())) == expected


ASKED: dict[str, tuple[Breaker, NeedsApproval]] = {
    "another machine": (
        lambda q: going(q, onward("web2")),
        NeedsApproval(why="Out of scope: web2 is not a machine of plan 1."),
    ),
    "an unknown machine": (
        lambda q: going(q, onward("web7")),
        NeedsApproval(why="Out of scope: web7 is not a machine that the inventory knows."),
    ),
    "an unknown guest": (
        lambda q: going(q, pct("777")),
        NeedsApproval(why="Out of scope: it changes 777, which the inventory does not know."),
    ),
    "an effect of its own": (
        lambda q: replace(q, verdict=replace(q.verdict, effects=(
            Effect(kind=EffectKind.PRIVILEGE, object="ops"), Effect(kind=EffectKind.EGRESS)))),
        NeedsApproval(
            why="Not in the approved plan, and beyond what a window covers: privilege of ops, egress.",
            effects=(Effect(kind=EffectKind.PRIVILEGE, object="ops"), Effect(kind=EffectKind.EGRESS)),
        ),
    ),
    "an ended window": (
        lambda q: in_state(q, window=None), NeedsApproval(why="The window has ended.", offers_reopen=True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_an_approval_is_asked_for_with_its_reason(name: str) -> None:
    break_it, expected = ASKED[name]
    assert admit(break_it(admissible())) == expected


# ---- what is read for the card ---------------------------------------------------------------------------------------

PATHS = ("/srv/a.sh", "/srv/b.sh")


def order(session: Session, **more: object) -> RunOrder:
    fields: dict[str, object] = {
        "run_id": "r-read", "session_id": SESSION, "generation": 0, "target_id": WEB1.id, "command": reading(PATHS),
        "supervised": False,
    }  # fmt: skip
    return RunOrder(**{**fields, **more})


def test_the_built_in_read_of_files_is_admitted_for_exactly_its_order() -> None:
    session = Session.opened().begin()
    asked = order(session)
    admitted = admit_reading(session.state, WEB1, asked, PATHS)
    assert isinstance(admitted, Admission)
    assert (admitted.kind, admitted.digest, admitted.target_id, admitted.authority, admitted.seq) == (
        "run", asked.digest(), WEB1.id, "probe", session.state.seq,
    )  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        {"session_id": "s2"}, {"target_id": PVE1.id}, {"command": "rm /srv/a.sh"}, {"stdin": ""}, {"supervised": True},
        {"command": reading(PATHS[:1])},
    ],
)  # fmt: skip
def test_an_order_that_is_not_the_built_in_read_is_not_admitted_as_one(more: dict[str, object]) -> None:
    session = Session.opened().begin()
    assert admit_reading(session.state, WEB1, order(session, **more), PATHS) == Refusal(
        code=Code.INTERNAL, text="The order is not the built-in read of files; nothing was started."
    )


def test_a_locked_machine_is_neither_probed_nor_read() -> None:
    session = Session.opened().begin()
    for entity in (CT140, SELF):
        refusal = Refusal(
            code=Code.TARGET_LOCKED, directive=LEAVE_ALONE,
            text=f"{entity.slug} is locked: nothing runs on it, not even inside another command.",
        )  # fmt: skip
        assert admit_probe(session.state, entity) == refusal
        assert admit_reading(session.state, entity, order(session, target_id=entity.id), PATHS) == refusal


def test_a_session_that_is_over_reads_no_files() -> None:
    session = Session.opened().begin()
    refusal = admit_reading(replace(session.state, phase=Phase.STOPPED), WEB1, order(session), PATHS)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.SESSION_OVER


def test_a_probe_is_admitted_for_its_machine() -> None:
    session = Session.opened().begin()
    admitted = admit_probe(session.state, WEB1)
    assert isinstance(admitted, Admission)
    assert (admitted.kind, admitted.digest, admitted.target_id, admitted.authority, admitted.seq) == (
        "probe", WEB1.id, WEB1.id, "probe", session.state.seq,
    )  # fmt: skip


# ---- the seal --------------------------------------------------------------------------------------------------------


def probe() -> Admission:
    admitted = admit_probe(Session.opened().state, WEB1)
    assert isinstance(admitted, Admission)
    return admitted


def test_a_broken_seal_is_said_in_plain_words() -> None:
    """Each of them is a defect of the caller, and nothing has begun."""
    used = probe()
    used.spend(kind="probe", digest=WEB1.id)
    altered = probe()
    object.__setattr__(altered, "authority", "window:k1")
    wrong = ((used, WEB1.id), (altered, WEB1.id), (probe(), PVE1.id))
    said = []
    for admission, digest in wrong:
        with pytest.raises(SealError) as caught:
            admission.spend(kind="probe", digest=digest)
        said.append(str(caught.value))
    with pytest.raises(SealError) as caught:
        Admission(object(), kind="run", digest="d", target_id="t", authority="a", seq=1)
    assert [*said, str(caught.value)] == [
        "this Admission was used before; nothing was started",
        "this Admission was altered; nothing was started",
        "this Admission is for another order; nothing was started",
        "an Admission is made by the gate only",
    ]


def test_an_admission_cannot_be_changed_copied_pickled_or_inherited_and_says_so() -> None:
    ways: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: setattr(probe(), "kind", "run"), "an Admission cannot be changed"),
        (lambda: delattr(probe(), "kind"), "an Admission cannot be changed"),
        (lambda: copy.copy(probe()), "an Admission cannot be copied"),
        (lambda: copy.deepcopy(probe()), "an Admission cannot be copied"),
        (lambda: pickle.dumps(probe()), "an Admission cannot be pickled"),
        (lambda: type("Mine", (Admission,), {}), "an Admission has no subclasses"),
    )
    for way, words in ways:
        with pytest.raises(SealError) as caught:
            way()
        assert str(caught.value) == words


def test_a_used_admission_is_revived_by_no_trick() -> None:
    used = probe()
    used.spend(kind="probe", digest=WEB1.id)
    object.__setattr__(used, "_spent", False)
    with pytest.raises(SealError, match="was altered"):
        used.spend(kind="probe", digest=WEB1.id)


def test_a_twin_made_past_the_constructor_is_no_admission() -> None:
    real, twin = probe(), object.__new__(Admission)
    for name in Admission.__slots__:
        object.__setattr__(twin, name, getattr(real, name))
    with pytest.raises(SealError, match="was altered"):
        twin.spend(kind="probe", digest=WEB1.id)


# ---- who else is touched ---------------------------------------------------------------------------------------------


def on_the_node(*objects: NamedObject) -> Question:
    """A change on pve1 that acts on things by name, under a plan for pve1."""
    session = Session.opened().approved(propose(step(PVE1, planned(COMMAND, CHANGE)), on=(PVE1,)))
    return session.question(COMMAND, verdict(COMMAND, CHANGE, objects=objects), target=PVE1)


def test_a_locked_guest_is_found_behind_a_host_that_is_named_first() -> None:
    outcome = admit(
        on_the_node(
            NamedObject(kind="host", name="pve1", risk=CHANGE), NamedObject(kind="guest", name="140", risk=CHANGE)
        )
    )
    assert isinstance(outcome, Refusal)
    assert (outcome.code, outcome.text.split(":")[0]) == (Code.TARGET_LOCKED, "vault is locked")


def test_a_machine_is_known_in_any_case_and_with_a_final_dot() -> None:
    nodex = replace(WEB1, id="e-x", slug="nodex", name="nodex", aliases=(), access=ssh("10.0.0.8"))
    for name in ("nodeX", "root@NODEX", "nodex.", "a@b@nodeX"):
        q = admissible()
        q = replace(q, inventory=with_entities(nodex, of=q.inventory))
        assert admit(going(q, onward(name))) == NeedsApproval(why="Out of scope: nodex is not a machine of plan 1.")


def test_what_is_asked_about_another_machine_lists_the_effects_too() -> None:
    effects = (Effect(kind=EffectKind.PRIVILEGE, object="ops"),)
    q = going(admissible(), onward("web2"))
    q = replace(q, verdict=replace(q.verdict, effects=effects))
    assert admit(q) == NeedsApproval(why="Out of scope: web2 is not a machine of plan 1.", effects=effects)


def test_an_admission_names_the_taught_rules_that_its_verdict_rests_on() -> None:
    q = admissible()
    taught = Reason(rule="taught.abcdef01", risk=CHANGE, span=(0, 1), text="anna said so.")
    plain = admit(q)
    admitted = admit(replace(q, verdict=replace(q.verdict, reasons=(*q.verdict.reasons, taught))))
    assert isinstance(plain, Admission)
    assert isinstance(admitted, Admission)
    assert admitted.authority == f"{plain.authority} taught.abcdef01"
