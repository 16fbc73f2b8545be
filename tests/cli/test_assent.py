"""`oikos assent --jsonl`: every line is answered, ids come back as they were, a malformed line loses no other."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Cli


def answers(cli: Cli, *lines: str, code: int) -> list[dict[str, object]]:
    ended = cli("assent", "--jsonl", stdin="\n".join(lines))
    assert (ended.code, ended.err) == (code, "")
    return [json.loads(line) for line in ended.out.splitlines()]


NEST = "[" * 600 + "]" * 600


@pytest.mark.parametrize(
    "known",
    ["1", "-1.5", '"a"', '"да"', "null", "true", "[1,[2]]", '{"a":{"b":[]}}', "9" * 40, '"\\ud800"', NEST],
)
def test_an_id_of_any_type_comes_back(cli: Cli, known: str) -> None:
    """Longer integers than 64 bits, half a surrogate pair and deep nests too."""
    (answer,) = answers(cli, f'{{"id":{known},"text":"yes"}}', code=0)
    assert answer == {"id": json.loads(known), "verdict": "assent", "reason": "It assents."}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("nonsense", "line 2: Expecting value, column 1"),
        ('{"id":1,"text":"yes"', "line 2: Expecting ',' delimiter, column 21"),
        ("[]", "line 2: the line is no JSON object"),
        ('{"id":NaN,"text":"yes"}', "line 2: NaN is no number that JSON can write back"),
        ('{"id":1e999,"text":"yes"}', "line 2: 1e999 is no number that JSON can write back"),
        ("[" * 100_000, "line 2: maximum recursion depth exceeded"),
        (f'{{"id":{"9" * 5_000},"text":"yes"}}', "line 2: Exceeds the limit"),
    ],
)
def test_a_malformed_line_has_one_error_and_the_others_their_verdicts(cli: Cli, line: str, error: str) -> None:
    first, wrong, last = answers(cli, '{"id":1,"text":"no"}', line, '{"id":3,"text":"yes"}', code=1)
    assert (first["id"], first["verdict"]) == (1, "not_assent")
    assert (last["id"], last["verdict"]) == (3, "assent")
    assert wrong["id"] is None
    assert str(wrong["error"]).startswith(error)


def test_a_row_without_text_is_named_by_its_id(cli: Cli) -> None:
    rows = answers(cli, '{"id":"a"}', '{"id":[2],"text":7}', code=1)
    assert rows == [
        {"id": "a", "error": 'line 1: "text" must be a string'},
        {"id": [2], "error": 'line 2: "text" must be a string'},
    ]


def test_what_editors_put_around_lines_changes_nothing(cli: Cli) -> None:
    """A byte order mark, carriage returns, empty lines, no line end at the last one."""
    rows = answers(cli, '\ufeff{"id":1,"text":"да"}\r', "", '{"id":2,"text":"no"}', code=0)
    assert [(row["id"], row["verdict"]) for row in rows] == [(1, "assent"), (2, "not_assent")]


def test_a_text_with_half_a_surrogate_pair_is_read(cli: Cli) -> None:
    (answer,) = answers(cli, '{"id":1,"text":"\\ud800yes"}', code=0)
    assert answer["verdict"] == "clarify"
