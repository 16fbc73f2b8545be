"""SOUL.md asks, structure enforces: every eval of soul.toml fails once the check behind its rule is switched off.

The models of these evals are scripts and runbooks. They are shown SOUL.md like any other model and read nothing of it.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from oikos import data
from oikos.app.prompt import soul
from oikos.bootstrap import new_id
from oikos.cli.stage import lab_scene, make_ready
from oikos.domain import events as ev
from oikos.domain import gate
from oikos.domain.decision import Decided
from oikos.domain.errors import OikosError, Refusal
from oikos.domain.inventory import AccessPath, AmbiguousName, Entity, Transport
from oikos.domain.plan import Check
from oikos.domain.verdict import Risk
from oikos.evals.harness import play
from oikos.evals.local import LocalScene
from oikos.evals.manifest import LOCAL, Manifest, load

HERE = Path(__file__).parent
OWN = HERE / "soul"
"""Evals that need what no manifest can say, such as two machines of one name."""
TABLE = HERE / "soul.toml"
DOCS = Path(__file__).parents[2] / "docs" / "evals.md"
QUICK = frozenset({"goal", "approval", "verify", "output-is-data", "secrets-and-doors", "two-of-one-name"})
"""Rules whose proofs are quick tests, where they need no lab."""
SECTION = "## What stops a model that ignores SOUL.md\n"


# ---- the table ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Off:
    """One check to switch off: `module:name` or `module:Class.name`."""

    at: str
    by: str = "lets_through"
    of: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """As the documentation names it: the last part of the module, then the name."""
        module, _, name = self.at.partition(":")
        return f"{module.rpartition('.')[2]}.{name.rpartition('.')[2]}"


@dataclass(frozen=True, kw_only=True)
class Proof:
    """An eval, what stops its model, and how the eval fails without that."""

    rule: str
    eval: str
    off: tuple[Off, ...]
    breaks: tuple[str, ...]

    @property
    def manifest(self) -> Manifest:
        own = OWN / f"{self.eval}.yaml"
        return load(own if own.is_file() else data.path("evals") / f"{self.eval}.yaml")


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence of SOUL.md: a statement, a rule with proofs, or a rule that nothing enforces."""

    says: str
    id: str = ""
    statement: bool = False
    nothing: str = ""
    proofs: tuple[Proof, ...] = ()


def sentence(raw: Mapping[str, Any]) -> Sentence:
    rest = dict(raw)
    proofs = tuple(
        Proof(
            rule=rest["id"],
            eval=proof["eval"],
            off=tuple(Off(**{**off, "of": tuple(off.get("of", ()))}) for off in proof["off"]),
            breaks=tuple(proof["breaks"]),
        )
        for proof in rest.pop("proof", ())
    )
    return Sentence(**rest, proofs=proofs)


SENTENCES = tuple(sentence(raw) for raw in tomllib.loads(TABLE.read_text(encoding="utf-8"))["sentence"])
PROOFS = tuple(proof for each in SENTENCES for proof in each.proofs)


def sentences(text: str) -> list[str]:
    """The sentences of a prompt in their order, without headings and the numbers of lists."""
    lines = [re.sub(r"^\d+\. ", "", line) for line in text.splitlines() if line and not line.startswith("#")]
    return [part for line in lines for part in re.split(r"(?<=[.!?]) +(?=[A-Z\[])", line)]


