"""What every request passes before a route sees it: Host, Origin, kind and size of the body; headers of every answer.

A page in the operator's browser can reach loopback, and a name can be made to point there. So the Host must be one of
ours and an Origin, if there is one, our own; nothing is ever shared across origins (security/THREATS T11).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import orjson
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from oikos.app.arguments import BadArguments, Schema, check
from oikos.web.errors import Problem, reply

BODY_BYTES = 256 * 1024
BODY_S = 10.0
"""How large a body may be, and how long it may take to arrive."""
HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what is not for us."""
        if scope["type"] != "http":
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        problem = self._problem(Request(scope))
        if problem is not None:
            return await reply(problem.body(), problem.status)(scope, receive, with_headers)
        await self._app(scope, receive, with_headers)

    def _problem(self, request: Request) -> Problem | None:
        given = request.headers.getlist("host")
        host = _name(given[0]) if len(given) == 1 else ""
        if host not in self._hosts:
            return Problem(
                421, "wrong_host", f"This server is not {host or 'that'}.", "use the address it says it listens on"
            )
        for origin in request.headers.getlist("origin"):
            if origin.lower() != f"{request.scope['scheme']}://{given[0].lower()}":
                return Problem(403, "wrong_origin", "Pages of other origins may not call this.", "call it from no page")
        if request.method in ("GET", "HEAD"):
            return None
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return Problem(415, "not_json", "The body is not JSON.", "send Content-Type: application/json")
        return None


def _name(host: str) -> str:
    """The host of a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


async def body_of(request: Request, schema: Schema) -> dict[str, object]:
    """The JSON object of a request; nothing sent is an empty one.

    Raises:
        Problem: too large, too slow, not JSON, or it does not fit.
    """
    raw = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                raw += chunk
                if len(raw) > BODY_BYTES:
                    raise Problem(413, "too_large", f"The body is over {BODY_BYTES} bytes.", "send less")
    except TimeoutError:
        raise Problem(408, "too_slow", f"The body took over {BODY_S:.0f} s.", "send it again") from None
    try:
        value = orjson.loads(bytes(raw)) if raw.strip() else {}
        check(value, schema, "body")
    except (orjson.JSONDecodeError, BadArguments) as error:
        raise Problem(400, "bad_body", f"{error}.", "GET /api/v1/openapi.json says what fits") from None
    assert isinstance(value, dict), "every schema of a body is an object"
    return value
