from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.domain.assent import EXAMPLE, Answer, Pending, Reading, explain, grammar, is_halt, jsonl, read
from oikos.domain.assent.text import CUT, MAX_CHARS, QUOTED, Clauses, as_seen, clauses, without_accents
from oikos.domain.assent.words import WORDS, Kind

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "security" / "bad_inputs.tsv"


def unescaped(text: str) -> str:
    code = re.compile(r"\\u([0-9a-f]{4})|\\U([0-9a-fA-F]{8})|\\x([0-9a-f]{2})")
    return code.sub(lambda found: chr(int(found[1] or found[2] or found[3], 16)), text).replace("\\n", "\n")


def table(path: Path) -> list[list[str]]:
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")]
    return [line.split("\t") for line in lines[1:]]


ROWS = [(unescaped(text), Reading(reading)) for text, reading in table(DATA / "assent.tsv")]
WORD_ROWS = [(text, Reading(reading)) for text, reading in table(DATA / "assent_words.tsv")]
ASSENTS = [text for text, reading in ROWS if reading is Reading.ASSENT]
OTHERS = [text for text, reading in ROWS if reading is not Reading.ASSENT]


@pytest.mark.parametrize(("text", "reading"), ROWS)
def test_a_message_reads_as_the_table_says(text: str, reading: Reading) -> None:
    assert read(text, EXAMPLE).reading is reading


def test_every_word_reads_as_its_row_says() -> None:
    wrong = [(text, reading, read(text, EXAMPLE).reading) for text, reading in WORD_ROWS]
    assert [row for row in wrong if row[1] is not row[2]] == []


@pytest.mark.skipif(not SHARED.exists(), reason="the hand-over table is not beside the checkout")
def test_the_verdict_is_exact_on_every_approval_row_of_the_hand_over_table() -> None:
    rows = [(row[0], unescaped(row[2]), row[4]) for row in table(SHARED) if row[1] == "approval"]
    assert len(rows) >= 75
    assert [row for row in rows if read(row[1], EXAMPLE).verdict != row[2]] == []


@pytest.mark.skipif(not SHARED.exists(), reason="the hand-over table is not beside the checkout")
def test_no_command_injection_or_payload_of_the_hand_over_table_assents() -> None:
    rows = [unescaped(row[2]) for row in table(SHARED) if not row[1].startswith("approval")]
    assert [text for text in rows if read(text, EXAMPLE).reading is Reading.ASSENT] == []


# ---- closed ----------------------------------------------------------------------------------------------------------


def test_each_entry_of_the_vocabulary_is_needed() -> None:
    entries = grammar.phrases(WORDS)
    full = grammar.build(entries)
    forms = [frozenset(grammar.build((entry,))) for entry in entries]
    sharing = defaultdict(list)
    for at, keys in enumerate(forms):
        for key in keys:
            sharing[key].append(at)
    idle = []
    for at, (kind, phrase) in enumerate(entries):
        others = sorted({other for key in forms[at] for other in sharing[key] if other != at})
        left = grammar.build(tuple(entries[other] for other in others))
        less = {key: kept for key, kept in full.items() if key not in forms[at]}
        less |= {key: left[key] for key in forms[at] if key in left}
        rows = [row for row in WORD_ROWS if phrase.replace("#", "3") in row[0]]
        if all(grammar.read_with(less, text, EXAMPLE).reading is reading for text, reading in rows):
            idle.append((kind, phrase))
    assert idle == []


@given(st.sampled_from(ASSENTS), st.text(alphabet="qxzwvjkq", min_size=3, max_size=9), st.integers(0, 9))
def test_an_unknown_word_anywhere_in_an_assent_makes_it_none(text: str, word: str, place: int) -> None:
    words = text.split(" ")
    words.insert(min(place, len(words)), word)
    assert read(" ".join(words), EXAMPLE).reading is not Reading.ASSENT


@given(st.text())
def test_any_text_at_all_gets_an_answer_and_only_known_words_assent(text: str) -> None:
    answer = read(text, EXAMPLE)
    known = [grammar.items(grammar.lexicon(), clause) for clause in clauses(text).clauses]
    unknown = any(item.kind is None for clause in known for item in clause)
    assert answer.reason.endswith(".")
    assert not (unknown and answer.reading is Reading.ASSENT)


Mutation = Callable[[random.Random, str], str]

