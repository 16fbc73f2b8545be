"""The route table: path, method, role, body and handler of everything the API does; the application made from it.

Every row says which role it needs, and a row is the only way to a handler: a route that forgets to ask does not exist
(docs/adr/0001). `openapi.json` is this table in another notation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from oikos.app.arguments import Schema
from oikos.app.service import NoSuchSession
from oikos.domain import events as ev
from oikos.domain.consent import Principal, Role
from oikos.domain.errors import ConfigError, OikosError, StoreError
from oikos.domain.value import dataclass
from oikos.web.api import Api, Backend, token_of
from oikos.web.errors import Problem, reply
from oikos.web.guard import Guard, body_of
from oikos.web.tokens import Tokens

BASE = "/api/v1"

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": 100_000}
_WORDS: Schema = {"type": "string", "maxLength": 10_000}
_NAMED: Schema = {"type": "string", "maxLength": 128}
_WHOLE: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31}
_SHOWN: Mapping[str, Schema] = {"generation": _WHOLE, "digest": _NAMED, "run_id": _NAMED}


def _object(required: Sequence[str] = (), **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


EMPTY = _object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One route."""

    method: str
    path: str
    """Below `/api/v1`."""
    role: Role
    """The least that its caller must hold; what an approver must be, the domain decides once more."""
    about: str
    handler: Callable[[Api, Request, Principal, Mapping[str, object]], Awaitable[Response]]
    body: Schema = field(default_factory=_object)


def _get(path: str, handler: Callable[[Api, Request, Principal, Mapping[str, object]], Awaitable[Response]],
         about: str) -> Row:  # fmt: skip
    return Row(method="GET", path=path, role=Role.VIEWER, about=about, handler=handler)


def _post(path: str, handler: Callable[[Api, Request, Principal, Mapping[str, object]], Awaitable[Response]],
          about: str, body: Schema = EMPTY, role: Role = Role.OPERATOR) -> Row:  # fmt: skip
    return Row(method="POST", path=f"/sessions{path}", role=role, about=about, handler=handler, body=body)


async def _openapi(_api: Api, _request: Request, _by: Principal, _body: Mapping[str, object]) -> Response:
    return reply(openapi())


ROWS: tuple[Row, ...] = (
    _get("/sessions", Api.sessions, "Sessions, newest first."),
    _get("/sessions/{id}", Api.session, "A session as it is now, with what it waits for."),
    _get("/sessions/{id}/events", Api.events, "The events as they come (text/event-stream), from Last-Event-ID on."),
    _get("/sessions/{id}/history", Api.history, "All events after ?after=, at once."),
    _get("/sessions/{id}/plan", Api.plan, "Every generation of the plan, with its steps."),
    _post("", Api.open, "Open a session.", _object(mode={"type": "string", "enum": ["ask", "look"]}, text=_TEXT)),
    _post(
        "/{id}/messages", Api.send, "Say something; `shown` is the card it may assent to.",
        _object(text=_TEXT, secret={"type": "string", "minLength": 1, "maxLength": 10_000},
                shown=_object(("generation", "digest"), **_SHOWN)),
    ),
    _post(
        "/{id}/approve", Api.approve, "Approve the plan, or with `run_id` the run, of this generation and digest.",
        _object(
            ("generation", "digest"), **_SHOWN, items={"type": "array", "items": _WHOLE},
            phrases={"type": "array", "items": _WORDS}, minutes={"type": "integer", "enum": [30, 60, 240]},
            reopen={"type": "boolean"}, snapshot={"type": "boolean"},
        ),
        Role.APPROVER,
    ),
    _post(
        "/{id}/confirm", Api.confirm, "Type the phrase of the card with this digest.",
        _object(("phrase", "digest"), phrase=_WORDS, digest=_NAMED), Role.APPROVER,
    ),
    _post("/{id}/reject", Api.reject, "Reject the plan, or decline the run.", _object(reason=_WORDS)),
    _post("/{id}/ask-changes", Api.ask_changes, "Ask for another plan.", _object(("text",), text=_TEXT)),
    _post("/{id}/revoke", Api.revoke, "Close the window."),
    _post("/{id}/stop", Api.stop, "End the session and its commands.", _object(kill={"type": "boolean"})),
    _post("/{id}/raise", Api.raise_limits, "Raise the limits by their default step and go on."),
    _get("/runs", Api.runs, "Runs, newest first."),
    _get("/runs/{id}", Api.run, "One run."),
    _get("/runs/{id}/output", Api.output, "Its output, masked: ?stream=out|err, ?offset=, ?limit=."),
    _get("/entities", Api.entities, "The fleet."),
    _get("/facts", Api.facts, "What is known of it, with provenance."),
    _get("/approvals", Api.approvals, "What waits for a person."),
    _get("/openapi.json", _openapi, "This table."),
)  # fmt: skip


