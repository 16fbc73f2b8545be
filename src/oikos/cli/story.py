"""A session's events as lines of text: live and in replay the same (SPEC R1.9)."""

from __future__ import annotations

import orjson

from oikos.cli.card import plan_lines, run_lines
from oikos.cli.paint import RISK_WORDS, Paint, safe, seconds
from oikos.domain import events as ev
from oikos.domain.consent import SNAPSHOT_ITEM
from oikos.domain.plan import Plan, StepStatus
from oikos.domain.run import describe, succeeded
from oikos.domain.snapshot import SNAPSHOT
from oikos.domain.verdict import Risk

STEP_MARKS = {
    StepStatus.PENDING: "○",
    StepStatus.RUNNING: "◐",
    StepStatus.DONE: "✓",
    StepStatus.FAILED: "✕",
    StepStatus.SKIPPED: "–",
    StepStatus.REPLACED: "–",
}
LINES_OF_SUCCESS = 4
LINES_OF_FAILURE = 12


class Story:
    """Turns events into lines, remembering what later events refer to."""

    def __init__(self, paint: Paint, *, whole: bool = False, cards: bool = False) -> None:
        """`whole` also shows reasoning, tool calls and their arguments; `cards`: what waits is shown by the face."""
        self._paint = paint
        self._whole = whole
        self._cards = cards
        self._runs: dict[str, ev.RunStarted] = {}
        self._tries: dict[tuple[int, str], int] = {}
        self._changed = False
        self._plan: Plan | None = None
        self._calls: dict[str, str] = {}
        self._said = ""
        self._keeps = False

    def lines(self, record: ev.Recorded) -> list[str]:
        """What to print for one event; often nothing. What others wrote adds no line to it (THREATS T9)."""
        said = isinstance(record.event, ev.OperatorSaid)
        return [text if said else text.replace("\n", "␤") for text in self._lines(record)]

    def _lines(self, record: ev.Recorded) -> list[str]:
        paint, event = self._paint, record.event
        match event:
            case ev.OperatorSaid():
                return [paint(f"you: {safe(event.text)}", "bold")]
            case ev.AssistantSaid():
                return self._assistant(event)
            case ev.ToolAnswered():
                return self._answer(event)
            case ev.GoalSet():
                return [f"goal: {safe(event.goal)}"]
            case ev.PlanProposed():
                self._plan = event.plan
                self._tries.clear()
                if event.plan.needs_approval and self._cards:
                    return []
                status = "waits for approval" if event.plan.needs_approval else "read-only: no approval needed"
                return plan_lines(event.plan, paint, status=status)
            case ev.PlanApproved():
                items = f", with item {', '.join(map(str, event.items))}" if event.items else ""
                first = ", a snapshot first" if self._keeps else ""
                return [paint(f"✓ plan {event.generation} approved{items}{first}", "green")]
            case ev.ConsentGranted():
                self._keeps = event.consent.snapshot
                if not self._whole:
                    return []
                consent = event.consent
                span = f" for {consent.duration_s / 60:.0f} min" if consent.duration_s else ""
                return [
                    paint(
                        f"  consent {consent.id[:8]}: {consent.grant}{span} by {safe(consent.by)} "
                        f"over {consent.channel}",
                        "dim",
                    )
                ]
            case ev.ItemTicked():
                what = f"item {event.item} allowed" if event.item != SNAPSHOT_ITEM else "snapshot chosen"
                return [f"✓ {what} by {safe(event.by)}"]
            case ev.PlanRejected():
                how = "changes asked" if event.changes_asked else "rejected"
                return [paint(f"✕ plan {event.generation} {how} by {safe(event.by)}", "yellow")]
            case ev.PlanClosed(status="expired" | "superseded"):
                return [paint(f"  plan {event.generation} {event.status}: {safe(event.reason)}", "dim")]
            case ev.ApprovalUnanswered():
                return [paint("nobody answered in time", "yellow")]
            case ev.StepMarked():
                return self._step(event)
            case ev.RunParked() if self._cards:
                return []
            case ev.RunParked():
                return [paint("? this run waits for you", "yellow"), *run_lines(event, paint)]
            case ev.RunDecided():
                return [f"  run {event.run_id[:8]} {event.decision}" + (f" by {safe(event.by)}" if event.by else "")]
            case ev.RunStarted():
                return self._started(event)
            case ev.RunDetached():
                return [paint(f"  run {event.run_id[:8]} goes on in the background ({event.reason})", "dim")]
            case ev.RunFinished():
                return self._finished(event)
            case ev.EntityCreated():
                access = event.entity.access
                where = f", guest {safe(access.guest)} on {safe(access.via)}" if access is not None else ""
                return [f"✎ inventory: new {event.entity.kind} {safe(event.entity.slug)}{where}"]
            case ev.FactsWritten():
                facts = ", ".join(f"{fact.key}={_value(fact.value)}" for fact in event.facts)
                return [f"✎ inventory: {safe(facts)}" + paint(f"  (run {event.run_id[:8]})", "dim")]
            case ev.QuestionAsked() if self._cards:
                return []
            case ev.QuestionAsked():
                return [
                    paint(f"? Nomos asks: {safe(event.text)}", "yellow"),
                    *(f"  - {safe(choice)}" for choice in event.choices),
                ]
            case ev.QuestionAnswered():
                return [f"  answered by {safe(event.by)}: {safe(event.text)}"]
            case ev.WaitBegun():
                return [paint(f"  waiting: {safe(event.reason)}", "dim")]
            case ev.Nudged():
                return [paint(f"  reminded: {safe(event.text)}", "dim")]
            case ev.LimitWarned():
                return [paint(f"  {event.used:g} of {event.of:g} {event.limit} used", "yellow")]
            case ev.LimitRaised():
                return [f"  limits raised by {safe(event.by)}"]
            case ev.ModelRetried():
                return [paint(f"  model: {safe(event.reason)}; trying again in {seconds(event.delay_s)}", "dim")]
            case ev.SessionBlocked() if self._cards and event.retry_at is None:
                return []
            case ev.SessionBlocked():
                return [paint(f"? blocked: {safe(event.reason)}", "yellow")]
            case ev.SessionReopened():
                return [paint(f"— reopened after {event.after}; generation {event.generation} is history —", "bold")]
            case ev.WindowSuspended():
                return [paint(f"  window suspended by {safe(event.by)}", "yellow")]
            case ev.WindowRenewed():
                return [paint("  window renewed", "green")]
            case ev.WindowClosed():
                return [paint(f"  window closed ({event.reason})", "dim")]
            case ev.SessionCompleted():
                good = event.outcome != "failed"
                word = paint(
                    f"{'✓' if good else '✕'} {event.outcome.replace('_', ' ')}", "green" if good else "red", "bold"
                )
                back = f"  oikos changes {record.session_id[:8]} --plan-back   has Nomos plan the way back"
                offer = [] if good or not self._changed else [paint(back, "dim")]
                return [word if event.summary.strip() == self._said else f"{word}: {safe(event.summary)}", *offer]
            case ev.RuleTaught():
                return [f"rule {event.rule.id[:8]} taught by {safe(event.rule.by)}: {safe(' '.join(event.rule.argv))}"]
            case ev.RuleRemoved():
                return [f"rule {event.rule_id[:8]} removed by {safe(event.by)}"]
            case ev.SessionStopped():
                return [paint(f"■ stopped by {safe(event.by)}; running commands: {event.runs}", "red")]
            case (
                ev.SessionOpened()
                | ev.TurnStarted()
                | ev.TurnEnded()
                | ev.PlanAccepted()
                | ev.PlanClosed()
                | ev.WaitEnded()
            ):
                return []

    def _assistant(self, event: ev.AssistantSaid) -> list[str]:
        lines: list[str] = []
        self._said = event.text.strip() or self._said
        self._calls = {call.id: call.arguments for call in event.calls}
        if self._whole and event.reasoning:
            lines += [self._paint(f"  thinks: {safe(line)}", "dim") for line in event.reasoning.splitlines()]
        if event.text.strip():
            first, *rest = event.text.strip().splitlines()
            lines += [self._paint("Nomos: ", "blue") + safe(first), *(f"       {safe(line)}" for line in rest)]
        if self._whole:
            lines += [self._paint(f"  calls {safe(call.name)} {safe(call.arguments)}", "dim") for call in event.calls]
        return lines

    def _answer(self, event: ev.ToolAnswered) -> list[str]:
        if event.refusal:
            text = event.text
            try:
                text = str(orjson.loads(event.text).get("text", event.text))
            except (orjson.JSONDecodeError, AttributeError):
                pass
            wanted = self._wanted(event)
            return [self._paint(f"  refused {event.name} ({event.refusal}): {safe(text)}", "yellow"), *wanted]
        if self._whole and event.name != "run":
            return [self._paint(f"  {event.name} → {safe(event.text[:400])}", "dim")]
        if event.name == "run" and event.run_id in self._runs:
            return self._output(event)
        return []

    def _wanted(self, event: ev.ToolAnswered) -> list[str]:
        """The command that was refused."""
        try:
            args = orjson.loads(self._calls.get(event.call_id, "{}"))
        except orjson.JSONDecodeError:
            return []
        if event.name != "run" or not isinstance(args, dict) or not isinstance(args.get("command"), str):
            return []
        return [self._paint(f"    {safe(str(args.get('target', '')))} $ {safe(args['command'])}", "dim")]

    def _output(self, event: ev.ToolAnswered) -> list[str]:
        """The last lines of what a run printed; all of it is in `oikos runs ID`."""
        try:
            body = orjson.loads(event.text)
        except orjson.JSONDecodeError:
            return []
        if not isinstance(body, dict) or "stdout" not in body:
            return []
        failed = body.get("exit") != "exit 0"
        text = str(body.get("stdout", ""))
        if failed or not text.strip():
            text = f"{text}\n{body.get('stderr', '')}"
        printed = [line for line in text.splitlines() if line.strip()]
        most = LINES_OF_FAILURE if failed else LINES_OF_SUCCESS
        lines = [self._paint(f"    … {len(printed) - most} more lines", "dim")] if len(printed) > most else []
        lines += [self._paint("    " + safe(line)[:200], "dim") for line in printed[-most:]]
        hint = body.get("hint")
        if isinstance(hint, dict):
            lines.append(self._paint(f"    hint ({hint.get('class')}): {safe(str(hint.get('text')))}", "blue"))
        return lines

    def _step(self, event: ev.StepMarked) -> list[str]:
        mark = STEP_MARKS[event.status]
        title = (
            next((step.title for step in self._plan.steps if step.seq == event.seq), "")
            if self._plan is not None
            else ""
        )
        note = f" — {safe(event.note)}" if event.note else ""
        return [f"{mark} step {event.seq} {event.status}" + (f": {safe(title)}" if title else "") + note]

    def _started(self, event: ev.RunStarted) -> list[str]:
        self._runs[event.order.run_id] = event
        self._changed |= event.risk is not Risk.READ_ONLY
        if event.authority == "probe":
            return []
        attempt = ""
        if event.step is not None and event.risk is not Risk.READ_ONLY:
            key = event.step, event.canonical or event.order.command
            self._tries[key] = self._tries.get(key, 0) + 1
            attempt = (
                f"  (step {event.step}, attempt {self._tries[key]})"
                if self._tries[key] > 1
                else f"  (step {event.step})"
            )
        elif event.step is not None:
            attempt = f"  (step {event.step})"
        elif event.authority.startswith(SNAPSHOT):
            attempt = "  (snapshot before the first change)"
        first, *rest = event.order.command.splitlines() or [""]
        return [
            f"{self._paint.risk(event.risk)} {safe(event.target)} $ {safe(first)}" + self._paint(attempt, "dim"),
            *(f"      {safe(line)}" for line in rest),
        ]

    def _finished(self, event: ev.RunFinished) -> list[str]:
        started = self._runs.get(event.run_id)
        good = succeeded(event.report.outcome)
        if started is not None and started.authority == "probe":
            return (
                []
                if good
                else [
                    self._paint(
                        f"  identity of {safe(started.target)}: "
                        f"{safe(event.report.note or describe(event.report.outcome))}",
                        "red",
                    )
                ]
            )
        mark = self._paint("✓", "green") if good else self._paint("✕", "red")
        check = ""
        if event.passed is not None:
            check = (
                self._paint(" · check passed", "green") if event.passed else self._paint(" · check not passed", "red")
            )
        note = f" · {safe(event.report.note)}" if event.report.note else ""
        return [f"    {mark} {describe(event.report.outcome)} · {seconds(event.report.duration_s)}{note}{check}"]


def _value(text: str) -> str:
    value = orjson.loads(text)
    return value if isinstance(value, str) else text


def risk_word(risk: str) -> str:
    """The operator's word for a risk."""
    return RISK_WORDS[Risk(risk)]
