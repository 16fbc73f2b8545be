"""What each route does: a request's words to the service's intents, and what it answers to JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import cast

from starlette.requests import Request
from starlette.responses import Response

from oikos.app.feed import Feed
from oikos.app.service import Card, Done, Service, card_of
from oikos.domain.consent import Principal
from oikos.domain.errors import Code, Refusal
from oikos.domain.inventory import Entity, Inventory
from oikos.domain.run import Stream
from oikos.domain.session import State
from oikos.domain.value import dataclass
from oikos.ports import Clock, RunRow, Store
from oikos.web import shape
from oikos.web.errors import LOOK_AGAIN, Problem, refused, reply
from oikos.web.sse import EventStream
from oikos.web.tokens import Tokens

_ID = re.compile(r"[0-9a-f]{32}")
LIMIT = 1000
STREAMS = 200
"""How many event streams may be open at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What the application lends to the HTTP face."""

    service: Service
    store: Store
    feed: Feed
    clock: Clock
    inventory: Callable[[], Awaitable[Inventory]]
    open_session: Callable[[Principal, str], Awaitable[str]]
    keep_secret: Callable[[str, str], str]
    """Name and value to the reference that the record may hold."""
    model: str
    """Name of the model that answers."""


Body = Mapping[str, object]


class Api:
    """The handlers; who may call which is said by the route table alone."""

    def __init__(self, backend: Backend, tokens: Tokens, closing: asyncio.Event) -> None:
        self._to = backend
        self._tokens = tokens
        self._closing = closing
        self._streams: set[EventStream] = set()

    # ---- sessions: reading -------------------------------------------------------------------------------------------

    async def sessions(self, request: Request, by: Principal, body: Body) -> Response:
        """Newest first by activity."""
        return reply({"sessions": await self._to.service.sessions(limit=_number(request, "limit", 100, LIMIT))})

    async def session(self, request: Request, by: Principal, body: Body) -> Response:
        """The snapshot."""
        state = await self._state(request)
        return reply(shape.session(state, self._to.clock.now()) | {"model": self._to.model})

    async def history(self, request: Request, by: Principal, body: Body) -> Response:
        """All events after a seq, at once."""
        state = await self._state(request)
        after = _number(request, "after", 0, state.seq)
        records = await self._to.service.history(state.session_id, after=after)
        return reply({"events": [shape.recorded(record) for record in records]})

    async def plan(self, request: Request, by: Principal, body: Body) -> Response:
        """Every generation with its steps."""
        state = await self._state(request)
        records = await self._to.service.history(state.session_id)
        return reply({"generation": state.generation, "plans": shape.plans(records, state)})

    async def events(self, request: Request, by: Principal, body: Body) -> Response:
        """The stream, from `Last-Event-ID` or `?after=` on."""
        state = await self._state(request)
        given = request.headers.get("last-event-id", "")
        after = _whole(given, "Last-Event-ID", state.seq) if given else _number(request, "after", 0, state.seq)
        if len(self._streams) >= STREAMS:
            raise Problem(429, "too_many_streams", f"{STREAMS} event streams are open.", "close some, then try again")
        given_token = token_of(request)

        async def allowed() -> bool:
            return await asyncio.to_thread(self._tokens.who, given_token) == by

        return EventStream(
            self._to.feed, state.session_id, after=after, allowed=allowed, closing=self._closing, among=self._streams
        )

    async def approvals(self, request: Request, by: Principal, body: Body) -> Response:
        """What waits for a person, in every session."""
        rows = [row for row in await self._to.service.sessions(limit=LIMIT) if row.waiting_for]
        found = []
        for row in rows:
            card = await self._to.service.card(row.session_id)
            if card is not None:
                found.append({"id": row.session_id, "title": row.title, "phase": row.phase, "card": shape.card(card)})
        return reply({"approvals": found})

    # ---- sessions: acting --------------------------------------------------------------------------------------------

    async def open(self, request: Request, by: Principal, body: Body) -> Response:
        """A new session, with its first message if there is one."""
        session_id = await self._to.open_session(by, _text(body, "mode") or "ask")
        if not _text(body, "text"):
            state = await self._to.service.state(session_id)
            return reply({"id": session_id, "seq": state.seq, "notice": "", "stopped": []}, 201)
        return await self._told(session_id, await self._to.service.send(session_id, _text(body, "text"), by), 201)

    async def send(self, request: Request, by: Principal, body: Body) -> Response:
        """A message; it can assent only to what the client says it showed."""
        state = await self._state(request)
        if "secret" in body:
            return await self._secret(state, by, body)
        if "text" not in body:
            raise Problem(400, "bad_body", "body lacks text.", "send `text`, or `secret` for a question that asks one")
        shown = cast("Body | None", body.get("shown"))
        card = _shown(state, shown) if shown is not None else None
        return await self._act(state, self._to.service.send(state.session_id, _text(body, "text"), by, shown=card), 202)

    async def _secret(self, state: State, by: Principal, body: Body) -> Response:
        """Kept before anything is recorded; the record gets a reference."""
        if state.question is None or state.question.kind != "secret":
            raise Problem(409, "wrong_state", "No question asks for a secret.", LOOK_AGAIN)
        value = _text(body, "secret")
        if "text" in body or not value:
            raise Problem(400, "bad_body", "A secret is sent alone and is not empty.", "send only `secret`")
        reference = await asyncio.to_thread(self._to.keep_secret, state.question.secret_name, value)
        return await self._act(state, self._to.service.answer_secret(state.session_id, reference, by), 202)

    async def approve(self, request: Request, by: Principal, body: Body) -> Response:
        """A plan or a parked run, as it was shown: by generation and digest."""
        state = await self._state(request)
        duration_s = 60.0 * cast("int", body.get("minutes", 30))
        card = _shown(state, body)
        if card is None:
            return await self._told(state.session_id, _not_waiting(state))
        service = self._to.service
        if body.get("reopen"):
            return await self._act(state, service.reopen_with(state.session_id, card, by, duration_s=duration_s))
        items = tuple(cast("list[int]", body.get("items", [])))
        phrases = tuple(cast("list[str]", body.get("phrases", [])))
        return await self._act(
            state,
            service.approve(
                state.session_id,
                card,
                by,
                items=items,
                phrases=phrases,
                duration_s=duration_s,
                snapshot=bool(body.get("snapshot")),
            ),
        )

    async def confirm(self, request: Request, by: Principal, body: Body) -> Response:
        """A typed phrase, for what was shown."""
        state = await self._state(request)
        card = card_of(state.session_id, state)
        if card is None or card.digest != _text(body, "digest"):
            stale = Refusal(code=Code.STALE_DIGEST, text="What waits is not what was shown: look again.")
            return await self._told(state.session_id, stale)
        return await self._act(state, self._to.service.confirm(state.session_id, _text(body, "phrase"), by, shown=card))

    async def reject(self, request: Request, by: Principal, body: Body) -> Response:
        """No, with a reason."""
        state = await self._state(request)
        return await self._act(state, self._to.service.reject(state.session_id, by, reason=_text(body, "reason")))

    async def ask_changes(self, request: Request, by: Principal, body: Body) -> Response:
        """Not like this."""
        state = await self._state(request)
        return await self._act(state, self._to.service.ask_for_changes(state.session_id, _text(body, "text"), by))

    async def revoke(self, request: Request, by: Principal, body: Body) -> Response:
        """Close the window."""
        state = await self._state(request)
        return await self._act(state, self._to.service.revoke(state.session_id, by))

    async def stop(self, request: Request, by: Principal, body: Body) -> Response:
        """End the session, and its commands unless they are to go on."""
        state = await self._state(request)
        kill = bool(body.get("kill", True))
        return await self._act(state, self._to.service.stop(state.session_id, by, kill=kill))

    async def raise_limits(self, request: Request, by: Principal, body: Body) -> Response:
        """Raise and continue."""
        state = await self._state(request)
        return await self._act(state, self._to.service.raise_limits(state.session_id, by))

    # ---- runs and the fleet ------------------------------------------------------------------------------------------

    async def runs(self, request: Request, by: Principal, body: Body) -> Response:
        """Newest first; `?session=` keeps one session's."""
        session_id = request.query_params.get("session") or None
        rows = await self._to.service.runs(session_id=session_id, limit=_number(request, "limit", 100, LIMIT))
        return reply({"runs": rows})

    async def run(self, request: Request, by: Principal, body: Body) -> Response:
        """One run."""
        return reply(await self._run(request))

    async def output(self, request: Request, by: Principal, body: Body) -> Response:
        """Masked bytes of `?stream=out` or `err`, from `?offset=` on, at most `?limit=`."""
        row = await self._run(request)
        name = request.query_params.get("stream", "out")
        if name not in ("out", "err"):
            raise Problem(400, "bad_query", f"There is no stream {name[:20]!r}.", "ask for out or err")
        raw = await self._to.store.output(row.run_id, Stream(name))
        begin = _number(request, "offset", 0, 2**53)
        piece = raw[begin : begin + _number(request, "limit", len(raw) or 1, 2**53)]
        headers = {"X-Stored-Bytes": str(len(raw)), "X-Written-Bytes": str(getattr(row, f"{name}_bytes"))}
        return Response(piece, media_type="application/octet-stream", headers=headers)

    async def entities(self, request: Request, by: Principal, body: Body) -> Response:
        """All things of the fleet."""
        inventory = await self._to.inventory()
        return reply({"entities": [shape.entity(each) for each in inventory.entities.values()]})

    async def facts(self, request: Request, by: Principal, body: Body) -> Response:
        """Current facts; `?entity=` keeps one entity's."""
        inventory, name = await self._to.inventory(), request.query_params.get("entity", "")
        found = shape.facts(inventory, self._to.clock.now().wall_s)
        if name:
            entity = inventory.resolve(name)
            if not isinstance(entity, Entity):
                raise Problem(404, "unknown_entity", f"There is no entity {name[:64]!r}.", "GET /api/v1/entities")
            found = [fact for fact in found if fact["entity_id"] == entity.id]
        return reply({"facts": found})

    # ---- the rest ----------------------------------------------------------------------------------------------------

    async def _state(self, request: Request) -> State:
        session_id = request.path_params["id"]
        if not _ID.fullmatch(session_id):  # nor is the stream of the taught rules a session
            raise Problem(404, "no_such_session", "There is no such session.", "GET /api/v1/sessions lists them")
        return await self._to.service.state(session_id)

    async def _run(self, request: Request) -> RunRow:
        rows = await self._to.store.runs(run_id=request.path_params["id"])
        if not rows:
            raise Problem(404, "unknown_run", "There is no such run.", "GET /api/v1/runs lists them")
        return rows[0]

    async def _act(self, state: State, act: Awaitable[Done | Refusal], status: int = 200) -> Response:
        return await self._told(state.session_id, await act, status)

    async def _told(self, session_id: str, result: Done | Refusal, status: int = 200) -> Response:
        if isinstance(result, Refusal):
            return refused(result, shape.card(await self._to.service.card(session_id)))
        return reply(shape.done(result), status)