def application(backend: Backend, tokens: Tokens, *, hosts: Iterable[str], closing: asyncio.Event) -> ASGIApp:
    """The whole ASGI application; `closing` ends its streams."""
    api = Api(backend, tokens, closing)
    routes = [Route(BASE + row.path, _endpoint(api, tokens, row), methods=[row.method]) for row in ROWS]
    return Guard(
        Starlette(routes=routes, exception_handlers={HTTPException: _no_route, Exception: _defect}), hosts=hosts
    )


def _endpoint(api: Api, tokens: Tokens, row: Row) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            by = await asyncio.to_thread(_caller, tokens, row, request)
            body = await body_of(request, row.body) if row.method == "POST" else {}
            return await row.handler(api, request, by, body)
        except Problem as problem:
            return reply(problem.body(), problem.status)
        except NoSuchSession as error:
            return reply(Problem(404, "no_such_session", str(error), "GET /api/v1/sessions lists them").body(), 404)
        except StoreError as error:
            return reply(Problem(503, "store", str(error), "try again, or look at the server").body(), 503)
        except OikosError as error:
            return reply(Problem(500, "internal", str(error), "look at the server").body(), 500)

    return endpoint


def _caller(tokens: Tokens, row: Row, request: Request) -> Principal:
    """Who calls.

    Raises:
        Problem: nobody known, or not enough.
    """
    try:
        by = tokens.who(token_of(request))
    except ConfigError as error:
        raise Problem(503, "tokens", str(error), "correct it on the server") from None
    if by is None:
        do = "send Authorization: Bearer TOKEN; `oikos serve token add` makes one"
        raise Problem(401, "no_token", "No token of this server was given.", do)
    if by.role.rank < row.role.rank:
        raise Problem(403, "role", f"{by.id} is {by.role}; this needs {row.role}.", f"use the token of an {row.role}")
    return by


async def _no_route(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code, text = ("no_method", "Not with this method.") if status == 405 else ("no_route", "There is no such route.")
    return reply(Problem(status, code, text, "GET /api/v1/openapi.json lists them").body(), status)


async def _defect(_request: Request, error: Exception) -> Response:
    """Of Oikos; the server goes on and logs it, the caller learns no more than its kind."""
    text = f"A defect of Oikos ({type(error).__name__})."
    return reply(Problem(500, "internal", text, "look at the server's standard error").body(), 500)


def openapi() -> dict[str, object]:
    """The table as OpenAPI 3.1, with the closed list of event kinds."""
    paths: dict[str, dict[str, object]] = {}
    for row in ROWS:
        operation: dict[str, object] = {
            "summary": row.about,
            "operationId": f"{row.method.lower()}{row.path.replace('/', '_').replace('{id}', 'id').replace('.', '_')}",
            "x-role": row.role.value,
            "responses": {"2XX": {"description": "done"}, "default": {"$ref": "#/components/responses/Problem"}},
        }
        if "{id}" in row.path:
            operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
        if row.method == "POST":
            operation["requestBody"] = {"content": {"application/json": {"schema": row.body}}}
        paths.setdefault(BASE + row.path, {})[row.method.lower()] = operation
    texts = {name: {"type": "string"} for name in ("code", "text", "do")}
    problem = {"type": "object", "properties": texts, "required": list(texts)}
    kinds = [kind.KIND for kind in ev.Event.__args__]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Oikos", "version": "1"},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Problem": problem,
                "EventKind": {"type": "string", "enum": [*kinds, "text_delta", "output_chunk"]},
            },
            "responses": {
                "Problem": {
                    "description": "it was not done",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
        },
    }
