"""What a deterministic model sees: the message list read as exchanges, and tool answers read as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oikos.domain.events import ToolCall
from oikos.ports import Message

SYSTEM_NOTE = "[oikos] "
"""Begins a user-role message that is not the operator's own text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A tool call with its answer; `body` is empty where the answer is no JSON object."""

    call: ToolCall
    text: str
    body: Mapping[str, object]

    @property
    def refused(self) -> str:
        """The refusal's code; empty when the call was carried out."""
        return str(self.body.get("refused", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One response of the model and everything it was shown before its next one.

    The first exchange of a conversation has no response: it holds what came before it.
    """

    reply: Message | None
    answers: tuple[Answered, ...] = ()
    operator: tuple[str, ...] = ()
    """What the operator typed."""
    notes: tuple[str, ...] = ()
    """What Oikos itself says, without its mark."""

    @property
    def shown(self) -> str:
        """All texts of the exchange, for looking something up in them."""
        return "\n".join((*(answer.text for answer in self.answers), *self.notes, *self.operator))


def exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """The conversation in order; its system prompt is left out."""
    made: list[Exchange] = []
    reply: Message | None = None
    block: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            made.append(_exchange(reply, block))
            reply, block = message, []
        elif message.role != "system":
            block.append(message)
    made.append(_exchange(reply, block))
    return made


def _exchange(reply: Message | None, block: Sequence[Message]) -> Exchange:
    answers = {message.call_id: message.text for message in block if message.role == "tool"}
    said = [message.text for message in block if message.role == "user"]
    return Exchange(
        reply=reply,
        answers=tuple(
            Answered(call=call, text=answers[call.id], body=body_of(answers[call.id]))
            for call in (reply.calls if reply is not None else ())
            if call.id in answers
        ),
        operator=tuple(text for text in said if not text.startswith(SYSTEM_NOTE)),
        notes=tuple(text.removeprefix(SYSTEM_NOTE) for text in said if text.startswith(SYSTEM_NOTE)),
    )


def body_of(text: str) -> Mapping[str, object]:
    """The JSON object of a tool's answer: the whole text, or its last line that is one."""
    for candidate in (text, *reversed(text.splitlines())):
        if candidate.lstrip().startswith("{"):
            try:
                body = json.loads(candidate)
            except ValueError:
                continue
            if isinstance(body, dict):
                return body
    return {}


def at(value: object, path: str) -> object:
    """The member that a dotted path leads to, such as `entities.0.name`; None when there is none."""
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, list) and part.lstrip("-").isdecimal() and -len(value) <= int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value
