"""A session's log as one worker holds it: its state, its prompt, and the only way to append.

Appends are decided against a seq; when somebody else was first, the log reloads and the caller decides again.
The outcome of a run is never lost to such a conflict. One outcome append may be under way while the model is
asked, so that its fsync costs nothing (bench/BENCH goal A4); `settle` waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from oikos.app.feed import Feed
from oikos.app.prompt import Prompt
from oikos.domain.decision import Decided, Decision
from oikos.domain.errors import Refusal, SeqConflict, StoreError
from oikos.domain.events import AssistantSaid, Event, ModelRetried, Recorded, RunFinished, TurnStarted
from oikos.domain.instant import Instant
from oikos.domain.session import State, evolve, fold
from oikos.ports import Clock, Guard, Lease, OutputPiece, Store

Rule = Callable[[State, Instant], Decision]

FACTS = (TurnStarted, AssistantSaid, ModelRetried, RunFinished)
"""Events that report what happened rather than decide something; they hold whatever came between."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """The one outcome append that may be under way."""

    task: asyncio.Task[StoreError | None]
    records: tuple[Recorded, ...]
    before: State
    output: tuple[OutputPiece, ...]
    then: Callable[[], None] | None


class SessionLog:
    """State and appends of one session."""

    def __init__(
        self,
        session_id: str,
        *,
        store: Store,
        clock: Clock,
        feed: Feed,
        actor: str,
        lease: Lease | None = None,
        prompt: Prompt | None = None,
        tasks: asyncio.TaskGroup | None = None,
    ) -> None:
        self.session_id = session_id
        self.lease = lease
        self.prompt = prompt
        self.heard = 0
        """How many messages of the operator the model had been shown when it gave its newest response."""
        self._store = store
        self._clock = clock
        self._feed = feed
        self._actor = actor
        self._tasks = tasks
        self._base = State()
        self._staged: tuple[Recorded, ...] = ()
        self._state = self._base
        self._pending: _Pending | None = None

    @property
    def state(self) -> State:
        """With staged events and the outcome under way applied."""
        return self._state

    @property
    def staged(self) -> bool:
        """Whether anything waits for the next append."""
        return bool(self._staged)

    @property
    def undecided(self) -> bool:
        """Whether a staged event is a decision: it was right for this seq only."""
        return any(not isinstance(record.event, FACTS) for record in self._staged)

    @property
    def unheard(self) -> bool:
        """Whether the operator wrote since the model was asked."""
        return self.prompt is not None and self.prompt.said > self.heard

    async def overtaken(self) -> bool:
        """Whether somebody else appended since the last look."""
        return bool(await self._store.load(self.session_id, after=self._base.seq))

    async def refresh(self) -> State:
        """Take in what others appended.

        Staged events that report what happened move behind it. Staged decisions are dropped: they were made for
        an older state, and whoever made them decides again.
        """
        await self.settle()
        records = await self._store.load(self.session_id, after=self._base.seq)
        if records:
            staged = tuple(record.event for record in self._staged if isinstance(record.event, FACTS))
            self._take(records, fold(records, self._base))
            self.stage(*staged)
        return self._state

    async def flush(self) -> bool:
        """Append what is staged; False when somebody else was first: look at the state and decide again."""
        try:
            await self.append()
        except SeqConflict:
            await self.refresh()
            return False
        return True

    def stage(self, *events: Event) -> None:
        """Keep events for the next append: they become durable together with what follows from them."""
        records = self._number(events, self._clock.now())
        self._staged += records
        for record in records:
            self._state = evolve(self._state, record)

    async def decide(self, rule: Rule, *, wake: str = "") -> Decision:
        """Apply a rule to the current state and append what it decides; again after each conflict."""
        while True:
            now = self._clock.now()
            decision = rule(self._state, now)
            if isinstance(decision, Refusal):
                return decision
            try:
                await self.append(*decision.events, at=now, wake=wake)
            except SeqConflict:
                await self.refresh()
            else:
                return decision

    def consider(self, rule: Rule) -> Decision:
        """Apply a rule and only stage what it decides."""
        decision = rule(self._state, self._clock.now())
        if isinstance(decision, Decided):
            self.stage(*decision.events)
        return decision

    async def append(self, *events: Event, at: Instant | None = None, wake: str = "", guard: Guard | None = None,
                     output: Sequence[OutputPiece] = ()) -> None:  # fmt: skip
        """Append staged and given events durably, right after the seq of `state`.

        Raises:
            SeqConflict: nothing was appended; call `refresh` and decide again. Staged events stay staged.
            TargetBusy, TargetChanged: the guard did not hold; nothing was appended.
        """
        if await self.settle():
            raise SeqConflict("somebody appended before the last outcome: decide again")
        now = at or self._clock.now()
        fresh = self._number(events, now)
        records, after = self._stamped(now) + fresh, fold(fresh, self._state)
        if not records:
            return
        await self._store.append(
            self.session_id,
            self._base.seq,
            [record.event for record in records],
            at=now,
            actor=self._actor,
            epoch=self._epoch,
            wake=wake,
            phase=after.phase.value,
            waiting_for=after.waits_for,
            guard=guard,
            output=output,
        )
        self._commit(records, after)

    def append_soon(
        self, *events: Event, output: Sequence[OutputPiece] = (), then: Callable[[], None] | None = None
    ) -> None:
        """Append the outcome of what already happened without waiting for it; `settle` before the next one.

        `then` is called once it is durable.
        """
        if self._pending is not None or self._tasks is None:
            raise StoreError("an earlier outcome is not durable yet; this is a defect of Oikos")
        now, before = self._clock.now(), self._base
        fresh = self._number(events, now)
        records, after = self._stamped(now) + fresh, fold(fresh, self._state)
        writing = self._store.append(
            self.session_id,
            before.seq,
            [record.event for record in records],
            at=now,
            actor=self._actor,
            epoch=self._epoch,
            output=output,
            phase=after.phase.value,
            waiting_for=after.waits_for,
        )
        self._pending = _Pending(self._tasks.create_task(_outcome(writing)), records, before, tuple(output), then)
        self._take(records, after)

    async def settle(self) -> bool:
        """Wait until the outcome under way is durable; it moves to a later seq if an operator came between.

        True when it moved: what was decided meanwhile was decided for an older state and is dropped.
        """
        pending = self._pending
        if pending is None:
            return False
        error = await asyncio.shield(pending.task)
        self._pending = None
        if error is None:
            self._feed.publish(pending.records)
            if pending.then is not None:
                pending.then()
            return False
        if not isinstance(error, SeqConflict):
            raise error
        staged = tuple(record.event for record in self._staged if isinstance(record.event, FACTS))
        self._base = self._state = pending.before
        self._staged = ()
        if self.prompt is not None:
            self.prompt.clear()
            for record in await self._store.load(self.session_id):
                if record.seq <= self._base.seq:
                    self.prompt.add(record)
        await self.append_outcome(*(record.event for record in pending.records), output=pending.output)
        if pending.then is not None:
            pending.then()
        self.stage(*staged)
        return True

    async def append_outcome(self, *events: Event, output: Sequence[OutputPiece] = ()) -> None:
        """Append what happened in the world, whatever was appended meanwhile."""
        await self.settle()
        while True:
            now = self._clock.now()
            fresh = self._number(events, now)
            records, after = self._stamped(now) + fresh, fold(fresh, self._state)
            try:
                await self._store.append(
                    self.session_id, self._base.seq, [record.event for record in records], at=now, actor=self._actor,
                    epoch=self._epoch, output=output, phase=after.phase.value, waiting_for=after.waits_for,
                )  # fmt: skip
            except SeqConflict:
                await self.refresh()
            else:
                self._commit(records, after)
                return

    @property
    def _epoch(self) -> int | None:
        return self.lease.epoch if self.lease is not None else None

    def _number(self, events: Sequence[Event], at: Instant) -> tuple[Recorded, ...]:
        first = self._base.seq + len(self._staged) + 1
        session_id = self.session_id
        return tuple(
            Recorded(session_id=session_id, seq=first + i, at=at, event=event) for i, event in enumerate(events)
        )

    def _stamped(self, at: Instant) -> tuple[Recorded, ...]:
        """Staged events with the moment they are stored with: what is seen live is what a reload shows (SPEC R1.9)."""
        return tuple(Recorded(session_id=r.session_id, seq=r.seq, at=at, event=r.event) for r in self._staged)

    def _take(self, records: Sequence[Recorded], after: State) -> None:
        """What was appended is what the next append builds on; `after` is the state behind it."""
        self._base = self._state = after
        self._staged = ()
        if self.prompt is not None:
            for record in records:
                self.prompt.add(record)

    def _commit(self, records: tuple[Recorded, ...], after: State) -> None:
        self._take(records, after)
        self._feed.publish(records)


async def _outcome(writing: Awaitable[int]) -> StoreError | None:
    """The error as a value: an exception here would tear down every other task of the supervisor."""
    try:
        await writing
    except StoreError as error:
        return error
    return None
