"""What a loop can approach: one raw connection, each message encoded once, the command by posix_spawn.

Alone it keeps nothing (floor-fast). With DURABLE=1 (floor-composed) it does what an agent that survives a crash must:
five rows an iteration in two commits, the intent's before the command, the result's beside the next model call.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import urllib.parse
from typing import Any

import orjson
from common import BASE_URL, SYSTEM, TASK, WORK

dump = orjson.dumps
Row = tuple[str, bytes]
PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
FUNCTION = {"name": "run", "description": "Run a shell command", "parameters": PARAMETERS}
TOOLS = dump([{"type": "function", "function": FUNCTION}])
SCHEMA = "CREATE TABLE ev (id INTEGER PRIMARY KEY, kind TEXT, j BLOB)"


class Store:
    """One writer thread that commits in groups."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: queue.SimpleQueue[tuple[tuple[Row, ...], asyncio.Future[None]]] = queue.SimpleQueue()
        path = os.path.join(WORK, "s.db")
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", SCHEMA):
            self._db.execute(statement)
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, *rows: Row) -> asyncio.Future[None]:
        """Done when the rows are durable."""
        future = self._loop.create_future()
        self._queue.put((rows, future))
        return future

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get_nowait())
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO ev (kind, j) VALUES (?, ?)", [row for rows, _ in batch for row in rows])
            self._db.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._tell, [future for _, future in batch])

    @staticmethod
    def _tell(futures: list[asyncio.Future[None]]) -> None:
        for future in futures:
            future.set_result(None)


def spawn(command: str) -> tuple[int, bytes]:
    """Exit code and output."""
    out, end = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, end, 1), (os.POSIX_SPAWN_DUP2, end, 2), (os.POSIX_SPAWN_CLOSE, out)]
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], os.environ, file_actions=actions)
    os.close(end)
    said = b""
    while data := os.read(out, 65536):
        said += data
    os.close(out)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


class Reply:
    """One streamed answer."""

    def __init__(self) -> None:
        self.text = ""
        self.calls: dict[int, dict[str, Any]] = {}

    def take(self, line: bytes) -> None:
        """One event of the stream."""
        if line == b"data: [DONE]":
            return
        for choice in orjson.loads(line[6:])["choices"]:
            delta = choice["delta"]
            self.text += delta.get("content") or ""
            for piece in delta.get("tool_calls", ()):
                call = self.calls.setdefault(piece["index"], {"id": None, "name": "", "arguments": ""})
                call["id"] = piece.get("id") or call["id"]
                function = piece.get("function", {})
                call["name"] += function.get("name") or ""
                call["arguments"] += function.get("arguments") or ""

    def message(self) -> bytes:
        """As it goes into the history."""
        fields: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            fields["tool_calls"] = [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
                for c in self.calls.values()
            ]
        return dump(fields)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes, history: list[bytes]) -> Reply:
    """Send the history, read the answer."""
    body = b'{"model":"fake","stream":true,"tools":' + TOOLS + b',"messages":[' + b",".join(history) + b"]}"
    writer.write(head + str(len(body)).encode() + b"\r\n\r\n" + body)
    await reader.readuntil(b"\r\n\r\n")
    reply, rest = Reply(), b""
    while size := int(await reader.readline(), 16):
        rest += await reader.readexactly(size)
        await reader.readexactly(2)
        *lines, rest = rest.split(b"\n\n")
        for line in lines:
            reply.take(line)
    await reader.readline()
    return reply


async def main() -> None:
    """The whole run."""
    loop = asyncio.get_running_loop()
    store = Store(loop) if os.environ.get("DURABLE") else None
    url = urllib.parse.urlparse(BASE_URL)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = (
        f"POST {url.path}/chat/completions HTTP/1.1\r\nhost: {url.netloc}\r\ncontent-type: application/json\r\n"
        "authorization: Bearer x\r\ncontent-length: "
    ).encode()
    history = [dump({"role": "system", "content": SYSTEM}), dump({"role": "user", "content": TASK})]
    pending = store.put(*[("msg", message) for message in history]) if store else None
    while True:
        reply = await ask(reader, writer, head, history)
        if pending:
            await pending  # the result before this answer is durable
        message = reply.message()
        history.append(message)
        if not reply.calls:
            if store:
                await store.put(("msg", message))
            return
        for call in reply.calls.values():
            command = orjson.loads(call["arguments"])["command"]
            if store:
                intent = dump({"call": call["id"], "cmd": command, "risk": "read_only", "target": "127.0.0.1"})
                await store.put(("msg", message), ("intent", intent))
            code, out = await loop.run_in_executor(None, spawn, command)
            text = f"exit {code}\n{out.decode(errors='replace')}"
            result = dump({"role": "tool", "tool_call_id": call["id"], "content": text})
            history.append(result)
            if store:
                ended = dump({"call": call["id"], "rc": code})
                pending = store.put(("output", out), ("exit", ended), ("msg", result))


asyncio.run(main())