HIDDEN = (
    "\u200b\u200c\u200d\u2060\u00ad\u202e\u202d\u2066\u200e\u200f\ufeff\u034f\u115f\u3164\U000e0064\x00\x1b\x7f\ue000"
)
LOOK_ALIKES = {"a": "а", "e": "е", "o": "о", "p": "р", "c": "с", "y": "у", "x": "х", "s": "ѕ", "i": "і", "k": "к"}
SPOILERS = (
    "{} but not step 2", "{} if it is safe", "not {}", "{}?", '"{}"', "> {}", "```{}```", "don't {}", "{} later",
    "{} tomorrow", "{}, only on web2", "{} plan 2", "{} except the last one", "{} maybe", "{}, I guess", "never {}",
    "{}...", "no. {}", "what if I say {}", "they said {} to it", "nicht {}", "{} wenn es geht", "{} pero no ahora",
    "{} mais pas encore", "не {}", "{} потом", "{} 但是", "{} あとで", "stop, {}", "{} rm -rf /", "{} and reboot web2",
    "{} 👎", "always {}",
)  # fmt: skip


def hide(chance: random.Random, text: str) -> str:
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(HIDDEN) + text[at:]


def spoil(chance: random.Random, text: str) -> str:
    return chance.choice(SPOILERS).format(text.strip())


def swap_a_look_alike(chance: random.Random, text: str) -> str:
    places = [at for at, char in enumerate(text.casefold()) if char in LOOK_ALIKES]
    if not places:
        return hide(chance, text)
    at = chance.choice(places)
    return text[:at] + LOOK_ALIKES[text[at].casefold()] + text[at + 1 :]


def add_a_word(chance: random.Random, text: str) -> str:
    word = "".join(chance.choice("qxzwvkj") for _ in range(chance.randint(3, 8)))
    words = text.split(" ")
    words.insert(chance.randint(0, len(words)), word)
    return " ".join(words)


def redress(chance: random.Random, text: str) -> str:
    """Another dress for the same words: case, blanks and marks that say nothing, polite words around them."""
    dresses: tuple[Callable[[str], str], ...] = (
        str.upper, str.lower, str.title, lambda t: f" {t}  ", lambda t: f"{t}!", lambda t: f"{t}.",
        lambda t: f"please {t}", lambda t: f"{t} please", lambda t: f"{t} now", lambda t: f"{t}\n",
        lambda t: t.replace(" ", "  "),
    )  # fmt: skip
    return chance.choice(dresses)(text)


def test_twenty_thousand_mutated_phrases_give_no_false_assent() -> None:
    chance = random.Random(37)
    spoiling: tuple[Mutation, ...] = (hide, spoil, swap_a_look_alike, add_a_word)
    wrong: set[str] = set()
    for _ in range(10_000):
        spoiled = chance.choice(spoiling)(chance, redress(chance, chance.choice(ASSENTS)))
        still = redress(chance, redress(chance, chance.choice(OTHERS)))
        wrong |= {text for text in (spoiled, still) if read(text, EXAMPLE).reading is Reading.ASSENT}
    assert wrong == set()


def test_an_assent_in_another_dress_is_still_one() -> None:
    chance = random.Random(73)
    dressed = [redress(chance, text) for text in ASSENTS if "\n" not in text]
    assert [text for text in dressed if read(text, EXAMPLE).reading is not Reading.ASSENT] == []


def test_a_long_message_is_never_an_assent_and_still_a_halt() -> None:
    assert read("yes " * MAX_CHARS, EXAMPLE).reading is Reading.CLARIFY
    assert read("yes" + " " * MAX_CHARS, EXAMPLE).reading is Reading.CLARIFY
    assert read("\ufdfa" * (MAX_CHARS - 1), EXAMPLE).reading is Reading.COMMENT
    assert read("stop, " + "x" * MAX_CHARS, EXAMPLE).reading is Reading.HALT


@pytest.mark.parametrize(
    "unit",
    [
        "\ufdfa",
        "'a",
        "> \n",
        "yes ",
        "好",
        "`",
        "\"'",
        "a-",
        "#1",
        "\u0301",
        "дa",
        "дa ",
        "νa ",
        "yeees ",
        "abcdefgh ",
        "~a",
        "~a ",
        "~~ ",
        "\x1b[1m",
    ],
)
def test_hostile_text_is_read_in_bounded_time(unit: str) -> None:
    read("yes", EXAMPLE)
    before_s = time.process_time()
    read(unit * 1_000_000, EXAMPLE)
    assert time.process_time() - before_s < 1.0


