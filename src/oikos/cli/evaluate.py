"""`oikos eval`: play manifests and judge them."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from oikos import data
from oikos.adapters.clock import SystemClock
from oikos.bootstrap import open_store
from oikos.cli.paint import Paint
from oikos.cli.story import Story
from oikos.config import load
from oikos.domain.errors import OikosError
from oikos.domain.session import Phase
from oikos.evals.assertions import Judgement
from oikos.evals.harness import Result, play
from oikos.evals.manifest import LOCAL, Manifest, find
from oikos.evals.report import table, write_json, write_junit
from oikos.evals.trial import Scene, Trial


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--seed", type=int, default=None, help="Draw every world from this seed (printed when it is chosen for you)."
)
@click.option("--jobs", "-j", type=click.IntRange(1, 16), default=3, show_default=True, help="How many at once.")
@click.option(
    "--model", type=click.Choice(["runbook", "live"]), default=None, help="Instead of the manifest's own model."
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="Play each so often, with other seeds."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), default=None, help="Also write JSON here.")
@click.option("--junit", type=click.Path(path_type=Path), default=None, help="Also write JUnit XML here.")
@click.option("--list", "only_list", is_flag=True, help="Only list the manifests.")
def evaluate(
    paths: tuple[Path, ...],
    seed: int | None,
    jobs: int,
    model: str | None,
    repeat: int,
    json_file: Path | None,
    junit: Path | None,
    only_list: bool,
) -> None:
    """Play the manifests of PATHS (files or directories; the shipped ones without).

    Exit code: 0 all passed, 2 some failed.
    """
    manifests = find(paths or (data.path("evals"),))
    if only_list:
        for manifest in manifests:
            click.echo(f"{manifest.name:<32} {manifest.about}")
        return
    first = seed if seed is not None else random.SystemRandom().randrange(1, 10**6)
    click.echo(f"seed {first}")
    if any(manifest.world not in ("", LOCAL) for manifest in manifests):
        from oikos.cli.stage import make_ready

        make_ready(lambda line: click.echo(f"  {line}"))
    plays = [
        (manifest, manifest.seed if manifest.seed is not None else first + n)
        for n in range(repeat)
        for manifest in manifests
    ]
    results = asyncio.run(_all(plays, jobs=jobs, model=model))
    for line in table(results):
        click.echo(line)
    if json_file is not None:
        write_json(json_file, results)
    if junit is not None:
        write_junit(junit, results)
    sys.exit(0 if all(result.ok for result in results) else 2)


async def _all(plays: Sequence[tuple[Manifest, int]], *, jobs: int, model: str | None) -> list[Result]:
    slots = asyncio.Semaphore(jobs)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(_one(manifest, seed, slots, model)) for manifest, seed in plays]
    return [task.result() for task in running]


async def _one(manifest: Manifest, seed: int, slots: asyncio.Semaphore, model: str | None) -> Result:
    async with slots:
        home = Path(tempfile.mkdtemp(prefix=f"oikos-eval-{manifest.name}-"))
        clock = SystemClock()
        begun = clock.now()
        judgements: tuple[Judgement, ...] = ()
        trial: Trial | None = None
        error = ""
        try:
            trial, judgements = await play(
                manifest, seed=seed, home=home, build=_build, environ=os.environ, model=model
            )
        except OikosError as failed:
            error = str(failed)
        except Exception as failed:  # a defect, or a lab that will not come up, is a failed eval; the others go on
            error = f"{type(failed).__name__}: {failed}"
        result = Result(
            name=manifest.name,
            seed=seed,
            seconds=clock.now().elapsed_since(begun),
            judgements=judgements,
            error=error,
            home=home,
            completed=sum(turn.state.phase is Phase.DONE for turn in trial.turns) if trial is not None else 0,
            consents=trial.consents if trial is not None else 0,
            ticks=trial.ticks if trial is not None else 0,
        )
        paint = Paint.for_stream(sys.stderr)
        if not result.ok:
            await _keep_transcript(home)
            click.echo(paint(f"✕ {manifest.name}", "red"), err=True)
            return result
        click.echo(paint(f"✓ {manifest.name}", "green"), err=True)
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
        return replace(result, home=None)


def _build(manifest: Manifest, seed: int) -> Scene:
    from oikos.cli.stage import lab_scene

    return lab_scene(manifest, seed)


async def _keep_transcript(home: Path) -> None:
    """Every session of a failed eval as people read it, beside the database."""
    lines: list[str] = []
    try:
        async with open_store(load({"OIKOS_HOME": str(home)})) as store:
            for row in await store.sessions():
                story = Story(Paint(False), whole=True)
                lines.append(f"session {row.session_id}")
                lines += [
                    f"{record.seq:>5}  {line}"
                    for record in await store.load(row.session_id)
                    for line in story.lines(record)
                ]
    except OikosError as error:
        lines.append(f"no transcript: {error}")
    await asyncio.to_thread((home / "transcript.txt").write_text, "\n".join(lines) + "\n", encoding="utf-8")
