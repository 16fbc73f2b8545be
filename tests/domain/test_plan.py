"""The digest covers what changes effect and nothing else (SPEC R3.6, security/THREATS T6, T7)."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from oikos.domain.plan import (
    AfterFailed,
    Always,
    Check,
    Creates,
    Plan,
    PlannedCommand,
    PreAuthorisation,
    Scope,
    Snapshot,
    Step,
    names,
    phrase_of,
)
from oikos.domain.run import Limits, RunOrder
from oikos.domain.scripts import Script
from oikos.domain.verdict import Effect, EffectKind, Hop, HopKind, NamedObject, Risk

THING = NamedObject(kind="guest", name="131", risk=Risk.DESTRUCTIVE, verb="destroy")
ITEM = PlannedCommand(
    text="pct destroy 131", risk=Risk.DESTRUCTIVE, canonical="pct destroy 131", objects=(THING,),
    preauthorise=PreAuthorisation(object=THING, max_uses=1, condition=AfterFailed(step=4)),
)  # fmt: skip
FIX = PlannedCommand(text="apply", stdin="y\n", risk=Risk.CONFIG_MUTATION, canonical="apply", why="It writes.")
PLAN = Plan(
    generation=2,
    goal="the job runs",
    steps=(
        Step(seq=4, title="Fix", target="web1", target_id="e-1", commands=(FIX,), undo="restore"),
        Step(seq=5, title="Destroy", target="pve1", target_id="e-2", commands=(ITEM,)),
    ),
    checks=(Check(target="web1", target_id="e-1", command="status", expect_exit=0, expect_text="ok"),),
    creates=(Creates(name="newbox", kind="lxc", on_target_id="e-2"),),
    scope=(
        Scope(target_id="e-1", slug="web1", host_keys=("k1", "k2")),
        Scope(target_id="e-2", slug="pve1", host_keys=("k3",)),
    ),
)


def step1(**change: object) -> Plan:
    return replace(PLAN, steps=(replace(PLAN.steps[0], **change), PLAN.steps[1]))


def fix(**change: object) -> Plan:
    return step1(commands=(replace(FIX, **change),))


def item(**change: object) -> Plan:
    return replace(PLAN, steps=(PLAN.steps[0], replace(PLAN.steps[1], commands=(replace(ITEM, **change),))))


def pre(**change: object) -> Plan:
    assert ITEM.preauthorise is not None
    return item(preauthorise=replace(ITEM.preauthorise, **change))


def check(**change: object) -> Plan:
    return replace(PLAN, checks=(replace(PLAN.checks[0], **change),))


def made(**change: object) -> Plan:
    return replace(PLAN, creates=(replace(PLAN.creates[0], **change),))


def scope(**change: object) -> Plan:
    return replace(PLAN, scope=(replace(PLAN.scope[0], **change), PLAN.scope[1]))


KEPT = Snapshot(target_id="e-3", target="paperless", node_id="e-2", node="pve1", tool="pct", guest="131")


def kept(**change: object) -> Plan:
    return replace(PLAN, snapshots=(replace(KEPT, **change),))


def renumbered(first: int) -> Plan:
    """The same plan where the session's count of steps stands elsewhere."""
    moved = first - PLAN.steps[0].seq
    condition = AfterFailed(step=4 + moved)
    assert ITEM.preauthorise is not None
    destroy = replace(ITEM, preauthorise=replace(ITEM.preauthorise, condition=condition))
    one, two = (replace(one, seq=one.seq + moved) for one in PLAN.steps)
    return replace(PLAN, steps=(one, replace(two, commands=(destroy,))))


