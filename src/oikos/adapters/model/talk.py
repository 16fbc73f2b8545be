"""One side of a conversation as a generator: what the runbook brain says, and how it copes with every answer.

A procedure yields a `Turn` and is sent the `Exchange` that followed it. Because it is replayed from the message list
on every request, it must depend on nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from oikos.adapters.model.transcript import Answered, Exchange

Args = Mapping[str, object]
SAME_TRIES: Final = 3
BUSY_WAIT_S: Final = 30
WATCH_S: Final = 3600
WATCHES: Final = 8
LOST: Final = ("connection lost", "never started")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One response: text, and tool calls by name with arguments."""

    text: str = ""
    calls: tuple[tuple[str, Args], ...] = ()


class Interrupted(Exception):
    """The operator wants something else: what was going on is over."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__("the operator wants something else")
        self.texts = tuple(texts)


class GaveUp(Exception):
    """The task cannot be done; the text is the reason, with its evidence."""


class ChangesAsked(Exception):
    """The operator wants another plan; the text is what they said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command did. `code` is None when it did not end by itself, or was refused."""

    command: str
    run: str = ""
    exit: str = ""
    code: int | None = None
    stdout: str = ""
    stderr: str = ""
    refused: str = ""
    passed: bool | None = None
    """For a check."""

    @property
    def output(self) -> str:
        """Everything it printed."""
        return "\n".join(text.strip("\n") for text in (self.stdout, self.stderr) if text.strip())


@dataclass(slots=True)
class Talk:
    """Speaks the tools of Nomos. Every method is a part of a procedure."""

    exchange: Exchange
    """The newest."""
    note: str = ""
    """Said with the next response."""
    queue: list[tuple[str, Args]] = field(default_factory=list)
    """Calls that go before the next one in the same response."""
    generation: int = 0
    open_steps: list[int] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    """Runs of the current generation."""
    target: str = ""
    """Of the newest run."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Queued calls that were refused: text by tool."""

    def say(self, text: str) -> None:
        """Something for the operator, with the next response."""
        self.note = f"{self.note}\n{text}".strip()

    def turn(self, turn: Turn) -> Generator[Turn, Exchange, Exchange]:
        """Give a response and take what follows it.

        Raises:
            Interrupted: a follow-up reopened the session.
        """
        self.exchange = yield turn
        if any("reopened by a follow-up" in note for note in self.exchange.notes):
            raise Interrupted(self.exchange.operator)
        return self.exchange

    def call(self, name: str, **args: object) -> Generator[Turn, Exchange, Answered]:
        """Call a tool, after the calls that are queued; a queued call that is refused does not count.

        Raises:
            GaveUp: the calls of a response stay unanswered.
        """
        for _ in range(SAME_TRIES):
            calls = (*self.queue, (name, args))
            turn = Turn(text=self.note, calls=calls)
            self.note, self.queue = "", []
            exchange = yield from self.turn(turn)
            if len(exchange.answers) < len(calls):
                break
            self.dropped.update(
                (queued.call.name, str(queued.body.get("text", "")))
                for queued in exchange.answers[:-1]
                if queued.refused not in ("", "batch_ended")
            )
            answer = exchange.answers[-1]
            if exchange.operator and name not in ("propose_plan", "complete_task", "ask_operator"):
                self.say(
                    "I go on with the plan: a runbook takes no remarks on the way. Stop and Reject work at any time."
                )
            if answer.refused != "batch_ended":
                return answer
        raise GaveUp(f"{name} was not answered")

    # ---- plan ----------------------------------------------------------------------

    def propose(self, steps: Sequence[Args], checks: Sequence[Args]) -> Generator[Turn, Exchange, list[int]]:
        """Propose a plan and wait for its decision; the numbers of its steps.

        Raises:
            ChangesAsked: the operator wants another one.
            Interrupted: they rejected it and said something else.
            GaveUp: it is refused, rejected, or nobody answered.
        """
        answer = yield from self.call("propose_plan", steps=list(steps), checks=list(checks))
        if answer.refused:
            raise GaveUp(f"the plan was refused: {answer.body.get('text', '')}")
        numbers = [seq for step in _objects(answer.body.get("steps")) if isinstance(seq := step.get("seq"), int)]
        generation = answer.body.get("generation")
        if len(numbers) != len(steps) or not isinstance(generation, int):
            raise GaveUp("the plan's answer has not the form it should have")
        self.generation, self.open_steps, self.runs = generation, list(numbers), []
        if answer.body.get("status") == "awaiting_approval":
            self.open_steps = []
            yield from self._decided(generation)
            self.open_steps = list(numbers)
        return numbers

    def _decided(self, generation: int) -> Generator[Turn, Exchange, None]:
        """Until the plan is approved; a comment is answered with what is still pending."""
        about = f"plan generation {generation}"
        while True:
            for note in self.exchange.notes:
                if f"approved {about}" in note:
                    return
                if f"asked for changes to {about}" in note:
                    raise ChangesAsked(note.partition("They said: ")[2] or " ".join(self.exchange.operator))
                if f"rejected {about}" in note:
                    reason = note.partition("They said: ")[2]
                    if self.exchange.operator:
                        raise Interrupted(self.exchange.operator)
                    raise GaveUp(f"the plan was rejected{': ' + reason if reason else ''}")
                if f"{about} has expired" in note:
                    if self.exchange.operator:
                        raise Interrupted(self.exchange.operator)
                    raise GaveUp("nobody decided about the plan")
            yield from self.turn(
                Turn(text=f"The plan of generation {generation} waits for your decision; a runbook cannot discuss it.")
            )

    def mark(self, seq: int, status: str, note: str) -> None:
        """Mark a step, together with the next call."""
        if seq in self.open_steps:
            self.open_steps.remove(seq)
            self.queue.append(("update_plan_step", {"seq": seq, "status": status, "note": note[:2000]}))

    # ---- runs ----------------------------------------------------------------------

    def run(
        self, target: str, command: str, step: int, *, timeout_s: int = 0, rerun: str = ""
    ) -> Generator[Turn, Exchange, Ran]:
        """Run a command to its end, through lost connections, busy targets and time limits.

        Raises:
            GaveUp: the operator declined it.
        """
        args: dict[str, object] = {"target": target, "command": command, "step": step}
        if timeout_s:
            args.update(timeout_s=timeout_s, keep=True)
        if rerun:
            args["rerun"] = rerun
        ended = ""
        for _ in range(SAME_TRIES):
            answer = yield from self.call("run", **args)
            match answer.refused:
                case "":
                    ran = yield from self._ended(command, answer)
                    if not ran.exit.startswith(LOST):
                        return ran
                    if ended == ran.exit:
                        break
                    ended = ran.exit
                case "declined":
                    comment = str(answer.body.get("comment") or answer.body.get("text") or "")
                    raise GaveUp(f"`{command}` was declined: {comment}")
                case "duplicate":
                    args["rerun"] = rerun or "the runbook needs its result again"
                case "target_busy":
                    yield from self.call("wait", seconds=BUSY_WAIT_S, reason=f"another change is running on {target}")
                case "expired":
                    pass
                case code:
                    return Ran(command=command, refused=code, exit=str(answer.body.get("text", code)))
        return Ran(command=command, refused="lost", exit=ended or "it could not be run")

    def _ended(self, command: str, answer: Answered) -> Generator[Turn, Exchange, Ran]:
        body = answer.body
        run = str(body.get("run", ""))
        if run:
            self.runs.append(run)
            self.target = str(body.get("target") or self.target)
        if "exit" not in body and run:
            for _ in range(WATCHES):
                waited = yield from self.call("wait", run=run, seconds=WATCH_S, reason=f"until `{command[:100]}` ends")
                if waited.refused or waited.body.get("ended_by") == "run":
                    break
            late = yield from self.call("read_output", run=run)
            body = {"run": run, "exit": late.body.get("outcome", ""), "stdout": late.body.get("text", "")}
        ended = str(body.get("exit", ""))
        found = re.fullmatch(r"exit (\d+)", ended)
        check = body.get("check")
        passed = check.get("passed") if isinstance(check, Mapping) else None
        return Ran(
            command=command,
            run=run,
            exit=ended,
            code=int(found[1]) if found else None,
            stdout=str(body.get("stdout", "")),
            stderr=str(body.get("stderr", "")),
            passed=passed if isinstance(passed, bool) else None,
        )

    # ---- the operator, the end ----------------------------------------------------------------------

    def ask(self, question: str, choices: Sequence[str] = ()) -> Generator[Turn, Exchange, str]:
        """Ask the operator; their answer, empty when they gave none.

        Raises:
            GaveUp: the question is refused.
        """
        args: dict[str, object] = {"kind": "text", "question": question}
        if len(choices) > 1:
            args.update(kind="choice", choices=list(choices))
        answer = yield from self.call("ask_operator", **args)
        if answer.refused:
            raise GaveUp(f"{question} (the question was refused: {answer.body.get('text', '')})")
        return str(answer.body.get("answer") or "").strip()

    def complete(self, outcome: str, summary: str, *, host: str, book: str) -> Generator[Turn, Exchange, None]:
        """End the task; what `complete_task` finds missing is made good, and what cannot be is said."""
        for _ in range(2 * SAME_TRIES):
            self.say(summary)
            evidence = list(dict.fromkeys(self.runs))[-20:]
            answer = yield from self.call("complete_task", outcome=outcome, summary=summary, evidence=evidence)
            text = str(answer.body.get("text", ""))
            match answer.refused:
                case "" | "completed_already" | "session_over":
                    return
                case "no_write_back" if self.runs:
                    args = {
                        "entity": self.target or host,
                        "attributes": {f"{book}.checked": outcome},
                        "run": self.runs[-1],
                    }
                    self.queue.append(("update_entity_attributes", args))
                case "steps_open" | "no_note":
                    self.open_steps = [int(number) for number in re.findall(r"\d+", text)]
                    for seq in tuple(self.open_steps):
                        self.mark(seq, "skipped", "not reached")
                case "run_still_running":
                    yield from self.call("wait", seconds=BUSY_WAIT_S, reason="a run has not ended")
                case _ if outcome != "failed":
                    outcome, summary = "failed", f"Not proven ({host}): {text}\n{summary}"
                case _:
                    break
        yield from self.turn(Turn(text=summary))


def _objects(value: object) -> list[Mapping[str, object]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
