"""The option reader under random tables and argument lists: it ends, loses no word, and fails closed."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from oikos.domain.verdict import Risk
from oikos.policy import options
from oikos.policy.spec import Rule, parse_options
from oikos.policy.words import HOLE, Word, WordKind

TOKENS = (
    "-a",
    "-[bcd]",
    "-o:out",
    "-i::text",
    "--all",
    "--out=out",
    "--color=?text",
    "-#",
    "--del!!",
    "-f!",
    "-xyz",
    "-n:int",
)
TABLE, _ = parse_options(" ".join(TOKENS), {}, "fuzz")
PIECES = st.sampled_from(
    ("-", "--", "-a", "-ab", "-abo", "-ofile", "-o", "--all", "--al", "--out", "--out=x", "--color", "--color=no", "-5", "--del",
     "--de", "-f", "-fz", "-q", "--nope", "--nope=1", "-xyz", "-n", "-n3", "file", "", "a=b", "é", "-é", "--=", "-=")
)  # fmt: skip
WORDS = st.builds(
    lambda text, kind: Word(HOLE + text if kind is WordKind.DYNAMIC else text, kind, splits=kind is WordKind.DYNAMIC),
    st.one_of(PIECES, st.text(max_size=6).filter(lambda text: HOLE not in text)),
    st.sampled_from((WordKind.LITERAL, WordKind.LITERAL, WordKind.LITERAL, WordKind.DYNAMIC)),
)
RULES = st.builds(
    lambda lenient, permute, single: Rule(
        name="fuzz", risk=Risk.READ_ONLY, why="", options=TABLE, lenient=lenient, permute=permute, single=single
    ),
    st.sampled_from(("", "*", "*=")), st.booleans(), st.booleans(),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(WORDS, max_size=12), RULES, st.sampled_from((None, 0, 1, 2)))
def test_every_word_is_an_option_a_value_an_argument_or_left_over(
    words: list[Word], rule: Rule, stop_after: int | None
) -> None:
    line = options.read(words, TABLE, rule, stop_after=stop_after)
    seen = [id(word) for word in (*line.args, *line.rest)]
    seen += [id(used.word) for used in line.used] + [id(used.value) for used in line.used if used.value is not None]
    assert {id(word) for word in words if word.text != "--"} <= set(seen)


@settings(max_examples=300)
@given(st.lists(WORDS.filter(lambda word: word.literal), max_size=8), RULES)
def test_a_destroying_option_is_seen_wherever_it_stands_before_the_dashes(words: list[Word], rule: Rule) -> None:
    # A value may swallow the word behind its option, so a flag comes first; without permutation arguments end options.
    before = [] if not rule.permute else [word for word in words if word.text.startswith("file")]
    line = options.read([*before, Word("-a"), Word("--del"), *words], TABLE, rule)
    assert any(used.option is not None and used.option.risk is Risk.DESTRUCTIVE for used in line.used)


@settings(max_examples=200)
@given(st.lists(WORDS, max_size=10), RULES)
def test_reading_twice_gives_the_same(words: list[Word], rule: Rule) -> None:
    assert options.read(list(words), TABLE, rule) == options.read(list(words), TABLE, rule)
