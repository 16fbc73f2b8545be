"""What a runbook's parts become for a session: commands and steps of a plan, checks, sentences of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from oikos.adapters.model.book import Ask, PlanCheck, Stage, Symptom
from oikos.adapters.model.learned import Learned, Row
from oikos.adapters.model.template import HOLE, Hole, command, fill, fill_pattern

EVIDENCE_CHARS: Final = 1500


def wanted(ask: Ask, said: str, learned: Learned, *, within: bool = False) -> str:
    """The value for a slot in what the operator said; empty when there is none of its form."""
    try:
        form = fill_pattern(ask.form, learned.slots)
    except Hole:
        return ""
    found = re.search(form, said) if within else re.fullmatch(form, said.strip())
    return found[0].rstrip(".,;:!?") if found and (not within or ask.form != r".+") else ""


def line_of(template: tuple[str, ...], learned: Learned) -> str:
    """A command with its holes filled; empty when it cannot be."""
    try:
        return command(template, learned.slots)
    except Hole:
        return ""


def step_of(stage: Stage, learned: Learned) -> dict[str, object]:
    """A stage as a step of a plan: the commands that are known already."""
    commands = [
        line
        for act in stage.acts
        if all(name in learned.slots for name in act.needs)
        and not any(name in learned.slots for name in act.unless)
        and (line := line_of(act.run, learned))
    ]
    try:
        title = fill(stage.title, learned.slots)
    except Hole:
        title = HOLE.sub("…", stage.title)
    return {"title": title[:200], "target": learned.slots["host"], "commands": commands}


def check_of(check: PlanCheck, learned: Learned) -> dict[str, object] | None:
    line = line_of(check.run, learned)
    if not line:
        return None
    made: dict[str, object] = {"target": learned.slots["host"], "command": line, "expect_exit": check.exit}
    if check.text:
        try:
            made["expect_text"] = fill(check.text, learned.slots)
        except Hole:
            return None
    return made


def matching(symptoms: Sequence[Symptom], evidence: str, learned: Learned) -> list[tuple[Symptom, Row]]:
    """The symptoms that show, the one whose text comes last first."""
    found = []
    for symptom in symptoms:
        try:
            pattern = fill_pattern(symptom.text, learned.slots)
        except Hole:
            continue
        matches = list(re.finditer(pattern, evidence, re.MULTILINE))
        if matches:
            groups = {name: value for name, value in matches[-1].groupdict().items() if value}
            found.append((matches[-1].end(), symptom, groups))
    found.sort(key=lambda entry: -entry[0])
    return [(symptom, groups) for _, symptom, groups in found]


def sentence(say: str, slots: Mapping[str, str], origin: Mapping[str, str]) -> list[str]:
    if not any(origin.get(found[1]) for found in HOLE.finditer(say)):
        return []
    try:
        return [fill(say, slots)]
    except Hole:
        return []


def rows_of(value: object) -> list[Row]:
    rows = value if isinstance(value, list) else []
    return [
        {key: _word(item) for key, item in row.items() if item is not None} for row in rows if isinstance(row, Mapping)
    ]


def _word(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def brief(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= EVIDENCE_CHARS else text[: EVIDENCE_CHARS // 2] + " … " + text[-EVIDENCE_CHARS // 2 :]
