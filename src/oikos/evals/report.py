"""The results of evals as a table, as JSON and as JUnit XML (SPEC R9.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import orjson

from oikos.evals.harness import Result


def table(results: Sequence[Result]) -> list[str]:
    """One line an eval with the failed assertions below it; then pass rates of repeated ones, and the whole."""
    lines: list[str] = []
    for result in results:
        lines += _entry(result)
    names = list(dict.fromkeys(result.name for result in results))
    if len(names) < len(results):
        for name in names:
            plays = [result for result in results if result.name == name]
            passed = sum(result.ok for result in plays)
            lines.append(f"  {name:<32} passed {passed} of {len(plays)} ({passed / len(plays):.0%})")
    lines.append(f"{sum(result.ok for result in results)} of {len(results)} evals passed · {_effort(results)}")
    return lines


def _entry(result: Result) -> list[str]:
    held = sum(judgement.ok for judgement in result.judgements)
    mark, of = "✓" if result.ok else "✕", len(result.judgements)
    lines = [f"{mark} {result.name:<32} {held:>2}/{of:<2} held  {result.seconds:5.1f} s  seed {result.seed}"]
    if result.error:
        lines.append(f"    error: {result.error}")
    lines += [f"    {judgement.assertion}: {judgement.saw}" for judgement in result.judgements if not judgement.ok]
    if result.home is not None:
        lines.append(f"    kept: {result.home} (transcript.txt, the hosts' logs; OIKOS_HOME=… oikos sessions)")
    return lines


def _effort(results: Sequence[Result]) -> str:
    """What it asked of the operator, over the evals that completed their task (security/THREATS T35)."""
    done = [result for result in results if result.completed]
    tasks = sum(result.completed for result in done)
    if not tasks:
        return "no task was completed"
    consents, ticks = sum(result.consents for result in done), sum(result.ticks for result in done)
    return f"{consents / tasks:.2f} approvals a completed task, {ticks} operator ticks beyond"


def write_json(path: Path, results: Sequence[Result]) -> None:
    """All results and judgements.

    Raises:
        OSError: the file cannot be written.
    """
    body = [
        {
            "name": result.name,
            "ok": result.ok,
            "seed": result.seed,
            "seconds": round(result.seconds, 3),
            "error": result.error,
            "completed": result.completed,
            "consents": result.consents,
            "ticks": result.ticks,
            "judgements": [{"assertion": j.assertion, "ok": j.ok, "saw": j.saw} for j in result.judgements],
        }
        for result in results
    ]
    path.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def write_junit(path: Path, results: Sequence[Result]) -> None:
    """One test case an eval.

    Raises:
        OSError: the file cannot be written.
    """
    failed = sum(not result.ok for result in results)
    counts = {"tests": str(len(results)), "failures": str(failed), "time": f"{sum(r.seconds for r in results):.3f}"}
    suite = ElementTree.Element("testsuite", {"name": "oikos eval", **counts})
    for result in results:
        seconds = f"{result.seconds:.3f}"
        case = ElementTree.SubElement(suite, "testcase", classname="evals", name=result.name, time=seconds)
        if not result.ok:
            wrong = [f"{j.assertion}: {j.saw}" for j in result.judgements if not j.ok]
            text = "\n".join([*([result.error] if result.error else []), *wrong])
            failure = ElementTree.SubElement(case, "failure", message=f"seed {result.seed}")
            failure.text = "".join(each if _in_xml(each) else "\N{REPLACEMENT CHARACTER}" for each in text)
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _in_xml(character: str) -> bool:
    """Whether XML 1.0 can hold it: what hosts print may not."""
    code = ord(character)
    return character in "\t\n\r" or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000
