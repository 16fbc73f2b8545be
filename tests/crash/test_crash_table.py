"""The crash table of DESIGN §3, row by row: a process is killed at a point, the next one finishes its session."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from oikos.bootstrap import open_store
from oikos.config import load
from oikos.domain import events as ev
from oikos.domain.run import Exited, NeverStarted, RunOutcome, Unknown
from oikos.domain.session import Phase, State, fold
from oikos.ports import AuditReport
from tests.crash.worker import LEASE_S, work
from tests.wait import until

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.crash.worker"])
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Aftermath:
    """What a home holds after everything."""

    records: Sequence[ev.Recorded]
    state: State
    audit: AuditReport

    def outcomes(self, command: str) -> list[RunOutcome]:
        """How the runs of a command ended, in order."""
        return [
            run.outcome for run in self.state.runs.values() if run.order.command == command and run.outcome is not None
        ]


class Scene:
    """A home, a counter on the target, and processes that come and go."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "user"
        self.home.mkdir()
        self.count = directory / "count"
        self.begun = directory / "begun"
        self.go = directory / "go"
        self.command = f"echo x >> {self.count}; touch {self.begun}; while test ! -e {self.go}; do sleep 0.05; done"
        self.check = f"test -s {self.count}"
        self.spool = self.home / ".local/state/oikos/spool"
        """What the target remembers of runs."""
        self._later = 0

    def start(self, point: str = "", *, later: bool = True) -> multiprocessing.process.BaseProcess:
        """A process; each later than the lease of the one before, unless they are to work at once."""
        self._later += later
        arguments = (str(self.home), self.command, self.check, point, LEASE_S * self._later)
        process = FORKS.Process(target=work, args=arguments)
        process.start()
        return process

    def killed(self, point: str) -> None:
        """Run a process to the point where it dies."""
        process = self.start(point)
        process.join(PATIENCE_S)
        assert process.exitcode == -signal.SIGKILL, f"it did not die at {point!r} but ended with {process.exitcode}"
        process.close()

    def killed_while_the_command_runs(self) -> None:
        """Kill a process from outside once its command has begun on the target."""
        process = self.start()
        until(self.begun.exists, "the command to begin", PATIENCE_S)
        process.kill()
        process.join(PATIENCE_S)
        process.close()

    def finish(self) -> Aftermath:
        """Let a process work to the end, and look."""
        process = self.start()
        process.join(PATIENCE_S)
        assert process.exitcode == 0
        process.close()
        return self.look()

    def look(self) -> Aftermath:
        """What the home holds now."""
        return asyncio.run(self._look())

    async def _look(self) -> Aftermath:
        config = load({"OIKOS_HOME": str(self.home / "oikos")})
        async with open_store(config) as store:
            [row] = await store.sessions()
            records = await store.load(row.session_id)
            return Aftermath(records=records, state=fold(records), audit=await store.verify())

    def counted(self) -> int:
        """How often the command began on the target."""
        return len(self.count.read_text(encoding="utf-8").splitlines()) if self.count.exists() else 0


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def proper(after: Aftermath) -> None:
    """What holds after any crash (SPEC R10.2)."""
    assert (after.state.phase, after.state.outcome, after.state.window) == (Phase.DONE, "done", None), (
        after.state.waits_for
    )
    assert [record.seq for record in after.records] == list(range(1, len(after.records) + 1))
    started = [record.event.order.run_id for record in after.records if isinstance(record.event, ev.RunStarted)]
    finished = [record.event.run_id for record in after.records if isinstance(record.event, ev.RunFinished)]
    assert len(started) == len(set(started))
    assert sorted(started) == sorted(finished)
    asked = [
        call.id for record in after.records if isinstance(record.event, ev.AssistantSaid) for call in record.event.calls
    ]
    answered = [record.event.call_id for record in after.records if isinstance(record.event, ev.ToolAnswered)]
    assert sorted(asked) == sorted(answered)
    granted = [record.event.consent.id for record in after.records if isinstance(record.event, ev.ConsentGranted)]
    for record in after.records:
        if isinstance(record.event, ev.RunStarted) and record.event.authority not in ("probe", "read_only"):
            assert record.event.authority.partition(":")[2].partition(":")[0] in granted
    assert after.audit.problems == ()


ROWS = (
    "after OperatorSaid",
    "model",
    "after GoalSet",
    "after PlanProposed",
    "after ConsentGranted",
    "after AssistantSaid:run",
    "before RunFinished",
    "after RunFinished",
    "before SessionCompleted",
)


@pytest.mark.parametrize("point", ROWS)
def test_killed_there_the_next_process_finishes_and_the_command_ran_once(scene: Scene, point: str) -> None:
    scene.go.touch()
    scene.killed(point)
    after = scene.finish()
    proper(after)
    assert scene.counted() == 1
    assert after.outcomes(scene.command) == [Exited(code=0)]
    assert len([record for record in after.records if isinstance(record.event, ev.OperatorSaid)]) == 1
    assert len([record for record in after.records if isinstance(record.event, ev.ConsentGranted)]) == 1


def test_killed_between_the_journal_and_the_claim_it_is_proven_never_started_and_asked_anew(scene: Scene) -> None:
    scene.go.touch()
    scene.killed("after RunStarted")
    assert scene.counted() == 0
    after = scene.finish()
    proper(after)
    first, second = after.outcomes(scene.command)
    assert isinstance(first, NeverStarted)
    assert second == Exited(code=0)
    assert scene.counted() == 1


def test_killed_while_the_command_runs_it_is_followed_to_its_end(scene: Scene) -> None:
    scene.killed_while_the_command_runs()
    scene.go.touch()
    after = scene.finish()
    proper(after)
    assert scene.counted() == 1
    assert after.outcomes(scene.command) == [Exited(code=0)]


def test_a_lost_spool_is_unknown_and_only_an_approved_repeat_runs_again(scene: Scene) -> None:
    scene.killed_while_the_command_runs()
    shutil.rmtree(scene.spool)
    scene.go.touch()
    after = scene.finish()
    proper(after)
    first, second = after.outcomes(scene.command)
    assert isinstance(first, Unknown)
    assert second == Exited(code=0)
    assert len([record for record in after.records if isinstance(record.event, ev.QuestionAsked)]) == 1, (
        "the model was told"
    )


def test_two_processes_on_one_home_do_the_work_once(scene: Scene) -> None:
    scene.go.touch()
    scene.killed("after SessionOpened")
    first, second = scene.start(), scene.start(later=False)
    for process in (first, second):
        process.join(PATIENCE_S)
        assert process.exitcode == 0
        process.close()
    after = scene.look()
    proper(after)
    assert scene.counted() == 1


def test_a_process_beside_takes_over_when_the_other_is_killed(scene: Scene) -> None:
    first = scene.start()
    until(scene.begun.exists, "the command to begin", PATIENCE_S)
    second = scene.start()
    first.kill()
    scene.go.touch()
    for process in (first, second):
        process.join(PATIENCE_S)
        process.close()
    after = scene.look()
    proper(after)
    assert scene.counted() == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_killed_at_any_moment_any_number_of_times_nothing_runs_twice(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)
    print(f"seed {seed}")
    for _ in range(chance.randint(1, 6)):
        process = scene.start()
        process.join(chance.uniform(0.05, 1.5))
        if chance.random() < 0.4:
            scene.go.touch()
        process.kill()
        process.join(PATIENCE_S)
        process.close()
    scene.go.touch()
    after = scene.finish()
    proper(after)
    assert scene.counted() == 1
    assert all(isinstance(outcome, Exited | NeverStarted) for outcome in after.outcomes(scene.command))
