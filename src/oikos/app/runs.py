"""Runs from their journalled start to their outcome: followed, detached, found again after a crash, killed.

No other module starts anything on a Runner. A start is journalled at the seq the gate saw, in one transaction that
looks at the target's mode and lock again; any difference goes back to the gate (DESIGN §1).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from oikos.app.feed import Feed
from oikos.app.fleet import Fleet
from oikos.app.hints import Hint, Hints
from oikos.app.log import SessionLog
from oikos.app.output import Collector
from oikos.app.told import Answer, result_of, seen_as
from oikos.domain import events as ev
from oikos.domain.admission import Admission
from oikos.domain.agent_rules import end_wait
from oikos.domain.errors import SeqConflict, StoreError, TargetError
from oikos.domain.inventory import Entity, Route
from oikos.domain.mask import Secrets
from oikos.domain.run import (
    Exited,
    Lost,
    RemoteState,
    RunOrder,
    RunOutcome,
    RunReport,
    Signalled,
    Stream,
    Unknown,
    succeeded,
)
from oikos.domain.state import RunState, State
from oikos.domain.verdict import Risk, Verdict
from oikos.ports import Clock, Guard, OutputPiece, Runner, Store

STOP_GRACE_S = 1.0
"""How long a killed read may take to end by itself."""


@dataclass(slots=True)
class Live:
    """A run that this process follows."""

    order: RunOrder
    route: Route
    collector: Collector
    task: asyncio.Task[RunReport]
    detached: bool = False


class Runs:
    """The runs that this process follows."""

    def __init__(
        self,
        *,
        store: Store,
        runner: Runner,
        clock: Clock,
        feed: Feed,
        fleet: Fleet,
        secrets: Secrets,
        hints: Hints,
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._store = store
        self._runner = runner
        self._clock = clock
        self._feed = feed
        self._fleet = fleet
        self._secrets = secrets
        self._hints = hints
        self._tasks = tasks
        self.live: dict[str, Live] = {}
        self._cancelled: set[str] = set()
        self._sought: set[str] = set()
        """Runs of an earlier process whose outcome is being found."""

    # ---- from its start to its outcome ------------------------------------------------------------------------------

    async def begin(
        self,
        log: SessionLog,
        started: ev.RunStarted,
        target: Entity,
        route: Route,
        admission: Admission,
        also: tuple[Guard, ...] = (),
    ) -> Live:
        """Journal a start and hand it to the Runner; `also` is what else must still be as the gate saw it."""
        order = started.order
        changes = started.risk is not Risk.READ_ONLY
        guard = Guard(target_id=target.id, mode=target.mode.value, exclusive=changes, also=also)
        await log.append(started, guard=guard)
        collector = self._collector(log, order)
        live = Live(order, route, collector, self._tasks.create_task(self._guarded(admission, order, route, collector)))
        self.live[order.run_id] = live
        return live

    async def finish(self, log: SessionLog, live: Live, report: RunReport, verdict: Verdict | None) -> Answer:
        pieces = live.collector.finish()
        self.live.pop(live.order.run_id, None)
        state = log.state
        run = state.runs[live.order.run_id]
        passed = _passed(state, run, report.outcome, live.collector)
        hint = self._hint(report.outcome, live.collector)
        answer = result_of(run, report, live.collector, passed, hint, verdict)
        finished = ev.RunFinished(
            run_id=live.order.run_id, report=report, passed=passed, hint=hint.text if hint else "",
            hint_class=hint.recovery if hint else "",
        )  # fmt: skip
        seen = seen_as("run", run.key, answer.seen)
        told = ev.ToolAnswered(call_id=run.call_id, name="run", text=answer.text, run_id=live.order.run_id, seen=seen)
        if not await log.overtaken():  # the outcome becomes durable while the model is asked
            log.append_soon(finished, told, output=pieces, then=lambda: self.forget(live.order, live.route))
        else:  # an operator spoke during the run: a halt comes before any model call (SPEC R1.8)
            await log.append_outcome(finished, told, output=pieces)
            self.forget(live.order, live.route)
        return replace(answer, told=True)

    def forget(self, order: RunOrder, route: Route) -> None:
        """The outcome is durable: the target may drop what it kept (SPEC R5.10)."""
        if order.supervised:
            self._tasks.create_task(self._runner.acknowledge(order, route))

    def _hint(self, outcome: RunOutcome, collector: Collector) -> Hint | None:
        text = b"\n".join(part for stream in Stream for part in collector.ends(stream)[:2]).decode("utf-8", "replace")
        return self._hints.find(text, failed=not succeeded(outcome))

    async def _guarded(self, admission: Admission, order: RunOrder, route: Route, collector: Collector) -> RunReport:
        """A Runner answers with outcomes; should it raise all the same, the outcome is unknown, not lost."""
        try:
            return await self._runner.start(admission, order, route, collector)
        except StoreError:
            raise  # nothing can be journalled: the outcome is found on the target later
        except asyncio.CancelledError:
            if order.run_id not in self._cancelled:
                raise
            return RunReport(outcome=Signalled(signal=signal.SIGTERM, reason="cancelled"), transport=str(route))
        except Exception as error:  # a defect of the adapter must not leave a run without an outcome
            return RunReport(outcome=Unknown(reason=f"{type(error).__name__}: {error}"))

    # ---- background --------------------------------------------------------------------------------------------------

    async def detach(self, log: SessionLog, live: Live, reason: str) -> Answer:
        live.detached = True
        await log.append_outcome(ev.RunDetached(run_id=live.order.run_id, reason=reason))
        self._tasks.create_task(self._announce(log.session_id, live))
        body = {"run": live.order.run_id, "status": "running", "why": reason,
                "do": "Go on; use wait with this run to be woken when it ends, then read_output."}  # fmt: skip
        return Answer(text=orjson.dumps(body).decode(), run_id=live.order.run_id)

    async def _announce(self, session_id: str, live: Live) -> None:
        """Follow a detached run to its end and wake its session (SPEC R1.10)."""
        report = await live.task
        log = SessionLog(session_id, store=self._store, clock=self._clock, feed=self._feed, actor="executor")
        await self.conclude(log, live.order.run_id, report, live.collector, live.collector.finish())
        self.live.pop(live.order.run_id, None)

    async def conclude(self, log: SessionLog, run_id: str, report: RunReport, collector: Collector,
                       pieces: Sequence[OutputPiece] = ()) -> None:  # fmt: skip
        """Journal the outcome of a run that no turn awaits, answer its call if nobody has, and wake the session."""
        await log.refresh()
        while True:
            run = log.state.runs.get(run_id)
            if run is None or not run.running:
                return
            passed = _passed(log.state, run, report.outcome, collector)
            hint = self._hint(report.outcome, collector)
            events: list[ev.Event] = [
                ev.RunFinished(
                    run_id=run_id,
                    report=report,
                    passed=passed,
                    hint=hint.text if hint else "",
                    hint_class=hint.recovery if hint else "",
                )
            ]
            if any(call.id == run.call_id for call in log.state.batch.calls):
                answer = result_of(run, report, collector, passed, hint, None)
                seen = seen_as("run", run.key, answer.seen)
                events.append(
                    ev.ToolAnswered(call_id=run.call_id, name="run", text=answer.text, run_id=run_id, seen=seen)
                )
            waiting = log.state.waiting
            if waiting is not None and waiting.run_id in ("", run_id):
                events += end_wait(waiting, "run")
            try:
                await log.append(*events, output=pieces, wake="run")
            except SeqConflict:
                await log.refresh()
                continue
            with contextlib.suppress(TargetError):  # no way in any more: nothing to tell it
                self.forget(run.order, await self._route(run.order))
            return

    async def _route(self, order: RunOrder) -> Route:
        inventory = await self._fleet.inventory()
        entity = inventory.get(order.target_id)
        route = inventory.route(entity) if entity is not None else None
        if route is None:
            raise TargetError(f"{order.target_id} has no way in any more: add it again with `oikos fleet add`")
        return route

    # ---- after a crash (DESIGN §3) -----------------------------------------------------------------------------------

    async def recover(self, log: SessionLog) -> None:
        """Find the outcome of every run of the session that nobody follows."""
        for run in log.state.running:
            if self.follows(run.order.run_id):
                continue
            if run.authority == "probe" or not run.order.supervised:
                report = RunReport(outcome=Lost(reason="Oikos was restarted while it ran"))
                collector = self._collector(log, run.order)
                await self.conclude(log, run.order.run_id, report, collector, collector.finish())
                continue
            self._sought.add(run.order.run_id)
            self._tasks.create_task(self._follow(log.session_id, run.order))

    async def _attached(
        self, order: RunOrder, route: Route, collector: Collector, offsets: Mapping[Stream, int]
    ) -> RunReport:
        """As `_guarded`, for a run that was started before."""
        try:
            return await self._runner.attach(order, route, collector, offsets)
        except StoreError:
            raise
        except Exception as error:  # a defect of the adapter must not leave a run without an outcome
            return RunReport(outcome=Unknown(reason=f"{type(error).__name__}: {error}"))

    def _collector(self, log: SessionLog, order: RunOrder) -> Collector:
        return Collector(
            log.session_id, order.run_id, store=self._store, feed=self._feed, clock=self._clock, secrets=self._secrets
        )

    async def _follow(self, session_id: str, order: RunOrder) -> None:
        """Follow a run that was started before to its outcome, and journal it."""
        try:
            await self._follow_to_the_end(session_id, order)
        finally:
            self._sought.discard(order.run_id)

    async def _follow_to_the_end(self, session_id: str, order: RunOrder) -> None:
        log = SessionLog(session_id, store=self._store, clock=self._clock, feed=self._feed, actor="executor")
        collector = self._collector(log, order)
        try:
            route = await self._route(order)
        except TargetError as error:
            report = RunReport(outcome=Unknown(reason=str(error)))
            await self.conclude(log, order.run_id, report, collector, collector.finish())
            return
        offsets = await self._store.resume_offsets(order.run_id)
        for stream, at in offsets.items():
            if at:  # the model and the checks see the whole output, not only what comes from here on
                collector.resume(stream, await self._store.output(order.run_id, stream), at)
        task = self._tasks.create_task(self._attached(order, route, collector, offsets))
        self.live[order.run_id] = Live(order, route, collector, task, detached=True)
        report = await task
        await self.conclude(log, order.run_id, report, collector, collector.finish())
        self.live.pop(order.run_id, None)

    def follows(self, run_id: str) -> bool:
        """Whether this process will journal the run's outcome."""
        return run_id in self.live or run_id in self._sought

    # ---- stop --------------------------------------------------------------------------------------------------------

    async def kill(self, order: RunOrder) -> RemoteState:
        """End a run on its target and say what is known of the remote process (SPEC R1.8)."""
        live = self.live.get(order.run_id)
        try:
            route = live.route if live is not None else await self._route(order)
            known = await self._runner.kill(order, route)
        except TargetError:
            known = RemoteState.UNKNOWN
        if live is not None and not order.supervised:
            # a plain run that had not begun when it was killed would begin now: cancelled, it never does
            await asyncio.wait({live.task}, timeout=STOP_GRACE_S)
            if not live.task.done():
                self._cancelled.add(order.run_id)
                live.task.cancel()
        return known

    def disown(self, session_id: str, live: Live) -> None:
        """No turn awaits the run any more: follow it in the background to its outcome."""
        if not live.detached:
            live.detached = True
            self._tasks.create_task(self._announce(session_id, live))


def _passed(state: State, run: RunState, outcome: RunOutcome, collector: Collector) -> bool | None:
    if run.check is None or state.plan is None or run.check >= len(state.plan.checks):
        return None
    check = state.plan.checks[run.check]
    if check.expect_exit is not None and outcome != Exited(code=check.expect_exit):
        return False
    if not check.expect_text:
        return check.expect_exit is not None or succeeded(outcome)
    head, tail, _ = collector.ends(Stream.OUT)
    wanted = check.expect_text.encode("utf-8", "replace")
    return wanted in head + tail
