"""The runbook brain: a model that needs no network and no key (SPEC R8.2).

Its reply is a pure function of the message list: the procedure of a conversation is played from the beginning on
every request, fed with what the list says happened, and its next response is the reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path

from oikos.adapters.model.book import Intent, Runbook
from oikos.adapters.model.learned import Learned
from oikos.adapters.model.mend import Mending
from oikos.adapters.model.play import Memory, Play
from oikos.adapters.model.runbook_file import load_runbooks
from oikos.adapters.model.talk import GaveUp, Interrupted, Talk, Turn
from oikos.adapters.model.transcript import Exchange, exchanges
from oikos.domain.errors import ModelError
from oikos.domain.events import ToolCall
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec


class RunbookBrain:
    """The Model port over a set of runbooks."""

    def __init__(self, books: Sequence[Runbook]) -> None:
        self._books = tuple(books)

    @property
    def name(self) -> str:
        """`runbook`."""
        return "runbook"

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """Says what the runbooks say; see the Model port.

        Raises:
            ModelError: the messages are another model's, or of other runbooks: it cannot go on from them.
        """
        reply = self.reply(messages)
        if reply.text:
            yield TextDelta(text=reply.text)
        yield reply

    async def close(self) -> None:
        """Nothing to let go of."""

    def reply(self, messages: Sequence[Message]) -> Reply:
        """The response to a message list; raises as `stream` does."""
        past = exchanges(messages)
        playing = converse(self._books, past[0])
        turn = next(playing)
        for exchange in past[1:]:
            _same(turn, exchange)
            turn = playing.send(exchange)
        number = len(past)
        calls = tuple(
            ToolCall(id=f"rb{number}-{position}", name=name, arguments=json.dumps(args, ensure_ascii=False))
            for position, (name, args) in enumerate(turn.calls, start=1)
        )
        return Reply(text=turn.text, calls=calls)


def load(directory: Path) -> RunbookBrain:
    """A brain over the runbooks (`*.yaml`) of a directory.

    Raises:
        ConfigError: a runbook cannot be used; file, line and what was expected.
    """
    return RunbookBrain(load_runbooks(directory))


def converse(books: Sequence[Runbook], first: Exchange) -> Generator[Turn, Exchange, None]:
    """A whole conversation: one request of the operator after another, with what the former taught."""
    talk = Talk(exchange=first)
    texts = first.operator
    memory: Memory | None = None
    while True:
        said = texts[-1] if texts else ""
        talk = Talk(exchange=talk.exchange)
        play: Play | None = None
        try:
            chosen = choose(books, said, memory)
            if chosen is None:
                yield from talk.turn(Turn(text=_unknown(books, said)))
            else:
                book, intent, found = chosen
                learned = Learned()
                for name, value in found.items():
                    learned.put(name, value)
                play = Play(book=book, talk=talk, learned=learned, said=said, repairing=intent.repair)
                try:
                    yield from _request(play, intent, memory)
                except GaveUp as gave_up:
                    yield from play.give_up(str(gave_up))
            texts = yield from _next(talk)
        except GaveUp as gave_up:  # not even giving up was answered
            talk = Talk(exchange=talk.exchange)
            try:
                yield from talk.turn(Turn(text=f"I cannot go on: {gave_up}"))
                texts = yield from _next(talk)
            except Interrupted as interrupted:
                texts = interrupted.texts
        except Interrupted as interrupted:
            texts = interrupted.texts
        if play is not None and play.host:
            memory = play.memory()


def _request(play: Play, intent: Intent, memory: Memory | None) -> Generator[Turn, Exchange, None]:
    if play.book.listing is not None:
        yield from play.enumerate()
    elif intent.repair:
        repair = play.book.repair
        assert repair is not None, "the reader refuses such an intent"
        case = yield from play.find(repair, memory)
        if case is not None:
            yield from Mending(play, repair).mend(case)
    else:
        yield from play.look()


def _next(talk: Talk) -> Generator[Turn, Exchange, tuple[str, ...]]:
    """What the operator says next; until then there is nothing to do."""
    while not talk.exchange.operator:
        yield from talk.turn(Turn(text="There is nothing left for me to do here; what is next is up to you."))
    return talk.exchange.operator


def choose(books: Sequence[Runbook], said: str, memory: Memory | None) -> tuple[Runbook, Intent, dict[str, str]] | None:
    """The runbook whose intent says most of what was said, and the slots it found; None when none fits."""
    best: tuple[int, Runbook, Intent, dict[str, str]] | None = None
    text = " ".join(said.split())
    for book in books:
        for intent in book.intents:
            if intent.follow_up and (memory is None or memory.book.name != book.name):
                continue
            found = intent.pattern.search(text)
            if found is None:
                continue
            slots = {name: value for name, value in found.groupdict().items() if value}
            weight = len(found[0]) - sum(map(len, slots.values()))
            if best is None or weight > best[0]:
                best = (weight, book, intent, slots)
    return best[1:] if best is not None else None


def _unknown(books: Sequence[Runbook], said: str) -> str:
    known = "\n".join(f"- {book.title}, for example: {_example(book)}" for book in books)
    if not said:
        return f"I work from runbooks and need a request. I know:\n{known}"
    return f"I have no runbook for that. I know:\n{known}"


def _example(book: Runbook) -> str:
    said = book.intents[0].said
    return " ".join(re.sub(r"\[[^\]]*\]|\.\.\.", " ", re.sub(r"\(([^|)]*)\|[^)]*\)", r"\1", said)).split())


def _same(turn: Turn, exchange: Exchange) -> None:
    """Whether history is what this brain would have said: other runbooks, or another model, said something else."""
    reply = exchange.reply
    said = [call.name for call in reply.calls] if reply is not None else []
    if said != [name for name, _ in turn.calls]:
        raise ModelError(
            "the conversation was led by another model or by other runbooks, and the runbook brain cannot go on from "
            "it: begin a new session",
            retryable=False,
        )
