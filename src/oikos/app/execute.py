"""The run primitive: classify, admit, journal the start, run, journal the outcome.

No other module calls a Runner. A start is journalled at the seq the gate saw, in one transaction that looks at the
target's mode and lock again; any difference goes back to the gate (DESIGN §1).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from oikos.app.creations import Creations
from oikos.app.feed import Feed
from oikos.app.fleet import Fleet
from oikos.app.hints import Hint, Hints
from oikos.app.identity import Identities
from oikos.app.log import SessionLog
from oikos.app.output import Collector
from oikos.app.scripts import Scripts
from oikos.app.snapshots import due, failed, order_of, tries
from oikos.app.told import Answer, not_run, refused, result_of, seen_as
from oikos.domain import events as ev
from oikos.domain import secret_files
from oikos.domain.agent_rules import end_wait
from oikos.domain.consent import RUN_APPROVAL_S
from oikos.domain.creation import made_by
from oikos.domain.errors import Code, Refusal, SeqConflict, StoreError, TargetBusy, TargetChanged, TargetError
from oikos.domain.gate import (
    Admission,
    NeedsApproval,
    NeedsTypedConfirmation,
    Question,
    admit,
    admit_snapshot,
    preauthorised_guests,
)
from oikos.domain.instant import Instant
from oikos.domain.inventory import Entity, Inventory, Route
from oikos.domain.mask import Secrets
from oikos.domain.plan import Creates, Snapshot
from oikos.domain.run import (
    Exited,
    Limits,
    Lost,
    RemoteState,
    RunOrder,
    RunOutcome,
    RunReport,
    RunRequest,
    Signalled,
    Stream,
    Unknown,
    succeeded,
)  # fmt: skip
from oikos.domain.scripts import Script, scripts_of
from oikos.domain.state import Parked, Phase, RunState, State
from oikos.domain.verdict import Risk, Verdict
from oikos.ports import Classify, Clock, Guard, Ids, OutputPiece, Runner, Store

BUSY_WAIT_S = 30.0
"""How long a change waits for another change of the same target before the model is told."""
BUSY_POLL_S = 0.25
REREAD_S = 2.0
"""As BUSY_POLL_S, for a command that runs a file: the other change may be of that file, so it is read again."""
ASK_AGAIN = 3
"""How often one run asks a machine who it is before an unsteady connection is reported."""
STOP_GRACE_S = 1.0
"""How long a killed read may take to end by itself."""


Standing = Callable[[str], Awaitable[bool]]
"""Whether a person, by id, still holds the role approver (SPEC R3.6)."""


@dataclass(slots=True)
class Live:
    """A run that this process follows."""

    order: RunOrder
    route: Route
    collector: Collector
    task: asyncio.Task[RunReport]
    detached: bool = False


@dataclass(slots=True)
class _Job:
    """One run on its way through the gate."""

    call_id: str
    request: RunRequest
    verdict: Verdict
    order: RunOrder
    approval: Parked | None = None
    asked: int = 0
    """Identity probes of the target for this run."""
    guests: set[str] = field(default_factory=set)
    """Guests that were asked who they are."""
    waited_s: float = 0.0
    target: Entity | None = field(default=None)
    paths: tuple[str, ...] = ()
    """Files that the command runs."""
    scripts: tuple[Script, ...] = ()
    """What they hold."""
    read: bool = False


class Executor:
    """Runs for one process; sessions share it."""

    def __init__(
        self,
        *,
        store: Store,
        runner: Runner,
        clock: Clock,
        classify: Classify,
        ids: Ids,
        feed: Feed,
        fleet: Fleet,
        secrets: Secrets,
        hints: Hints,
        tasks: asyncio.TaskGroup,
        standing: Standing | None = None,
    ) -> None:
        self._store = store
        self._runner = runner
        self._clock = clock
        self._classify = classify
        self._ids = ids
        self._feed = feed
        self._fleet = fleet
        self._secrets = secrets
        self._hints = hints
        self._tasks = tasks
        self._standing = standing
        self.scripts = Scripts(runner=runner, ids=ids)
        self.identities = Identities(runner=runner, ids=ids)
        self._creations = Creations(identities=self.identities, ids=ids)
        self.live: dict[str, Live] = {}
        self._cancelled: set[str] = set()
        self._sought: set[str] = set()
        """Runs of an earlier process whose outcome is being found."""

    # ---- a run tool call --------------------------------------------------------------------------------------------

    async def run(self, log: SessionLog, request: RunRequest) -> Answer | None:
        """Carry out a `run` call; None when it parked and is answered later."""
        target = (await self._fleet.inventory()).resolve(request.target)
        said = await self._classify(request.command, target.id if isinstance(target, Entity) else "")
        verdict = secret_files.given_to(said, request.command, request.stdin)
        supervised = (
            request.background or request.keep or request.stdin is not None or verdict.risk is not Risk.READ_ONLY
            or bool(secret_files.named_in(request.command))
        )  # fmt: skip
        order = RunOrder(
            run_id=self._ids(),
            session_id=log.session_id,
            generation=log.state.generation,
            target_id="",
            command=request.command,
            stdin=request.stdin,
            limits=Limits(total_s=request.timeout_s),
            supervised=supervised,
            background=request.background,
            keep=request.keep,
        )
        paths = scripts_of(request.command, verdict)
        job = _Job(call_id=request.call_id, request=request, verdict=verdict, order=order, paths=paths)
        return await self._through_the_gate(log, job)

    async def resume(self, log: SessionLog, parked: Parked) -> Answer:
        """Start a run that an operator approved; the gate judges it again at this moment (SPEC R3.3)."""
        event = parked.event
        order = event.order
        said = await self._classify(order.command, order.target_id)
        verdict = secret_files.given_to(said, order.command, order.stdin)
        request = RunRequest(
            call_id=event.call_id,
            target=event.target,
            command=order.command,
            step=event.step,
            timeout_s=order.limits.total_s,
            background=order.background,
            keep=order.keep,
            stdin=order.stdin,
            rerun=event.rerun,
        )
        job = _Job(
            call_id=event.call_id, request=request, verdict=verdict, order=order, approval=parked,
            paths=scripts_of(order.command, verdict),
        )  # fmt: skip
        answer = await self._through_the_gate(log, job)
        if answer is None or answer.refusal:
            # it was judged again and did not pass: the approval is used up and the call is answered
            consent_id = parked.consent.id if parked.consent is not None else ""
            log.stage(ev.RunDecided(run_id=order.run_id, decision="void", consent_id=consent_id))
        return answer if answer is not None else refused(_no_longer())

    async def _through_the_gate(self, log: SessionLog, job: _Job) -> Answer | None:
        while True:
            if log.state.phase is not Phase.EXECUTING:
                return not_run(f"the session is {log.state.phase} since")
            inventory = await self._fleet.inventory()
            target = inventory.resolve(job.request.target)
            now = self._clock.now()
            if isinstance(target, Entity):
                job.target = target
                job.order = replace(job.order, target_id=target.id, not_after_s=_not_after(log.state, job, now))
            consent = job.approval.consent if job.approval is not None else None
            if job.verdict.risk is not Risk.READ_ONLY:
                window = log.state.window
                if window is not None and not await self._may_consent(window.by):
                    log.stage(ev.WindowClosed(generation=log.state.generation, reason="role"))
                if consent is not None and not await self._may_consent(consent.by):
                    return None
            question = Question(
                state=log.state, request=job.request, order=job.order, target=target, verdict=job.verdict,
                inventory=inventory, now=now, approval=consent, scripts=job.scripts,
                identified=self._agreed(log.state, inventory, job),
            )  # fmt: skip
            outcome = admit(question)
            try:
                if isinstance(outcome, Refusal):
                    created = _created(log.state, job, outcome)
                    refusal = outcome if created is None else await self._creations.bind(log, created, inventory)
                    if refusal is not None:
                        return refused(refusal)
                    self._fleet.forget()
                    continue
                assert job.target is not None, "the gate refuses what is no entity"
                route = inventory.route(job.target)
                assert route is not None, "the gate refuses a target without a way in"
                if job.paths and not job.read and _in_scope(log.state, job.target):
                    job.scripts = await self.scripts.read(log, job.target, route, job.paths)
                    job.read = True
                    continue
                if job.verdict.risk is not Risk.READ_ONLY:
                    asked = await self._ask_guest(log, job, question)
                    if isinstance(asked, Refusal):
                        return refused(asked)
                    if asked:
                        continue
                if isinstance(outcome, NeedsApproval | NeedsTypedConfirmation):
                    if job.approval is None:
                        self._park(log, job, outcome)
                    return None
                if job.verdict.risk is not Risk.READ_ONLY:
                    if not self.identities.known(log.state, job.target, route):
                        refusal = await self._ask(log, job, job.target, route)
                        if refusal is not None:
                            return refused(refusal)
                        continue
                    offer = due(log.state, job.target.id)
                    if offer is not None:
                        refusal = await self._keep(log, job, offer, inventory, outcome)
                        if refusal is not None:
                            return refused(refusal)
                        continue
                return await self._start(log, job, job.target, route, outcome)
            except SeqConflict:
                await log.refresh()
            except TargetChanged:
                self._fleet.forget()
            except TargetBusy:
                if job.waited_s >= BUSY_WAIT_S:
                    return refused(_busy(job.request.target))
                pause_s = REREAD_S if job.paths else BUSY_POLL_S
                await self._clock.sleep(pause_s)
                job.waited_s += pause_s
                job.read = False
                await log.refresh()

    async def _may_consent(self, by: str) -> bool:
        return self._standing is None or await self._standing(by)

    def _park(self, log: SessionLog, job: _Job, outcome: NeedsApproval | NeedsTypedConfirmation) -> None:
        assert job.target is not None
        verdict = job.verdict
        typed = isinstance(outcome, NeedsTypedConfirmation)
        log.stage(
            ev.RunParked(
                order=replace(job.order, not_after_s=None),
                call_id=job.call_id,
                target=job.target.slug,
                step=job.request.step,
                risk=verdict.risk,
                effects=outcome.effects,
                objects=verdict.objects,
                canonical=verdict.canonical,
                why=outcome.why,
                phrase=outcome.phrase if isinstance(outcome, NeedsTypedConfirmation) else "",
                offers_reopen=not typed and isinstance(outcome, NeedsApproval) and outcome.offers_reopen,
                rerun=job.request.rerun,
                scripts=job.scripts,
            )
        )

    def _agreed(self, state: State, inventory: Inventory, job: _Job) -> frozenset[str]:
        """Guests inside the target that said who they are; only looked for where the plan may destroy something."""
        if not state.items or job.target is None or job.verdict.risk is Risk.READ_ONLY:
            return frozenset()
        inside = (entity for entity in inventory.entities.values() if entity.parent == job.target.id)
        routes = ((entity, inventory.route(entity)) for entity in inside)
        return frozenset(
            entity.id for entity, way in routes if way is not None and self.identities.known(state, entity, way)
        )

    async def _ask_guest(self, log: SessionLog, job: _Job, question: Question) -> Refusal | bool:
        """Ask a guest that the plan may destroy who it is, while it still answers; True when one was asked.

        One that is down cannot say: the gate decides without its answer.
        """
        for guest in preauthorised_guests(question):
            way = question.inventory.route(guest)
            if way is None or guest.id in question.identified or guest.id in job.guests:
                continue
            job.guests.add(guest.id)
            refusal = await self.identities.ask(log, guest, way)
            return refusal if refusal is not None and refusal.code is Code.IDENTITY_MISMATCH else True
        return False

    async def _ask(self, log: SessionLog, job: _Job, machine: Entity, route: Route) -> Refusal | None:
        """Ask a machine that is to be changed who it is."""
        if job.asked >= ASK_AGAIN:
            return _unsteady(machine)
        job.asked += 1
        return await self.identities.ask(log, machine, route)

    async def _keep(
        self, log: SessionLog, job: _Job, offer: Snapshot, inventory: Inventory, change: Admission
    ) -> Refusal | None:
        """Take the snapshot that was chosen; a refusal when it cannot be had.

        Raises:
            SeqConflict, TargetChanged, TargetBusy: as `SessionLog.append`; back to the gate.
        """
        node = inventory.get(offer.node_id)
        route = inventory.route(node) if node is not None else None
        if node is None or route is None:
            return Refusal(code=Code.NO_ACCESS, text=f"{offer.node}, which takes the snapshot, has no way in any more.")
        if any(run.running for run in tries(log.state, offer)):  # of a process that was killed: it is being followed
            raise TargetBusy(f"a snapshot of {offer.target} is being taken")
        if not self.identities.known(log.state, node, route):
            return await self._ask(log, job, node, route)
        order = order_of(offer, log.state, self._ids(), self._clock.now())
        verdict = await self._classify(order.command, node.id)
        admission = admit_snapshot(log.state, order, offer, verdict, inventory, change)
        if isinstance(admission, Refusal):
            return admission
        started = ev.RunStarted(
            order=order, call_id="", target=node.slug, step=None, risk=verdict.risk, effects=verdict.effects,
            canonical=verdict.canonical or order.command, authority=admission.authority, admitted=admission.digest,
        )  # fmt: skip
        live = await self._begin(log, started, node, route, admission)
        report = await asyncio.shield(live.task)
        pieces = live.collector.finish()
        self.live.pop(order.run_id, None)
        await log.append_outcome(ev.RunFinished(run_id=order.run_id, report=report), output=pieces)
        self._forget(order, route)
        if succeeded(report.outcome):
            return None
        head, tail, _ = live.collector.ends(Stream.ERR)
        return failed(offer, report.outcome, (head + tail).decode("utf-8", "replace"))

    async def _begin(
        self, log: SessionLog, started: ev.RunStarted, target: Entity, route: Route, admission: Admission
    ) -> Live:
        """Journal a start and hand it to the Runner."""
        order = started.order
        changes = started.risk is not Risk.READ_ONLY
        await log.append(started, guard=Guard(target_id=target.id, mode=target.mode.value, exclusive=changes))
        collector = self._collector(log, order)
        live = Live(order, route, collector, self._tasks.create_task(self._guarded(admission, order, route, collector)))
        self.live[order.run_id] = live
        return live

    async def _start(self, log: SessionLog, job: _Job, target: Entity, route: Route, admission: Admission) -> Answer:
        order = job.order
        started = ev.RunStarted(
            order=order,
            call_id=job.call_id,
            target=target.slug,
            step=job.request.step,
            risk=job.verdict.risk,
            effects=job.verdict.effects,
            canonical=job.verdict.canonical or order.command,
            authority=admission.authority,
            admitted=admission.digest,
            check=_check_number(log.state, order),
            rerun=job.request.rerun,
            creates=made_by(job.verdict),
        )
        live = await self._begin(log, started, target, route, admission)
        if order.background:
            return await self._detach(log, live, "background")
        return await self._await(log, live, job)

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

    async def _await(self, log: SessionLog, live: Live, job: _Job) -> Answer:
        limit = live.order.limits.total_s if live.order.keep else None
        try:
            async with asyncio.timeout(limit):
                report = await asyncio.shield(live.task)
        except TimeoutError:
            return await self._detach(log, live, "time limit")
        return await self._finish(log, live, report, job.verdict)

    async def _finish(self, log: SessionLog, live: Live, report: RunReport, verdict: Verdict | None) -> Answer:
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
            log.append_soon(finished, told, output=pieces, then=lambda: self._forget(live.order, live.route))
        else:  # an operator spoke during the run: a halt comes before any model call (SPEC R1.8)
            await log.append_outcome(finished, told, output=pieces)
            self._forget(live.order, live.route)
        return replace(answer, told=True)

    def _forget(self, order: RunOrder, route: Route) -> None:
        """The outcome is durable: the target may drop what it kept (SPEC R5.10)."""
        if order.supervised:
            self._tasks.create_task(self._runner.acknowledge(order, route))

    def _hint(self, outcome: RunOutcome, collector: Collector) -> Hint | None:
        text = b"\n".join(part for stream in Stream for part in collector.ends(stream)[:2]).decode("utf-8", "replace")
        return self._hints.find(text, failed=not succeeded(outcome))

    # ---- background --------------------------------------------------------------------------------------------------

    async def _detach(self, log: SessionLog, live: Live, reason: str) -> Answer:
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
                self._forget(run.order, await self._route(run.order))
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


def _created(state: State, job: _Job, refusal: Refusal) -> Creates | None:
    """What the plan creates under the target's name, when that is why it was refused."""
    if refusal.code is not Code.NOT_CREATED_YET or state.plan is None:
        return None
    return next((made for made in state.plan.creates if made.name == job.request.target), None)


