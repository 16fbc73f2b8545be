"""Plays a manifest against a server: its own fleet, its own model, over HTTP alone (SPEC R9.1, `--url`).

The record comes from the event stream and is folded here as the server folds it, so the same assertions judge it. What
needs a home or hosts of its own (worlds, faults, crashes, planted facts and secrets, a scripted model) is not played.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from oikos.adapters.clock import SystemClock
from oikos.adapters.store.codec import decode_as
from oikos.app.service import Card, Done, card_of
from oikos.domain import events as ev
from oikos.domain.consent import Principal
from oikos.domain.errors import ConfigError, OikosError, Refusal
from oikos.domain.inventory import Entity, Fact, Inventory, Mode
from oikos.domain.session import Phase, State, evolve
from oikos.domain.state import TERMINAL
from oikos.evals.assertions import Judgement, judge
from oikos.evals.client import Server, recorded
from oikos.evals.harness import RESTING
from oikos.evals.local import SLUG as LOCAL_TARGET
from oikos.evals.manifest import LOCAL, Followup, Manifest, OperatorRule
from oikos.evals.operator import SCRIPT, Moments, Operator
from oikos.evals.trial import Trial, Turn, helps

CLOSED = TERMINAL | {Phase.IDLE}
"""Where nothing waits for anybody."""


def unfit(manifest: Manifest, targets: frozenset[str] = frozenset({LOCAL_TARGET})) -> str:
    """Why a manifest cannot be played against a server with these targets; empty when it can.

    The world `local` is then the server's own target of that name, as long as nothing is put there or asked of it.
    """
    local = manifest.world == LOCAL
    needs = {
        f"the world {manifest.world}": bool(manifest.world) and not local,
        "a scripted model": manifest.script is not None,
        "faults": bool(manifest.faults),
        "crashes": bool(manifest.crash),
        "files": bool(manifest.files),
        "entities of its own": bool(manifest.entities),
        "planted secrets": bool(manifest.secrets),
        "limits of its own": bool(manifest.limits),
        "a look at its hosts": local and any(each.kind == "target_state" for each in manifest.expect),
        f"a target {LOCAL_TARGET}, which the server has not": local and LOCAL_TARGET not in targets,
    }
    found = [name for name, needed in needs.items() if needed]
    return f"needs its own lab ({', '.join(found)}): not applicable to a server" if found else ""


def read_token(file: Path) -> str:
    """The token of a private file.

    Raises:
        ConfigError: it cannot be read, is empty, or is open to others.
    """
    try:
        if file.stat().st_mode & 0o077:
            raise ConfigError(f"the token file {file} can be read by others: chmod 600 it")
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the token file {file} cannot be read ({error})") from None
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"the token file {file} holds no token: `oikos serve token add` prints one")
    return token


class Desk:
    """Decisions of the scripted operator, sent with the generation and digest that were shown.

    Whoever `by` is: the server knows its caller by the token alone.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    async def approve(
        self,
        session_id: str,
        card: Card,
        by: Principal,
        *,
        items: tuple[int, ...] = (),
        phrases: tuple[str, ...] = (),
        snapshot: bool = False,
    ) -> Done | Refusal:
        """Approve what a card showed."""
        body = {**_shown(card), "items": items, "phrases": phrases, "snapshot": snapshot}
        return await self._act(session_id, "approve", body)

    async def reject(self, session_id: str, by: Principal, *, reason: str = "") -> Done | Refusal:
        """No."""
        return await self._act(session_id, "reject", {"reason": reason})

    async def ask_for_changes(self, session_id: str, text: str, by: Principal) -> Done | Refusal:
        """Not like this."""
        return await self._act(session_id, "ask-changes", {"text": text})

    async def confirm(self, session_id: str, phrase: str, by: Principal, *, shown: Card | None) -> Done | Refusal:
        """A typed phrase, for what a card showed."""
        digest = shown.digest if shown is not None else ""
        return await self._act(session_id, "confirm", {"phrase": phrase, "digest": digest})

    async def send(self, session_id: str, text: str, by: Principal, *, shown: Card | None = None) -> Done | Refusal:
        """A message."""
        body: dict[str, object] = {"text": text}
        if shown is not None and shown.digest:
            body["shown"] = _shown(shown)
        return await self._act(session_id, "messages", body)

    async def revoke(self, session_id: str, by: Principal) -> Done | Refusal:
        """Close the window."""
        return await self._act(session_id, "revoke", {})

    async def raise_limits(self, session_id: str, by: Principal) -> Done | Refusal:
        """Raise and continue."""
        return await self._act(session_id, "raise", {})

    async def stop(self, session_id: str, by: Principal) -> Done | Refusal:
        """End it."""
        return await self._act(session_id, "stop", {})

    async def _act(self, session_id: str, act: str, body: Mapping[str, object]) -> Done | Refusal:
        answer = await asyncio.to_thread(self._server.post, f"/sessions/{session_id}/{act}", body)
        if isinstance(answer, Refusal):
            return answer
        return Done(session_id=session_id, seq=int(answer["seq"]), notice=str(answer["notice"]))