# ---- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Clauses(clauses=())),
        ("Yes, GO  ahead!\tnow", Clauses(clauses=(("yes",), ("go", "ahead"), ("now",)))),
        ("ok?", Clauses(clauses=(("ok",),), asked=True)),
        ("¿ok", Clauses(clauses=(("ok",),), asked=True)),
        ("ok, ", Clauses(clauses=(("ok",),), trails=True)),
        ("ok:", Clauses(clauses=(("ok",),), trails=True, label=True)),
        ("ok: go: x", Clauses(clauses=(("ok",), ("go",), ("x",)), label=True)),
        (": ok, go: x", Clauses(clauses=(("ok",), ("go",), ("x",)))),
        ("ok..", Clauses(clauses=(("ok",),), trails=True)),
        ("好。。", Clauses(clauses=(("好",),), trails=True)),
        ("ok\r\ngo", Clauses(clauses=(("ok",), ("go",)))),
        ("ok\rgo", Clauses(clauses=(("ok", "\r", "go"),))),
        ("ok\u2028go", Clauses(clauses=(("ok", "\u2028", "go"),))),
        ("İptal IŞIK", Clauses(clauses=(("iptal", "işik"),))),
        ("vas-y - ok -", Clauses(clauses=(("vas", "y"), ("ok",)))),
        ("los geht’s, d‘accord", Clauses(clauses=(("los", "geht's"), ("d'accord",)))),
        ("'go' ahead", Clauses(clauses=((QUOTED, "ahead"),))),
        ("go ‘ahead now’ ok", Clauses(clauses=(("go", QUOTED, "ok"),))),
        ("go 'it\"s d'ok' ok", Clauses(clauses=(("go", QUOTED, "ok"),))),
        ('go "ahead isn\'t" it', Clauses(clauses=(("go", QUOTED, "it"),))),
        ("go „ahead“ »now« 「行」 `x` ok", Clauses(clauses=(("go", QUOTED, QUOTED, QUOTED, QUOTED, "ok"),))),
        ('ok "go\nahead', Clauses(clauses=(("ok", QUOTED), ("ahead",)))),
        ("> go\n  > go\nok", Clauses(clauses=((QUOTED,), (QUOTED,), ("ok",)))),
        ("go ```a\n\nb``` ok ~~~c", Clauses(clauses=(("go", QUOTED, "ok", QUOTED),))),
        ("ok ~~go~~ ~ahead\nnow~ x", Clauses(clauses=(("ok", QUOTED, QUOTED, "x"),))),
        ("ok ~~go ahead\nnow", Clauses(clauses=(("ok", QUOTED), ("now",)))),
        ("~~ go ~~ x~~y~z ~~ ok", Clauses(clauses=((QUOTED, "x", QUOTED, "z", QUOTED),))),
        ("ok ~~ ", Clauses(clauses=(("ok",),))),
        ("ok~ go~~ x~~", Clauses(clauses=(("ok",), ("go",), ("x",)))),
        ("~10 s, ok ~go ~", Clauses(clauses=(("10", "s"), ("ok",), ("go",)))),
        ("plan #3 #x plan#4", Clauses(clauses=(("plan", "3", "#", "x", "plan", "4"),))),
        ("+1 ok+1 + 1", Clauses(clauses=(("+1", "ok", "+1", "+", "1"),))),
        ("计划3 하지 マデ々x", Clauses(clauses=(("计", "划", "3", "하", "지", "マ", "デ", "々", "x"),))),
        ("ναι; ok; go", Clauses(clauses=(("ναι",), ("ok",), ("go",)), asked=True)),
        ("👍🏽 ✔️ ok\ufe0f", Clauses(clauses=(("👍", "✔", "ok", "\ufe0f"),))),
        ("y\u200bes a_b q\u0336", Clauses(clauses=(("y", "\u200b", "es", "a_b", "q\u0336"),))),
        ("x" * MAX_CHARS, Clauses(clauses=(("x" * MAX_CHARS,),))),
        ("x" * (MAX_CHARS + 1), Clauses(clauses=(("x" * MAX_CHARS, CUT),))),
    ],
)
def test_a_message_becomes_clauses_of_words(text: str, expected: Clauses) -> None:
    assert clauses(text) == expected


def test_as_it_looks_nothing_is_hidden_and_letters_are_latin() -> None:
    seen = as_seen("\u0443\u200be\u0336s\ufe0f\u2028\u3164\x00\u20dd\ue000\ud800\u0378 g\u043e\t\nx")
    assert seen[0] == "yes go\t\nx"
    assert as_seen("Yes GO\t\nx дa"[:9]) == ()


@pytest.mark.parametrize(
    ("text", "views"),
    [
        ("Yes, naïve oo ...", ()),
        ("да", ("дa",)),
        ("дa yes", ("да yes",)),
        ("νaι yes", ("vai yes", "ναι yes")),
        ("xСTOП", ("xctoп", "хстоп")),
        ("y\x1b[1;31mes\x1b[0m [1m", ("yes [1m",)),
        ("nooo oo 111 ...", ("no oo 111 ...",)),
        ("no ~~yes~~, ok~", ("no  , ok~",)),
    ],
)
def test_a_word_of_two_scripts_is_seen_in_each_of_them(text: str, views: tuple[str, ...]) -> None:
    """Colours of a terminal are gone, and a letter that is written three times stands once."""
    assert as_seen(text) == views


