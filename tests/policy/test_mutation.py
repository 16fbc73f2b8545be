"""Mutations of the rules: what a rule refuses must be missed by some example or row when the rule no longer says so."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from oikos.domain.verdict import Risk
from oikos.policy import danger
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import SPECS, Knowledge
from oikos.policy.parser import ShfmtParser
from tests.policy import refused
from tests.policy.corpora import Row, read_rows
from tests.policy.test_specs import examples

HERE = Path(__file__).parent
_HEADER = re.compile(r'^\["([^"]+)"\]$', re.MULTILINE)
_MARKED = re.compile(r"(?<=[\s\"])(-[-\w#\[\]]+[=:?\w|]*)(!{1,2})(?=[\s\"])")
_ROW = re.compile(r'\["(change|destroy)", "')
QUICK = 60
"""Mutants of the quick run, drawn by a fixed seed; the slow one takes them all."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One section of a rule file with one refusal taken out."""

    names: tuple[str, ...]
    what: str
    text: str


@cache
def mutants() -> tuple[Mutant, ...]:
    """Every refusal of every section, taken out one at a time."""
    found: list[Mutant] = []
    for file in sorted(SPECS.glob("*.toml")):
        whole = file.read_text("utf-8")
        heads = list(_HEADER.finditer(whole))
        for head, end in zip(heads, [*(one.start() for one in heads[1:]), len(whole)], strict=True):
            section, names = whole[head.start() : end], tuple(head.group(1).split())
            for mark in _MARKED.finditer(section):
                if re.search(r"[=:?](?:out|exec)!$", mark.group()):
                    continue  # its value alone says that it writes or runs: the same class without the mark
                text = section[: mark.start(2)] + section[mark.end(2) :]
                found.append(Mutant(names, f"{names[0]}: {mark.group()}", text))
            for row in _ROW.finditer(section):
                text = section[: row.start(1)] + "read" + section[row.end(1) :]
                found.append(Mutant(names, f"{names[0]}: {section[row.start() : row.start() + 60]}", text))
    return tuple(found)


@cache
def _files() -> tuple[tuple[Path, str], ...]:
    return tuple((file, file.read_text("utf-8")) for file in sorted(SPECS.glob("*.toml")))


@pytest.fixture(scope="module")
def witnesses(knowledge: Knowledge, corpora: list[Row]) -> dict[str, list[str]]:
    """Texts that could notice a change, by the words they hold."""
    texts = [text for program in knowledge.check() for text, _ in examples(program)]
    texts += [row.command for row in (*corpora, *read_rows(HERE / "heldout" / "dangerous.tsv"))]
    texts += [line.split("\t", 1)[1] for line in (HERE / "kinds.tsv").read_text("utf-8").splitlines()[1:]]
    by_word: dict[str, list[str]] = defaultdict(list)
    for text in dict.fromkeys(texts):
        for word in set(re.split(r"[\s;|&()'\"]+", text)):
            by_word[word].append(text)
    return by_word


@cache
def _table() -> dict[str, list[tuple[str, Risk]]]:
    """The committed refusals, by program."""
    found: dict[str, list[tuple[str, Risk]]] = defaultdict(list)
    for _, command, risk in refused.read():
        found[command.split()[0]].append((command, risk))
    return found


def _survivors(chosen: Sequence[Mutant], classifier: Classifier, knowledge: Knowledge) -> list[str]:
    """Mutants that call a refused command less than it was, while every row of the table still has its class.

    A mutant under which no refused command sinks changed nothing: unknown options are findings without a refusal.
    """
    alive = []
    for mutant in chosen:
        name = mutant.names[0]
        changed = Classifier(ShfmtParser(), Knowledge([*_files(), (Path("mutant.toml"), mutant.text)]))
        if any(changed.classify(command).risk is not risk for command, risk in _table()[name]):
            continue
        program = knowledge.program(name)
        assert program is not None
        tries = {command for _, commands, _ in refused.refusals(program) for command in commands}
        sunk = (one for one in tries if changed.classify(one).risk.rank < classifier.classify(one).risk.rank)
        if lower := next(sunk, None):
            alive.append(f"{mutant.what}: {lower}")
    return alive


def test_every_refusal_is_answered_as_the_table_says(classifier: Classifier) -> None:
    """Deleting a refused option, or weakening it, changes a row."""
    rows = refused.read()
    assert len(rows) > 8000
    wrong = [(command, risk) for _, command, risk in rows if classifier.classify(command).risk is not risk]
    assert wrong == []


def test_every_refusal_has_its_row(classifier: Classifier, knowledge: Knowledge) -> None:
    """A new refusal needs its row, and a row whose refusal is gone is missed: `python -m tests.policy.refused`."""
    assert refused.rows(classifier, knowledge) == refused.read()


def test_a_sample_of_refusals_taken_out_is_noticed(classifier: Classifier, knowledge: Knowledge) -> None:
    assert _survivors(random.Random(7).sample(mutants(), QUICK), classifier, knowledge) == []


@pytest.mark.slow
def test_every_refusal_taken_out_is_noticed(classifier: Classifier, knowledge: Knowledge) -> None:
    assert _survivors(mutants(), classifier, knowledge) == []


@pytest.mark.parametrize("level", [Risk.CONFIG_MUTATION, Risk.DESTRUCTIVE])
def test_a_fold_that_drops_the_worst_finding_is_noticed(
    classifier: Classifier, witnesses: dict[str, list[str]], level: Risk
) -> None:
    """With every finding of a level dropped, rows of that level must change: no other stage stands in for the fold."""
    texts = [text for name in ("rm", "touch", "systemctl", "docker", "sort") for text in witnesses.get(name, ())]
    held = [text for text in texts if classifier.classify(text).risk is level]
    lowered = [
        text
        for text in held
        if max(
            (reason.risk for reason in classifier.classify(text).reasons if reason.risk is not level),
            key=lambda risk: risk.rank, default=Risk.READ_ONLY,
        ).rank < level.rank
    ]  # fmt: skip
    assert held
    assert lowered == held


def test_every_phrase_of_the_second_pass_is_a_phrase_it_finds() -> None:
    lines = [" ".join(phrase) for phrase in danger._PHRASES]
    texts = [line.replace("-*", "-x").replace("*", "x") for line in lines]
    missed = [text for text in texts if not danger.phrase_at(text.split(), 0)]
    assert missed == []
