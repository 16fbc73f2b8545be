"""A session on the terminal while it happens: lines as they come, and one status line below them."""

from __future__ import annotations

import asyncio
import shutil
import sys
from contextlib import aclosing

import click

from oikos.app.feed import Delta, Item, OutputChunk
from oikos.bootstrap import Oikos
from oikos.cli.paint import Paint, clock, safe, seconds
from oikos.cli.story import Story
from oikos.domain import events as ev
from oikos.domain.errors import OikosError
from oikos.domain.session import Phase, State, evolve
from oikos.domain.state import TERMINAL

TICK_S = 0.25
QUIET_S = 10.0
"""A command silent for so long is said to be (ux/UX §5.3)."""
SETTLED = TERMINAL | {Phase.IDLE, Phase.AWAITING, Phase.BLOCKED}


class Live:
    """Prints one session's events from a cursor until it settles."""

    def __init__(
        self,
        oikos: Oikos,
        session_id: str,
        *,
        quiet: bool = False,
        whole: bool = False,
        cards: bool = False,
        patient: bool = True,
    ) -> None:
        """`cards`: the face shows what waits for a decision itself, so it is not told twice. `patient`: a model that is
        not available is waited for."""
        self.state = State()
        self.session_id = session_id
        self.quiet = quiet
        self._patient = patient
        self.typed = ""
        """What the person at this terminal just typed: it stands on the screen already."""
        self._oikos = oikos
        self._paint = Paint.for_stream()
        self._story = Story(self._paint, whole=whole, cards=cards)
        self._status = sys.stdout.isatty() and not quiet
        self._shown = ""
        self._tail: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        self._thinking_s = 0.0

    async def skip(self) -> None:
        """Take in what is already there without printing it."""
        for record in await self._oikos.service.history(self.session_id, after=self.state.seq):
            self._take(record, show=False)

    async def until_settled(self, *, after: int = 0) -> State:
        """Print until nothing is due: ended, idle, or waiting for a person. `after` must be reached first."""
        await self._catch_up()
        if self._settled(after):
            return self.state
        queue: asyncio.Queue[Item | Exception] = asyncio.Queue()
        pumping = self._oikos.tasks.create_task(self._pump(queue))
        try:
            while True:
                if queue.empty():  # a wait with a limit costs more than what it waits for
                    try:
                        async with asyncio.timeout(TICK_S):
                            item = await queue.get()
                    except TimeoutError:
                        self._draw()
                        continue
                else:
                    item = queue.get_nowait()
                match item:
                    case Exception():
                        raise item
                    case ev.Recorded():
                        self._take(item, show=not self.quiet)
                        if self._settled(after):
                            return self.state
                    case _:
                        self._ephemeral(item)
        finally:
            pumping.cancel()
            self._clear()

    async def _catch_up(self) -> None:
        """What the store holds already: a session that rests is not waited for."""
        for record in await self._oikos.service.history(self.session_id, after=self.state.seq):
            self._take(record, show=not self.quiet)

    def _settled(self, after: int) -> bool:
        """A model that is not available is tried again by itself: to the patient that is no end."""
        state = self.state
        if state.seq < after or state.phase not in SETTLED or state.turn:
            return False
        return not (self._patient and state.blocked is not None and state.blocked.retry_at is not None)

    async def _pump(self, queue: asyncio.Queue[Item | Exception]) -> None:
        try:
            async with aclosing(self._oikos.feed.follow(self.session_id, after=self.state.seq)) as feed:
                async for item in feed:
                    queue.put_nowait(item)
        except OikosError as error:  # raised by the reader
            queue.put_nowait(error)

    def _now_s(self) -> float:
        return self._oikos.clock.now().boot_s

    def _take(self, record: ev.Recorded, *, show: bool) -> None:
        self.state = evolve(self.state, record)
        event = record.event
        match event:
            case ev.RunStarted():
                self._since[event.order.run_id] = self._heard[event.order.run_id] = self._now_s()
            case ev.RunFinished():
                self._since.pop(event.run_id, None)
                self._tail.pop(event.run_id, None)
            case ev.TurnStarted() | ev.ToolAnswered():
                self._thinking_s = self._now_s()
            case _:
                pass
        if isinstance(event, ev.OperatorSaid) and event.text == self.typed:
            self.typed, show = "", False
        lines = self._story.lines(record)  # also of what is not shown: later lines refer to it
        if show and lines:
            self._clear()
            click.echo("\n".join(lines))

    def _ephemeral(self, item: Delta | OutputChunk) -> None:
        if isinstance(item, OutputChunk):
            text = item.data.decode("utf-8", "replace").rstrip()
            if text:
                self._tail[item.run_id] = text.splitlines()[-1]
            self._heard[item.run_id] = self._now_s()

    def _draw(self) -> None:
        if not self._status:
            return
        text = self._status_text()
        if text != self._shown:
            width = shutil.get_terminal_size().columns - 1
            sys.stdout.write("\r\x1b[2K" + self._paint(text[:width], "dim"))
            sys.stdout.flush()
            self._shown = text

    def _clear(self) -> None:
        if self._status and self._shown:
            sys.stdout.write("\r\x1b[2K")
            sys.stdout.flush()
            self._shown = ""

    def _status_text(self) -> str:
        state, now_s = self.state, self._now_s()
        if state.phase in SETTLED and not state.turn:
            return ""
        words = [state.phase.value.replace("_", " ")]
        plan = state.live_plan
        if plan is not None:
            finished = sum(step.status.value in ("done", "failed", "skipped") for step in state.steps.values())
            words.append(f"step {min(finished + 1, len(plan.steps))}/{len(plan.steps)}")
        if state.window is not None:
            words.append(f"window {clock(state.window.remaining_s(self._oikos.clock.now()))}")
        for run_id, since_s in list(self._since.items())[-1:]:
            run = state.runs.get(run_id)
            target = run.target if run is not None else ""
            words.append(f"{target} running {seconds(now_s - since_s)}")
            silent_s = now_s - self._heard.get(run_id, since_s)
            if silent_s > QUIET_S:
                words.append(f"no output for {seconds(silent_s)}")
            elif run_id in self._tail:
                words.append(safe(self._tail[run_id])[:80])
        if not self._since and state.turn and self._thinking_s:
            words.append(f"Nomos thinks {seconds(now_s - self._thinking_s)}")
        return " · ".join(words) + "   (Ctrl-C halts)"