@pytest.mark.parametrize(
    ("phrase", "typed"),
    [("sí señor", "si senor"), ("đã ệ", "đa e"), ("hayır łó ø", "hayir lo o"), ("ещё", "еще"),
     ("los geht's", "los gehts"), ("όχι ἀρχή", "οχι αρχη"), ("だめ 하지 हाँ", "だめ 하지 हाँ")],
)  # fmt: skip
def test_a_keyboard_without_accents_types_the_same_words(phrase: str, typed: str) -> None:
    assert without_accents(phrase) == typed


# ---- what waits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pending", "reading"),
    [
        ("yes", Pending(generation=3, question=True), Reading.CLARIFY),
        ("yes", Pending(question=True), Reading.ASSENT),
        ("no", Pending(generation=3, question=True), Reading.REFUSAL),
        ("yes", Pending(destructive=True), Reading.CLARIFY),
        ("yes", Pending(generation=3, destructive=True), Reading.CLARIFY),
        ("no", Pending(destructive=True), Reading.REFUSAL),
        ("yes", Pending(), Reading.ASSENT),
        ("go", Pending(), Reading.ASSENT),
        ("ok, list all LXCs", Pending(), Reading.COMMENT),
        ("maybe", Pending(), Reading.COMMENT),
        ("approve plan 3", Pending(), Reading.COMMENT),
        ("approve plan 3", Pending(generation=4), Reading.CLARIFY),
        ("approve plan 4", Pending(generation=4), Reading.ASSENT),
        ("approve plan 4, plan 3", Pending(generation=4), Reading.CLARIFY),
        ("stop", Pending(), Reading.HALT),
        ("wait, that is the wrong host", Pending(), Reading.HALT),
        ("wait, that is the wrong host", Pending(generation=3), Reading.COMMENT),
        ("stop, that is the wrong host", Pending(generation=3), Reading.HALT),
        ("stop. no", Pending(generation=3), Reading.HALT),
        ("stop, wrong host. Yes", Pending(generation=3), Reading.HALT),
        ("stop, go", Pending(generation=3), Reading.CLARIFY),
        ("wait, yes", Pending(), Reading.HALT),
        ("wait, yes", Pending(generation=3), Reading.CLARIFY),
    ],
)
def test_what_waits_decides_with_the_words(text: str, pending: Pending, reading: Reading) -> None:
    assert read(text, pending).reading is reading


def test_a_halt_says_whether_there_is_more_behind_it() -> None:
    assert read("stop", Pending()) == Answer(reading=Reading.HALT, reason="It says stop.")
    assert read("stop, wrong host", Pending()) == Answer(reading=Reading.HALT, reason="It begins with stop.", more=True)


def test_a_machine_of_the_plan_is_named_in_the_reason() -> None:
    pending = Pending(generation=3, targets=("web1", "web2"))
    assert read("yes, but only on WEB2", pending) == Answer(
        reading=Reading.CLARIFY,
        reason="It assents on a condition, to a part, or to something more. A plan is approved whole, not for web2.",
    )


def test_without_a_word_about_what_waits_plan_one_is_pending() -> None:
    assert read("approve plan 1").reading is Reading.ASSENT
    assert read("approve plan 3").reading is Reading.CLARIFY


@pytest.mark.parametrize(
    ("text", "halts"),
    [("stop", True), ("Wait!", True), ("hold on, yes I see", True), ("no, stop", True), ("don't stop", False),
     ("stop nginx on web1", False), ("no", False), ("yes", False)],
)  # fmt: skip
def test_a_halt_is_known_before_any_model_is_asked(text: str, halts: bool) -> None:
    assert is_halt(text) is halts


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_explanation_is_one_line() -> None:
    assert explain("yes") == "assent (assent): It assents."
    assert explain("approve plan 2") == "clarify (clarify): It names another plan than the one that is pending."
    assert explain("nein") == "not_assent (refusal): It says no."
    assert explain("halt") == "not_assent (halt): It says stop."
    assert explain("yes", Pending(generation=3, question=True)).startswith("clarify (clarify): A plan and a question")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ({"id": 1, "text": "don't do it"}, {"id": 1, "verdict": "not_assent", "reason": "It says no."}),
        ({"id": "b", "text": "approve plan 3"}, {"id": "b", "verdict": "assent", "reason": "It assents."}),
        ({"id": 3}, {"id": 3, "verdict": "not_assent", "reason": "There is no text to read."}),
        ({"text": ["yes"]}, {"id": None, "verdict": "not_assent", "reason": "There is no text to read."}),
    ],
)
def test_a_line_of_json_gets_a_verdict_and_a_reason(asked: dict[str, object], answered: dict[str, object]) -> None:
    assert jsonl(asked) == answered


def test_every_kind_of_phrase_is_in_the_vocabulary() -> None:
    assert set(WORDS) == set(Kind)