CHANGES_EFFECT: dict[str, Plan] = {
    "Plan.goal": replace(PLAN, goal="another"),
    "Plan.timeout_s": replace(PLAN, timeout_s=PLAN.timeout_s + 1),
    "Plan.steps": replace(PLAN, steps=PLAN.steps[:1]),
    "Plan.steps, swapped": replace(PLAN, steps=PLAN.steps[::-1]),
    "Plan.checks": replace(PLAN, checks=()),
    "Plan.creates": replace(PLAN, creates=()),
    "Plan.scope": replace(PLAN, scope=PLAN.scope[:1]),
    "Plan.snapshots": replace(PLAN, snapshots=(KEPT,)),
    "Snapshot.target_id": kept(target_id="e-9"),
    "Snapshot.node_id": kept(node_id="e-9"),
    "Snapshot.guest": kept(guest="132"),
    "Step.target_id": step1(target_id="e-9"),
    "Step.commands": step1(commands=()),
    "Step.commands, twice": step1(commands=(FIX, FIX)),
    "PlannedCommand.text": fix(text="apply "),
    "PlannedCommand.stdin": fix(stdin="n\n"),
    "PlannedCommand.stdin, none": fix(stdin=None),
    "PlannedCommand.stdin, empty is not none": replace(fix(stdin=""), generation=2),
    "PlannedCommand.scripts": fix(scripts=(Script(path="/srv/job.sh", sha256="a" * 64),)),
    "PlannedCommand.scripts, changed": fix(scripts=(Script(path="/srv/job.sh", sha256="b" * 64),)),
    "PlannedCommand.scripts, elsewhere": fix(scripts=(Script(path="/srv/job2.sh", sha256="b" * 64),)),
    "PlannedCommand.scripts, not read": fix(scripts=(Script(path="/srv/job.sh"),)),
    "PlannedCommand.preauthorise": item(preauthorise=None),
    "PreAuthorisation.object": pre(object=replace(THING, name="132")),
    "PreAuthorisation.object, kind": pre(object=replace(THING, kind="volume")),
    "PreAuthorisation.max_uses": pre(max_uses=2),
    "PreAuthorisation.created": pre(created="newbox"),
    "PreAuthorisation.condition": pre(condition=Always()),
    "PreAuthorisation.condition, step": pre(condition=AfterFailed(step=5)),
    "Check.target_id": check(target_id="e-2"),
    "Check.command": check(command="true"),
    "Check.expect_exit": check(expect_exit=None),
    "Check.expect_exit, code": check(expect_exit=1),
    "Check.expect_text": check(expect_text=""),
    "Creates.name": made(name="other"),
    "Creates.kind": made(kind="vm"),
    "Creates.on_target_id": made(on_target_id="e-1"),
    "Scope.target_id": scope(target_id="e-9"),
    "Scope.host_keys": scope(host_keys=("k1",)),
    "Scope.host_keys, another": scope(host_keys=("k1", "k9")),
}
CHANGES_WORDS: dict[str, Plan] = {
    "Plan.generation": replace(PLAN, generation=9),
    "Step.title": step1(title="Reworded"),
    "Step.undo": step1(undo="another way back"),
    "Step.target, where the id is known": step1(target="web-1"),
    "Step.seq": renumbered(40),
    "PlannedCommand.risk, effects, objects, canonical, why": fix(
        risk=Risk.DESTRUCTIVE,
        effects=(Effect(kind=EffectKind.EGRESS),),
        objects=(THING,),
        canonical="x",
        why="Otherwise.",
    ),
    "PreAuthorisation.object, verb and place": pre(
        object=replace(THING, verb="remove", place=(Hop(kind=HopKind.PCT, name="1"),))
    ),
    "Check.target, where the id is known": check(target="web-1"),
    "Scope.slug": scope(slug="web-1"),
    "Scope.host_keys, in another order": scope(host_keys=("k2", "k1")),
}


@pytest.mark.parametrize("change", CHANGES_EFFECT)
def test_what_changes_effect_changes_the_digest(change: str) -> None:
    assert CHANGES_EFFECT[change].digest() != PLAN.digest()


@pytest.mark.parametrize("change", CHANGES_WORDS)
def test_rewording_asks_nobody_again(change: str) -> None:
    assert CHANGES_WORDS[change].digest() == PLAN.digest()


