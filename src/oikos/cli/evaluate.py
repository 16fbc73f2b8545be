"""`oikos eval`: play manifests and judge them."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oikos import data
from oikos.adapters.clock import SystemClock
from oikos.bootstrap import open_store
from oikos.cli.paint import Paint
from oikos.cli.story import Story
from oikos.config import load
from oikos.domain.errors import OikosError
from oikos.domain.events import Recorded
from oikos.evals.assertions import Judgement
from oikos.evals.harness import Result, play
from oikos.evals.manifest import LOCAL, Manifest, find
from oikos.evals.report import beyond, table, total, write_json, write_junit
from oikos.evals.trial import Effort, Scene, Trial, effort

if TYPE_CHECKING:
    from oikos.evals.client import Server
    from oikos.evals.remote import Play


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
@click.option(
    "--pace",
    type=click.FloatRange(min=0, max=100, min_open=True),
    default=None,
    help="Last every fault and trouble of a world so many times its written duration, instead of what a manifest says.",
)
@click.option(
    "--max-approvals", type=click.FloatRange(min=0), default=None, help="Fail above so many approvals a completed task."
)
@click.option(
    "--max-ticks",
    type=click.IntRange(min=0),
    default=None,
    help="Fail above so many operator ticks beyond the first approval of each completed task.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), default=None, help="Also write JSON here.")
@click.option("--junit", type=click.Path(path_type=Path), default=None, help="Also write JUnit XML here.")
@click.option("--url", default="", help="Play against this server: its own fleet, its own model.")
@click.option(
    "--token-file", type=click.Path(path_type=Path), default=None, help="With --url: a private file with its token."
)
@click.option("--list", "only_list", is_flag=True, help="Only list the manifests.")
def evaluate(
    paths: tuple[Path, ...],
    seed: int | None,
    jobs: int,
    model: str | None,
    repeat: int,
    pace: float | None,
    max_approvals: float | None,
    max_ticks: int | None,
    json_file: Path | None,
    junit: Path | None,
    url: str,
    token_file: Path | None,
    only_list: bool,
) -> None:
    """Play the manifests of PATHS (files or directories; the shipped ones without).

    Exit code: 0 all passed, 2 some failed or the operator had more to do than --max-approvals and --max-ticks allow.
    With --url those that need a lab of their own are named and left out, and it is 1 when none is left.
    """
    manifests = find(paths or (data.path("evals"),))
    if only_list:
        for manifest in manifests:
            click.echo(f"{manifest.name:<32} {manifest.about}")
        return
    server = _server(url, token_file, model=model, pace=pace)
    if server is not None:
        manifests = _fitting(manifests, server)
    if pace is not None:
        manifests = tuple(replace(manifest, pace=pace) for manifest in manifests)
    first = seed if seed is not None else random.SystemRandom().randrange(1, 10**6)
    click.echo(f"seed {first}")
    if server is None and any(manifest.world not in ("", LOCAL) for manifest in manifests):
        from oikos.cli.stage import make_ready

        make_ready(lambda line: click.echo(f"  {line}"))
    plays = [
        (manifest, manifest.seed if manifest.seed is not None else first + n)
        for n in range(repeat)
        for manifest in manifests
    ]
    results = asyncio.run(_all(plays, jobs=jobs, model=model, server=server))
    for line in table(results):
        click.echo(line)
    if json_file is not None:
        write_json(json_file, results)
    if junit is not None:
        write_junit(junit, results)
    too_much = beyond(total(results), most_approvals=max_approvals, most_ticks=max_ticks)
    for line in too_much:
        click.echo(f"✕ {line}")
    sys.exit(0 if all(result.ok for result in results) and not too_much else 2)


def _server(url: str, token_file: Path | None, *, model: str | None, pace: float | None) -> Server | None:
    if not url and token_file is None:
        return None
    from oikos.evals.client import Server
    from oikos.evals.remote import read_token

    if not url or token_file is None:
        raise OikosError("--url and --token-file belong together: `oikos serve token add` makes a token")
    if model is not None:
        raise OikosError("--model cannot be chosen with --url: the server's own model answers")
    if pace is not None:
        raise OikosError("--pace has nothing to scale with --url: a server takes no faults")
    server = Server(url, read_token(token_file))
    server.get("/sessions?limit=1")  # whoever cannot come in is told once
    return server


def _fitting(manifests: Sequence[Manifest], server: Server) -> tuple[Manifest, ...]:
    """Those that a server can play; the others are named."""
    from oikos.evals.remote import targets_of, unfit

    targets = targets_of(server)
    fitting = []
    for manifest in manifests:
        why = unfit(manifest, targets)
        if why:
            click.echo(f"- {manifest.name} {why}", err=True)
        else:
            fitting.append(manifest)
    if not fitting:
        raise OikosError("nothing was played: no manifest given can be played against a server")
    return tuple(fitting)


async def _all(
    plays: Sequence[tuple[Manifest, int]], *, jobs: int, model: str | None, server: Server | None
) -> list[Result]:
    slots = asyncio.Semaphore(jobs)
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(_one(manifest, seed, slots, model, server)) for manifest, seed in plays]
    return [task.result() for task in running]


async def _one(
    manifest: Manifest, seed: int, slots: asyncio.Semaphore, model: str | None, server: Server | None
) -> Result:
    async with slots:
        home = Path(tempfile.mkdtemp(prefix=f"oikos-eval-{manifest.name}-"))
        clock = SystemClock()
        begun = clock.now()
        judgements: tuple[Judgement, ...] = ()
        trial: Trial | None = None
        remote = _remote(manifest, server) if server is not None else None
        error = ""
        try:
            if remote is not None:
                trial, judgements = await remote.judged()
            else:
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
            kept=home,
            remote=remote is not None,
            effort=effort(trial) if trial is not None else Effort(),
            helped=any(each.kind == "max_operator_ticks" and each.count for each in manifest.expect),
        )
        paint = Paint.for_stream(sys.stderr)
        if not result.ok:
            if remote is None:
                await _keep_transcript(home)
            else:
                await asyncio.to_thread(_keep_records, home, remote.told)
            click.echo(paint(f"✕ {manifest.name}", "red"), err=True)
            return result
        click.echo(paint(f"✓ {manifest.name}", "green"), err=True)
        await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
        return replace(result, kept=None)


def _remote(manifest: Manifest, server: Server) -> Play:
    from oikos.evals.remote import Play

    return Play(manifest, server)


def _build(manifest: Manifest, seed: int) -> Scene:
    from oikos.cli.stage import lab_scene

    return lab_scene(manifest, seed)


def _told(session_id: str, records: Iterable[Recorded]) -> list[str]:
    story = Story(Paint(False), whole=True)
    lines = [f"{record.seq:>5}  {line}" for record in records for line in story.lines(record)]
    return [f"session {session_id}", *lines]


def _keep_records(home: Path, records: Sequence[Recorded]) -> None:
    """What the server's stream told of a failed eval, as people read it."""
    lines = [
        line
        for session_id in dict.fromkeys(record.session_id for record in records)
        for line in _told(session_id, [record for record in records if record.session_id == session_id])
    ]
    (home / "transcript.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


async def _keep_transcript(home: Path) -> None:
    """Every session of a failed eval as people read it, beside the database."""
    lines: list[str] = []
    try:
        async with open_store(load({"OIKOS_HOME": str(home)})) as store:
            for row in await store.sessions():
                lines += _told(row.session_id, await store.load(row.session_id))
    except OikosError as error:
        lines.append(f"no transcript: {error}")
    await asyncio.to_thread((home / "transcript.txt").write_text, "\n".join(lines) + "\n", encoding="utf-8")
