"""Every example in every rule file is a test, and every program has enough of them."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import minis
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import SPECS, Knowledge, load
from oikos.policy.spec import Program
from tests.policy.corpora import Row, corpora_folder

FILES = sorted(file.name for file in SPECS.glob("*.toml"))


def _programs(name: str) -> tuple[Program, ...]:
    return Knowledge([(SPECS / name, (SPECS / name).read_text("utf-8"))]).check()


def examples(program: Program) -> Iterator[tuple[str, Risk]]:
    """Examples with the program's name filled in.

    `{}` stands for every name of the section in the first example of each class, for the first name in the others,
    and where shell syntax costs a parser process.
    """
    for risk, texts in program.examples.items():
        for index, text in enumerate(texts):
            all_names = "{}" in text and index == 0 and not set(text) & set("|;&<>$'\"`(")
            for name in program.names if all_names else program.names[:1]:
                yield (text.replace("{}", name, 1), risk)


@pytest.mark.parametrize("name", FILES)
def test_every_example_gets_the_verdict_it_is_listed_under(classifier: Classifier, name: str) -> None:
    seen: set[str] = set()
    wrong = []
    for program in _programs(name):
        for text, risk in examples(program):
            if text in seen:
                continue
            seen.add(text)
            verdict = classifier.classify(text)
            if verdict.risk is not risk:
                wrong.append((text, risk.value, verdict.risk.value, verdict.reasons[0].rule if verdict.reasons else ""))
    assert wrong == []
    assert seen


@pytest.mark.parametrize("name", FILES)
def test_every_program_has_two_examples_of_two_kinds(name: str) -> None:
    lacking = [
        program.names[0] for program in _programs(name) if sum(len(texts) >= 2 for texts in program.examples.values()) < 2
        and sum(len(texts) for texts in program.examples.values()) < 4
    ]  # fmt: skip
    assert lacking == []


@pytest.mark.parametrize("name", FILES)
def test_every_rule_above_a_look_says_why_in_a_sentence(name: str) -> None:
    for program in _programs(name):
        rules = [
            program.base,
            *(rule for rules in program.subs.values() for rule in rules),
            *(rule for _, rule in program.modes),
        ]
        for rule in rules:
            assert rule.risk is Risk.READ_ONLY or rule.why.endswith("."), rule.name
            assert not rule.handler or rule.handler in minis.HANDLERS, rule.name


def test_about_six_hundred_programs_are_known(knowledge: Knowledge) -> None:
    assert len(knowledge) >= 600


def test_no_example_is_a_row_of_the_corpora(knowledge: Knowledge, corpora: list[Row]) -> None:
    if corpora_folder() is None:
        pytest.skip("the shared corpora are not beside this checkout")
    rows = {row.command for row in corpora}
    assert sorted({text for program in knowledge.check() for text, _ in examples(program)} & rows) == []


def test_no_two_sections_describe_the_same_program() -> None:
    names = [name for file in FILES for program in _programs(file) for name in program.names]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_an_option_no_rule_lists_is_never_a_look(classifier: Classifier, knowledge: Knowledge) -> None:
    passed = []
    for program in knowledge.check():
        for text in program.examples[Risk.READ_ONLY][:1]:
            plain = text.replace("{}", program.names[0], 1)
            if (
                plain.split()[0] != program.names[0]
                or plain.endswith(("--help", "--version"))
                or program.base.wraps is not None
            ):
                continue
            if not program.base.permute:  # what follows the first argument is not the program's own option
                continue
            if any(char in plain for char in "|;&<>") or program.names[0] in (
                "date",
                "kill",
                "test",
                "echo",
                "pvesh",
            ):  # a GET takes any parameter
                continue
            verdict = classifier.classify(plain + " --no-such-option-xyz")
            if verdict.risk is Risk.READ_ONLY:
                passed.append(plain)
    assert passed == []


def test_an_operators_file_is_checked_with_file_and_line(tmp_path: Path) -> None:
    extra = tmp_path / "mine.toml"
    extra.write_text('[ours]\nrisk = "read"\nargs = ""\n\n[broken]\nrisk = "sometimes"\n')
    with pytest.raises(ValueError) as caught:
        load([extra])
    assert str(caught.value) == f"{extra}:5: broken: risk is 'sometimes'; expected one of read, change, destroy"


def test_an_operators_rule_is_in_force(tmp_path: Path) -> None:
    from oikos.policy.parser import ShfmtParser

    extra = tmp_path / "mine.toml"
    extra.write_text('[backup-report]\nrisk = "read"\nargs = ""\noptions = "--short"\n')
    mine = Classifier(ShfmtParser(), load([extra]))
    assert mine.classify("backup-report --short").risk is Risk.READ_ONLY
    assert mine.classify("backup-report --long").has(EffectKind.UNCLASSIFIED)
    assert mine.classify("ls").knowledge != Classifier(ShfmtParser(), load()).classify("ls").knowledge


def test_a_missing_extra_file_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing\.toml: cannot be read"):
        load([tmp_path / "nothing.toml"])


def test_asking_for_one_program_compiles_one_section() -> None:
    knowledge = load()
    assert knowledge.program("uptime") is not None
    assert set(knowledge._programs) == {"uptime"}
