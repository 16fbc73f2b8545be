"""One run on its way through the gate: classified, judged, asked about, started; what came between goes back to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from oikos.app.creations import Creations
from oikos.app.fleet import Fleet
from oikos.app.identity import Identities
from oikos.app.log import SessionLog
from oikos.app.runs import Live, Runs
from oikos.app.scripts import Scripts
from oikos.app.snapshots import due, failed, order_of, tries
from oikos.app.told import Answer, not_run, refused
from oikos.domain import events as ev
from oikos.domain import secret_files
from oikos.domain.consent import RUN_APPROVAL_S
from oikos.domain.creation import made_by
from oikos.domain.errors import Code, Refusal, SeqConflict, TargetBusy, TargetChanged
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
from oikos.domain.plan import Creates, Snapshot
from oikos.domain.reach import Reach
from oikos.domain.run import (
    Limits,
    RunOrder,
    RunRequest,
    Stream,
    succeeded,
)  # fmt: skip
from oikos.domain.scripts import Script, scripts_of
from oikos.domain.state import Parked, Phase, State
from oikos.domain.verdict import Risk, Verdict
from oikos.ports import Classify, Clock, Guard, Ids, Runner

BUSY_WAIT_S = 30.0
"""How long a change waits for another change of the same target before the model is told."""
BUSY_POLL_S = 0.25
REREAD_S = 2.0
"""As BUSY_POLL_S, for a command that runs a file: the other change may be of that file, so it is read again."""
ASK_AGAIN = 3
"""How often one run asks a machine who it is before an unsteady connection is reported."""


Standing = Callable[[str], Awaitable[bool]]
"""Whether a person, by id, still holds the role approver (SPEC R3.6)."""


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
    """The way through the gate, for one process; sessions share it."""

    def __init__(
        self,
        *,
        runs: Runs,
        runner: Runner,
        clock: Clock,
        classify: Classify,
        ids: Ids,
        fleet: Fleet,
        standing: Standing | None = None,
    ) -> None:
        self._clock = clock
        self._classify = classify
        self._ids = ids
        self._fleet = fleet
        self._standing = standing
        self.runs = runs
        self.scripts = Scripts(runner=runner, ids=ids)
        self.identities = Identities(runner=runner, ids=ids)
        self._creations = Creations(identities=self.identities, ids=ids)

    # ---- a run tool call --------------------------------------------------------------------------------------------

    async def run(self, log: SessionLog, request: RunRequest) -> Answer | None:
        """Carry out a `run` call; None when it parked and is answered later."""
        target = (await self._fleet.inventory()).resolve(request.target)
        said = await self._classify(request.command, target.id if isinstance(target, Entity) else "", request.stdin)
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
        said = await self._classify(order.command, order.target_id, order.stdin)
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
                reach = Reach(inventory=inventory, verdict=job.verdict, target=job.target)
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
                    offer = due(log.state, reach.all())
                    if offer is not None:
                        refusal = await self._keep(log, job, offer, question, outcome)
                        if refusal is not None:
                            return refused(refusal)
                        continue
                return await self._start(log, job, reach, route, outcome)
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
        self, log: SessionLog, job: _Job, offer: Snapshot, before: Question, change: Admission
    ) -> Refusal | None:
        """Take the snapshot that was chosen; a refusal when it cannot be had.

        Raises:
            SeqConflict, TargetChanged, TargetBusy: as `SessionLog.append`; back to the gate.
        """
        inventory = before.inventory
        guest, node = inventory.get(offer.target_id), inventory.get(offer.node_id)
        route = inventory.route(node) if node is not None else None
        if guest is None or node is None or route is None:
            return Refusal(code=Code.NO_ACCESS, text=f"{offer.node}, which takes the snapshot, has no way in any more.")
        if any(run.running for run in tries(log.state, offer)):  # of a process that was killed: it is being followed
            raise TargetBusy(f"a snapshot of {offer.target} is being taken")
        if not self.identities.known(log.state, node, route):
            return await self._ask(log, job, node, route)
        order = order_of(offer, log.state, self._ids(), self._clock.now())
        verdict = await self._classify(order.command, node.id)
        admission = admit_snapshot(before, change, order, offer, verdict)
        if isinstance(admission, Refusal):
            return admission
        started = ev.RunStarted(
            order=order, call_id="", target=node.slug, step=None, risk=verdict.risk, effects=verdict.effects,
            canonical=verdict.canonical or order.command, authority=admission.authority, admitted=admission.digest,
        )  # fmt: skip
        alone = Guard(target_id=guest.id, mode=guest.mode.value, exclusive=True)
        live = await self.runs.begin(log, started, node, route, admission, also=(alone,))
        report = await asyncio.shield(live.task)
        pieces = live.collector.finish()
        self.runs.live.pop(order.run_id, None)
        await log.append_outcome(ev.RunFinished(run_id=order.run_id, report=report), output=pieces)
        self.runs.forget(order, route)
        if succeeded(report.outcome):
            return None
        head, tail, _ = live.collector.ends(Stream.ERR)
        return failed(offer, report.outcome, (head + tail).decode("utf-8", "replace"))

    async def _start(self, log: SessionLog, job: _Job, reach: Reach, route: Route, admission: Admission) -> Answer:
        order, target = job.order, reach.target
        others = (entity for entity in reach.all() if entity.id != target.id)
        also = tuple(Guard(target_id=one.id, mode=one.mode.value, exclusive=False) for one in others)
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
        live = await self.runs.begin(log, started, target, route, admission, also=also)
        if order.background:
            return await self.runs.detach(log, live, "background")
        return await self._await(log, live, job)

    async def _await(self, log: SessionLog, live: Live, job: _Job) -> Answer:
        limit = live.order.limits.total_s if live.order.keep else None
        try:
            async with asyncio.timeout(limit):
                report = await asyncio.shield(live.task)
        except TimeoutError:
            return await self.runs.detach(log, live, "time limit")
        return await self.runs.finish(log, live, report, job.verdict)


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