def test_the_names_of_an_offer_are_words() -> None:
    reworded = kept(target="papers", node="pve-1", tool="qm")
    assert reworded.digest() == kept().digest()


def test_every_single_change_gives_a_digest_of_its_own() -> None:
    digests = [plan.digest() for plan in CHANGES_EFFECT.values()]
    assert len(set(digests)) == len(digests)


def test_every_field_of_a_plan_is_in_one_of_the_two_lists() -> None:
    listed = " ".join([*CHANGES_EFFECT, *CHANGES_WORDS, "Snapshot.target Snapshot.node Snapshot.tool"])
    classes = (Plan, Step, PlannedCommand, PreAuthorisation, Check, Creates, Scope, Snapshot)
    assert [f"{c.__name__}.{f.name}" for c in classes for f in fields(c) if f.name not in listed] == []


def test_what_does_not_exist_yet_is_told_apart_by_name() -> None:
    assert step1(target_id="", target="newbox").digest() != step1(target_id="", target="newbox2").digest()
    assert check(target_id="", target="newbox").digest() != check(target_id="", target="newbox2").digest()


@pytest.mark.parametrize(
    "twin",
    [
        (scope(host_keys=("scope", "e-2")), replace(PLAN, scope=(scope(host_keys=()).scope[0], PLAN.scope[1]))),
        (fix(text="a", stdin="b"), fix(text="ab", stdin="")),
        (fix(text="a", stdin=None), fix(text="a", stdin="-")),
        (
            step1(commands=(replace(FIX, text="a"), replace(FIX, text="b"))),
            step1(commands=(replace(FIX, text="a" + "command" + "b"),)),
        ),
        (check(expect_exit=None, expect_text="0"), check(expect_exit=0, expect_text="")),
    ],
)
def test_no_two_plans_run_together_into_one_digest(twin: tuple[Plan, Plan]) -> None:
    assert twin[0].digest() != twin[1].digest()


def test_a_command_that_is_no_text_has_a_digest_too() -> None:
    assert fix(text="\ud800").digest() != fix(text="\ud801").digest()


# ---- the order of a run ----------------------------------------------------------------------------------------------

ORDER = RunOrder(
    run_id="r", session_id="s", generation=1, target_id="t", command="c", stdin="i", limits=Limits(idle_s=1.0)
)
ORDER_CHANGES: dict[str, object] = {
    "run_id": "r2", "session_id": "s2", "generation": 2, "target_id": "t2", "command": "c ", "stdin": None,
    "supervised": False, "background": True, "keep": True, "not_after_s": 1.0,
    **{
        f"limits.{f.name}": replace(ORDER.limits, **{f.name: getattr(ORDER.limits, f.name) + 1})
        for f in fields(Limits)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ORDER_CHANGES)
def test_every_field_of_an_order_is_in_its_digest(name: str) -> None:
    changed = replace(ORDER, **{name.split(".")[0]: ORDER_CHANGES[name]})
    assert changed.digest() != ORDER.digest()
    assert (changed.asked() == ORDER.asked()) is (name == "not_after_s")


def test_no_field_of_an_order_is_forgotten() -> None:
    assert {f.name for f in fields(RunOrder)} - {name.split(".")[0] for name in ORDER_CHANGES} == set()


def test_an_order_with_empty_input_is_not_one_without() -> None:
    digests = {replace(ORDER, stdin=stdin).digest() for stdin in (None, "", "-")}
    assert len(digests) == 3


# ---- what a plan says of itself --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "risk", "asks"),
    [
        ((), Risk.CONFIG_MUTATION, True),
        ((Step(seq=1, title="t", target="a", target_id="a"),), Risk.CONFIG_MUTATION, True),
        (
            (
                Step(
                    seq=1,
                    title="t",
                    target="a",
                    target_id="a",
                    commands=(PlannedCommand(text="x", risk=Risk.READ_ONLY),),
                ),
            ),
            Risk.READ_ONLY,
            False,
        ),
        (
            (
                Step(
                    seq=1,
                    title="t",
                    target="a",
                    target_id="a",
                    commands=(PlannedCommand(text="x", risk=Risk.READ_ONLY),),
                ),
                Step(seq=2, title="t", target="a", target_id="a"),
            ),
            Risk.CONFIG_MUTATION,
            True,
        ),
        (PLAN.steps, Risk.DESTRUCTIVE, True),
    ],
)
def test_a_plan_is_as_risky_as_its_worst_step_and_a_bare_step_is_a_change(
    steps: tuple[Step, ...], risk: Risk, asks: bool
) -> None:
    plan = Plan(generation=1, goal="g", steps=steps)
    assert (plan.risk, plan.needs_approval) == (risk, asks)


