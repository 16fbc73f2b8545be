"""Operator intents: open, send, approve, confirm, reject, revoke, stop and the rest. Every face calls this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oikos.app.changes import changes_of, way_back
from oikos.app.feed import Feed
from oikos.app.log import SessionLog
from oikos.app.runs import Runs
from oikos.app.teaching import STREAM
from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.consent import WINDOW_CHOICES_S, Principal, Role
from oikos.domain.errors import Code, OikosError, Refusal
from oikos.domain.mask import Secrets, mask_text
from oikos.domain.plan import Plan
from oikos.domain.plan_diff import differences
from oikos.domain.session import Phase, State, decide, fold
from oikos.ports import Clock, Ids, Notifier, RunRow, SessionRow, Store, Wake


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An intent was carried out."""

    session_id: str
    seq: int
    notice: str = ""
    """One line for whoever acted."""
    stopped: tuple[tuple[str, str], ...] = ()
    """After Stop: run id and what is known of its remote process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a session waits for, in the same form for every face (SPEC §0, ux/UX U9)."""

    session_id: str
    kind: str
    """plan, run, question, limit, model, halted, nudge or repetition."""
    text: str
    generation: int = 0
    plan: Plan | None = None
    digest: str = ""
    """What an approval must carry, so that it approves what was shown."""
    run: ev.RunParked | None = None
    question: ev.QuestionAsked | None = None
    ticked: frozenset[int] = field(default_factory=frozenset)


STALE = frozenset({Code.STALE_DIGEST, Code.STALE_GENERATION})
"""Refusals of an approval of what is no longer so."""


class NoSuchSession(OikosError):
    """The id names no session."""