def documented(text: str) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Evals and switched-off checks by rule, of the table in the documentation."""
    rows = [line.strip("| ").split(" | ") for line in text.partition(SECTION)[2].splitlines() if line.startswith("| ")]
    return {
        row[0].strip("`"): (frozenset(re.findall(r"`([^`]+)`", row[2])), frozenset(re.findall(r"`([^`]+)`", row[3])))
        for row in rows
        if row[0].startswith("`")
    }


def test_the_table_holds_every_sentence_of_the_prompt_in_its_order() -> None:
    assert [each.says for each in SENTENCES] == sentences(soul())


@pytest.mark.parametrize("added", ["Never sleep.", "10. Rest: do nothing.", "# Sleep\nNever sleep. Always sleep."])
def test_a_rule_that_the_table_does_not_hold_is_found(added: str) -> None:
    known = {each.says for each in SENTENCES}
    assert [text for text in sentences(f"{soul()}\n{added}\n") if text not in known]


def test_each_sentence_is_a_statement_or_a_rule_that_is_proven_or_that_nothing_enforces() -> None:
    for each in SENTENCES:
        assert [each.statement, bool(each.proofs), bool(each.nothing)].count(True) == 1, each.says
        assert bool(each.id) is not each.statement, each.says
    ids = [each.id for each in SENTENCES if each.id]
    assert len(ids) == len(set(ids))


def test_the_documentation_names_the_same_evals_and_checks() -> None:
    table = {
        each.id: (
            frozenset(proof.eval for proof in each.proofs),
            frozenset(off.short for proof in each.proofs for off in proof.off),
        )
        for each in SENTENCES
        if each.id
    }
    assert documented(DOCS.read_text(encoding="utf-8")) == table


def test_the_order_of_a_task_is_whole() -> None:
    order = re.findall(r"^\d+\. ([A-Z][a-z ]+):", soul(), re.MULTILINE)
    assert order == [
        "Goal", "Context", "Plan", "Approval", "Execute", "Verify", "Write back", "Complete", "Iterate",
    ]  # fmt: skip


def test_no_model_of_a_proof_reads_the_prompt() -> None:
    assert {proof.eval for proof in PROOFS if proof.manifest.model not in ("scripted", "runbook")} == set()


# ---- switching a check off -------------------------------------------------------------------------------------------

Function = Callable[..., Any]


def lets_through(check: Function, of: Sequence[str]) -> Function:
    """It refuses nothing any more; with codes, nothing with one of them."""

    @functools.wraps(check)
    def off(*args: Any, **kwargs: Any) -> Any:
        answer = check(*args, **kwargs)
        return None if isinstance(answer, Refusal) and (not of or answer.code in of) else answer

    return off


def admits(check: Function, of: Sequence[str]) -> Function:
    """The gate's answer becomes an Admission: refusals with these codes, questions about these effects, or `typed`."""

    @functools.wraps(check)
    def off(question: gate.Question) -> gate.Outcome:
        answer = check(question)
        match answer:
            case Refusal():
                concerned = answer.code in of
            case gate.NeedsApproval() | gate.NeedsTypedConfirmation():
                typed = isinstance(answer, gate.NeedsTypedConfirmation)
                concerned = any(effect.kind in of for effect in question.verdict.effects) or (typed and "typed" in of)
            case _:
                concerned = False
        return gate._sealed(question, "switched off") if concerned else answer

    return off


def never_blocks(check: Function, of: Sequence[str]) -> Function:
    """It says what is wrong, and goes on."""

    def off(*args: Any) -> Any:
        answer = check(*args)
        return None if isinstance(answer, ev.SessionBlocked) else answer

    return off


def without(check: Function, of: Sequence[str]) -> Function:
    """Its effects, but those of these kinds."""

    def off(*args: Any) -> Any:
        return tuple(effect for effect in check(*args) if effect.kind not in of)

    return off


def guesses(check: Function, of: Sequence[str]) -> Function:
    """A name that means nothing or two things means the first machine there is."""

    def off(inventory: Any, name: str) -> Any:
        found = check(inventory, name)
        if isinstance(found, AmbiguousName):
            return check(inventory, found.slugs[0])
        reachable = [entity for entity in inventory.entities.values() if entity.access is not None]
        return found if isinstance(found, Entity) else min(reachable, key=lambda entity: entity.slug)

    return off


def looks_when_empty(check: Function, of: Sequence[str]) -> Any:
    """A step without commands counts as a look."""
    return property(lambda step: max((command.risk for command in step.commands), default=Risk.READ_ONLY))


def takes_any_check(check: Function, of: Sequence[str]) -> Function:
    """What a check does is not looked at."""

    async def off(drafting: Any, raw: Mapping[str, Any]) -> Check:
        found = drafting._machine(raw["target"])
        return Check(target=found.slug, target_id=found.id, command=raw["command"])

    return off


def takes_any_argument(check: Function, of: Sequence[str]) -> Function:
    """Arguments that the tool does not have are dropped."""

    def off(text: str, schema: Mapping[str, Any]) -> Any:
        return check(text, {**schema, "additionalProperties": True})

    return off


def writes_anything(check: Function, of: Sequence[str]) -> Function:
    """Facts are written, whatever run they cite and whatever they are about."""

    def off(state: Any, intent: Any) -> Decided:
        return Decided((ev.FactsWritten(entity_id=intent.entity_id, facts=intent.facts, run_id=intent.run_id),))

    return off


def not_exclusive(check: Function, of: Sequence[str]) -> Function:
    """Another change of the machine may be under way."""
    return lambda **fields: check(**{**fields, "exclusive": False})


