"""Known symptoms and their recovery class: a row for each line worth recognising (SPEC R1.6, PROXMOX §1.4, §3.1)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from oikos.app.hints import CLASSES, Hints

HINTS = Hints()


class Symptom(NamedTuple):
    """What a command ended with and printed, and the hint that is given; `-` for none."""

    exit_code: int
    hint: str
    recovery: str
    output: str


def read() -> list[Symptom]:
    _, *lines = (Path(__file__).with_name("symptoms.tsv")).read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines)
    return [Symptom(int(code), hint, recovery, text.replace("\\n", "\n")) for code, hint, recovery, text in rows]


SYMPTOMS = read()


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=[f"{s.exit_code}-{s.output[:40]}" for s in SYMPTOMS])
@pytest.mark.parametrize("around", ["{}", "Reading package lists...\n{}\nand more\n"], ids=["alone", "among others"])
def test_a_symptom_is_told_with_its_recovery_class(symptom: Symptom, around: str) -> None:
    found = HINTS.find(around.format(symptom.output), failed=symptom.exit_code != 0)
    told = ("-", "-") if found is None else (found.id, found.recovery)
    assert told == (symptom.hint, symptom.recovery)


def test_every_hint_has_its_row_and_every_class_its_hint() -> None:
    assert {symptom.hint for symptom in SYMPTOMS} - {"-"} == {hint.id for hint in HINTS.table}
    assert {hint.recovery for hint in HINTS.table} == set(CLASSES)


def test_a_hint_is_one_short_line_with_something_to_look_for() -> None:
    for hint in HINTS.table:
        assert hint.all or hint.any, hint.id
        assert 20 < len(hint.text) <= 180, hint.id
        assert hint.text.endswith("."), hint.id