class Service:
    """The operator's side of one process."""

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, feed: Feed, wake: Wake, secrets: Secrets,
                 runs: Runs, notifier: Notifier | None = None) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._ids = ids
        self._feed = feed
        self._wake = wake
        self._secrets = secrets
        self._runs = runs
        self._notifier = notifier

    # ---- reading -----------------------------------------------------------------------------------------------------

    async def state(self, session_id: str) -> State:
        """The session's state now.

        Raises:
            NoSuchSession: the id is unknown.
        """
        records = await self._store.load(session_id)
        if not records:
            raise NoSuchSession(f"there is no session {session_id}: `oikos sessions` lists them")
        return fold(records)

    async def history(self, session_id: str, *, after: int = 0) -> Sequence[ev.Recorded]:
        """All events, in order."""
        return await self._store.load(session_id, after=after)

    async def find(self, prefix: str) -> str:
        """The one session whose id begins so; the newest for `-` or an empty text.

        Raises:
            NoSuchSession: none or more than one.
        """
        rows = await self.sessions(limit=1000)
        if prefix in ("", "-") and rows:
            return rows[0].session_id
        found = [row.session_id for row in rows if row.session_id.startswith(prefix)] if prefix else []
        if len(found) == 1:
            return found[0]
        many = (
            f"{len(found)} sessions begin with {prefix}: give more of the id"
            if found
            else f"there is no session {prefix or '-'}"
        )
        raise NoSuchSession(f"{many}; `oikos sessions` lists them")

    async def sessions(self, *, limit: int = 100) -> Sequence[SessionRow]:
        """Newest first."""
        return [row for row in await self._store.sessions(limit=limit) if row.session_id != STREAM]

    async def runs(self, *, session_id: str | None = None, limit: int = 100) -> Sequence[RunRow]:
        """Newest first."""
        return await self._store.runs(session_id=session_id, limit=limit)

    async def card(self, session_id: str) -> Card | None:
        """What the session waits for; None when nothing."""
        return card_of(session_id, await self.state(session_id))

    # ---- acting ------------------------------------------------------------------------------------------------------

    async def open(self, by: Principal, *, model: str = "", mode: str = "ask", lab: bool = False) -> str:
        """Begin a session; returns its id."""
        if by.role.rank < Role.OPERATOR.rank:
            raise OikosError(f"{by.id} is a viewer and cannot open a session")
        session_id = self._ids()
        log = self._log(session_id, by)
        await log.append(ev.SessionOpened(mode=mode, model=model, by=by.id, lab=lab))
        return session_id

    async def send(self, session_id: str, text: str, by: Principal, *, shown: Card | None = None) -> Done | Refusal:
        """A message; whether it decides something is read by the assent grammar alone."""
        intent = it.Send(
            text=mask_text(text, self._secrets), by=by, consent_id=self._ids(),
            shown_generation=shown.generation if shown is not None and shown.plan is not None else None,
            shown_digest=shown.digest if shown is not None else "",
        )  # fmt: skip
        return await self._act(session_id, intent)

    async def answer_secret(self, session_id: str, reference: str, by: Principal) -> Done | Refusal:
        """Answer a question of kind secret with a reference; the value is in the secret store already."""
        return await self._act(
            session_id, it.Send(text=reference, by=by, consent_id=self._ids(), answer_is_stored=True)
        )

    async def approve(
        self,
        session_id: str,
        card: Card,
        by: Principal,
        *,
        items: tuple[int, ...] = (),
        phrases: tuple[str, ...] = (),
        duration_s: float = WINDOW_CHOICES_S[0],
        text: str = "",
        snapshot: bool = False,
    ) -> Done | Refusal:
        """Approve what a card showed: a plan, with the snapshots it offers if so chosen, or one parked run."""
        if card.run is not None:
            order = card.run.order
            intent: it.OperatorIntent = it.ApproveRun(
                run_id=order.run_id, digest=card.digest, by=by, consent_id=self._ids()
            )
        elif card.plan is not None:
            intent = it.Approve(
                generation=card.generation,
                digest=card.digest,
                by=by,
                consent_id=self._ids(),
                items=items,
                phrases=phrases,
                duration_s=duration_s,
                text=mask_text(text, self._secrets),
                snapshot=snapshot,
            )
        else:
            return Refusal(code=Code.NOTHING_PENDING, text=f"Nothing waits for an approval: {card.text}")
        done = await self._act(session_id, intent)
        if isinstance(done, Refusal) and isinstance(intent, it.Approve) and done.code in STALE:
            return replace(done, details=await self.differs(session_id, intent.digest))
        return done

    async def differs(self, session_id: str, shown: str) -> tuple[str, ...]:
        """What the newest plan does otherwise than the one whose digest begins with `shown` (SPEC R3.6).

        Empty when no plan of the session had that digest, or when nothing differs.
        """
        plans = [e for e in (r.event for r in await self.history(session_id)) if isinstance(e, ev.PlanProposed)]
        then = [event.plan for event in plans if shown and event.digest.startswith(shown)]
        return differences(then[-1], plans[-1].plan) if then else ()

    async def plan_way_back(self, session_id: str, by: Principal) -> Done | Refusal:
        """*Plan the way back* (SPEC R5.12): the message that has Nomos propose the undoing as a new generation."""
        changes = changes_of(await self.history(session_id))
        if not any(change.began for change in changes):
            return Refusal(code=Code.NOTHING_PENDING, text="Nothing was changed in this session: no way back to plan.")
        return await self.send(session_id, way_back(changes), by)

    async def reopen_with(self, session_id: str, card: Card, by: Principal, *, duration_s: float) -> Done | Refusal:
        """*Run and reopen for N min*: approve the parked run and open the ended window again (SPEC R3.3)."""
        if card.run is None:
            return Refusal(code=Code.NOTHING_PENDING, text="No run waits for an approval.")
        intent = it.ApproveRun(
            run_id=card.run.order.run_id, digest=card.digest, by=by, consent_id=self._ids(), reopen_s=duration_s
        )
        return await self._act(session_id, intent)

    async def confirm(self, session_id: str, phrase: str, by: Principal, *, shown: Card | None) -> Done | Refusal:
        """A typed phrase, for what the card showed and nothing else."""
        digest = shown.digest if shown is not None else ""
        phrase = mask_text(phrase, self._secrets)
        return await self._act(session_id, it.Confirm(phrase=phrase, digest=digest, by=by, consent_id=self._ids()))

    async def ask_for_changes(self, session_id: str, text: str, by: Principal) -> Done | Refusal:
        """Not like this."""
        return await self._act(session_id, it.AskForChanges(text=mask_text(text, self._secrets), by=by))

    async def reject(self, session_id: str, by: Principal, *, reason: str = "") -> Done | Refusal:
        """No."""
        return await self._act(session_id, it.Reject(by=by, reason=mask_text(reason, self._secrets)))

    async def revoke(self, session_id: str, by: Principal) -> Done | Refusal:
        """Close the window."""
        return await self._act(session_id, it.Revoke(by=by))

    async def raise_limits(self, session_id: str, by: Principal) -> Done | Refusal:
        """Raise and continue."""
        return await self._act(session_id, it.Raise(by=by))

    async def stop(self, session_id: str, by: Principal, *, kill: bool = True) -> Done | Refusal:
        """End the session; says for each running command whether its remote process is dead (SPEC R1.8)."""
        log = self._log(session_id, by)
        done = await self._act(session_id, it.Stop(by=by, kill=kill), log)
        if isinstance(done, Refusal):
            return done
        told: list[tuple[str, str]] = []
        for run in log.state.running:  # as of the very decision: nothing starts after it
            if run.authority != "probe":
                known = (
                    (await self._runs.kill(run.order)).value
                    if kill
                    else "disowned: it goes on, its outcome will be recorded"
                )
                told.append((run.order.run_id, known))
        return Done(session_id=session_id, seq=done.seq, notice=done.notice, stopped=tuple(told))

    async def _act(self, session_id: str, intent: it.OperatorIntent, log: SessionLog | None = None) -> Done | Refusal:
        log = log or self._log(session_id, intent.by)
        await log.refresh()
        if log.state.seq == 0:
            return Refusal(
                code=Code.NO_SUCH_SESSION, text=f"There is no session {session_id}: `oikos sessions` lists them."
            )
        decision = await log.decide(lambda state, now: decide(state, intent, now), wake="operator")
        if isinstance(decision, Refusal):
            return decision
        self._wake.notify(session_id)
        return Done(session_id=session_id, seq=log.state.seq, notice=decision.notice)

    def _log(self, session_id: str, by: Principal) -> SessionLog:
        return SessionLog(session_id, store=self._store, clock=self._clock, feed=self._feed, actor=f"operator:{by.id}")


def card_of(session_id: str, state: State) -> Card | None:
    """The card of a state; None when the session waits for nobody."""
    if state.awaiting_run and state.parked is not None:
        event = state.parked.event
        return Card(
            session_id=session_id,
            kind="run",
            text=event.why,
            generation=state.generation,
            run=event,
            digest=event.order.asked(),
        )
    if state.awaiting_plan and state.plan is not None:
        return Card(
            session_id=session_id,
            kind="plan",
            text=state.plan.goal,
            generation=state.generation,
            plan=state.plan,
            digest=state.digest,
            ticked=state.ticked,
        )
    if state.question is not None:
        return Card(
            session_id=session_id,
            kind="question",
            text=state.question.text,
            generation=state.generation,
            question=state.question,
        )
    if state.phase is Phase.BLOCKED and state.blocked is not None:
        return Card(
            session_id=session_id, kind=state.blocked.on, text=state.blocked.reason, generation=state.generation
        )
    return None