@pytest.mark.parametrize("kind", sorted(set(EffectKind) - {EffectKind.INTERACTIVE}))
def test_a_read_with_a_guarded_effect_needs_approval(kind: EffectKind) -> None:
    """An outage too, where nothing in the plan names its object."""
    command = PlannedCommand(text="x", risk=Risk.READ_ONLY, effects=(Effect(kind=kind, object="postgres"),))
    plan = Plan(generation=1, goal="g", steps=(Step(seq=1, title="t", target="a", target_id="a", commands=(command,)),))
    assert plan.needs_approval


def test_an_outage_that_a_step_names_is_what_the_plan_is_about() -> None:
    command = PlannedCommand(text="x", risk=Risk.READ_ONLY, effects=(Effect(kind=EffectKind.OUTAGE, object="demo"),))
    plan = Plan(
        generation=1, goal="g", steps=(Step(seq=1, title="stop demo", target="a", target_id="a", commands=(command,)),)
    )
    assert not plan.needs_approval
    assert not command.guarded


def test_a_command_knows_whether_it_is_guarded() -> None:
    assert PlannedCommand(text="x", effects=(Effect(kind=EffectKind.EGRESS),)).guarded


@pytest.mark.parametrize(
    ("text", "thing", "named"),
    [
        ("restart db", "db", True),
        ("restart db.service", "db", True),
        ("restart db", "db.service", True),
        ("(db)", "db", True),
        ("db, then more", "db", True),
        ("stop db.", "db", True),
        ("restart mydb", "db", False),
        ("restart db2", "db", False),
        ("restart db-1", "db", False),
        ("restart my-db", "db", False),
        ("ping db.lan", "db", False),
        ("pct stop 1310", "131", False),
        ("pct stop 131", "131", True),
        ("ping 10.0.131.5", "131", False),
        ("anything", "", False),
        ("", "db", False),
        ("restart a+b", "a+b", True),
        ("restart aab", "a+b", False),
    ],
)
def test_a_text_names_a_thing_as_a_word_of_its_own(text: str, thing: str, named: bool) -> None:
    assert names(text, thing) is named


def test_only_marked_commands_can_be_ticked_in_order() -> None:
    plan = step1(commands=(ITEM, FIX, ITEM))
    assert [(one.seq, command.text) for one, command in plan.destructive_items()] == [
        (4, ITEM.text),
        (4, ITEM.text),
        (5, ITEM.text),
    ]


def test_a_plan_lists_its_machines() -> None:
    assert PLAN.machines() == ("e-1", "e-2")


@pytest.mark.parametrize(
    ("thing", "phrase"),
    [
        (THING, "destroy 131"),
        (replace(THING, verb=""), "confirm 131"),
        (replace(THING, name="/srv/old/"), "destroy old"),
        (replace(THING, name="//"), "destroy //"),
        (replace(THING, name=""), "destroy"),
    ],
)
def test_the_phrase_is_verb_space_short_name(thing: NamedObject, phrase: str) -> None:
    assert phrase_of(thing) == phrase
    assert PreAuthorisation(object=thing).phrase == phrase