def _in_scope(state: State, target: Entity) -> bool:
    return state.plan is not None and target.id in state.plan.machines()


def _not_after(state: State, job: _Job, now: Instant) -> float | None:
    """When the consent behind a change dies: the target refuses to begin after it (DESIGN §3)."""
    if job.verdict.risk is Risk.READ_ONLY:
        return None
    if job.approval is not None and job.approval.consent is not None:
        return job.approval.consent.at.wall_s + RUN_APPROVAL_S
    if state.window is not None:
        return now.wall_s + state.window.remaining_s(now)
    return None


def _check_number(state: State, order: RunOrder) -> int | None:
    if state.plan is None:
        return None
    for number, check in enumerate(state.plan.checks):
        if (check.target_id, check.command.strip()) == (order.target_id, order.command.strip()):
            return number
    return None


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


def _busy(target: str) -> Refusal:
    return Refusal(
        code=Code.TARGET_BUSY, text=f"Another change is still running on {target} or on its node.",
        directive="Use wait for half a minute, then try again.",
    )  # fmt: skip


def _unsteady(target: Entity) -> Refusal:
    return Refusal(
        code=Code.UNREACHABLE, text=f"The connection to {target.slug} breaks again and again; nothing was changed.",
        directive="Use wait for half a minute, then try again.",
    )  # fmt: skip


def _no_longer() -> Refusal:
    return Refusal(
        code=Code.EXPIRED,
        text="The approval of this run is no longer valid.",
        directive="Run it again: it will be asked again.",
    )
