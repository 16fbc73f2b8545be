"""Who a machine is: asked before its first change in a generation, and over every new connection (SPEC R5.8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oikos.app.log import SessionLog
from oikos.domain import events as ev
from oikos.domain.errors import AnotherMachine, Code, Refusal, TargetError
from oikos.domain.gate import admit_probe
from oikos.domain.inventory import Entity, Route
from oikos.domain.run import Exited, Identity, Lost, NeverStarted, RunOrder, RunReport, Unknown
from oikos.domain.state import RunState, State
from oikos.domain.verdict import Risk
from oikos.ports import Guard, Ids, Runner

IDENTITY_PROBE = "oikos: identity probe"
"""What the record shows for it; its bytes are the Runner's."""


class Identities:
    """The identity probes of one process: journalled like runs, with the authority `probe`."""

    def __init__(self, *, runner: Runner, ids: Ids) -> None:
        self._runner = runner
        self._ids = ids
        self._agreed: dict[str, tuple[str, str]] = {}
        """Probes of this process that agreed, by run id: the way they went and its connection."""

    def known(self, state: State, target: Entity, route: Route) -> bool:
        """Whether a probe of this process, over the connection that is open now, still tells who is there."""
        way = (str(route), self._runner.connection(route))
        return bool(way[1]) and any(
            run.ok
            and self._agreed.get(run.order.run_id) == way
            and (run.order.target_id, run.generation) == (target.id, state.generation)
            and not _cut_off_since(state, run)
            for run in state.runs.values()
        )

    async def ask(self, log: SessionLog, target: Entity, route: Route) -> Refusal | None:
        """Ask a machine and compare; a refusal with the evidence when it is another one, or out of reach.

        Raises:
            SeqConflict, TargetChanged: as `SessionLog.append`; back to the gate.
        """
        found = await self.meet(
            log, target, route, lambda found: "; ".join(differences(target.identity, found)), held=target
        )
        if not isinstance(found, Refusal):
            return None
        if found.code is not Code.IDENTITY_MISMATCH:
            return found
        if log.state.window is not None:
            log.stage(ev.WindowClosed(generation=log.state.generation, reason="identity", target_id=target.id))
        return replace(found, text=f"{target.slug} is not the machine that was enrolled: {found.text}")

    async def meet(
        self, log: SessionLog, target: Entity, route: Route, wrong: Callable[[Identity], str], *, held: Entity
    ) -> Identity | Refusal:
        """Ask a machine who it is; `wrong` says what is wrong with its answer, in words, or nothing.

        `held` is the entity whose mode is looked at again as the probe is journalled: the machine itself, or for one
        that the inventory does not hold yet the machine it is on.

        Raises:
            SeqConflict, TargetChanged: as `SessionLog.append`; back to the gate.
        """
        state = log.state
        admission = admit_probe(state, target)
        if isinstance(admission, Refusal):
            return admission
        order = RunOrder(
            run_id=self._ids(), session_id=log.session_id, generation=state.generation, target_id=target.id,
            command=IDENTITY_PROBE, supervised=False,
        )  # fmt: skip
        started = ev.RunStarted(
            order=order, call_id="", target=target.slug, step=None, risk=Risk.READ_ONLY, effects=(),
            canonical=order.command, authority="probe", admitted=admission.digest,
        )  # fmt: skip
        await log.append(started, guard=Guard(target_id=held.id, mode=held.mode.value, exclusive=False))
        try:
            found = await self._runner.probe(admission, route)
        except TargetError as error:
            log.stage(ev.RunFinished(run_id=order.run_id, report=RunReport(outcome=Lost(reason=str(error)))))
            if isinstance(error, AnotherMachine):
                return _mismatch(str(error))
            return Refusal(
                code=Code.UNREACHABLE,
                text=str(error),
                directive="Nothing was changed. Look again, or ask the operator.",
            )
        note = wrong(found)
        report = RunReport(outcome=Exited(code=1 if note else 0), note=note or found.hostname)
        log.stage(ev.RunFinished(run_id=order.run_id, report=report))
        if not note:
            self._agreed[order.run_id] = (str(route), self._runner.connection(route))
            return found
        return _mismatch(f"{note}.")


def _mismatch(evidence: str) -> Refusal:
    return Refusal(
        code=Code.IDENTITY_MISMATCH, text=evidence,
        directive="Stop. Nothing was changed. Tell the operator with this evidence.",
    )  # fmt: skip


def differences(enrolled: Identity | None, found: Identity) -> list[str]:
    """What of an enrolled identity a machine contradicts, in words; what was never enrolled is not compared."""
    if enrolled is None:
        return []
    return [
        f"{name} is {have!r}, enrolled as {want!r}"
        for name, have, want in (
            ("hostname", found.hostname, enrolled.hostname),
            ("machine-id", found.machine_id, enrolled.machine_id),
            ("guest id", found.guest_id, enrolled.guest_id),
        )
        if want and have != want
    ]


def _cut_off_since(state: State, probe: RunState) -> bool:
    return any(
        run.order.target_id == probe.order.target_id
        and run.started_seq > probe.started_seq
        and isinstance(run.outcome, Lost | NeverStarted | Unknown)
        for run in state.runs.values()
    )
