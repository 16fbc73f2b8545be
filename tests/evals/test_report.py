"""The three forms of a report: for people, for programs, for CI."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import orjson

from oikos.evals.assertions import Judgement
from oikos.evals.harness import Result
from oikos.evals.report import table, write_json, write_junit

HELD = Judgement(assertion="completes", ok=True, saw="done (done)")
BROKE = Judgement(assertion="approvals: 1", ok=False, saw="2 consents\x1b[31m")
RESULTS = (
    Result(name="good", seed=7, seconds=1.25, judgements=(HELD,), completed=2, consents=2, ticks=1),
    Result(name="bad", seed=8, seconds=10.0, judgements=(HELD, BROKE), home=Path("/kept"), completed=1, consents=2),
    Result(name="ugly", seed=9, seconds=0.5, error="not finished after 5 s", home=Path("/kept2")),
)


def test_a_result_without_a_single_judgement_is_no_success() -> None:
    assert [result.ok for result in RESULTS] == [True, False, False]
    assert not Result(name="empty", seed=1, seconds=0.0).ok


def test_the_table_shows_each_eval_what_failed_and_what_it_asked_of_the_operator() -> None:
    assert table(RESULTS) == [
        "✓ good                              1/1  held    1.2 s  seed 7",
        "✕ bad                               1/2  held   10.0 s  seed 8",
        "    approvals: 1: 2 consents\x1b[31m",
        "    kept: /kept (transcript.txt, the hosts' logs; OIKOS_HOME=… oikos sessions)",
        "✕ ugly                              0/0  held    0.5 s  seed 9",
        "    error: not finished after 5 s",
        "    kept: /kept2 (transcript.txt, the hosts' logs; OIKOS_HOME=… oikos sessions)",
        "1 of 3 evals passed · 1.33 approvals a completed task, 1 operator ticks beyond",
    ]


def test_repeated_evals_get_a_pass_rate() -> None:
    assert table((RESULTS[0], RESULTS[0], RESULTS[2]))[-3:] == [
        "  good                             passed 2 of 2 (100%)",
        "  ugly                             passed 0 of 1 (0%)",
        "2 of 3 evals passed · 1.00 approvals a completed task, 2 operator ticks beyond",
    ]


def test_nothing_completed_means_no_rate() -> None:
    assert table(RESULTS[2:])[-1] == "0 of 1 evals passed · no task was completed"


def test_json_holds_every_judgement(tmp_path: Path) -> None:
    write_json(tmp_path / "r.json", RESULTS[1:])
    assert orjson.loads((tmp_path / "r.json").read_bytes()) == [
        {
            "name": "bad",
            "ok": False,
            "seed": 8,
            "seconds": 10.0,
            "error": "",
            "completed": 1,
            "consents": 2,
            "ticks": 0,
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
            "completed": 0,
            "consents": 0,
            "ticks": 0,
            "judgements": [],
        },
    ]


def test_junit_is_xml_whatever_the_hosts_printed(tmp_path: Path) -> None:
    write_junit(tmp_path / "r.xml", RESULTS)
    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert suite.attrib == {"name": "oikos eval", "tests": "3", "failures": "2", "time": "11.750"}
    told = [(case.attrib, [(f.attrib, f.text) for f in case]) for case in suite]
    assert told == [
        ({"classname": "evals", "name": "good", "time": "1.250"}, []),
        (
            {"classname": "evals", "name": "bad", "time": "10.000"},
            [({"message": "seed 8"}, "approvals: 1: 2 consents\ufffd[31m")],
        ),
        ({"classname": "evals", "name": "ugly", "time": "0.500"}, [({"message": "seed 9"}, "not finished after 5 s")]),
    ]
