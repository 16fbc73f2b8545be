"""Plain HTTP through the gateway: fault rules, the .deb cache, and passing on to a registry by Host header."""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from oikos.lab.gateway.journal import Journal
from oikos.lab.gateway.rules import LiveRules

PORT = 80
CONNECT_S, HEAD_S, BODY_S = 20.0, 60.0, 300.0
PASSED_UP = frozenset(
    {"user-agent", "if-modified-since", "if-none-match", "range", "accept", "cache-control", "if-range"}
)
PASSED_DOWN = frozenset({"content-type", "last-modified", "etag", "location", "content-range", "accept-ranges"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`headers` by lower-case name; the body was read and dropped."""

    method: str
    host: str
    path: str
    headers: dict[str, str]
    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes


class Http:
    """One connection handler for all hosts."""

    def __init__(self, upstreams: frozenset[str], rules: LiveRules, journal: Journal, cache: Path) -> None:
        self._upstreams, self._rules, self._journal, self._cache = upstreams, rules, journal, cache

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, until either side ends it."""
        peer = str(writer.get_extra_info("peername")[0])
        try:
            while True:
                request = await _read_request(reader, peer)
                response = await self._respond(request)
                if response is None:
                    break
                _write(writer, response, head_only=request.method == "HEAD")
                await writer.drain()
                if request.headers.get("connection", "").lower() == "close":
                    break
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError, ValueError):
            pass  # the host went away or spoke no HTTP: nothing to answer
        finally:
            writer.close()

    async def _respond(self, request: Request) -> Response | None:
        """None: cut the connection."""
        where = f"{request.host}{request.path}"
        rule = self._rules.http(request.host, request.path)
        if rule is not None:
            self._journal.note(http=where, peer=request.peer, rule=rule.id, status=rule.status)
            await asyncio.sleep(rule.delay_s)
            return None if rule.close else _plain(rule.status, rule.body)
        if request.host not in self._upstreams:
            self._journal.note(http=where, peer=request.peer, status=403)
            return _plain(403, "the lab gateway serves package registries only\n")
        is_deb = request.method == "GET" and request.path.endswith(".deb") and "range" not in request.headers
        kept = self._cache / hashlib.sha256(request.path.encode()).hexdigest()
        if is_deb and kept.exists():
            self._journal.note(http=where, peer=request.peer, status=200, cached=True)
            return Response(status=200, headers={"content-type": "application/octet-stream"}, body=kept.read_bytes())
        try:
            response = await _fetch(request)
        except (OSError, asyncio.IncompleteReadError, ValueError) as exc:
            self._journal.note(http=where, peer=request.peer, status=502, error=str(exc))
            return _plain(502, f"{exc}\n")
        self._journal.note(http=where, peer=request.peer, status=response.status, bytes=len(response.body))
        if is_deb and response.status == 200:
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(response.body)
            part.rename(kept)
        return response


async def _read_request(reader: asyncio.StreamReader, peer: str) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = _headers(head[1:])
    if target.startswith("http://"):
        target = "/" + target.split("/", 3)[3]
    await reader.readexactly(int(headers.get("content-length", 0)))
    host = headers.get("host", "").split(":")[0].lower()
    return Request(method=method, host=host, path=target, headers=headers, peer=peer)


def _headers(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _plain(status: int, body: str) -> Response:
    return Response(status=status, headers={"content-type": "text/plain"}, body=body.encode())


def _write(writer: asyncio.StreamWriter, response: Response, *, head_only: bool) -> None:
    try:
        reason = HTTPStatus(response.status).phrase
    except ValueError:  # a status nobody registered
        reason = "Status"
    lines = [f"HTTP/1.1 {response.status} {reason}", *(f"{k}: {v}" for k, v in response.headers.items())]
    lines.append(f"content-length: {len(response.body)}")
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin1"))
    if not head_only:
        writer.write(response.body)


async def _fetch(request: Request) -> Response:
    """The registry's own answer. Raises: OSError, ValueError, asyncio.IncompleteReadError."""
    reader, writer = await asyncio.wait_for(asyncio.open_connection(request.host, PORT), CONNECT_S)
    try:
        lines = [f"{request.method} {request.path} HTTP/1.1", f"Host: {request.host}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in request.headers.items() if name in PASSED_UP]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin1"))
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S)).decode("latin1").split("\r\n")
        status, headers = int(head[0].split()[1]), _headers(head[1:])
        bodyless = request.method == "HEAD" or status in (204, 304)
        body = b"" if bodyless else await asyncio.wait_for(_body(reader, headers), BODY_S)
        return Response(status=status, headers={k: v for k, v in headers.items() if k in PASSED_DOWN}, body=body)
    finally:
        writer.close()


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        return body
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()