def counts_as_a_check(check: Function, of: Sequence[str]) -> Function:
    """Every look counts as the first check of the plan."""
    return lambda state, order: 0 if state.plan is not None and state.plan.checks else None


def fourfold(check: Function, of: Sequence[str]) -> Function:
    """A limit is four times what it says."""
    return lambda *args: tuple((name, used, most * 4) for name, used, most in check(*args))


def says(check: Function, of: Sequence[str]) -> Function:
    """Always the same text."""
    return lambda *args, **kwargs: of[0] if of else ""


SWITCHES: Mapping[str, Callable[[Function, Sequence[str]], Any]] = {
    "lets_through": lets_through,
    "admits": admits,
    "never_blocks": never_blocks,
    "without": without,
    "guesses": guesses,
    "looks_when_empty": looks_when_empty,
    "takes_any_check": takes_any_check,
    "takes_any_argument": takes_any_argument,
    "writes_anything": writes_anything,
    "not_exclusive": not_exclusive,
    "counts_as_a_check": counts_as_a_check,
    "fourfold": fourfold,
    "says": says,
    "nothing": lambda check, of: lambda *args, **kwargs: None,
    "no": lambda check, of: lambda *args, **kwargs: False,
    "yes": lambda check, of: lambda *args, **kwargs: True,
    "empty": lambda check, of: lambda *args, **kwargs: (),
}


def switch_off(patch: pytest.MonkeyPatch, off: Off) -> None:
    """Put what `off.by` says in the place of the check."""
    module, _, path = off.at.partition(":")
    *owners, name = path.split(".")
    owner = functools.reduce(getattr, owners, importlib.import_module(module))
    patch.setattr(owner, name, SWITCHES[off.by](getattr(owner, name), off.of))


# ---- playing --------------------------------------------------------------------------------------------------------


class TwoBoxes(LocalScene):
    """Two machines of one name: this directory, reached as `box-1` and as `box-2`."""

    def __init__(self, directory: Path, seed: int) -> None:
        super().__init__(directory, seed)
        self.entities = tuple(
            Entity(
                id=new_id(), kind="host", slug=slug, name="box", access=AccessPath(transport=Transport.LOCAL), lab=True
            )
            for slug in ("box-1", "box-2")
        )


async def broken(manifest: Manifest, directory: Path) -> list[str]:
    """Plays an eval; what of it did not hold, in words."""

    def two_boxes(manifest: Manifest, seed: int) -> TwoBoxes:
        return TwoBoxes(directory / "workshop", seed)

    own = manifest.file.parent == OWN
    if manifest.world not in ("", LOCAL) and not own:
        await asyncio.to_thread(make_ready, lambda _: None)
    await asyncio.to_thread(directory.mkdir)
    try:
        _, judgements = await play(
            manifest, seed=1, home=directory / "home", build=two_boxes if own else lab_scene, environ={}
        )
    except OikosError as error:
        return [f"error: {error}"]
    return [f"{judgement.assertion}: {judgement.saw}" for judgement in judgements if not judgement.ok]


def case(proof: Proof) -> object:
    """The proof with the marks that its eval needs."""
    in_lab = proof.manifest.world not in ("", LOCAL) and proof.manifest.file.parent != OWN
    name = "+".join(":".join((off.short, off.by, *off.of)) for off in proof.off)
    marks = [pytest.mark.needs_root] if in_lab else []
    if in_lab or proof.rule not in QUICK:
        marks.append(pytest.mark.slow)
    return pytest.param(proof, id=f"{proof.rule}-{proof.eval}-{name}", marks=marks)


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted({proof.eval for proof in PROOFS if proof.manifest.file.parent == OWN}))
async def test_an_eval_of_its_own_holds(name: str, tmp_path: Path) -> None:
    """The others are shipped, and test_shipped.py plays them."""
    assert await broken(await asyncio.to_thread(load, OWN / f"{name}.yaml"), tmp_path / "play") == []


@pytest.mark.anyio
@pytest.mark.timeout(240)
@pytest.mark.parametrize("proof", [case(proof) for proof in PROOFS])
async def test_an_eval_fails_once_its_check_is_switched_off(
    proof: Proof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await asyncio.to_thread(lambda: proof.manifest)
    for off in proof.off:
        switch_off(monkeypatch, off)
    found = await broken(manifest, tmp_path / "play")
    assert [text for text in proof.breaks if not any(text in line for line in found)] == [], found
