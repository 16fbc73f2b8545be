"""A model behind an OpenAI-compatible chat-completions endpoint (SPEC R8.1).

A request is bytes: every message is encoded once in its life and joined into the body. An answer is parsed with
as little as possible per delta, and is either whole or not used: whatever breaks is tried again, visibly, a
bounded number of times.
"""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from oikos.adapters.model.answer import Answer
from oikos.adapters.model.endpoint import Endpoint
from oikos.adapters.model.failure import failure, one_line
from oikos.adapters.model.wire import Exchange, Wire, WireError
from oikos.domain.errors import ModelError
from oikos.domain.events import ToolCall
from oikos.ports import Clock, Message, Reply, Retrying, TextDelta, ToolSpec

ATTEMPTS: Final = 4
FIRST_DELAY_S: Final = 1.0
LONGEST_DELAY_S: Final = 60.0
"""Also of what a provider may ask for; beyond it the session is parked instead of holding a turn."""
FINISH_GRACE_S: Final = 0.5
ERROR_BODY_BYTES: Final = 64 * 1024
UNFIT_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


class Provider:
    """The Model port over HTTP. Deltas that precede a Retrying are void: the answer begins anew after it."""

    def __init__(self, endpoint: Endpoint, *, clock: Clock, attempts: int = ATTEMPTS, seed: int | None = None) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._attempts = attempts
        self._chance = random.Random(seed)
        self._wire = Wire(endpoint)
        self._usage = True
        """Ask for token counts; off once a server said that it does not know the option."""
        self._spoken: WeakKeyDictionary[Message, _Spoken] = WeakKeyDictionary()
        """By the message that a conversation begins with."""
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    @property
    def name(self) -> str:
        """The model's name, as the server knows it."""
        return self._endpoint.model

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """Asks the endpoint; see the Model port.

        Raises:
            ModelError: after the last attempt, or at once where another attempt cannot help.
        """
        spoken = self._spoken.setdefault(messages[0], _Spoken())
        spoken.follow(messages)
        attempt = 1
        while True:
            try:
                async with aclosing(self._attempt(self._body(spoken, tools), spoken.ids)) as parts:
                    async for part in parts:
                        yield part
                return
            except WireError as error:
                failed = ModelError(f"{self._endpoint.origin} {error}", retryable=True)
            except ModelError as error:
                if self._usage and "stream_options" in str(error):
                    self._usage = False
                    continue
                failed = error
            delay_s = self._delay_s(attempt, failed)
            if not failed.retryable or attempt >= self._attempts or delay_s > LONGEST_DELAY_S:
                tried = f" (tried {attempt} times)" if attempt > 1 else ""
                raise ModelError(
                    self._masked(f"model {self.name}: {failed}{tried}"),
                    retryable=failed.retryable,
                    retry_after_s=failed.retry_after_s,
                )
            yield Retrying(attempt=attempt, delay_s=delay_s, reason=self._masked(str(failed)))
            await self._clock.sleep(delay_s)
            attempt += 1

    async def close(self) -> None:
        """Lets go of the kept connections."""
        await self._wire.close()

    async def _attempt(self, body: bytes, taken: set[str]) -> AsyncGenerator[TextDelta | Reply, None]:
        answer = Answer(taken)
        async with self._wire.post(body) as (status, headers, exchange):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if status != 200:
                raise failure(
                    status,
                    await self._rest(exchange, ERROR_BODY_BYTES),
                    model=self.name,
                    origin=self._endpoint.origin,
                    retry_after_s=self._retry_after_s(headers),
                )
            if kind == "application/json":
                answer.whole(await self._rest(exchange, None))
            elif kind in ("text/event-stream", ""):
                async with aclosing(exchange.chunks(self._endpoint.deadlines.idle_s)) as chunks:
                    async for data in chunks:
                        for delta in answer.feed(data):
                            yield delta
                        if answer.done:
                            break
                await exchange.finish(FINISH_GRACE_S)
            else:
                raise ModelError(
                    f"{self._endpoint.origin} answered {one_line(kind)!r} instead of an event stream: check base_url, "
                    "which usually ends in /v1",
                    retryable=False,
                )
            reply = answer.reply()
        yield reply

    async def _rest(self, exchange: Exchange, cap: int | None) -> bytes:
        """A body that comes in one piece; a longer one is cut, or refused where no cap is given."""
        pieces, size, limit = [], 0, cap or 16 * 1024 * 1024
        async with aclosing(exchange.chunks(self._endpoint.deadlines.idle_s)) as chunks:
            async for data in chunks:
                pieces.append(data)
                size += len(data)
                if size > limit:
                    if cap is None:
                        raise ModelError(f"the answer exceeds {limit >> 20} MiB", retryable=True)
                    break
        return b"".join(pieces)

    def _body(self, spoken: _Spoken, tools: Sequence[ToolSpec]) -> bytes:
        head: dict[str, object] = {"model": self._endpoint.model, "stream": True}
        if self._usage:
            head["stream_options"] = {"include_usage": True}
        head.update(self._endpoint.options)
        offered = b',"tools":' + self._encode_tools(tools) if tools else b""
        return b'%b%b,"messages":[%b]}' % (orjson.dumps(head)[:-1], offered, b",".join(spoken.parts))

    def _encode_tools(self, tools: Sequence[ToolSpec]) -> bytes:
        known, encoded = self._tools
        if len(known) != len(tools) or any(one is not other for one, other in zip(known, tools, strict=True)):
            encoded = orjson.dumps(
                [
                    {
                        "type": "function",
                        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                    }
                    for tool in tools
                ]
            )
            self._tools = (tuple(tools), encoded)
        return encoded

    def _delay_s(self, attempt: int, failed: ModelError) -> float:
        """Doubling with up to a quarter of chance, never less than the provider asked for."""
        backoff_s = FIRST_DELAY_S * float(2 ** (attempt - 1)) * (1 + self._chance.random() / 4)
        return max(min(backoff_s, LONGEST_DELAY_S), failed.retry_after_s or 0.0)

    def _retry_after_s(self, headers: dict[str, str]) -> float | None:
        """What the provider asks to wait: seconds, or a date by the controller's clock."""
        text = headers.get("retry-after", "").strip()
        if not text:
            return None
        try:
            wait_s = float(text)
        except ValueError:
            from email.utils import parsedate_to_datetime  # rare, and slow to import

            try:
                wait_s = parsedate_to_datetime(text).timestamp() - self._clock.now().wall_s
            except ValueError:
                return None
        return min(max(wait_s, 0.0), 86_400.0) if wait_s == wait_s else None

    def _masked(self, text: str) -> str:
        key = self._endpoint.key
        return text.replace(key, "[API key]") if key else text


