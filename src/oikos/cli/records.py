"""`oikos sessions`, `runs` and `audit`: what happened, from the record alone."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime

import click
import orjson

from oikos.app.changes import changes_of
from oikos.app.teaching import STREAM
from oikos.bootstrap import open_store
from oikos.cli.paint import Paint, safe, seconds
from oikos.cli.story import Story, risk_word
from oikos.config import load
from oikos.domain.errors import OikosError
from oikos.domain.run import Stream
from oikos.ports import RunRow, SessionRow, Store


def when(wall_s: float) -> str:
    """A moment in the operator's own time zone."""
    return datetime.fromtimestamp(wall_s, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


@click.group(invoke_without_command=True)
@click.pass_context
def sessions(ctx: click.Context) -> None:
    """List sessions, newest first; `oikos sessions show ID` replays one whole."""
    if ctx.invoked_subcommand is None:
        asyncio.run(_sessions())


async def _sessions() -> None:
    async with open_store(load()) as store:
        rows = [row for row in await store.sessions() if row.session_id != STREAM]
    if not rows:
        click.echo('No sessions yet: oikos ask "when did the last backup run?"')
    for row in rows:
        waits = f"  waits for you: {safe(row.waiting_for)}" if row.waiting_for else ""
        click.echo(
            f"{row.session_id[:8]}  {when(row.active_s)}  {row.phase:<17} gen {row.generation}  "
            f"{safe(row.title)[:70]}{waits}"
        )


@sessions.command(name="show")
@click.argument("session", default="-")
@click.option("--json", "as_json", is_flag=True, help="The events as JSON, one a line.")
def show(session: str, as_json: bool) -> None:
    """Replay SESSION whole: messages, reasoning, tool calls, refusals, runs, approvals, in order."""
    asyncio.run(_show(session, as_json=as_json))


async def _show(session: str, *, as_json: bool) -> None:
    async with open_store(load()) as store:
        session_id = await find_session(store, session)
        records = await store.load(session_id)
    story = Story(Paint.for_stream(), whole=True)
    for record in records:
        if as_json:
            body = {"seq": record.seq, "at": record.at, "kind": record.event.KIND, "event": record.event}
            click.echo(orjson.dumps(body).decode())
            continue
        for line in story.lines(record):
            click.echo(f"{record.seq:>5}  {line}")


async def find_session(store: Store, prefix: str) -> str:
    """The one session whose id begins so; the newest for `-`."""
    rows: list[SessionRow] = [row for row in await store.sessions(limit=1000) if row.session_id != STREAM]
    if prefix == "-" and rows:
        return rows[0].session_id
    found = [row.session_id for row in rows if row.session_id.startswith(prefix)]
    if len(found) != 1:
        raise OikosError(f"{len(found)} sessions begin with {prefix}: `oikos sessions` lists them")
    return found[0]


@click.command()
@click.argument("run", default="")
@click.option("--session", "-s", default="", help="Only of this session.")
@click.option("--stderr", is_flag=True, help="With RUN: its standard error instead of its standard output.")
@click.option("--limit", default=50, show_default=True)
def runs(run: str, session: str, stderr: bool, limit: int) -> None:
    """List runs, newest first; RUN (an id's beginning) shows one with its whole output."""
    asyncio.run(_runs(run, session, stderr=stderr, limit=limit))


async def _runs(run: str, session: str, *, stderr: bool, limit: int) -> None:
    async with open_store(load()) as store:
        session_id = await find_session(store, session) if session else None
        rows = list(await store.runs(session_id=session_id, limit=limit if not run else 100_000))
        if not run:
            for row in rows:
                click.echo(run_line(row))
            return
        found = [row for row in rows if row.run_id.startswith(run)]
        if len(found) != 1:
            raise OikosError(f"{len(found)} runs begin with {run}: `oikos runs` lists them")
        row = found[0]
        click.echo(run_line(row))
        click.echo(
            f"  authority {row.authority} · session {row.session_id[:8]} · {row.out_bytes} + {row.err_bytes} bytes"
        )
        data = await store.output(row.run_id, Stream.ERR if stderr else Stream.OUT)
        if sys.stdout.isatty():
            click.echo("\n".join(safe(line) for line in data.decode("utf-8", "replace").splitlines()))
        else:
            sys.stdout.buffer.write(data)


def run_line(row: RunRow) -> str:
    """One run on one line."""
    lasted = f" in {seconds(row.ended_s - row.started_s)}" if row.ended_s is not None else ""
    command = safe(row.command.splitlines()[0] if row.command else "")
    outcome = row.outcome or row.status
    what = f"[{risk_word(row.risk)}] {row.target} $ {command[:90]}"
    return f"{row.run_id[:8]}  {when(row.started_s)}  {what}  → {outcome}{lasted}"


@click.command()
@click.argument("session", default="-")
@click.option("--plan-back", is_flag=True, help="Also have Nomos plan the way back: it proposes, you approve.")
def changes(session: str, plan_back: bool) -> None:
    """Every change SESSION made, with its authority, its outcome, and the undo that its plan named (SPEC R5.12)."""
    asyncio.run(_changes(session))
    if plan_back:
        from oikos.cli.decide import plan_way_back

        plan_way_back(session)


async def _changes(session: str) -> None:
    async with open_store(load()) as store:
        records = await store.load(await find_session(store, session))
    paint = Paint.for_stream()
    found = changes_of(records)
    if not found:
        click.echo("Nothing was changed in this session.")
    for change in found:
        run = change.run
        click.echo(f"{when(change.at_s)}  {paint.risk(run.risk)} {safe(run.target)} $ {safe(run.order.command)}")
        click.echo(f"    {change.outcome} · run {run.order.run_id[:8]} · authority {run.authority}")
        click.echo(f"    undo: {safe(change.undo)}" if change.undo else "    undo: none was named in the plan")


@click.group()
def audit() -> None:
    """The record of everything that happened."""


@audit.command()
def verify() -> None:
    """Verify the hash chain, the consent ledger and the database, offline."""
    sys.exit(asyncio.run(_verify()))


async def _verify() -> int:
    async with open_store(load()) as store:
        report = await store.verify()
    for problem in report.problems:
        click.echo(f"✕ {problem}")
    if report.problems:
        click.echo(
            f"audit: {len(report.problems)} problem(s) in {report.events} events: "
            "keep this database, restore a backup beside it"
        )
        return 2
    click.echo(f"audit ok: {report.events} events, {report.consents} consents, head {report.head[:16]}")
    return 0
