"""Who works on which session: leases, one turn per session, timers, recovery, and the reconciler (SPEC R1.10).

The human is never the event loop: a message, a decision, a finished run, a timer or a restart wakes a session,
and whatever was missed is found by looking.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine

from oikos.app.feed import Feed
from oikos.app.log import SessionLog
from oikos.app.nomos import Nomos
from oikos.app.prompt import Prompt
from oikos.app.runs import Runs
from oikos.domain import events as ev
from oikos.domain.errors import Fenced, StoreError
from oikos.domain.events import Recorded
from oikos.domain.intents import Tick
from oikos.domain.session import Phase, State, decide
from oikos.ports import Clock, Lease, Store, Wake

LEASE_S = 30.0
RENEW_S = 10.0
POLL_S = 0.5
"""Wake rows of other processes are looked for this often (DESIGN §6.7)."""
OPEN_PHASES = frozenset({Phase.EXECUTING.value, Phase.WAITING.value, Phase.AWAITING.value, Phase.BLOCKED.value})


class Supervisor:
    """Runs turns until it is cancelled."""

    def __init__(self, *, store: Store, clock: Clock, feed: Feed, wake: Wake, nomos: Nomos, runs: Runs,
                 prompt: Callable[[], Prompt], owner: str, tasks: asyncio.TaskGroup,
                 report: Callable[[str, Exception], None]) -> None:  # fmt: skip
        self._store = store
        self._clock = clock
        self._feed = feed
        self._wake = wake
        self._nomos = nomos
        self._runs = runs
        self._prompt = prompt
        self._owner = owner
        self._tasks = tasks
        self._report = report
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._known: dict[str, tuple[int, State]] = {}
        self._broken: dict[str, int] = {}
        """Sessions whose events cannot be read, with the seq at which that was seen."""

    async def run(self, which: Callable[[], str] | None = None) -> None:
        """Work on every session, or on the one that `which` names, until cancelled."""
        while True:
            only = which() if which is not None else ""
            for session_id, reason in await self._store.take_wakes():
                if not only or session_id == only:
                    self._take_up(session_id, reason)
            runs = {run.session_id for run in await self._store.runs(unfinished=True, limit=1000)}
            for row in await self._store.sessions(limit=1000):
                concerns = row.phase in OPEN_PHASES or row.session_id in runs  # a disowned run outlives its session
                if concerns and (not only or row.session_id == only) and row.session_id not in self._turns:
                    await self._look(row.session_id, row.seq)
            await self._wake.wait(POLL_S)

    def _take_up(self, session_id: str, reason: str) -> None:
        if session_id not in self._turns:
            self._turns[session_id] = self._tasks.create_task(self._work(session_id, reason))

    async def _look(self, session_id: str, seq: int) -> None:
        """Timers and forgotten work of a session that nobody works on."""
        known = self._known.get(session_id)
        if known is None or known[0] != seq:
            found = await self._read(self._log(session_id, None), seq)
            if found is None:
                return
            known = (seq, found)
            self._known[session_id] = known
        state = known[1]
        now = self._clock.now()
        blocked = state.blocked
        if state.due:
            self._take_up(session_id, "reconciler")
        elif blocked is not None and blocked.retry_at is not None and now.elapsed_since(blocked.retry_at) >= 0:
            self._take_up(session_id, "timer")
        elif decide_events(state, now_tick := Tick(), self._clock):
            log = self._log(session_id, None)
            await log.refresh()
            await log.decide(lambda s, at: decide(s, now_tick, at), wake="timer")
            self._known.pop(session_id, None)
        elif state.turn or not all(self._runs.follows(run.order.run_id) for run in state.running):
            await self._adopt(session_id)

    async def _read(self, log: SessionLog, seq: int = -1) -> State | None:
        """A session's state. One that cannot be read is reported once and left alone; the others go on (DESIGN §1)."""
        if seq >= 0 and self._broken.get(log.session_id) == seq:
            return None
        try:
            return await log.refresh()
        except StoreError as error:
            if log.session_id not in self._broken:
                self._report(log.session_id, error)
            self._broken[log.session_id] = seq
            return None

    async def _adopt(self, session_id: str) -> None:
        """What a dead process left of a session that waits: an open turn is closed, runs are followed again."""
        lease = await self._store.take_lease(session_id, self._owner, now_s=self._clock.now().wall_s, ttl_s=LEASE_S)
        if lease is None:
            return
        try:
            log = self._log(session_id, lease)
            state = await log.refresh()
            if state.turn and not state.due:
                await log.append_outcome(ev.TurnEnded(reason="interrupted"))
            await self._runs.recover(log)
        finally:
            await self._store.drop_lease(lease)

    async def _work(self, session_id: str, reason: str) -> None:
        """Take the lease and turn until the session is not due any more."""
        try:
            lease = await self._store.take_lease(session_id, self._owner, now_s=self._clock.now().wall_s, ttl_s=LEASE_S)
            if lease is None:
                return
            try:
                await self._turns_of(session_id, lease, reason)
            finally:
                await self._store.drop_lease(lease)
        finally:
            self._turns.pop(session_id, None)
            self._known.pop(session_id, None)

    async def _turns_of(self, session_id: str, lease: Lease, reason: str) -> None:
        await self._store.clear_wake(session_id)
        log = self._log(session_id, lease, prompt=self._prompt())
        state = await self._read(log)
        if state is None:
            return
        blocked = state.blocked
        retry = (
            blocked is not None
            and blocked.retry_at is not None
            and self._clock.now().elapsed_since(blocked.retry_at) >= 0
        )
        if not state.due and not retry:
            return
        await self._watched(log, reason)

    async def _watched(self, log: SessionLog, reason: str) -> None:
        """One turn, with its lease kept alive, ended at once when the session is stopped or the lease is lost."""
        turn = self._tasks.create_task(_quietly(lambda: self._nomos.turn(log, reason)))
        keeper = self._tasks.create_task(self._keep(log.lease))
        stop = self._tasks.create_task(self._until_stopped(log.session_id, log.state.seq))
        try:
            await asyncio.wait({turn, keeper, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done():
                turn.cancel()
                await asyncio.wait({turn})
                with contextlib.suppress(Fenced):
                    await log.settle()  # an outcome under way is not lost with its turn
                if stop.done() and not stop.cancelled():
                    await self._after_stop(log.session_id, stop.result())
        finally:
            for task in (keeper, stop, turn):
                task.cancel()
            await asyncio.wait({turn, keeper, stop})
        error = None if turn.cancelled() else turn.result()
        if error is None or isinstance(error, Fenced):
            return
        if isinstance(error, StoreError):
            raise error
        self._report(log.session_id, error)
        failed = self._log(log.session_id, log.lease)
        await failed.refresh()
        reason = f"a defect of Oikos ended the turn ({type(error).__name__}: {error}); a message tries again"
        await failed.append_outcome(ev.SessionBlocked(on="internal", reason=reason), ev.TurnEnded(reason="blocked"))

    async def _until_stopped(self, session_id: str, after: int) -> ev.SessionStopped:
        async for item in self._feed.follow(session_id, after=after, ephemeral=False):
            if isinstance(item, Recorded) and isinstance(item.event, ev.SessionStopped):
                return item.event
        raise AssertionError("the feed ended by itself")

    async def _after_stop(self, session_id: str, stopped: ev.SessionStopped) -> None:
        """Kill or disown what runs here, follow it to its outcome, and close the turn."""
        for live in [live for live in self._runs.live.values() if live.order.session_id == session_id]:
            if stopped.runs == "kill":
                await self._runs.kill(live.order)
            self._runs.disown(session_id, live)
        log = self._log(session_id, None)
        await log.refresh()
        await log.append_outcome(ev.TurnEnded(reason="stopped"))
        await self._runs.recover(log)  # a start that was journalled and then cut off

    async def _keep(self, lease: Lease | None) -> None:
        """Renew the lease; returns when it is lost."""
        while lease is not None:
            await self._clock.sleep(RENEW_S)
            lease = await self._store.renew_lease(lease, now_s=self._clock.now().wall_s, ttl_s=LEASE_S)

    def _log(self, session_id: str, lease: Lease | None, prompt: Prompt | None = None) -> SessionLog:
        return SessionLog(
            session_id,
            store=self._store,
            clock=self._clock,
            feed=self._feed,
            actor="nomos" if lease else "supervisor",
            lease=lease,
            prompt=prompt,
            tasks=self._tasks,
        )


def decide_events(state: State, tick: Tick, clock: Clock) -> bool:
    """Whether time has ended something."""
    decision = decide(state, tick, clock.now())
    return bool(getattr(decision, "events", ()))


async def _quietly(turn: Callable[[], Coroutine[None, None, None]]) -> Exception | None:
    """Await a turn; its error is a value, so that one session's failure does not end the others."""
    try:
        await turn()
    except Exception as error:  # any defect: it is reported and the session is blocked, never silently idle
        return error
    return None
