"""A digest is stored beside the consent it was approved with: the same plan has it after an upgrade too (SPEC R3.6)."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from oikos.domain.plan import (
    AfterFailed,
    Check,
    Creates,
    Plan,
    PlannedCommand,
    PreAuthorisation,
    Scope,
    Snapshot,
    Step,
    phrase_of,
)
from oikos.domain.scripts import Script
from oikos.domain.verdict import Effect, EffectKind, NamedObject, Risk

GUEST = NamedObject(kind="guest", name="131", risk=Risk.DESTRUCTIVE, verb="destroy")
LEAVE = PreAuthorisation(object=GUEST, max_uses=2)
DESTROY = PlannedCommand(text="pct destroy 131", preauthorise=LEAVE)
RESTORE = PlannedCommand(
    text="bash restore.sh", stdin="y\n", preauthorise=replace(LEAVE, condition=AfterFailed(step=8)),
    scripts=(Script(path="/srv/restore.sh", sha256="ab12"),),
)  # fmt: skip
PLAN = Plan(
    generation=5,
    goal="the job runs",
    timeout_s=90.0,
    steps=(
        Step(seq=8, title="Destroy", target="pve1", target_id="e-2", commands=(DESTROY,)),
        Step(seq=9, title="Restore", target="newbox", target_id="", commands=(RESTORE,)),
    ),
    checks=(Check(target="web1", target_id="e-1", command="status", expect_exit=3, expect_text="ok"),),
    creates=(Creates(name="newbox", kind="lxc", on_target_id="e-2"),),
    scope=(Scope(target_id="e-2", slug="pve1", host_keys=("k2", "k1")), Scope(target_id="e-1", slug="web1")),
)
WORDS = (
    "goal", "the job runs", "timeout", "90.0",
    "scope", "e-2", "2", "k1", "k2", "scope", "e-1", "0",
    "creates", "newbox", "lxc", "e-2",
    "step", "e-2", "command", "pct destroy 131", "-", "preauthorise", "guest", "131", "2", "always",
    "step", "newbox", "command", "bash restore.sh", "+y\n", "script", "/srv/restore.sh", "ab12",
    "preauthorise", "guest", "131", "2", "0",
    "check", "e-1", "status", "3", "ok",
)  # fmt: skip
"""What changes effect, in order, each word with its length in front."""


def test_the_digest_of_a_stored_plan_is_the_one_it_was_approved_with() -> None:
    framed = "".join(f"{len(word)}:{word}" for word in WORDS)
    assert PLAN.digest() == hashlib.sha256(framed.encode()).hexdigest()


def test_what_came_later_has_words_of_its_own_and_leaves_older_digests_alone() -> None:
    kept = Snapshot(target_id="e-3", target="paperless", node_id="e-2", node="pve1", tool="pct", guest="131")
    destroy = replace(DESTROY, preauthorise=replace(LEAVE, created="newbox"))
    newer = replace(PLAN, snapshots=(kept,), steps=(replace(PLAN.steps[0], commands=(destroy,)), PLAN.steps[1]))
    words = list(WORDS)
    words[words.index("always") + 1 : words.index("always") + 1] = ["created", "newbox"]
    after_creates = words.index("creates") + 4
    words[after_creates:after_creates] = ["snapshot", "e-3", "e-2", "131"]
    framed = "".join(f"{len(word)}:{word}" for word in words)
    assert newer.digest() == hashlib.sha256(framed.encode()).hexdigest()


def test_only_what_has_no_entity_yet_is_bound() -> None:
    bound = replace(PLAN, steps=(*PLAN.steps, replace(PLAN.steps[0], target="newbox", target_id="e-9"))).bound(
        Scope(target_id="e-7", slug="newbox")
    )
    assert [step.target_id for step in bound.steps] == ["e-2", "e-7", "e-9"]
    other = PLAN.bound(Scope(target_id="e-7", slug="oldbox"))
    assert [step.target_id for step in other.steps] == ["e-2", ""]


def test_an_outage_is_named_by_the_last_word_of_any_step() -> None:
    steps = tuple(
        Step(seq=seq, title="Restart", target="web1", target_id="e-1", commands=(PlannedCommand(text=text),))
        for seq, text in ((1, "systemctl restart demo"), (2, "true"))
    )
    outages = tuple(Effect(kind=EffectKind.OUTAGE, object=name) for name in ("demo", "nginx"))
    assert replace(PLAN, steps=steps).guarded(outages) == outages[1:]


def test_the_phrase_keeps_every_letter_of_the_short_name() -> None:
    assert phrase_of(NamedObject(kind="dataset", name="tank/old/XBOX/", risk=Risk.DESTRUCTIVE, verb="destroy")) == (
        "destroy XBOX"
    )


def test_a_plan_declares_a_command_only_with_its_machine_its_bytes_and_its_input() -> None:
    asked = [
        ("e-2", "pct destroy 131", None), ("e-1", "pct destroy 131", None), ("e-2", "pct destroy 132", None),
        ("e-2", "pct destroy 131", ""), ("", "bash restore.sh", "y\n"), ("", "bash restore.sh", None),
    ]  # fmt: skip
    assert [PLAN.declares(*one) for one in asked] == [True, False, False, False, True, False]


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("x\x1b[2Jy", "delete x␛[2Jy"),
        ("a\nb", "delete a␤b"),
        ("a\tb", "delete a␉b"),
        ("a\u202eb", "delete a\\u{202e}b"),
    ],
)
def test_a_phrase_holds_only_what_can_be_seen_and_typed(name: str, phrase: str) -> None:
    assert phrase_of(NamedObject(kind="volume", name=name, risk=Risk.DESTRUCTIVE, verb="delete")) == phrase
