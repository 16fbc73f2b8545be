"""A model server that plays recorded answers over real sockets, and keeps what it was sent."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

REASONS = {200: "OK", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass
class Asked:
    """One request as it came over the wire."""

    line: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


@dataclass
class Server:
    """Where it listens and what happened there."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0


def body_of(answer: Mapping[str, object]) -> bytes:
    """The bytes of an answer: `events` as server-sent events, `json` as one object, or `raw`."""
    if "raw" in answer:
        return str(answer["raw"]).encode("utf-8", "surrogatepass")
    if "json" in answer:
        return json.dumps(answer["json"]).encode()
    newline = "\r\n" if answer.get("crlf") else "\n"
    lines = []
    for event in answer.get("events", ()):  # type: ignore[attr-defined] # a list, as the file says
        lines.append(event if isinstance(event, str) else "data: " + json.dumps(event))
    if answer.get("done", True):
        lines.append("data: [DONE]")
    return "".join(line + newline * 2 for line in lines).encode()


@asynccontextmanager
async def serve(
    answers: Sequence[Mapping[str, object]], *, split: int = 1 << 30, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Serves `answers` one after another (the last one for ever), written in pieces of `split` bytes."""
    server = Server()
    release = asyncio.Event()
    held: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.add(asyncio.current_task())  # type: ignore[arg-type] # there is one
        server.connections += 1
        number = server.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rest = head.split("\r\n")
                headers = {k.lower(): v for k, _, v in (row.partition(": ") for row in rest if row)}
                body = await reader.readexactly(int(headers["content-length"]))
                answer = answers[min(len(server.asked), len(answers) - 1)]
                server.asked.append(Asked(line, headers, body, number))
                if not await play(answer, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def play(answer: Mapping[str, object], writer: asyncio.StreamWriter) -> bool:
        status = int(str(answer.get("status", 200)))
        then = answer.get("then", "end")
        if then == "silent":
            await release.wait()
            return False
        if then == "refuse":
            return False
        if "http" in answer:
            writer.write(str(answer["http"]).encode())
            return False
        kind = "application/json" if "json" in answer else "text/event-stream; charset=utf-8"
        headers = {"content-type": kind, **dict(answer.get("headers", {}))}  # type: ignore[call-overload] # a mapping
        head = f"HTTP/1.1 {status} {REASONS.get(status, 'Whatever')}\r\ntransfer-encoding: chunked\r\n"
        writer.write((head + "".join(f"{k}: {v}\r\n" for k, v in headers.items() if v is not None) + "\r\n").encode())
        body = body_of(answer)
        if repeat := answer.get("repeat"):
            body *= int(str(repeat))
        for start in range(0, len(body), split):
            piece = body[start : start + split]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        match then:
            case "end":
                writer.write(b"0\r\n\r\n")
                await writer.drain()
                return True
            case "stall":
                await writer.drain()
                await release.wait()
            case "cut":
                await writer.drain()
            case "reset":
                await writer.drain()
                writer.transport.abort()
        return False

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        release.set()
        listener.close()
        for task in held:
            task.cancel()
        await asyncio.gather(*held, return_exceptions=True)
