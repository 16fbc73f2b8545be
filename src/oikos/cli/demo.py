"""`oikos demo`: Nomos does its job on real machines made for the purpose, and they are asked whether it did."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import click

from oikos.adapters.clock import SystemClock
from oikos.app.service import card_of
from oikos.bootstrap import Oikos, open_oikos
from oikos.cli.card import card_lines
from oikos.cli.live import Live
from oikos.cli.paint import Paint, safe, seconds
from oikos.cli.stage import LabScene, make_ready
from oikos.domain import events as ev
from oikos.domain.consent import Principal
from oikos.domain.errors import OikosError, Refusal
from oikos.domain.session import Phase, State
from oikos.evals.assertions import answer_text, recoveries
from oikos.evals.harness import furnish, lab_config
from oikos.evals.operator import SCRIPT
from oikos.evals.trial import Trial, Turn


@click.command()
@click.option(
    "--seed", type=int, default=None, help="Draw the story's values from this seed; chosen and printed otherwise."
)
@click.option("--keep", is_flag=True, help="Keep the database; the way to look into it is printed.")
@click.option("--model", type=click.Choice(["runbook", "live"]), default="runbook", show_default=True)
@click.option("--hands-on", is_flag=True, help="You decide at the terminal, instead of the operator script.")
def demo(seed: int | None, keep: bool, model: str, hands_on: bool) -> None:
    """See Nomos at work on real machines of its own: a question, then a repair with one approval.

    Needs root, for the lab's namespaces.
    """
    if hands_on and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("--hands-on needs a terminal")
    chosen = seed if seed is not None else random.SystemRandom().randrange(1, 10**6)
    sys.exit(asyncio.run(_demo(chosen, keep=keep, model=model, hands_on=hands_on)))


async def _demo(seed: int, *, keep: bool, model: str, hands_on: bool) -> int:
    paint = Paint.for_stream()
    clock = SystemClock()
    begun = clock.now()
    click.echo(paint(f"Oikos demo · seed {seed}", "bold"))
    await asyncio.to_thread(make_ready, lambda line: click.echo(f"  {line}"))
    scene = await asyncio.to_thread(LabScene, "backup", seed)
    home = Path(tempfile.mkdtemp(prefix="oikos-demo-"))
    try:
        hosts = ", ".join(f"{e.slug} ({e.access.address})" for e in scene.entities if e.access is not None)
        took = seconds(clock.now().elapsed_since(begun))
        click.echo(f"  a real host is up: {hosts} — systemd, OpenSSH, its own network; {took}")
        config = lab_config(home, model, None, os.environ)
        await furnish(config, tuple(scene.entities))
        async with open_oikos(config) as oikos:
            story = _Story(oikos, paint, hands_on=hands_on)
            trial = await story.tell(scene)
            return await _sum_up(oikos, scene, trial, paint, clock.now().elapsed_since(begun))
    finally:
        await asyncio.to_thread(scene.close)
        if keep:
            click.echo(f"kept: OIKOS_HOME={home} oikos sessions show -")
        else:
            await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)


class _Story:
    """The two messages, and the one decision between them."""

    def __init__(self, oikos: Oikos, paint: Paint, *, hands_on: bool) -> None:
        self._oikos = oikos
        self._paint = paint
        self._hands_on = hands_on
        self.ticks = 0

    async def tell(self, scene: LabScene) -> Trial:
        """Play it through."""
        session_id = await self._oikos.open_session(SCRIPT)
        live = Live(self._oikos, session_id)
        turns: list[Turn] = []
        for text in (scene.prompt, scene.followup):
            click.echo("")
            after = live.state.seq
            state = await self._turn(live, session_id, text)
            truth = await asyncio.to_thread(scene.truth)
            records = tuple(await self._oikos.service.history(session_id, after=after))
            turns.append(Turn(session_id=session_id, text=text, state=state, records=records, truth=truth))
        audit = await self._oikos.store.verify()
        return Trial(
            turns=tuple(turns),
            inventory=await self._oikos.store.inventory(),
            outputs={},
            ticks=self.ticks,
            hosts=frozenset(entity.slug for entity in scene.entities),
            audit=audit.problems,
        )

    async def _turn(self, live: Live, session_id: str, text: str) -> State:
        by: Principal = SCRIPT
        sent = await self._oikos.service.send(session_id, text, by)
        if isinstance(sent, Refusal):
            raise OikosError(f"the message was refused: {sent.text}")
        seq = sent.seq
        while True:
            state = await live.until_settled(after=seq)
            card = card_of(session_id, state)
            if card is None:
                return state
            if card.plan is None:
                click.echo("\n".join(card_lines(card, self._paint)))
                return state
            if self._hands_on and not await self._person_agrees():
                done = await self._oikos.service.reject(session_id, by, reason="the person at the demo said no")
            else:
                who = "you approve" if self._hands_on else "the operator (script) approves"
                machines = ", ".join(scope.slug for scope in card.plan.scope)
                click.echo(self._paint(f"→ {who} plan {card.generation}: window 30 min on {machines}", "bold"))
                done = await self._oikos.service.approve(session_id, card, by)
            if isinstance(done, Refusal):
                raise OikosError(f"the decision was refused: {done.text}")
            seq = done.seq

    async def _person_agrees(self) -> bool:
        typed = await asyncio.to_thread(input, "approve this plan? type yes: ")
        return typed.strip().lower() == "yes"


async def _sum_up(oikos: Oikos, scene: LabScene, trial: Trial, paint: Paint, took_s: float) -> int:
    """The figures, and the hosts' own answer."""
    report = await oikos.store.verify()
    events = list(trial.events())
    goals = sum(isinstance(event, ev.GoalSet) for event in events)
    generations = trial.turns[-1].state.counted_plans
    facts = sum(len(event.facts) for event in events if isinstance(event, ev.FactsWritten))
    approvals = sum(isinstance(event, ev.PlanApproved) for event in events)
    recovered = recoveries(trial)
    wrong = await asyncio.to_thread(scene.check, "after")
    problems = list(wrong)
    problems += [
        f"turn {number} ended {turn.state.phase}"
        for number, turn in enumerate(trial.turns, 1)
        if turn.state.phase is not Phase.DONE
    ]
    problems += _answer_problems(trial)
    if generations != 2:
        problems.append(f"{generations} plan generations instead of 2")
    if recovered < 1:
        problems.append("no recovery happened")
    problems += report.problems
    click.echo("")
    click.echo(paint("SUMMARY", "bold") + f"  ({seconds(took_s)})")
    click.echo(f"  goals {goals} · generations {generations} · runs {len(trial.started())} · recoveries {recovered}")
    click.echo(f"  approvals {approvals} · operator ticks beyond the approval {trial.ticks} · facts written {facts}")
    click.echo(f"  audit {'ok' if not report.problems else 'BROKEN'}: {report.events} events, head {report.head[:16]}")
    for problem in problems:
        click.echo(paint(f"  ✕ {safe(problem)}", "red"))
    if not problems:
        click.echo(
            paint(
                "  ✓ checked against the hosts, not the transcript: the answer was true and the repair holds",
                "green",
            )
        )
    return 1 if problems else 0


def _answer_problems(trial: Trial) -> list[str]:
    """Whether the first answer said what the host itself says."""
    first = trial.turns[0]
    said = answer_text(Trial(turns=(first,), inventory=trial.inventory, outputs={}, ticks=0))
    problems: list[str] = []
    for key in ("last_run_started", "next_elapse"):
        wanted = str(first.truth[key])
        if wanted not in said:
            problems.append(f"the answer does not say {key.replace('_', ' ')}: {wanted}")
    failing = first.truth["failing_jobs"]
    names = failing if isinstance(failing, list) else [failing]
    problems += [f"the answer does not name the failing job {name}" for name in names if str(name) not in said]
    return problems
