"""The shipped evals, played: one of each family in every run, the rest with the slow tests."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from oikos import data
from oikos.cli.stage import lab_scene, make_ready
from oikos.evals.harness import play
from oikos.evals.manifest import LOCAL, Manifest, find

pytestmark = pytest.mark.anyio

QUICK = frozenset({"apt-lock-stale", "iteration-followup", "service-down-bad-directory", "window-holds"})
"""Of those on lab hosts, one for each world and kind of task."""


def case(manifest: Manifest) -> object:
    """The manifest with the marks it needs."""
    marks = []
    if manifest.world not in ("", LOCAL):
        marks.append(pytest.mark.needs_root)
    if manifest.crash or (manifest.world not in ("", LOCAL) and manifest.name not in QUICK):
        marks.append(pytest.mark.slow)
    return pytest.param(manifest, id=manifest.name, marks=marks)


def nothing(_: str) -> None:
    return


async def problems(manifest: Manifest, home: Path) -> list[str]:
    """What did not hold."""
    if manifest.world not in ("", LOCAL):
        await asyncio.to_thread(make_ready, nothing)
    seed = manifest.seed or random.randrange(1, 10**6)
    _, judgements = await play(manifest, seed=seed, home=home, build=lab_scene, environ={})
    return [f"seed {seed}: {judgement.assertion}: {judgement.saw}" for judgement in judgements if not judgement.ok]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("manifest", [case(manifest) for manifest in find((data.path("evals"),))])
async def test_a_shipped_eval_holds(manifest: Manifest, tmp_path: Path) -> None:
    assert await problems(manifest, tmp_path / "home") == []
