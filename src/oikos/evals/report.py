"""The results of evals as a table, as JSON and as JUnit XML (SPEC R9.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import orjson

from oikos.evals.harness import Result


def table(results: Sequence[Result]) -> list[str]:
    """One line an eval with the failed assertions below it; then pass rates of repeated ones, the whole, the effort."""
    lines: list[str] = []
    for result in results:
        lines += _entry(result)
    lines += [
        f"  {rate.name:<32} passed {rate.passed} of {rate.plays} ({rate.passed / rate.plays:.0%})"
        for rate in rates(results)
    ]
    return [*lines, f"{sum(result.ok for result in results)} of {len(results)} evals passed", _told(total(results))]


def _entry(result: Result) -> list[str]:
    held = sum(judgement.ok for judgement in result.judgements)
    mark, of, took = "✓" if result.ok else "✕", len(result.judgements), result.effort
    asked = f"{took.tasks} done: {took.approvals} approvals, {took.ticks} ticks" if took.tasks else "none done"
    lines = [
        f"{mark} {result.name:<32} {held:>2}/{of:<2} held  {result.seconds:5.1f} s  {asked:<29}  seed {result.seed}"
    ]
    if result.error:
        lines.append(f"    error: {result.error}")
    lines += [f"    {judgement.assertion}: {judgement.saw}" for judgement in result.judgements if not judgement.ok]
    if result.kept is not None:
        more = "" if result.remote else f", the hosts' logs; OIKOS_HOME={result.kept} oikos sessions"
        lines.append(f"    kept: {result.kept} (transcript.txt{more})")
    return lines


# ---- the whole ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often a repeated eval passed."""

    name: str
    plays: int
    passed: int


def rates(results: Sequence[Result]) -> list[Rate]:
    """Of each eval, when any was repeated."""
    names = list(dict.fromkeys(result.name for result in results))
    if len(names) == len(results):
        return []
    plays = {name: [result.ok for result in results if result.name == name] for name in names}
    return [Rate(name=name, plays=len(oks), passed=sum(oks)) for name, oks in plays.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What all completed tasks asked of the operator (security/THREATS T35)."""

    tasks: int
    approvals: int
    ticks: int
    """Beyond the first approval of each task, in evals whose model is to manage alone."""
    helped: int
    """In evals that play a model that needs help."""

    @property
    def rate(self) -> float | None:
        """Approvals a completed task; None when none was completed."""
        return self.approvals / self.tasks if self.tasks else None


def total(results: Sequence[Result]) -> Total:
    """The sum of all efforts."""
    return Total(
        tasks=sum(result.effort.tasks for result in results),
        approvals=sum(result.effort.approvals for result in results),
        ticks=sum(result.effort.ticks for result in results if not result.helped),
        helped=sum(result.effort.ticks for result in results if result.helped),
    )


def _told(whole: Total) -> str:
    if whole.rate is None:
        return "no task was completed"
    helped = f" ({whole.helped} more where the eval is about help)" if whole.helped else ""
    return (
        f"{whole.tasks} tasks completed: {whole.rate:.2f} approvals a completed task, "
        f"{whole.ticks} operator ticks beyond the first approval{helped}"
    )


def beyond(whole: Total, *, most_approvals: float | None, most_ticks: int | None) -> list[str]:
    """What is more than was allowed, in words; a bar that nothing was measured against is not met."""
    wrong: list[str] = []
    if whole.rate is None and not (most_approvals is None and most_ticks is None):
        return ["no task was completed: there is nothing to measure"]
    if most_approvals is not None and whole.rate is not None and whole.rate > most_approvals:
        wrong.append(f"{whole.rate:.2f} approvals a completed task, more than {most_approvals:g}")
    if most_ticks is not None and whole.ticks > most_ticks:
        wrong.append(f"{whole.ticks} operator ticks beyond the first approval, more than {most_ticks}")
    return wrong


# ---- files ----------------------------------------------------------------------------------------------------------


def write_json(path: Path, results: Sequence[Result]) -> None:
    """All results and judgements, and the whole.

    Raises:
        OSError: the file cannot be written.
    """
    body = {
        "passed": sum(result.ok for result in results),
        "played": len(results),
        **_effort(total(results)),
        "pass_rates": {rate.name: rate.passed / rate.plays for rate in rates(results)},
        "results": [_result(result) for result in results],
    }
    path.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def _effort(whole: Total) -> dict[str, object]:
    return {
        "completed_tasks": whole.tasks,
        "approvals": whole.approvals,
        "approvals_per_completed_task": whole.rate,
        "ticks_beyond_first_approval": whole.ticks,
        "ticks_where_help_is_played": whole.helped,
    }


def _result(result: Result) -> dict[str, object]:
    return {
        "name": result.name,
        "ok": result.ok,
        "seed": result.seed,
        "seconds": round(result.seconds, 3),
        "error": result.error,
        "kept": str(result.kept) if result.kept is not None else None,
        **_effort(total([result])),
        "judgements": [{"assertion": j.assertion, "ok": j.ok, "saw": j.saw} for j in result.judgements],
    }


def write_junit(path: Path, results: Sequence[Result]) -> None:
    """One test case an eval.

    Raises:
        OSError: the file cannot be written.
    """
    failed = sum(not result.ok for result in results)
    counts = {"tests": str(len(results)), "failures": str(failed), "time": f"{sum(r.seconds for r in results):.3f}"}
    suite = ElementTree.Element("testsuite", {"name": "oikos eval", **counts})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _effort(total(results)).items():
        ElementTree.SubElement(properties, "property", name=name, value="" if value is None else f"{value}")
    for result in results:
        seconds = f"{result.seconds:.3f}"
        case = ElementTree.SubElement(suite, "testcase", classname="evals", name=result.name, time=seconds)
        if not result.ok:
            wrong = [f"{j.assertion}: {j.saw}" for j in result.judgements if not j.ok]
            kept = [f"kept: {result.kept}"] if result.kept is not None else []
            text = "\n".join([*([result.error] if result.error else []), *wrong, *kept])
            failure = ElementTree.SubElement(case, "failure", message=f"seed {result.seed}")
            failure.text = "".join(each if _in_xml(each) else "\N{REPLACEMENT CHARACTER}" for each in text)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _in_xml(character: str) -> bool:
    """Whether XML 1.0 can hold it: what hosts print may not."""
    code = ord(character)
    return character in "\t\n\r" or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000
