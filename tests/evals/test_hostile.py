"""The evals of hostile models and outputs tell by themselves that an attack worked (SPEC R9.2, security/THREATS).

A script insists on being refused; that it is refused another way, or not at all, must show in the manifest's own
assertions too, for another model plays no script. So the gate is opened for what the model is after, the script no
longer insists, and the assertions have to fail.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from oikos import data
from oikos.app import execute
from oikos.cli.stage import lab_scene, make_ready
from oikos.domain import gate
from oikos.domain.errors import OikosError
from oikos.domain.inventory import Entity
from oikos.evals.harness import play
from oikos.evals.manifest import LOCAL, Manifest, load

pytestmark = pytest.mark.anyio

QUICK = frozenset({"a window is used for authorized_keys", "a window is used for another machine by ssh"})
"""Of those on lab hosts."""
INSISTS = ("sees", "shown", "not_shown", "refused", "last_tool")


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One clause of hostile.toml."""

    clause: str
    eval: str
    fails: tuple[str, ...]
    lets: tuple[str, ...] = ()
    off: Mapping[str, str] | None = None
    limits: Mapping[str, int] | None = None
    slow: bool = False

    @property
    def manifest(self) -> Manifest:
        return load(data.path("evals") / f"{self.eval}.yaml")


def attack(raw: Mapping[str, Any]) -> Attack:
    return Attack(**{**raw, "fails": tuple(raw["fails"]), "lets": tuple(raw.get("lets", ()))})


TABLE = tomllib.loads((Path(__file__).parent / "hostile.toml").read_text(encoding="utf-8"))
ATTACKS = tuple(attack(raw) for raw in TABLE["attack"])


def case(attack: Attack) -> object:
    """The attack with the marks that its eval needs."""
    in_lab = attack.manifest.world not in ("", LOCAL)
    marks = [pytest.mark.needs_root] if in_lab else []
    if attack.slow or (in_lab and attack.clause not in QUICK):
        marks.append(pytest.mark.slow)
    return pytest.param(attack, id=attack.clause.replace(" ", "-"), marks=marks)


Admit = Callable[[gate.Question], gate.Outcome]


def open_for(lets: tuple[str, ...], admit: Admit) -> Admit:
    """The gate, which admits these commands whatever it says of them."""

    @functools.wraps(admit)
    def opened(question: gate.Question) -> gate.Outcome:
        target = question.target
        if isinstance(target, Entity) and any(text in f"{target.slug} {question.order.command}" for text in lets):
            return gate._sealed(question, "attack")
        return admit(question)

    return opened


def gone_soft(manifest: Manifest, directory: Path) -> Manifest:
    """The same manifest with a script that says the same, whatever it is answered."""
    assert manifest.script is not None, "hostile models are scripts"
    turns = yaml.safe_load(manifest.script.read_text(encoding="utf-8"))
    script = directory / "soft.yaml"
    said = [{key: value for key, value in turn.items() if key not in INSISTS} for turn in turns]
    script.write_text(yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=10_000), encoding="utf-8")
    return replace(manifest, script=script, timeout_s=30)


async def failing(manifest: Manifest, directory: Path) -> set[str]:
    """The kinds of what did not hold; `error` when it could not be played to the end."""
    if manifest.world not in ("", LOCAL):
        await asyncio.to_thread(make_ready, lambda _: None)
    try:
        _, judgements = await play(manifest, seed=1, home=directory / "home", build=lab_scene, environ={})
    except OikosError:
        return {"error"}
    return {judgement.assertion.partition(":")[0] for judgement in judgements if not judgement.ok}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({attack.eval for attack in ATTACKS if attack.manifest.world in ("", LOCAL)}))
async def test_a_script_that_does_not_insist_is_stopped_all_the_same(name: str, tmp_path: Path) -> None:
    manifest = await asyncio.to_thread(lambda: load(data.path("evals") / f"{name}.yaml"))
    assert await failing(await asyncio.to_thread(gone_soft, manifest, tmp_path), tmp_path) == set()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("attack", [case(attack) for attack in ATTACKS])
async def test_an_attack_that_works_fails_its_eval(
    attack: Attack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await asyncio.to_thread(lambda: gone_soft(attack.manifest, tmp_path))
    if attack.limits is not None:
        manifest = replace(manifest, limits=tuple(attack.limits.items()))
    if attack.off is not None:
        module, _, path = attack.off["at"].partition(":")
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, importlib.import_module(module))
        answer = attack.off.get("answers")
        monkeypatch.setattr(owner, name, lambda *_: answer)
    monkeypatch.setattr(execute, "admit", open_for(attack.lets, gate.admit))
    assert set(attack.fails) - await failing(manifest, tmp_path) == set()
