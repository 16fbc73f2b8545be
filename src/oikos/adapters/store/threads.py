"""The store's threads: one writer that commits in groups, and readers.

A job is accepted when it is submitted, in that order, and belongs to the thread from then on: a caller that is
cancelled while it waits changes nothing about it (DESIGN §6.2). Whatever waits in the queue when the writer comes
round goes into one transaction, so one fsync serves all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from oikos.adapters.store.transaction import REFUSALS, Memory, Transaction
from oikos.domain.errors import StoreError

if TYPE_CHECKING:
    from oikos.adapters.store.dialect import Connection, Dialect

C = TypeVar("C")
GROUP = 512
"""Most jobs in one transaction."""


class Job(NamedTuple):
    """Work for a thread, and where its result goes."""

    work: Callable[[Any], Any] | None
    """None: nothing, only to have waited for what was accepted before."""
    future: asyncio.Future[Any]


class _Thread(Generic[C]):
    """A thread with a connection and a queue."""

    def __init__(self, name: str, queue: SimpleQueue[Job | None]) -> None:
        self._queue = queue
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def _main(self) -> None:
        raise NotImplementedError  # abstract: Writer and Reader say what a job is given

    @property
    def alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._thread.is_alive()


class Writer(_Thread[Transaction]):
    """The only thread that writes."""

    def __init__(self, dialect: Dialect, queue: SimpleQueue[Job | None], ready: asyncio.Future[None]) -> None:
        self._dialect, self._ready = dialect, ready
        self._accepted = self._finished = 0
        self._memory = Memory()
        super().__init__("oikos-store-writer", queue)

    def submit(self, job: Job) -> None:
        """Accept a job; called on one thread only."""
        self._accepted += 1
        self._queue.put(job)

    @property
    def busy(self) -> bool:
        """Whether something that was accepted is not finished yet."""
        return self._accepted != self._finished

    def _main(self) -> None:
        try:
            self._connection = self._dialect.prepare()
        except Exception as error:  # told to whoever opens the store
            settle([Outcome(self._ready, None, error)])
            return
        settle([Outcome(self._ready, None, None)])
        stop = False
        while not stop:
            jobs: list[Job] = []
            item = self._queue.get()
            with contextlib.suppress(Empty):
                while item is not None:
                    jobs.append(item)
                    if len(jobs) == GROUP:
                        break
                    item = self._queue.get_nowait()
            stop = item is None
            work = [job for job in jobs if job.work is not None]
            outcomes = self._commit(work) if work else []
            self._finished += len(jobs)
            settle(outcomes + [Outcome(job.future, None, None) for job in jobs if job.work is None])
        self._connection.close()

    def _commit(self, jobs: list[Job]) -> list[Outcome]:
        try:
            return self._attempt(jobs)
        except Exception as error:  # whatever a driver raises: it is explained to the callers, never lost
            self._memory.forget()
            self._dialect.rollback(self._connection)
            if self._dialect.make_room(error):
                return self._commit(jobs)
            if len(jobs) == 1 or isinstance(error, _NotBegun):
                cause = error.cause if isinstance(error, _NotBegun) else error
                return [Outcome(job.future, None, _explained(self._dialect, cause)) for job in jobs]
        return [outcome for job in jobs for outcome in self._commit([job])]  # the culprit alone fails

    def _attempt(self, jobs: list[Job]) -> list[Outcome]:
        try:
            self._dialect.begin(self._connection)
        except Exception as error:  # locked, read-only, damaged: the same for every job
            raise _NotBegun(error) from error
        self._memory.check(self._dialect.data_version(self._connection))
        transaction = Transaction(self._connection, self._memory)
        outcomes: list[Outcome] = []
        for job in jobs:
            try:
                outcomes.append(Outcome(job.future, job.work and job.work(transaction), None))
            except REFUSALS as refusal:
                outcomes.append(Outcome(job.future, None, refusal))
        transaction.flush()
        self._connection.execute("COMMIT")
        return outcomes


class Reader(_Thread["Connection"]):
    """A thread that only reads; its connection is made when it is first needed."""

    def __init__(self, dialect: Dialect, queue: SimpleQueue[Job | None]) -> None:
        self._dialect = dialect
        super().__init__("oikos-store-reader", queue)

    def _main(self) -> None:
        connection: Connection | None = None
        while (job := self._queue.get()) is not None:
            try:
                if connection is None:
                    connection = self._dialect.connect()
                outcome = Outcome(job.future, job.work and job.work(connection), None)
            except Exception as error:  # whatever a driver raises: it is explained to the caller, never lost
                outcome = Outcome(job.future, None, _explained(self._dialect, error))
            settle([outcome])
        if connection is not None:
            connection.close()


class Outcome(NamedTuple):
    """What became of a job."""

    future: asyncio.Future[Any]
    value: Any
    error: BaseException | None


def _explained(dialect: Dialect, error: Exception) -> StoreError:
    if isinstance(error, StoreError):
        return error
    explained = dialect.explain(error)
    explained.__cause__ = error
    return explained


class _NotBegun(Exception):
    """No transaction could be begun."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def settle(outcomes: list[Outcome]) -> None:
    """Hand outcomes to the event loops that wait for them."""
    loops: defaultdict[asyncio.AbstractEventLoop, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        loops[outcome.future.get_loop()].append(outcome)
    for loop, mine in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(outcomes: list[Outcome]) -> None:
    for future, value, error in outcomes:
        if future.done():  # its caller was cancelled
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
