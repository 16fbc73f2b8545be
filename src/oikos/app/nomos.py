"""The loop of one turn: ask the model, record what it said, carry out its calls one at a time, until the turn ends.

A turn ends only by what SPEC R1.3 lists. A failed command never ends one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from oikos.app.arguments import mask_arguments
from oikos.app.execute import Executor
from oikos.app.feed import Delta, Feed
from oikos.app.log import SessionLog
from oikos.app.told import Answer, not_run, seen_as
from oikos.app.toolbox import TOOLS
from oikos.app.tools import Tools
from oikos.domain import events as ev
from oikos.domain.agent_rules import open_steps
from oikos.domain.errors import ModelError
from oikos.domain.instant import Instant
from oikos.domain.mask import Secrets, mask_text
from oikos.domain.session import Phase, State
from oikos.domain.state import Budgets
from oikos.ports import Clock, Message, Model, Reply, Retrying, TextDelta

MODEL_RETRY_S = (15.0, 60.0, 300.0, 900.0)
"""How long a session waits before it asks a failed provider again; any message asks at once (SPEC R1.3)."""
REPEATS = 3
ENDINGS = frozenset({"propose_plan", "wait", "ask_operator", "complete_task"})
"""Calls after which the model is not asked again at once: first it hears what the operator wrote (SPEC R1.8)."""
WAIT_FOR_RUNS_S = 3600.0


class Nomos:
    """The agent of one process; sessions share it."""

    def __init__(self, *, model: Model, tools: Tools, executor: Executor, feed: Feed, clock: Clock, secrets: Secrets,
                 budgets: Budgets) -> None:  # fmt: skip
        self._model = model
        self._tools = tools
        self._executor = executor
        self._feed = feed
        self._clock = clock
        self._secrets = secrets
        self._budgets = budgets

    async def turn(self, log: SessionLog, wake: str) -> None:
        """One turn of a session whose lease the caller holds."""
        log.heard = log.prompt.said if log.prompt is not None else 0
        log.stage(ev.TurnStarted(wake=wake))
        await self._executor.runs.recover(log)
        while True:
            await self._finish_batch(log)
            ending = self._await_followed(log)
            while ending is None and log.state.due:
                ending = await self._iterate(log)
            log.stage(ev.TurnEnded(reason=ending or log.state.phase.value))
            if await log.flush():
                return

    # ---- one iteration -----------------------------------------------------------------------------------------------

    async def _iterate(self, log: SessionLog) -> str | None:
        """Ask once and carry out what comes back; the reason when the turn is over."""
        blocked = self._limits(log.state) or self._repetition(log)
        if blocked is not None:
            log.stage(blocked)
            return blocked.on
        if log.staged and not await log.flush():
            return None
        assert log.prompt is not None, "a worker's log has a prompt"
        assert log.prompt.complete, "no request while a call is unanswered (SPEC R1.12)"
        log.heard = log.prompt.said
        try:
            reply = await self._ask(log, log.prompt.messages)
        except ModelError as error:
            log.stage(self._model_failed(log.state, error))
            return "model"
        log.stage(self._said(reply, log.state))
        if not reply.calls:
            return self._text_only(log)
        await self._finish_batch(log)
        return None

    async def _ask(self, log: SessionLog, messages: Sequence[Message]) -> Reply:
        """Stream the model; deltas go to the feed only."""
        live = _Deltas(log.session_id, self._feed, self._secrets)
        async with aclosing(self._model.stream(messages, TOOLS)) as stream:  # type: ignore[type-var]  # an async generator
            async for item in stream:
                match item:
                    case TextDelta():
                        live.say(item)
                    case Retrying():
                        retried = ev.ModelRetried(attempt=item.attempt, delay_s=item.delay_s, reason=item.reason)
                        await log.append_outcome(retried)
                    case Reply():
                        live.end()
                        return item
        raise ModelError("the model ended without an answer", retryable=True)

    def _said(self, reply: Reply, state: State) -> ev.AssistantSaid:
        taken = {run.call_id for run in state.running}
        calls: list[ev.ToolCall] = []
        for call in reply.calls:
            call_id = call.id
            while call_id in taken:  # an answer must find its own call (SPEC R1.12)
                call_id += "+"
            taken.add(call_id)
            calls.append(replace(call, id=call_id, arguments=mask_arguments(call.arguments, self._secrets)))
        text, reasoning = (mask_text(_scalar(said), self._secrets) for said in (reply.text, reply.reasoning))
        # a signed blob cannot be masked in part: one that holds a secret is not kept
        opaque = reply.opaque if mask_text(reply.opaque, self._secrets) == reply.opaque else ""
        return ev.AssistantSaid(
            text=text, reasoning=reasoning, calls=tuple(calls), opaque=opaque, model=self._model.name,
            tokens_in=reply.tokens_in, tokens_out=reply.tokens_out,
        )  # fmt: skip

    # ---- the calls of a response -------------------------------------------------------------------------------------

    async def _finish_batch(self, log: SessionLog) -> None:
        """Handle the unanswered calls of the newest response, strictly in order (SPEC R1.2)."""
        parked = log.state.parked
        if parked is not None and parked.consent is not None:
            asked = ev.ToolCall(id=parked.event.call_id, name="run", arguments=parked.event.order.command)
            self._tell(log, asked, await self._executor.resume(log, parked))
        while True:
            call = next((call for call in log.state.batch.calls if not _answered_later(log.state, call.id)), None)
            if call is None:
                if log.undecided and not await log.flush():
                    continue
                return
            if await log.settle():
                continue
            if log.state.batch.broken or log.state.phase is not Phase.EXECUTING or _any_later(log.state):
                self._tell(log, call, not_run())
                continue
            if call.name in ENDINGS and log.unheard:
                self._tell(log, call, not_run("the operator wrote meanwhile"))
                continue
            if call.name == "run" and log.undecided and not await log.flush():
                continue
            answer = await self._tools.call(log, call)
            if answer is not None:
                self._tell(log, call, answer)

    def _tell(self, log: SessionLog, call: ev.ToolCall, answer: Answer) -> None:
        if answer.told:
            return
        name, seen = call.name, ""
        if answer.seen and name != "wait":  # what was asked and what came back, for stuck detection (SPEC R1.5)
            seen = seen_as(name, call.arguments, answer.seen)
        log.stage(
            ev.ToolAnswered(
                call_id=call.id, name=name, text=answer.text, refusal=answer.refusal, run_id=answer.run_id, seen=seen
            )
        )

    def _await_followed(self, log: SessionLog) -> str | None:
        """After a crash a follower answers the call: wait for it before the model is asked again (SPEC R1.12)."""
        state = log.state
        run = next((run for run in state.running if any(run.call_id == call.id for call in state.batch.calls)), None)
        if run is None or not state.due:
            return None
        log.stage(self._wait_for_run(run.order.run_id))
        return "waiting"

    def _wait_for_run(self, run_id: str = "") -> ev.WaitBegun:
        now, seconds = self._clock.now(), WAIT_FOR_RUNS_S
        until = Instant(wall_s=now.wall_s + seconds, boot_s=now.boot_s + seconds, boot_id=now.boot_id)
        return ev.WaitBegun(call_id="", until=until, seconds=seconds, reason="a run is under way", run_id=run_id)

    # ---- endings -----------------------------------------------------------------------------------------------------

    def _text_only(self, log: SessionLog) -> str | None:
        """A reply without calls (SPEC R1.3)."""
        state = log.state
        if state.running:
            log.stage(self._wait_for_run())
            return "waiting"
        if state.awaiting_plan:
            return "approval"
        if state.live_plan is None:
            return "idle"
        steps = open_steps(state)
        if steps:
            which = ", ".join(map(str, steps))
            text = f"Steps {which} are still open. Go on with them, or end the task with complete_task."
        else:
            text = "All steps are finished. Verify, write back, and end the task with complete_task."
        if state.nudged:
            log.stage(ev.SessionBlocked(on="nudge", reason=f"Nomos stopped although work is open: {text}"))
            return "blocked"
        log.stage(ev.Nudged(about="open_steps", text=text))
        return None

    def _limits(self, state: State) -> ev.SessionBlocked | None:
        """Budgets of the plan (SPEC R1.4)."""
        for name, used, most in self._used(state):
            if used >= most:
                return ev.SessionBlocked(
                    on="limit", reason=f"the limit of {most:g} {name} is used up: raise it to go on"
                )
        return None

    def _used(self, state: State) -> Sequence[tuple[str, float, float]]:
        usage, more = state.usage, 1 + state.raises
        wall_s = self._clock.now().elapsed_since(usage.since) if usage.since is not None else 0.0
        budgets = self._budgets
        return (
            ("iterations", usage.iterations, budgets.iterations * more),
            ("tokens", float(usage.tokens), budgets.tokens * more),
            ("runs", float(usage.runs), budgets.runs * more),
            ("seconds", wall_s, budgets.wall_s * more),
        )

    def _repetition(self, log: SessionLog) -> ev.SessionBlocked | None:
        """The same call with the same result three times (SPEC R1.5); also the warning at 80 % of a budget."""
        state = log.state
        for name, used, most in self._used(state):
            if used >= 0.8 * most and name not in state.usage.warned:
                log.stage(ev.LimitWarned(limit=name, used=round(used, 2), of=most))
        what, count = state.repeats
        if count < REPEATS:
            return None
        name = what.split(":", 1)[0]
        if not state.repeat_nudged:
            text = (
                "You made the same call with the same result three times. "
                "Do something else: look closer, or take another way."
            )
            log.stage(ev.Nudged(about="repetition", text=text))
            return None
        if count == REPEATS:
            return None
        return ev.SessionBlocked(
            on="repetition", reason=f"Nomos repeats the same call without getting further ({name[:40]})"
        )

    def _model_failed(self, state: State, error: ModelError) -> ev.SessionBlocked:
        retry_at: Instant | None = None
        if error.retryable:
            now = self._clock.now()
            delay_s = error.retry_after_s or MODEL_RETRY_S[min(state.model_failures, len(MODEL_RETRY_S) - 1)]
            retry_at = Instant(wall_s=now.wall_s + delay_s, boot_s=now.boot_s + delay_s, boot_id=now.boot_id)
        return ev.SessionBlocked(on="model", reason=f"the model is not available: {error}", retry_at=retry_at)


def _answered_later(state: State, call_id: str) -> bool:
    """Parked, asked, waiting, or run by a follower after a crash: somebody else answers this call."""
    parked = state.parked is not None and state.parked.event.call_id == call_id
    asked = state.question is not None and state.question.call_id == call_id
    waits = state.waiting is not None and state.waiting.call_id == call_id
    runs = any(run.call_id == call_id for run in state.running)
    return parked or asked or waits or runs


def _any_later(state: State) -> bool:
    return any(_answered_later(state, call.id) for call in state.batch.calls)


def _scalar(text: str) -> str:
    """Scalar values only, as the store keeps it: what the model is shown later is what is shown now (DESIGN §6.4)."""
    return text.replace("\0", "\u2400").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Deltas:
    """The model's answer as it comes, masked: a secret may come in pieces (SPEC R5.10)."""

    def __init__(self, session_id: str, feed: Feed, secrets: Secrets) -> None:
        self._session_id = session_id
        self._feed = feed
        self._secrets = secrets
        self._held: dict[bool, str] = {}

    def say(self, delta: TextDelta) -> None:
        """Pass on whole lines: within one, anything could still become a secret."""
        if not self._feed.listened:
            return
        held = self._held.get(delta.reasoning, "") + delta.text
        at = held.rfind("\n") + 1
        self._held[delta.reasoning] = held[at:]
        self._publish(held[:at], delta.reasoning)

    def end(self) -> None:
        """The rest."""
        for reasoning, text in self._held.items():
            self._publish(text, reasoning)
        self._held.clear()

    def _publish(self, text: str, reasoning: bool) -> None:
        if text:
            self._feed.ephemeral(
                Delta(session_id=self._session_id, text=mask_text(text, self._secrets), reasoning=reasoning)
            )
