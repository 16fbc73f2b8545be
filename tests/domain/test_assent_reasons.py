"""What the operator is told about a message, and how the characters around the known scripts are read."""

from __future__ import annotations

import pytest
from tests.domain.test_assent import DATA, table, unescaped

from oikos.domain.assent import EXAMPLE, Answer, Pending, Reading, grammar, read
from oikos.domain.assent.text import Clauses, clauses, without_accents
from oikos.domain.assent.words import Kind

REASONS = [(unescaped(text), Reading(reading), reason) for text, reading, reason in table(DATA / "assent_reasons.tsv")]


@pytest.mark.parametrize(("text", "reading", "reason"), REASONS)
def test_the_operator_is_told_why_a_message_reads_as_it_does(text: str, reading: Reading, reason: str) -> None:
    answer = read(text, EXAMPLE)
    assert (answer.reading, answer.reason) == (reading, reason)


def test_what_waits_is_named_where_it_keeps_a_yes_from_being_an_assent() -> None:
    assert read("yes", Pending(destructive=True)) == Answer(
        reading=Reading.CLARIFY, reason="What waits is destructive: it needs its typed phrase."
    )
    assert read("yes", Pending(generation=3, question=True)) == Answer(
        reading=Reading.CLARIFY, reason="A plan and a question both wait: it does not say which it answers."
    )


def test_with_nothing_pending_a_doubt_is_a_comment_for_the_same_reason() -> None:
    assert read("maybe", Pending()) == Answer(reading=Reading.COMMENT, reason="It can mean yes or no.")


def test_every_machine_of_the_plan_that_a_message_names_is_named_back() -> None:
    pending = Pending(generation=3, targets=("web1", "web2", "nas"))
    assert read("yes, on web1 and web2", pending).reason.endswith("A plan is approved whole, not for web1, web2.")


def test_a_line_of_the_vocabulary_is_a_language_and_phrases_between_bars() -> None:
    assert grammar.phrases({Kind.YES: "en:yes | so: be it : now\n  de: ja"}) == (
        (Kind.YES, "yes"), (Kind.YES, "so: be it : now"), (Kind.YES, "ja"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ok\ufe00", ("ok", "\ufe00")),
        ("\ufe0fok", ("\ufe0f", "ok")),
        ("👍🏻", ("👍",)),
        ("👍🏿", ("👍",)),
        ("👍🏽\ufe0f", ("👍",)),
        ("👍€", ("👍", "€")),
        ("㐀㐀鿿鿿", ("㐀", "㐀", "鿿", "鿿")),
        ("가가힣힣", ("가", "가", "힣", "힣")),
        ("\ufa0e\ufa0f", ("\ufa0e", "\ufa0f")),
        ("𠀀𠀀𠀁x", ("𠀀", "𠀀", "𠀁", "x")),
    ],
)
def test_characters_at_the_edges_of_a_script_are_read_as_that_script(text: str, words: tuple[str, ...]) -> None:
    """A dress on nothing stays a word; the first and last characters of Han and Hangul stand alone too."""
    assert clauses(text) == Clauses(clauses=(words,))


@pytest.mark.parametrize(("phrase", "typed"), [("ḁ Ḁ", "a A"), ("≠", "≠"), ("अऀ", "अऀ")])
def test_a_keyboard_without_accents_keeps_what_is_no_accented_letter(phrase: str, typed: str) -> None:
    assert without_accents(phrase) == typed
