"""`oikos ask`, `chat` and `watch`: conversations at the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

import click
import orjson

from oikos.app.service import Card, Done, card_of
from oikos.bootstrap import Oikos, local_principal, open_oikos
from oikos.cli.card import card_lines
from oikos.cli.live import Live
from oikos.cli.paint import Paint, safe
from oikos.config import load
from oikos.domain import events as ev
from oikos.domain.consent import SNAPSHOT_PHRASE, Channel, Principal
from oikos.domain.errors import Refusal
from oikos.domain.plan import PlanStatus
from oikos.domain.session import Phase, State
from oikos.domain.state import TERMINAL

EXIT_DONE, EXIT_FAILED, EXIT_WAITS, EXIT_REFUSED = 0, 2, 3, 4


def exit_code(state: State) -> int:
    """0 done or answered, 2 failed or stopped, 3 waits for somebody, 4 the operator rejected the plan."""
    match state.phase:
        case Phase.IDLE if state.status is PlanStatus.REJECTED:
            return EXIT_REFUSED
        case Phase.DONE | Phase.IDLE:
            return EXIT_DONE
        case Phase.FAILED | Phase.STOPPED:
            return EXIT_FAILED
        case Phase.AWAITING | Phase.BLOCKED | Phase.WAITING | Phase.EXECUTING:
            return EXIT_WAITS


@click.command()
@click.argument("text")
@click.option("--session", "-s", default="", help="Follow up in this session (an id's beginning, or - for the newest).")
@click.option("--look", is_flag=True, help="A session that may only look.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
@click.option("--wait", is_flag=True, help="Stay while it waits for an approval that another process gives.")
def ask(text: str, session: str, look: bool, as_json: bool, wait: bool) -> None:
    """Ask for one thing and follow it to its end.

    Exit code: 0 done, 2 failed, 3 waits for approval or an answer, 4 refused.
    """
    sys.exit(asyncio.run(_ask(text, session, look=look, as_json=as_json, wait=wait)))


async def _ask(text: str, session: str, *, look: bool, as_json: bool, wait: bool) -> int:
    config = load()
    by = local_principal(config, channel=Channel.CHAT)
    chosen = [""]
    async with open_oikos(config, only=lambda: chosen[0] or "none") as oikos:
        if session:
            session_id = await oikos.service.find(session)
        else:
            session_id = await oikos.open_session(by, mode="look" if look else "ask")
        chosen[0] = session_id
        live = Live(oikos, session_id, quiet=as_json, cards=True, patient=wait or by.attended)
        await live.skip()
        before, live.typed = live.state.seq, text
        if not as_json:
            click.echo(Paint.for_stream()(f"session {session_id[:8]} · model {oikos.model.name}", "dim"))
        sent = await oikos.service.send(session_id, text, by, shown=card_of(session_id, live.state))
        if isinstance(sent, Refusal):
            _say_refusal(sent, session_id, as_json=as_json)
            return EXIT_REFUSED
        if sent.notice and not as_json:
            click.echo(safe(sent.notice))
        with _halting(oikos, session_id, by):
            state = await _follow(oikos, live, by, after=sent.seq, interactive=not as_json and by.attended, wait=wait)
        if as_json:
            answer = last_words(await oikos.service.history(session_id, after=before))
            body = {**summary(session_id, state), "answer": answer}
            click.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())
        return exit_code(state)


async def _follow(oikos: Oikos, live: Live, by: Principal, *, after: int, interactive: bool, wait: bool) -> State:
    """Follow to the end; at a terminal the operator is asked on the way."""
    while True:
        state = await live.until_settled(after=after)
        card = card_of(live.session_id, state)
        if card is None or state.phase in TERMINAL:
            return state
        click.echo("\n".join(card_lines(card, Paint.for_stream())), err=live.quiet)
        if interactive:
            seq = await _prompt_card(oikos, live, card, by)
            if seq is None:
                return state
            after = seq
        elif wait and card.kind in ("plan", "run", "question", "limit"):
            after = state.seq + 1
        else:
            return state


async def _prompt_card(oikos: Oikos, live: Live, card: Card, by: Principal) -> int | None:
    """Read what the operator says to a card until something happens; the seq to follow from, None when they leave."""
    paint = Paint.for_stream()
    async with Lines() as lines:
        while True:
            # Somebody else may decide it meanwhile: whichever comes first counts.
            reading = oikos.tasks.create_task(lines.next(paint("> ", "bold")))
            moving = oikos.tasks.create_task(live.until_settled(after=live.state.seq + 1))
            await asyncio.wait((reading, moving), return_when=asyncio.FIRST_COMPLETED)
            moving.cancel()
            if not reading.done():
                reading.cancel()
                return live.state.seq
            text = reading.result()
            if text is None:
                return None
            if not text.strip():
                continue  # Enter alone never decides anything
            live.typed = text.strip()
            result = await _say(oikos, card, live.typed, by)
            if isinstance(result, Refusal):
                click.echo(paint(f"refused ({result.code}): {safe(result.text)}", "yellow"))
                continue
            if result.notice:
                click.echo(safe(result.notice))
            return result.seq


async def _say(oikos: Oikos, card: Card, text: str, by: Principal) -> Done | Refusal:
    if card.run is not None and card.run.phrase and text == card.run.phrase:
        return await oikos.service.confirm(card.session_id, text, by, shown=card)
    if card.plan is not None:
        phrases = {command.preauthorise.phrase for _, command in card.plan.destructive_items() if command.preauthorise}
        if text in phrases or (card.plan.snapshots and text.casefold() == SNAPSHOT_PHRASE):
            return await oikos.service.confirm(card.session_id, text, by, shown=card)
    if text in ("raise", "continue", "go") and card.kind == "limit":
        return await oikos.service.raise_limits(card.session_id, by)
    return await oikos.service.send(card.session_id, text, by, shown=card)


def _say_refusal(refusal: Refusal, session_id: str, *, as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps({"session": session_id, "refused": refusal.code.value, "text": refusal.text}).decode())
    else:
        click.echo(f"refused ({refusal.code}): {safe(refusal.text)}", err=True)


def last_words(records: Sequence[ev.Recorded]) -> str:
    """What Nomos said last."""
    said = [
        record.event.text
        for record in records
        if isinstance(record.event, ev.AssistantSaid) and record.event.text.strip()
    ]
    return said[-1] if said else ""


def summary(session_id: str, state: State) -> dict[str, object]:
    """A session as one JSON object."""
    card = card_of(session_id, state)
    body: dict[str, object] = {
        "session": session_id,
        "state": state.phase.value,
        "goal": state.goal,
        "outcome": state.outcome,
        "summary": state.summary,
        "generation": state.generation,
        "plan_generations": state.counted_plans,
        "runs": [run.order.run_id for run in state.runs.values() if run.authority != "probe"],
    }
    if card is not None:
        body["waits_for"] = {"kind": card.kind, "text": card.text, "generation": card.generation, "digest": card.digest}
    return body


class Lines:
    """Lines from standard input, read only while somebody wants one, so that waiting for it can be given up."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        self._ready = asyncio.Event()
        self._watched = False

    async def __aenter__(self) -> Lines:
        try:
            asyncio.get_running_loop().add_reader(self._descriptor, self._ready.set)
            self._watched = True
        except PermissionError:  # a plain file is always ready, and cannot be watched
            self._ready.set()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self._watched:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    async def next(self, prompt: str) -> str | None:
        """One line; None at end of input."""
        click.echo(prompt, nl=False)
        line = b""
        while not line.endswith(b"\n"):
            await self._ready.wait()
            if self._watched:
                self._ready.clear()
            piece = os.read(self._descriptor, 1)  # ready, so it does not block; byte by byte, the rest is the next line
            if not piece:
                break
            line += piece
        return line.decode("utf-8", "replace").rstrip("\r\n") if line else None