def _shown(card: Card) -> dict[str, object]:
    run = {"run_id": card.run.order.run_id} if card.run is not None else {}
    return {"generation": card.generation, "digest": card.digest, **run}


class Play:
    """One manifest on a server; what its stream told is kept, however it ends."""

    def __init__(self, manifest: Manifest, server: Server) -> None:
        self._manifest = manifest
        self._server = server
        self._clock = SystemClock()
        self._begun = self._clock.now()
        self._desk = Desk(server)
        self._operator = Operator(manifest.operator)
        self._moments = Moments()
        self._values = {"host": LOCAL_TARGET} if manifest.world == LOCAL else {}
        self._state = State()
        self._records: list[ev.Recorded] = []
        self._opened: list[str] = []
        self._turns: list[Turn] = []
        self.told: list[ev.Recorded] = []
        """Every event of the stream, also of a turn that did not end."""

    async def judged(self) -> tuple[Trial, tuple[Judgement, ...]]:
        """Play it to its end, and judge what the server's stream told.

        Raises:
            OikosError: it could not be played; one line.
        """
        try:
            await self._through()
            trial = await asyncio.to_thread(self._trial)
        finally:
            await self.leave()
        judgements = [judge(assertion, trial, None) for assertion in self._manifest.expect]
        problems = "; ".join(trial.audit)
        saw = problems or f"stream and history agree on {sum(1 for _ in trial.records())} events"
        return trial, (*judgements, Judgement(assertion="record", ok=not problems, saw=saw))

    async def _through(self) -> None:
        session_id = ""
        for message in (Followup(text=self._manifest.prompt, fresh=True), *self._manifest.followups):
            if message.fresh:
                mode = {"mode": "look" if self._manifest.look else "ask"}
                opened = await asyncio.to_thread(self._server.post, "/sessions", mode)
                if isinstance(opened, Refusal):
                    raise OikosError(f"no session was opened ({opened.code}): {opened.text}")
                session_id, self._state = str(opened["id"]), State()
                self._opened.append(session_id)
            self._records = []
            text = message.text
            for name, value in self._values.items():
                text = text.replace(f"{{{name}}}", value)
            state = await self._turn(session_id, text)
            records = tuple(self._records)
            ticks = helps(records, session_id, self._operator.pushes)
            turn = Turn(session_id=session_id, text=text, state=state, records=records, truth=self._values, ticks=ticks)
            self._turns.append(turn)

    async def leave(self) -> None:
        """Stop what was left open: an eval leaves no card behind in a server that people use."""
        for session_id in self._opened:
            with contextlib.suppress(OikosError):  # of the play itself there is more to say
                row = await asyncio.to_thread(self._server.get, f"/sessions/{session_id}")
                if row["phase"] not in CLOSED:
                    await self._desk.stop(session_id, SCRIPT)

    async def _turn(self, session_id: str, text: str) -> State:
        sent = await self._desk.send(session_id, text, SCRIPT)
        if isinstance(sent, Refusal):
            raise OikosError(f"the message was refused ({sent.code}): {sent.text}")
        seq = sent.seq
        while True:
            state, rule = await asyncio.to_thread(self._rest, session_id, seq)
            if rule is not None:
                await asyncio.sleep(rule.after_s)
                await self._operator.interrupt(self._desk, session_id, rule)
                continue
            card = card_of(session_id, state)
            done = await self._operator.decide(self._desk, card) if card is not None else None
            if done is None:
                return state
            seq = done.seq

    def _rest(self, session_id: str, after: int) -> tuple[State, OperatorRule | None]:
        """Follow the stream until the session is neither executing nor waiting and no turn holds it (SPEC R9.1), or
        until the operator has something to do unasked."""
        left_s = self._manifest.timeout_s - self._clock.now().elapsed_since(self._begun)
        with contextlib.closing(self._server.events(session_id, after=self._state.seq, within_s=left_s)) as stream:
            for record in stream:
                self._records.append(record)
                self.told.append(record)
                state = self._state = evolve(self._state, record)
                kind = self._moments.kind(record.event)
                rule = self._operator.after(kind, state.generation) if kind else None
                if rule is not None:
                    return state, rule
                rests = state.seq >= after and state.phase in RESTING and not state.turn
                if rests and self._server.get(f"/sessions/{session_id}")["seq"] == state.seq:
                    return state, None
        raise OikosError("the stream ended by itself")

    def _trial(self) -> Trial:
        """What the server says when it is over."""
        sessions = dict.fromkeys(turn.session_id for turn in self._turns)
        problems: list[str] = []
        outputs: dict[str, bytes] = {}
        for session_id in sessions:
            last = max(turn.state.seq for turn in self._turns if turn.session_id == session_id)
            streamed = [r for turn in self._turns for r in turn.records if r.session_id == session_id]
            history = self._server.get(f"/sessions/{session_id}/history")["events"]
            kept = [recorded(session_id, body) for body in history]
            if streamed != kept[:last]:
                problems.append(f"the stream of session {session_id[:8]} is not its history")
            for row in self._server.get(f"/runs?session={session_id}&limit=1000")["runs"]:
                path = f"/runs/{row['run_id']}/output"
                outputs[row["run_id"]] = self._server.raw(f"{path}?stream=out") + self._server.raw(f"{path}?stream=err")
        return Trial(
            turns=tuple(self._turns), inventory=_inventory(self._server), outputs=outputs,
            ticks=sum(turn.ticks for turn in self._turns), audit=tuple(problems), unused=self._operator.unused,
        )  # fmt: skip


def targets_of(server: Server) -> frozenset[str]:
    """Slugs of the machines that a server knows."""
    return frozenset(str(row["slug"]) for row in server.get("/entities")["entities"] if not row["gone"])


def _inventory(server: Server) -> Inventory:
    """Entities without their ways in, which a server keeps to itself, and current facts."""
    entities = {str(row["id"]): _entity(row) for row in server.get("/entities")["entities"]}
    facts: dict[str, dict[str, Fact]] = {}
    for row in server.get("/facts")["facts"]:
        fact = decode_as(Fact, orjson.dumps({name: item for name, item in row.items() if name != "stale"}))
        facts.setdefault(fact.entity_id, {})[fact.key] = fact
    return Inventory(entities=entities, facts=facts)


def _entity(row: Any) -> Entity:
    return Entity(
        id=row["id"], kind=row["kind"], slug=row["slug"], name=row["name"], parent=row["parent"],
        aliases=tuple(row["aliases"]), mode=Mode(row["mode"]), gone=row["gone"], lab=row["lab"],
    )  # fmt: skip