class _Spoken:
    """A conversation as bytes; it grows at its end, and begins anew when it was told differently."""

    __slots__ = ("_after", "ids", "parts")

    def __init__(self) -> None:
        self._after: list[Message] = []
        """What follows the first message, by which it is known and kept alive."""
        self.parts: list[bytes] = []
        self.ids: set[str] = set()
        """Of every call in it."""

    def follow(self, messages: Sequence[Message]) -> None:
        """Take in what came since; what is known is compared by identity."""
        known = len(self.parts)
        if not known or list(messages[1:known]) != self._after:
            self._after, self.parts, self.ids, known = [], [], set(), 0
        for message in messages[known:]:
            self.parts.append(_encode(message))
            self.ids.update([call.id for call in message.calls])
        self._after.extend(messages[max(known, 1) :])


def _encode(message: Message) -> bytes:
    """A message as the chat-completions format has it."""
    fields: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.role == "tool":
        fields["tool_call_id"] = message.call_id
    if message.calls:
        fields["content"] = message.text or None
        fields["tool_calls"] = [_encode_call(call) for call in message.calls]
    if message.opaque:
        _give_back(fields, message.opaque)
    return orjson.dumps(fields)


def _encode_call(call: ToolCall) -> dict[str, Any]:
    """A call as it is shown again: what was malformed is wrapped, since servers parse their own history."""
    try:
        fit = isinstance(orjson.loads(call.arguments), dict)
    except orjson.JSONDecodeError:
        fit = False
    arguments = call.arguments if fit else orjson.dumps({"malformed_arguments": call.arguments}).decode()
    name = UNFIT_NAME.sub("_", call.name)[:64] or "unnamed"
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _give_back(fields: dict[str, Any], opaque: str) -> None:
    """Puts what the provider wanted back to its places; anything else is another model's and left out."""
    kept = orjson.loads(opaque)
    if not isinstance(kept, dict):
        return
    if "reasoning_details" in kept:
        fields["reasoning_details"] = kept["reasoning_details"]
    extras = kept.get("extra_content")
    if isinstance(extras, dict):
        for call in fields.get("tool_calls", ()):
            if call["id"] in extras:
                call["extra_content"] = extras[call["id"]]
