"""The parser port: the short cut through plain words builds the tree shfmt builds, and failures are values."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import Knowledge
from oikos.policy.parser import MAX_TEXT_BYTES, ShfmtParser, find_shfmt, plain_words

WORDS = st.text("abAB01_./:=,@%+-", min_size=1, max_size=8)


def essence(node: Any) -> Any:
    """The keys of a tree that the walk reads."""
    if isinstance(node, list):
        return [essence(one) for one in node]
    if isinstance(node, dict):
        kept = {
            key: essence(value)
            for key, value in node.items()
            if key in ("Type", "Stmts", "Cmd", "Args", "Parts", "Value")
        }
        if "Pos" in node and "Parts" in node:
            kept["at"] = (node["Pos"]["Offset"], node["End"]["Offset"])
        return kept
    return node


def shfmt_tree(text: str) -> Any:
    """shfmt's own tree: a comment behind the text keeps the short cut out."""
    return ShfmtParser().parse(text + " #", "bash").tree


@settings(max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=5).map(" ".join))
def test_plain_words_give_the_tree_shfmt_gives(text: str) -> None:
    plain = plain_words(text)
    if plain is not None:
        assert essence(plain) == essence(shfmt_tree(text))


def test_reserved_words_and_assignments_are_no_plain_commands() -> None:
    for text in (
        "if x",
        "time ls",
        "A=b ls",
        "export A=b",
        "function f",
        "case x",
        "let x=1",
        "! ls",
        "a\nb",
        "ls  'x'",
        "",
    ):
        assert plain_words(text) is None, text


def test_text_that_does_not_parse_is_a_value_with_a_reason() -> None:
    parsed = ShfmtParser().parse("if then (", "bash")
    assert parsed.tree is None
    assert parsed.error
    assert parsed.parser.startswith("shfmt ")


def test_the_posix_dialect_refuses_bash_syntax() -> None:
    assert ShfmtParser().parse("cat <(ls)", "posix").tree is None
    assert ShfmtParser().parse("cat <(ls)", "bash").tree is not None


def test_without_shfmt_only_plain_words_are_understood(knowledge: Knowledge) -> None:
    bare = Classifier(ShfmtParser(""), knowledge)
    assert bare.classify("ls -la /srv").risk is Risk.READ_ONLY
    quoted = bare.classify("ls 'a b'")
    assert quoted.risk is Risk.CONFIG_MUTATION
    assert quoted.has(EffectKind.UNCLASSIFIED)
    assert bare.classify("echo 'x'; rm -rf /srv/data").risk is Risk.DESTRUCTIVE


def test_a_text_above_the_limit_is_not_parsed_but_still_scanned(classifier: Classifier) -> None:
    long = "echo " + "x" * MAX_TEXT_BYTES
    assert classifier.classify(long).reasons[0].rule == "limit.bytes"
    assert classifier.classify("rm -rf /srv; " + long).risk is Risk.DESTRUCTIVE


def test_shfmt_is_found() -> None:
    assert find_shfmt()
