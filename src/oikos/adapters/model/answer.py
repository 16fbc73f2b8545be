"""One streamed chat completion, from bytes to a whole Reply or a reason why there is none; no input or output.

Servers that call themselves compatible differ in many small ways. Each that is handled here is played from a
recorded shape in `tests/model/wire/`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

import orjson

from oikos.adapters.model.failure import failure_in, one_line
from oikos.domain.errors import ModelError
from oikos.domain.events import ToolCall
from oikos.ports import Reply, TextDelta

BODY_CAP_BYTES: Final = 16 * 1024 * 1024
LINE_CAP_BYTES: Final = 2 * 1024 * 1024
TEXT_CAP_CHARS: Final = 1024 * 1024
CALLS_CAP: Final = 64


class _Call:
    """A tool call while its pieces arrive."""

    __slots__ = ("arguments", "extra", "id", "name", "size")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.size = 0
        self.extra: object = None


class Answer:
    """Takes the pieces of one answer; everything but plain dictionaries is made once, at the end."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        self._taken = set(taken)
        """Call ids of this conversation: a new one must differ from each."""
        self._tail = b""
        self._bytes = 0
        self._chars = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._details: list[object] = []
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish = ""
        self._done = False
        self._tokens = (0, 0)

    @property
    def done(self) -> bool:
        """Whether the server said that nothing more follows."""
        return self._done

    def feed(self, data: bytes) -> list[TextDelta]:
        """Takes what one read brought; gives at most one delta of text and one of reasoning in a row.

        Raises:
            ModelError: the answer is broken, too long, or an error in disguise.
        """
        self._bytes += len(data)
        if self._bytes > BODY_CAP_BYTES:
            raise ModelError(f"the answer exceeds {BODY_CAP_BYTES >> 20} MiB", retryable=True)
        lines = (self._tail + data).split(b"\n")
        self._tail = lines.pop()
        if len(self._tail) > LINE_CAP_BYTES:
            raise ModelError(f"one event of the answer exceeds {LINE_CAP_BYTES >> 20} MiB", retryable=True)
        text_from, reasoning_from = len(self._text), len(self._reasoning)
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:])
        deltas = []
        if len(self._reasoning) > reasoning_from:
            deltas.append(TextDelta(text="".join(self._reasoning[reasoning_from:]), reasoning=True))
        if len(self._text) > text_from:
            deltas.append(TextDelta(text="".join(self._text[text_from:])))
        return deltas

    def whole(self, data: bytes) -> None:
        """Takes an answer that came in one piece although a stream was asked for.

        Raises:
            ModelError: it is no completion.
        """
        completion = _loads(data)
        self._take(completion)
        if not completion.get("choices"):
            raise ModelError("the answer is JSON of another form than a chat completion", retryable=True)
        self._done = True

    def reply(self) -> Reply:
        """The whole answer.

        Raises:
            ModelError: it was cut, is empty, or was ended by a limit: nothing of it is used.
        """
        if self._tail.startswith(b"data:"):
            self._event(self._tail[5:])
            self._tail = b""
        if not (self._finish or self._done):
            raise ModelError("the answer was cut off", retryable=True)
        if self._finish == "content_filter":
            raise ModelError("the provider's content filter withheld the answer: rephrase, or use another model",
                             retryable=False)  # fmt: skip
        text = _scalar("".join(self._text))
        calls = self._finished_calls()
        if self._finish == "length" and (calls or not text.strip()):
            raise ModelError(
                "the answer reached the model's token limit before it was whole: serve the model with a larger context "
                "or output limit",
                retryable=False,
            )
        if not calls and not text.strip():
            raise ModelError("the answer is empty", retryable=True)
        return Reply(
            text=text,
            reasoning=_scalar("".join(self._reasoning)),
            calls=calls,
            opaque=self._opaque(calls),
            tokens_in=self._tokens[0],
            tokens_out=self._tokens[1],
        )

    def _event(self, data: bytes) -> None:
        data = data.strip()
        if data == b"[DONE]":
            self._done = True
        elif data:
            self._take(_loads(data))

    def _take(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error") or chunk.get("object") == "error":
            raise failure_in(chunk)
        choices = chunk.get("choices")
        if choices and type(choices) is list:
            choice = choices[0]
            if type(choice) is dict:
                delta = choice.get("delta") or choice.get("message")
                if type(delta) is dict:
                    self._delta(delta)
                if finish := choice.get("finish_reason"):
                    if finish == "error":
                        raise failure_in(choice)
                    self._finish = str(finish)
        usage = chunk.get("usage")
        if type(usage) is dict:
            self._tokens = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))

    def _delta(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        if content:
            if type(content) is str:
                self._say(self._text, content)
            else:
                self._parts(content)
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if type(reasoning) is str and reasoning:
            self._say(self._reasoning, reasoning)
        if type(refusal := delta.get("refusal")) is str and refusal:
            self._say(self._text, refusal)
        if type(details := delta.get("reasoning_details")) is list:
            self._details.extend(details)
        if type(pieces := delta.get("tool_calls")) is list:
            for piece in pieces:
                if type(piece) is dict:
                    self._call(piece)

    def _say(self, where: list[str], text: str) -> None:
        where.append(text)
        self._chars += len(text)
        if self._chars > TEXT_CAP_CHARS:
            raise ModelError("the answer does not end: more than a million characters", retryable=True)

    def _parts(self, content: object) -> None:
        """Content as a list of typed parts, as Mistral's reasoning models send it."""
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            if isinstance(part.get("text"), str):
                self._say(self._text, part["text"])
            thoughts = part.get("thinking")
            for thought in thoughts if isinstance(thoughts, list) else ():
                if isinstance(thought, dict) and isinstance(thought.get("text"), str):
                    self._say(self._reasoning, thought["text"])

    def _call(self, piece: dict[str, Any]) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        name = function.get("name")
        call_id = piece.get("id")
        call = self._slot(piece.get("index"), call_id if isinstance(call_id, str) else "", bool(name))
        if isinstance(call_id, str) and call_id:
            call.id = call_id
        if isinstance(name, str) and name != call.name:
            call.name += name
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):  # an object where its text belongs
            arguments = _compact(arguments)
        if isinstance(arguments, str):
            call.arguments.append(arguments)
            call.size += len(arguments)
            if call.size > TEXT_CAP_CHARS:
                raise ModelError("the arguments of a tool call do not end", retryable=True)
        if piece.get("extra_content") is not None:
            call.extra = piece["extra_content"]

    def _slot(self, index: object, call_id: str, named: bool) -> _Call:
        """The call a piece belongs to: by its index, but a new id under a known index is a new call (Ollama)."""
        known = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        if known is not None:
            new_id = bool(call_id and known.id and call_id != known.id)
            if not new_id and not (named and not isinstance(index, int) and not call_id):
                return known
        if len(self._calls) >= CALLS_CAP:
            raise ModelError(f"the answer holds more than {CALLS_CAP} tool calls", retryable=True)
        call = _Call()
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def _finished_calls(self) -> tuple[ToolCall, ...]:
        taken = self._taken
        calls = []
        for call in self._calls:
            arguments = _scalar("".join(call.arguments)).strip() or "{}"
            call.id = unique_id(_scalar(call.id), taken)
            taken.add(call.id)
            calls.append(ToolCall(id=call.id, name=_scalar(call.name).strip(), arguments=arguments))
        return tuple(calls)

    def _opaque(self, calls: tuple[ToolCall, ...]) -> str:
        """What some gateways want back verbatim: signed reasoning, and signatures beside calls."""
        keep: dict[str, object] = {}
        if self._details:
            keep["reasoning_details"] = self._details
        extras = {made.id: call.extra for made, call in zip(calls, self._calls, strict=True) if call.extra is not None}
        if extras:
            keep["extra_content"] = extras
        return _scalar(_compact(keep)) if keep else ""


def unique_id(wanted: str, taken: Collection[str]) -> str:
    """`wanted`, or where that is empty or taken a new id of nine letters and digits (the strictest known form)."""
    if wanted and len(wanted) <= 128 and wanted not in taken:
        return wanted
    number = len(taken) + 1
    while (made := f"call{number:05d}") in taken:
        number += 1
    return made


def _loads(data: bytes) -> dict[str, Any]:
    try:
        chunk = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            chunk = json.loads(data)  # tolerates lone surrogates, which _scalar mends
        except ValueError:
            raise ModelError(f"the answer is no valid JSON: {one_line(data[:80])}", retryable=True) from None
    if not isinstance(chunk, dict):
        raise ModelError("the answer is JSON of another form than a chat completion", retryable=True)
    return chunk


def _scalar(text: str) -> str:
    """The text without what no database and no peer takes: halves of a pair are joined, or replaced (DESIGN §6.4)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "␀") if "\0" in text else text


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
