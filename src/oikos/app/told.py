"""What the model is told of a tool call: an answer, a refusal, the result of a run (SPEC R2.8, R5.1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import orjson

from oikos.app.hints import Hint
from oikos.app.output import Collector
from oikos.domain.errors import Code, Refusal
from oikos.domain.run import RunReport, Stream, describe, succeeded
from oikos.domain.state import RunState
from oikos.domain.verdict import Verdict
from oikos.domain.view import for_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool call is answered with."""

    text: str
    refusal: str = ""
    run_id: str = ""
    seen: str = ""
    told: bool = False
    """The log has it already."""


def refused(refusal: Refusal) -> Answer:
    """A refusal as the model sees it (SPEC R2.8)."""
    body = {"refused": refusal.code.value, "text": refusal.text, "do": refusal.directive}
    return Answer(
        text=orjson.dumps(body).decode(), refusal=refusal.code.value, seen=f"refused:{refusal.code}:{refusal.text}"
    )


def seen_as(tool: str, asked: str, answered: str) -> str:
    """What stuck detection compares: the tool, what it was asked, what came back (SPEC R1.5)."""
    both = f"{asked}\0{answered}".encode("utf-8", "replace")
    return f"{tool}:{hashlib.sha256(both).hexdigest()[:24]}"


def not_run(why: str = "an earlier call of the same response was refused or waits") -> Answer:
    """A call of a batch that ended before it (SPEC R1.2)."""
    directive = "Look at what came in between first, then decide anew."
    refusal = Refusal(code=Code.BATCH_ENDED, text=f"Not run: {why}.", directive=directive)
    return replace(refused(refusal), seen="")


def result_of(run: RunState, report: RunReport, collector: Collector, passed: bool | None, hint: Hint | None,
            verdict: Verdict | None) -> Answer:  # fmt: skip
    head, tail, size = collector.ends(Stream.OUT)
    err_head, err_tail, err_size = collector.ends(Stream.ERR)
    body: dict[str, object] = {
        "run": run.order.run_id,
        "target": run.target,
        "exit": describe(report.outcome),
        "stdout": for_model(head + tail, total_bytes=size).text,
        "stderr": for_model(err_head + err_tail, total_bytes=err_size).text,
        "stdout_bytes": report.out_bytes,
        "stderr_bytes": report.err_bytes,
        "duration_s": round(report.duration_s, 3),
    }
    if report.note:
        body["note"] = report.note
    if verdict is not None and verdict.pipeline_hides_failure and succeeded(report.outcome):
        body["pipeline"] = "the exit code is the last stage's; an earlier stage may have failed"
    if passed is not None and run.check is not None:
        body["check"] = {"n": run.check + 1, "passed": passed}
    if hint is not None:
        body["hint"] = {"class": hint.recovery, "text": hint.text}
    seen = hashlib.sha256(f"{describe(report.outcome)}{collector.digest()}".encode()).hexdigest()[:24]
    return Answer(text=orjson.dumps(body).decode(), run_id=run.order.run_id, seen=seen)
