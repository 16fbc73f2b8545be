"""Reading script files on their target, at the proposal and right before a start (security/THREATS T6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oikos.app.log import SessionLog
from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.errors import Refusal
from oikos.domain.gate import admit_reading
from oikos.domain.inventory import Entity, Inventory, Route
from oikos.domain.plan import PlannedCommand, Step
from oikos.domain.run import Limits, RunOrder, RunReport, Stream
from oikos.domain.scripts import Script, read, reading
from oikos.domain.verdict import Risk
from oikos.ports import Guard, Ids, Runner

READ_S = 20.0
"""Limit of one read; a file that takes longer counts as not read."""
MAX_OUTPUT_BYTES = 64 * 1024


class _Lines:
    """Keeps the little that the built-in read writes."""

    def __init__(self) -> None:
        self.out = b""

    async def output(self, stream: Stream, offset: int, data: bytes) -> None:
        """Standard output only."""
        if stream is Stream.OUT:
            self.out += data[: MAX_OUTPUT_BYTES - len(self.out)]

    async def started(self, detail: str) -> None:
        """Nothing to keep."""


class Scripts:
    """The built-in read of script files: gated, journalled like a run with the authority `probe`."""

    def __init__(self, *, runner: Runner, ids: Ids) -> None:
        self._runner = runner
        self._ids = ids

    async def read(self, log: SessionLog, target: Entity, route: Route, paths: Sequence[str]) -> tuple[Script, ...]:
        """What the files hold now; one that cannot be read has no hash.

        Raises:
            SeqConflict, TargetChanged: as `SessionLog.append`; nothing was read.
        """
        state, wanted = log.state, tuple(paths)
        order = RunOrder(
            run_id=self._ids(), session_id=log.session_id, generation=state.generation, target_id=target.id,
            command=reading(wanted), limits=Limits(total_s=READ_S), supervised=False,
        )  # fmt: skip
        admission = admit_reading(state, target, order, wanted)
        if isinstance(admission, Refusal):
            return read(wanted, "")
        started = ev.RunStarted(
            order=order, call_id="", target=target.slug, step=None, risk=Risk.READ_ONLY, effects=(),
            canonical=order.command, authority=admission.authority, admitted=admission.digest,
        )  # fmt: skip
        await log.append(started, guard=Guard(target_id=target.id, mode=target.mode.value, exclusive=False))
        lines = _Lines()
        report = await self._runner.start(admission, order, route, lines)
        found = read(wanted, lines.out.decode("utf-8", "replace"))
        shown = "; ".join(f"{script.path} {script.sha256[:12] or 'not read'}" for script in found)
        log.stage(ev.RunFinished(run_id=order.run_id, report=_noted(report, shown)))
        return found

    async def into(self, log: SessionLog, plan: it.Propose, inventory: Inventory) -> it.Propose:
        """The proposal with what its scripts hold now: one read for each target.

        Raises:
            SeqConflict, TargetChanged: as `read`.
        """
        wanted: dict[str, list[str]] = {}
        for step, command in _commands(plan.steps):
            for script in command.scripts:
                paths = wanted.setdefault(step.target_id, [])
                if script.path not in paths:
                    paths.append(script.path)
        known: dict[str, dict[str, Script]] = {}
        for target_id, paths in wanted.items():
            target = inventory.get(target_id)
            route = inventory.route(target) if target is not None else None
            if target is None or route is None:
                continue
            found = await self.read(log, target, route, paths)
            known[target_id] = {script.path: script for script in found}
        return replace(plan, steps=_filled(plan.steps, known))


def _commands(steps: Sequence[Step]) -> list[tuple[Step, PlannedCommand]]:
    return [(step, command) for step in steps for command in step.commands]


def _filled(steps: Sequence[Step], known: Mapping[str, Mapping[str, Script]]) -> tuple[Step, ...]:
    def command_of(step: Step, command: PlannedCommand) -> PlannedCommand:
        found = known.get(step.target_id, {})
        return replace(command, scripts=tuple(found.get(script.path, script) for script in command.scripts))

    return tuple(replace(step, commands=tuple(command_of(step, one) for one in step.commands)) for step in steps)


def _noted(report: RunReport, shown: str) -> RunReport:
    return replace(report, note=f"{report.note}; {shown}" if report.note else shown)