class _halting:
    """While it lasts, Ctrl-C halts the session instead of killing the process (SPEC R1.8); a second one leaves."""

    def __init__(self, oikos: Oikos, session_id: str, by: Principal) -> None:
        self._oikos, self._session_id, self._by = oikos, session_id, by
        self._pressed = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._press)

    def __exit__(self, *_exc: object) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _press(self) -> None:
        self._pressed += 1
        if self._pressed > 1:
            click.echo(f"\nleaving; the session goes on when you say so: oikos chat {self._session_id[:8]}", err=True)
            signal.raise_signal(signal.SIGTERM)
            return
        task = asyncio.ensure_future(self._halt())  # allow: bare-task - kept in a set until it is done
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _halt(self) -> None:
        result = await self._oikos.service.send(self._session_id, "halt", self._by)
        click.echo("\n" + (safe(result.text) if isinstance(result, Refusal) else safe(result.notice)), err=True)


@click.command()
@click.argument("session", default="")
@click.option("--look", is_flag=True, help="A session that may only look.")
def chat(session: str = "", look: bool = False) -> None:
    """Talk to Nomos; SESSION continues one (an id's beginning, or - for the newest)."""
    sys.exit(asyncio.run(_chat(session, look=look)))


async def _chat(session: str, *, look: bool) -> int:
    config = load()
    by = local_principal(config, channel=Channel.CHAT)
    paint = Paint.for_stream()
    chosen = [""]
    async with open_oikos(config, only=lambda: chosen[0] or "none") as oikos:
        if session:
            session_id = await oikos.service.find(session)
        else:
            session_id = await oikos.open_session(by, mode="look" if look else "ask")
        chosen[0] = session_id
        inventory = await oikos.fleet.inventory()
        targets = sum(entity.access is not None for entity in inventory.entities.values())
        of = "1 target" if targets == 1 else f"{targets} targets"
        click.echo(f"Nomos · session {session_id[:8]} · {of} · model {oikos.model.name} · Ctrl-C halts, Ctrl-D leaves")
        live = Live(oikos, session_id, cards=True)
        after = 0
        with _halting(oikos, session_id, by):
            while True:
                state = await _follow(oikos, live, by, after=after, interactive=True, wait=False)
                if card_of(session_id, state) is not None and state.phase not in TERMINAL:
                    return exit_code(state)  # they left the card open
                async with Lines() as lines:
                    text = await lines.next(paint("> ", "bold"))
                if text is None:
                    return exit_code(state)
                if not text.strip():
                    continue
                live.typed = text.strip()
                sent = await oikos.service.send(session_id, live.typed, by)
                if isinstance(sent, Refusal):
                    _say_refusal(sent, session_id, as_json=False)
                    continue
                if sent.notice:
                    click.echo(safe(sent.notice))
                after = sent.seq


@click.command()
@click.argument("session", default="-")
@click.option("--whole", is_flag=True, help="With reasoning and every tool call.")
def watch(session: str, whole: bool) -> None:
    """Follow SESSION as it happens, from its beginning; does not work on it."""
    asyncio.run(_watch(session, whole=whole))


async def _watch(session: str, *, whole: bool) -> None:
    async with open_oikos(load(), work=False) as oikos:
        session_id = await oikos.service.find(session)
        live = Live(oikos, session_id, whole=whole)
        state = await live.until_settled()
        while state.phase not in TERMINAL:
            state = await live.until_settled(after=state.seq + 1)
