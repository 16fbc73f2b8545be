"""`oikos ask`, `chat` and `watch`: conversations at the terminal."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence

import click
import orjson

from oikos.app.service import Card, Done, card_of
from oikos.bootstrap import Oikos, local_principal, open_oikos
from oikos.cli.card import card_lines
from oikos.cli.live import Live
from oikos.cli.paint import Paint, safe
from oikos.config import load
from oikos.domain import events as ev
from oikos.domain.consent import Channel, Principal
from oikos.domain.errors import Refusal
from oikos.domain.session import Phase, State
from oikos.domain.state import TERMINAL

EXIT_DONE, EXIT_FAILED, EXIT_WAITS, EXIT_REFUSED = 0, 2, 3, 4


def exit_code(state: State) -> int:
    """0 done, 2 failed, 3 waits for somebody, 4 refused (SPEC issue "exit codes of ask")."""
    match state.phase:
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
        live = Live(oikos, session_id, quiet=as_json)
        await live.skip()
        before = live.state.seq
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
        card = await oikos.service.card(state.session_id)
        if card is None or state.phase in TERMINAL:
            return state
        paint = Paint.for_stream()
        if interactive:
            done = await _prompt_card(oikos, card, by, paint)
            if done is None:
                return state
            after = done.seq
        elif wait and card.kind in ("plan", "run", "question", "limit"):
            click.echo("\n".join(card_lines(card, paint)))
            after = state.seq + 1
        else:
            if not live.quiet:
                click.echo("\n".join(card_lines(card, paint)))
            return state


async def _prompt_card(oikos: Oikos, card: Card, by: Principal, paint: Paint) -> Done | None:
    """Show a card and read what the operator says to it; None when they leave it open."""
    click.echo("\n".join(card_lines(card, paint)))
    while True:
        text = await _read_line("> ")
        if text is None:
            return None
        if not text.strip():
            continue  # Enter alone never decides anything
        result = await _say(oikos, card, text.strip(), by)
        if isinstance(result, Refusal):
            click.echo(paint(f"refused ({result.code}): {safe(result.text)}", "yellow"))
            continue
        if result.notice:
            click.echo(safe(result.notice))
        state = await oikos.service.state(card.session_id)
        again = card_of(card.session_id, state)
        if again is None or again.digest != card.digest or again.kind != card.kind or not result.notice:
            return result
        card = again


async def _say(oikos: Oikos, card: Card, text: str, by: Principal) -> Done | Refusal:
    if card.run is not None and card.run.phrase and text == card.run.phrase:
        return await oikos.service.confirm(card.session_id, text, by)
    if card.plan is not None:
        phrases = {command.preauthorise.phrase for _, command in card.plan.destructive_items() if command.preauthorise}
        if text in phrases:
            return await oikos.service.confirm(card.session_id, text, by)
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
    said = [record.event.text for record in records if isinstance(record.event, ev.AssistantSaid) and record.event.text.strip()]
    return said[-1] if said else ""


def summary(session_id: str, state: State) -> dict[str, object]:
    """A session as one JSON object."""
    card = card_of(session_id, state)
    body: dict[str, object] = {
        "session": session_id, "state": state.phase.value, "goal": state.goal, "outcome": state.outcome, "summary": state.summary,
        "generation": state.generation, "plan_generations": state.counted_plans,
        "runs": [run.order.run_id for run in state.runs.values() if run.authority != "probe"],
    }  # fmt: skip
    if card is not None:
        body["waits_for"] = {"kind": card.kind, "text": card.text, "generation": card.generation, "digest": card.digest}
    return body


async def _read_line(prompt: str) -> str | None:
    """One line from the terminal without blocking the work; None at end of input."""
    try:
        return await asyncio.to_thread(input, prompt)
    except EOFError:
        return None


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
        click.echo(f"Nomos · session {session_id[:8]} · {targets} targets · model {oikos.model.name} · Ctrl-C halts, Ctrl-D leaves")
        live = Live(oikos, session_id)
        state = await live.until_settled() if session else live.state
        while True:
            with _halting(oikos, session_id, by):
                state = await _follow(oikos, live, by, after=state.seq, interactive=True, wait=False)
            text = await _read_line(paint("> ", "bold"))
            if text is None:
                return exit_code(state)
            if not text.strip():
                continue
            sent = await oikos.service.send(session_id, text.strip(), by, shown=card_of(session_id, live.state))
            if isinstance(sent, Refusal):
                _say_refusal(sent, session_id, as_json=False)
                continue
            if sent.notice:
                click.echo(safe(sent.notice))
            state = await live.until_settled(after=sent.seq)


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
        stop: Callable[[], bool] = lambda: live.state.phase in TERMINAL  # noqa: E731 - one word for the loop below
        state = await live.until_settled(forever=False)
        while not stop():
            state = await live.until_settled(after=state.seq + 1)
