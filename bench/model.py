"""An instant model on loopback: OpenAI chat completions from a script, and a log of when each request came.

    python bench/model.py            # prints the port it listens on, then serves until /ctl/quit

A round is set by POST /ctl/reset: the model makes the calls `before` (each once), then `n` times the measured call,
then the calls `after`, then it answers with text. Requests without tools get a short text and count for nothing.

Times are CLOCK_MONOTONIC seconds. A row of /ctl/log holds `came` (first byte of the request), `whole` (its last byte)
and `left` (the reply is about to be written, in one send), so `whole` of one row minus `left` of the row before is what
the contender took between two answers: its overhead, the command included.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from typing import Any

import httptools
import orjson
import uvloop

TICKS = os.sysconf("SC_CLK_TCK")
CHUNK = {"created": 1_700_000_000, "object": "chat.completion.chunk"}
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
RUN_ID = re.compile(rb'\\"run\\":\\"([0-9a-f]+)\\"')


class Script:
    """What the model says in this round, and the log of who asked."""

    def __init__(self) -> None:
        self.reset({})

    def reset(self, round_: dict[str, Any]) -> None:
        """Begin a round."""
        self.n = int(round_.get("n", 0))
        self.call: list[Any] = round_.get("call", ["run", {"command": "true {i}"}])
        self.before: list[Any] = round_.get("before", [])
        self.after: list[Any] = round_.get("after", [])
        self.deltas = [f"tok{i} " for i in range(round_.get("deltas", 0))]
        self.group = 0
        self.log: list[dict[str, Any]] = []
        self.step = 0

    def next(self, body: bytes, request: dict[str, Any]) -> tuple[str, list[Any] | None]:
        """(kind, call) of the next answer; no call means text."""
        if not request.get("tools"):
            return "aside", None
        at, self.step = self.step, self.step + 1
        if at < len(self.before):
            return "before", self.before[at]
        at -= len(self.before)
        if at < self.n:
            return "measured", [self.call[0], _filled(self.call[1], "{i}", str(at))]
        at -= self.n
        if at < len(self.after):
            runs = RUN_ID.findall(body)
            name, arguments = self.after[at]
            return "after", [name, _filled(arguments, "{run}", runs[-1].decode() if runs else "")]
        return "text", None


def _filled(value: Any, mark: str, text: str) -> Any:
    """`value` with `mark` replaced in every text of it."""
    if isinstance(value, str):
        return value.replace(mark, text)
    if isinstance(value, dict):
        return {key: _filled(item, mark, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, mark, text) for item in value]
    return value


def answer(number: int, request: dict[str, Any], kind: str, call: list[Any] | None, deltas: list[str]) -> bytes:
    """The event stream of one answer."""
    base = {"id": f"chatcmpl-{number}", "model": request.get("model", "m"), **CHUNK}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    said = [chunk({"role": "assistant", "content": ""})]
    if kind != "aside":
        said += [chunk({"content": word}) for word in deltas]
    if call is None:
        said.append(chunk({"content": "All done."}))
    else:
        name, arguments = call[0], orjson.dumps(call[1]).decode()
        half = len(arguments) // 2
        opened = {"index": 0, "id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": ""}}
        said.append(chunk({"tool_calls": [opened]}))
        pieces = (arguments[:half], arguments[half:])
        said += [chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces]
    said.append(chunk({}, "stop" if call is None else "tool_calls"))
    if (request.get("stream_options") or {}).get("include_usage"):
        said.append({**base, "choices": [], "usage": USAGE})
    return b"".join(b"data: " + orjson.dumps(one) + b"\n\n" for one in said) + b"data: [DONE]\n\n"


def used(group: int) -> dict[str, float] | None:
    """CPU seconds and peak memory (KiB) of every process of a session or process group, ended children included."""
    if not group:
        return None
    cpu_s = peak_kib = 0.0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
            fields = stat[stat.rindex(")") + 2 :].split()
            if group not in (int(fields[2]), int(fields[3])):
                continue
            cpu_s += sum(map(int, fields[11:15])) / TICKS
            with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                peak_kib += next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)
        except (OSError, ValueError):
            continue  # it ended meanwhile
    return {"cpu_s": cpu_s, "peak_kib": peak_kib}


class Connection(asyncio.Protocol):
    """One kept-alive HTTP connection."""

    def __init__(self, script: Script, ended: asyncio.Event) -> None:
        self._script, self._ended = script, ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A new client."""
        self._transport: Any = transport
        self._parser = httptools.HttpRequestParser(self)
        self._came: float | None = None

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._came is None:
            self._came = time.monotonic()
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """The target of a request."""
        self._path, self._pieces = url.decode(), []

    def on_body(self, data: bytes) -> None:
        """A piece of its body."""
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        """A whole request: answer it at once."""
        whole, came, self._came = time.monotonic(), self._came, None
        body = b"".join(self._pieces)
        if self._path.startswith("/ctl/"):
            self._control(self._path.removeprefix("/ctl/"), body)
        elif self._path.endswith("/chat/completions"):
            self._complete(body, came or whole, whole)
        else:
            self._reply(404, b"{}", b"application/json")

    def _complete(self, body: bytes, came: float, whole: float) -> None:
        script, request = self._script, orjson.loads(body)
        kind, call = script.next(body, request)
        reply = answer(len(script.log), request, kind, call, script.deltas)
        row: dict[str, Any] = {"kind": kind, "came": came, "whole": whole, "bytes": len(body)}
        kinds = [old["kind"] for old in script.log]
        edge = kind == "measured" and kind not in kinds
        edge = edge or (kind in ("after", "text") and not {"after", "text"} & set(kinds))
        if edge or kind == "text" or (kind == "after" and len(script.after) == kinds.count("after") + 1):
            row["used"] = used(script.group)
        script.log.append(row)
        row["left"] = time.monotonic()  # before the write: afterwards the kernel may already run the client
        self._reply(200, reply, b"text/event-stream; charset=utf-8")
        if not self._parser.should_keep_alive():
            self._transport.close()

    def _control(self, verb: str, body: bytes) -> None:
        given = orjson.loads(body or b"{}")
        if verb == "reset":
            self._script.reset(given)
        elif verb == "group":
            self._script.group = given["group"]
        elif verb == "quit":
            self._ended.set()
        self._reply(200, orjson.dumps({"log": self._script.log}), b"application/json")

    def _reply(self, code: int, body: bytes, kind: bytes) -> None:
        head = b"HTTP/1.1 %d OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n" % (code, kind)
        self._transport.write(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))


async def main() -> None:
    """Serve until /ctl/quit."""
    script, ended = Script(), asyncio.Event()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(script, ended), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await ended.wait()


if __name__ == "__main__":
    uvloop.run(main())
