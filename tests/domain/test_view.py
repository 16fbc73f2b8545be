"""Output as text: nothing acts, nothing hides, and what is left out is counted exactly."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.domain.view import View, for_model, for_people, text_for_people

CASES = tomllib.loads(Path(__file__).with_name("view.toml").read_text(encoding="utf-8"))["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_table(case: dict[str, str]) -> None:
    raw = case["raw"].encode()
    people = case.get("people", case["model"])
    assert for_model(raw) == View(text=case["model"], whole=True)
    assert for_people(raw, colour=False) == people
    assert for_people(raw, colour=True) == case.get("colour", people)


def test_bytes_that_are_no_text_are_replaced_in_the_view_only() -> None:
    assert for_model(b"a\xff\xfeb").text == "a\ufffd\ufffdb"


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "replace")))
def test_no_output_can_act_on_a_terminal(raw: bytes) -> None:
    shown = re.sub(r"\x1b\[[0-9;:]*m", "", for_people(raw, colour=True))
    for text in (shown, for_people(raw, colour=False), for_model(raw).text, text_for_people(raw.decode("latin-1"))):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text)


def test_a_long_output_keeps_both_ends_and_counts_the_rest() -> None:
    lines = [f"line {n:04}\n" for n in range(1, 1001)]
    view = for_model("".join(lines).encode(), head_chars=100, tail_chars=100)
    assert view == View(
        text="".join(lines[:10])
        + "[… 9800 characters left out, 980 lines from line 11 on; use read_output to see them …]\n"
        + "".join(lines[-10:]),
        whole=False,
    )


def test_one_endless_line_is_cut_too() -> None:
    view = for_model(b"x" * 1000, head_chars=10, tail_chars=10)
    assert view.text == (
        "xxxxxxxxxx\n[… 980 characters left out, 0 lines from line 1 on; use read_output to see them …]\nxxxxxxxxxx"
    )


def test_bytes_that_were_not_kept_are_said() -> None:
    assert for_model(b"tail\n", total_bytes=105) == View(text="tail\n[100 of 105 bytes were not kept]\n", whole=False)
    cut = for_model(b"x" * 1000, total_bytes=10_000, head_chars=10, tail_chars=10)
    assert "; 9000 of 10000 bytes were not kept" in cut.text
