"""The results of evals as a table, as JSON and as JUnit XML (SPEC R9.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import orjson

from oikos.evals.harness import Result


def table(results: Sequence[Result]) -> list[str]:
    """One line an eval, and the failed assertions below it."""
    lines: list[str] = []
    for result in results:
        held = sum(judgement.ok for judgement in result.judgements)
        mark = "✓" if result.ok else "✕"
        lines.append(f"{mark} {result.name:<32} {held}/{len(result.judgements)} held  {result.seconds:5.1f} s  seed {result.seed}")
        if result.error:
            lines.append(f"    error: {result.error}")
        lines += [f"    {judgement.assertion}: {judgement.saw}" for judgement in result.judgements if not judgement.ok]
        if result.home is not None:
            lines.append(f"    kept: {result.home}")
    passed = sum(result.ok for result in results)
    lines.append(f"{passed} of {len(results)} evals passed")
    return lines


def write_json(path: Path, results: Sequence[Result]) -> None:
    """All results and judgements."""
    body = [
        {
            "name": r.name, "ok": r.ok, "seed": r.seed, "seconds": round(r.seconds, 3), "error": r.error,
            "judgements": [{"assertion": j.assertion, "ok": j.ok, "saw": j.saw} for j in r.judgements],
        }
        for r in results
    ]  # fmt: skip
    path.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def write_junit(path: Path, results: Sequence[Result]) -> None:
    """One test case an eval."""
    failed = sum(not result.ok for result in results)
    suite = ElementTree.Element("testsuite", name="oikos eval", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", classname="evals", name=result.name, time=f"{result.seconds:.3f}")
        if not result.ok:
            wrong = [f"{j.assertion}: {j.saw}" for j in result.judgements if not j.ok]
            text = "\n".join([*([result.error] if result.error else []), *wrong])
            ElementTree.SubElement(case, "failure", message=f"seed {result.seed}").text = text
    ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