def token_of(request: Request) -> str:
    """The bearer token of a request; empty without one. Never from the address: that is logged (THREATS T13)."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _shown(state: State, shown: Body) -> Card | None:
    """The card that the client says it showed; `decide` compares its generation and digest with what waits."""
    generation, digest, run_id = cast("int", shown["generation"]), _text(shown, "digest"), _text(shown, "run_id")
    card = Card(session_id=state.session_id, kind="", text="", generation=generation, digest=digest)
    if run_id:
        parked = state.parked
        return replace(card, run=parked.event) if parked is not None and parked.event.order.run_id == run_id else None
    return replace(card, plan=state.plan) if state.plan is not None else None


def _not_waiting(state: State) -> Refusal:
    decided = f"; {state.decided}" if state.decided else ""
    text = f"What was shown does not wait: the session is {state.phase}, generation {state.generation}{decided}."
    return Refusal(code=Code.NOTHING_PENDING, text=text)


def _text(body: Body, name: str) -> str:
    return cast("str", body.get(name, ""))


def _number(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name, "")
    return _whole(given, name, most) if given else min(default, most)


def _whole(given: str, name: str, most: int) -> int:
    """A whole number from 0 to `most`.

    Raises:
        Problem: it is none.
    """
    if not re.fullmatch(r"[0-9]{1,16}", given) or int(given) > most:
        raise Problem(
            400, "bad_query", f"{name} must be a whole number from 0 to {most}.", "leave it out, or correct it"
        )
    return int(given)
