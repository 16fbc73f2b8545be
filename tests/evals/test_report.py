"""The three forms of a report: for people, for programs, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from oikos.evals.assertions import Judgement
from oikos.evals.harness import Result
from oikos.evals.report import beyond, table, total, write_json, write_junit
from oikos.evals.trial import Effort

HELD = Judgement(assertion="completes", ok=True, saw="done (done)")
BROKE = Judgement(assertion="approvals: 1", ok=False, saw="2 consents\x1b[31m")
RESULTS = (
    Result(
        name="good", seed=7, seconds=1.25, judgements=(HELD,), effort=Effort(tasks=2, approvals=2, ticks=1), helped=True
    ),
    Result(
        name="bad",
        seed=8,
        seconds=10.0,
        judgements=(HELD, BROKE),
        kept=Path("/kept"),
        effort=Effort(tasks=1, approvals=2, ticks=1),
    ),
    Result(name="ugly", seed=9, seconds=0.5, error="not finished after 5 s", kept=Path("/kept2"), remote=True),
)


def test_a_result_without_a_single_judgement_is_no_success() -> None:
    assert [result.ok for result in RESULTS] == [True, False, False]
    assert not Result(name="empty", seed=1, seconds=0.0).ok


def test_the_table_shows_each_eval_what_failed_and_what_it_asked_of_the_operator() -> None:
    assert table(RESULTS) == [
        "✓ good                              1/1  held    1.2 s  2 done: 2 approvals, 1 ticks   seed 7",
        "✕ bad                               1/2  held   10.0 s  1 done: 2 approvals, 1 ticks   seed 8",
        "    approvals: 1: 2 consents\x1b[31m",
        "    kept: /kept (transcript.txt, the hosts' logs; OIKOS_HOME=/kept oikos sessions)",
        "✕ ugly                              0/0  held    0.5 s  none done                      seed 9",
        "    error: not finished after 5 s",
        "    kept: /kept2 (transcript.txt)",
        "1 of 3 evals passed",
        "3 tasks completed: 1.33 approvals a completed task, 1 operator ticks beyond the first approval "
        "(1 more where the eval is about help)",
    ]


def test_repeated_evals_get_a_pass_rate() -> None:
    assert table((RESULTS[0], RESULTS[0], RESULTS[2]))[-4:] == [
        "  good                             passed 2 of 2 (100%)",
        "  ugly                             passed 0 of 1 (0%)",
        "2 of 3 evals passed",
        "4 tasks completed: 1.00 approvals a completed task, 0 operator ticks beyond the first approval "
        "(2 more where the eval is about help)",
    ]


def test_nothing_completed_means_no_rate() -> None:
    assert table(RESULTS[2:])[-2:] == ["0 of 1 evals passed", "no task was completed"]


def test_a_bar_says_what_is_above_it_and_is_not_met_by_nothing() -> None:
    def above(of: Sequence[Result], most_approvals: float | None, most_ticks: int | None) -> list[str]:
        return beyond(total(of), most_approvals=most_approvals, most_ticks=most_ticks)

    assert above(RESULTS, None, None) == []
    assert above(RESULTS, 1.34, 1) == []
    assert above(RESULTS, 1.2, 0) == [
        "1.33 approvals a completed task, more than 1.2",
        "1 operator ticks beyond the first approval, more than 0",
    ]
    assert above(RESULTS[:1], 1.2, 0) == [], "help that an eval is about is none that was needed"
    assert above(RESULTS[2:], None, None) == []
    for bar in ((1.2, None), (None, 0)):
        assert above(RESULTS[2:], *bar) == ["no task was completed: there is nothing to measure"]


def test_json_holds_the_effort_every_judgement_and_where_it_was_kept(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", RESULTS[1:])
    assert orjson.loads((tmp_path / "r.json").read_bytes()) == {
        "passed": 0,
        "played": 2,
        "completed_tasks": 1,
        "approvals": 2,
        "approvals_per_completed_task": 2.0,
        "ticks_beyond_first_approval": 1,
        "ticks_where_help_is_played": 0,
        "pass_rates": {},
        "results": [
            {
                "name": "bad",
                "ok": False,
                "seed": 8,
                "seconds": 10.0,
                "error": "",
                "kept": "/kept",
                "completed_tasks": 1,
                "approvals": 2,
                "approvals_per_completed_task": 2.0,
                "ticks_beyond_first_approval": 1,
                "ticks_where_help_is_played": 0,
                "judgements": [
                    {"assertion": "completes", "ok": True, "saw": "done (done)"},
                    {"assertion": "approvals: 1", "ok": False, "saw": "2 consents\x1b[31m"},
                ],
            },
            {
                "name": "ugly",
                "ok": False,
                "seed": 9,
                "seconds": 0.5,
                "error": "not finished after 5 s",
                "kept": "/kept2",
                "completed_tasks": 0,
                "approvals": 0,
                "approvals_per_completed_task": None,
                "ticks_beyond_first_approval": 0,
                "ticks_where_help_is_played": 0,
                "judgements": [],
            },
        ],
    }


def test_json_holds_the_pass_rates_of_repeated_evals(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", (RESULTS[0], RESULTS[1], RESULTS[0], replace(RESULTS[0], error="lost")))
    assert orjson.loads((tmp_path / "r.json").read_bytes())["pass_rates"] == {"good": pytest.approx(2 / 3), "bad": 0.0}


def test_junit_is_xml_whatever_the_hosts_printed(tmp_path: Path) -> None:
    write_junit(tmp_path / "r.xml", RESULTS)
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert suite.attrib == {"name": "oikos eval", "tests": "3", "failures": "2", "time": "11.750"}
    assert {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")} == {
        "completed_tasks": "3",
        "approvals": "4",
        "approvals_per_completed_task": "1.3333333333333333",
        "ticks_beyond_first_approval": "1",
        "ticks_where_help_is_played": "1",
    }
    told = [(case.attrib, [(f.attrib, f.text) for f in case]) for case in suite.iter("testcase")]
    assert told == [
        ({"classname": "evals", "name": "good", "time": "1.250"}, []),
        (
            {"classname": "evals", "name": "bad", "time": "10.000"},
            [({"message": "seed 8"}, "approvals: 1: 2 consents\ufffd[31m\nkept: /kept")],
        ),
        (
            {"classname": "evals", "name": "ugly", "time": "0.500"},
            [({"message": "seed 9"}, "not finished after 5 s\nkept: /kept2")],
        ),
    ]
