"""The grammar: which order of known phrases is an assent, and what everything else is (SPEC R3.7, R1.8)."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain

from oikos.domain.assent.text import QUOTED, Clauses, as_seen, clauses, without_accents
from oikos.domain.assent.words import WORDS, Kind
from oikos.domain.value import dataclass, replace


class Reading(enum.StrEnum):
    """What a message of the operator is."""

    ASSENT = "assent"
    REFUSAL = "refusal"
    HALT = "halt"
    CLARIFY = "clarify"
    COMMENT = "comment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What the message could be an answer to."""

    generation: int | None = None
    """The proposed plan that was shown; None when no plan waits."""
    question: bool = False
    """An ask_operator question is open too."""
    destructive: bool = False
    """What waits needs its typed phrase."""
    targets: tuple[str, ...] = ()
    """The machines of the plan, by name."""


EXAMPLE = Pending(generation=3)
"""What `oikos assent` answers for: plan generation 3 is pending, without destructive steps."""
_FIRST = Pending(generation=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reading and, in one plain sentence, why."""

    reading: Reading
    reason: str
    more: bool = False
    """A halt with something behind it ("stop, wrong host"): a session that is over reopens with it as a comment."""

    @property
    def verdict(self) -> str:
        """`assent`, `not_assent` or `clarify` (SPEC R3.7)."""
        decisive = self.reading in (Reading.ASSENT, Reading.CLARIFY)
        return self.reading.value if decisive else "not_assent"


def read(text: str, pending: Pending = _FIRST) -> Answer:
    """What a message is, given what waits for an answer.

    Closed: a word outside the vocabulary never belongs to an assent. Linear in the length of the message.
    """
    return read_with(lexicon(), text, pending)


def is_halt(text: str) -> bool:
    """Whether the message suspends the window at once (SPEC R1.8)."""
    return read(text, Pending()).reading is Reading.HALT


def explain(text: str, pending: Pending = EXAMPLE) -> str:
    """Verdict, reading and reason as one line for people."""
    answer = read(text, pending)
    return f"{answer.verdict} ({answer.reading}): {answer.reason}"


def jsonl(obj: Mapping[str, object], pending: Pending = EXAMPLE) -> dict[str, object]:
    """`{"id", "text"}` in, `{"id", "verdict", "reason"}` out; what holds no text is not an assent."""
    text = obj.get("text")
    answer = read(text, pending) if isinstance(text, str) else _say(Reading.COMMENT, "There is no text to read.")
    return {"id": obj.get("id"), "verdict": answer.verdict, "reason": answer.reason}


# ---- the vocabulary --------------------------------------------------------------------------------------------------

Lexicon = Mapping[tuple[str, ...], Kind]
"""A phrase by its words; `#` stands for a number."""


@cache
def lexicon() -> Lexicon:
    """The vocabulary of `words.py`."""
    return build(phrases(WORDS))


def phrases(words: Mapping[Kind, str]) -> tuple[tuple[Kind, str], ...]:
    """Every entry of the tables, in order."""
    return tuple(
        (kind, phrase.strip())
        for kind, table in words.items()
        for line in table.strip().splitlines()
        for phrase in line.split(":", 1)[1].split("|")
    )


def build(entries: tuple[tuple[Kind, str], ...]) -> Lexicon:
    """Entries by their words, also as typed without accents; of two equal ones the first holds."""
    exact: dict[tuple[str, ...], Kind] = {}
    typed: dict[tuple[str, ...], Kind] = {}
    for kind, phrase in entries:
        key, bare = _forms(phrase)
        exact.setdefault(key, kind)
        typed.setdefault(bare, kind)
    return {**typed, **exact}


@cache
def _forms(phrase: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if phrase.isascii() and phrase.replace(" ", "").isalpha():  # most are, and nothing in them needs a closer look
        key = tuple(phrase.lower().split())
        return key, key
    key = _keys(clauses(phrase.replace("#", "0")).clauses[0])
    return key, tuple(without_accents(word) for word in key)


def _keys(clause: tuple[str, ...]) -> tuple[str, ...]:
    # a literal `#` is no number: it becomes a word that no phrase holds
    return tuple("#" if word.isdecimal() else "##" if word == "#" else word for word in clause)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One phrase of a message."""

    kind: Kind | None
    """None for a word outside the vocabulary."""
    words: tuple[str, ...]

    def says(self) -> bool:
        """Whether it is known or holds a letter or a digit: a quotation, a symbol or a hidden character does not."""
        return self.kind is not None or any(char.isalnum() for word in self.words for char in word)

    def numbers(self) -> set[int]:
        """The numbers it names."""
        return {int(word) for word in self.words if word.isdecimal()}


Clause = tuple[Item, ...]

_LONGEST = 12
"""Words of the longest phrase; a phrase of Han, kana or Hangul has one word a character."""


def items(lexicon: Lexicon, clause: tuple[str, ...]) -> Clause:
    """The longest known phrase at each place; a word that begins none stands alone and unknown."""
    keys = _keys(clause)
    found: list[Item] = []
    at = 0
    while at < len(keys):
        ends = range(min(at + _LONGEST, len(keys)), at, -1)
        end = next((end for end in ends if keys[at:end] in lexicon), at + 1)
        found.append(Item(kind=lexicon.get(keys[at:end]), words=clause[at:end]))
        at = end
    return tuple(found)


# ---- what a clause is ------------------------------------------------------------------------------------------------

Kinds = frozenset[Kind | None]
_YESES: Kinds = frozenset({Kind.YES, Kind.OKAY})
_ASSENTS: Kinds = _YESES | {Kind.GO}
_LIGHT: Kinds = frozenset({Kind.FILL, Kind.CLOSE, Kind.MILD, Kind.ACK, Kind.JOIN})
_SILENT: Kinds = _LIGHT - {Kind.JOIN}
_NOES: Kinds = frozenset({Kind.NO, Kind.NOT})
_HALTS: Kinds = frozenset({Kind.HALT, Kind.WAIT})
_IN_ASSENT: Kinds = _ASSENTS | _LIGHT | {Kind.GENERATION}
_IN_HALT: Kinds = _HALTS | _LIGHT | _YESES | {Kind.NO, Kind.WHAT, Kind.DOUBT}


def _kinds(clause: Clause) -> Kinds:
    return frozenset(item.kind for item in clause)


def _is_assent(clause: Clause) -> bool:
    kinds = _kinds(clause)
    return bool(kinds & _ASSENTS) and kinds <= _IN_ASSENT


def _is_halt(clause: Clause) -> bool:
    kinds = _kinds(clause)
    return bool(kinds & _HALTS) and kinds <= _IN_HALT


def _is_refusal(clause: Clause) -> bool:
    """A no, or a negated order; "yes no" is none."""
    kinds = _kinds(clause)
    if not kinds & _NOES or not kinds <= _IN_ASSENT | _NOES:
        return False
    return next(item.kind for item in clause if item.kind in _YESES | _NOES) in _NOES


# ---- what a message is -----------------------------------------------------------------------------------------------


def read_with(lexicon: Lexicon, text: str, pending: Pending) -> Answer:
    """`read` with a given vocabulary."""
    words = clauses(text)
    answer, known = _decide(lexicon, words, pending)
    if not known:
        for seen in as_seen(text):
            answer = _as_it_looks(answer, _decide(lexicon, clauses(seen), pending)[0])
        mended = _mended(words)
        if answer.reading is Reading.COMMENT and mended != words:
            answer = _as_meant(answer, _decide(lexicon, mended, pending)[0])
    if answer.reading is not Reading.CLARIFY:
        return answer
    if pending.generation is None and not pending.destructive:
        return _say(Reading.COMMENT, answer.reason)
    named = ", ".join(target for target in pending.targets if target.casefold() in text.casefold())
    return _say(Reading.CLARIFY, f"{answer.reason} A plan is approved whole, not for {named}.") if named else answer


def _as_it_looks(answer: Answer, looks: Answer) -> Answer:
    """Hidden, struck-out, look-alike and repeated characters never help an assent, nor hinder a halt or a refusal."""
    if looks.reading is Reading.ASSENT:
        reason = "It looks like an assent but holds hidden, struck-out, look-alike or repeated characters."
        return _say(Reading.CLARIFY, reason)
    return looks if looks.reading in (Reading.HALT, Reading.REFUSAL) else answer


def _as_meant(answer: Answer, meant: Answer) -> Answer:
    """With slips of the keyboard mended: no assent either, but a bare halt."""
    if meant.reading is Reading.ASSENT:
        return _say(Reading.CLARIFY, "It looks like an assent with a slip of the keyboard.")
    return meant if meant.reading is Reading.HALT and not meant.more else answer


def _mended(words: Clauses) -> Clauses:
    """Each unknown word as the known one that it is a slip away from: letters swapped, doubled, or not doubled."""
    return replace(words, clauses=tuple(tuple(map(_mended_word, clause)) for clause in words.clauses))


_LONGEST_SLIP = 18
"""Letters of the longest word that is mended; "top", of three, is not taken for half of something."""


def _mended_word(word: str) -> str:
    if word in _known_words() or not 3 <= len(word) <= _LONGEST_SLIP or not word.isalpha():
        return word
    cuts = [(word[:at], word[at:]) for at in range(len(word))]
    swapped = (left + right[1::-1] + right[2:] for left, right in cuts)
    once = (left + right[1:] for left, right in cuts if right[:1] == right[1:2])
    twice = (left + right[:1] + right for left, right in cuts if len(word) > 3)
    return next((slip for slip in chain(swapped, once, twice) if slip in _known_words()), word)


@cache
def _known_words() -> frozenset[str]:
    return frozenset(chain.from_iterable(lexicon()))


def _say(reading: Reading, reason: str, *, more: bool = False) -> Answer:
    return Answer(reading=reading, reason=reason, more=more)


def _decide(lexicon: Lexicon, words: Clauses, pending: Pending) -> tuple[Answer, bool]:
    """The answer, and whether every word is known."""
    parsed = tuple(items(lexicon, clause) for clause in words.clauses)
    kinds = frozenset(kind for clause in parsed for kind in _kinds(clause))
    return _of(lexicon, words, parsed, kinds, pending), None not in kinds


def _of(lexicon: Lexicon, words: Clauses, parsed: tuple[Clause, ...], kinds: Kinds, pending: Pending) -> Answer:
    if kinds <= _LIGHT | {Kind.GENERATION}:
        doubtful = kinds & {Kind.MILD, Kind.ACK, Kind.GENERATION}
        return _say(Reading.CLARIFY if doubtful else Reading.COMMENT, "It says neither yes nor no.")
    halted = _halted(parsed, pending)
    if halted is not None:
        return halted
    if words.asked:
        return _asked(kinds)
    if kinds & {None, Kind.ASK, Kind.TALK}:
        return _with_more(parsed, kinds)
    # an idiom keeps its meaning when a comma stands in it: "yeah, right", "yeah, sure"
    idioms = _kinds(items(lexicon, tuple(chain.from_iterable(words.clauses)))) & {Kind.DOUBT, Kind.ACK}
    return _all_known(parsed, kinds | idioms) or _assented(words, parsed, kinds | idioms, pending)


def _halted(parsed: tuple[Clause, ...], pending: Pending) -> Answer | None:
    heavy = [clause for clause in parsed if not _kinds(clause) <= _LIGHT]
    plain = all(_is_halt(clause) or _is_assent(clause) or _is_refusal(clause) for clause in heavy)
    if plain and _is_halt(heavy[-1]):
        return _say(Reading.HALT, "It says stop.")
    stop_and_go = plain and any(_is_assent(clause) for clause in heavy)
    at_once = Kind.HALT in _kinds(heavy[0]) and not stop_and_go
    if _is_halt(heavy[0]) and (at_once or pending.generation is None):
        return _say(Reading.HALT, "It begins with stop.", more=True)
    return None


def _asked(kinds: Kinds) -> Answer:
    if kinds <= _IN_ASSENT | _NOES | {Kind.DOUBT}:
        return _say(Reading.CLARIFY, "It is an answer with a question mark.")
    return _say(Reading.COMMENT, "It asks a question.")


def _with_more(parsed: tuple[Clause, ...], kinds: Kinds) -> Answer:
    """Some of it is no answer: never an assent; clarify where it begins or ends like one."""
    spoken = [item.kind for clause in parsed for item in clause if item.says() and item.kind not in _SILENT]
    heavy = [kind for kind in spoken if kind is not Kind.JOIN]
    if not heavy:
        return _say(Reading.COMMENT, "It is not an answer to what waits.")
    head = heavy[0]
    if Kind.ASK in kinds:
        return _say(Reading.COMMENT, "It asks something.")
    if head in _NOES | _HALTS:
        return _say(Reading.COMMENT, "It says no, and something else.")
    if _asks_for_talk(heavy):
        return _say(Reading.COMMENT, "It asks for words, not for deeds.")
    whole = any(_is_assent(clause) for clause in parsed)
    if head is Kind.GO and not whole and next((kind for kind in spoken if kind is not head), head) is None:
        return _say(Reading.COMMENT, "It orders something else.")
    bare = next((kind for kind in heavy if kind is not Kind.WHAT), None)
    if bare is Kind.PART or (head in _ASSENTS and kinds & {Kind.IF, Kind.PART}):
        return _say(Reading.CLARIFY, "It assents on a condition, to a part, or to something more.")
    if Kind.LATER in kinds:
        return _say(Reading.COMMENT, "It puts the decision off.")
    if head in _ASSENTS and Kind.WHERE in kinds:
        return _say(Reading.CLARIFY, "It assents to something elsewhere, or done in another way.")
    if _ends_on_a_condition(heavy):
        return _say(Reading.CLARIFY, "It assents on a condition.")
    if not whole and not (head in _YESES or (head is Kind.GO and not kinds & _NOES)):
        return _say(Reading.COMMENT, "It is not an answer to what waits.")
    if any(item.words == (QUOTED,) for clause in parsed for item in clause):
        return _say(Reading.CLARIFY, "It assents beside a quotation.")
    return _say(Reading.CLARIFY, "It assents and says something else.")


def _asks_for_talk(heavy: Sequence[Kind | None]) -> bool:
    """ "Explain step 2", "yes, explain", and an order or a part with such a verb anywhere: "go on with explaining"."""
    first = next((kind for kind in heavy if kind not in _ASSENTS), None)
    return first is Kind.TALK or (heavy[0] in (Kind.GO, Kind.PART) and Kind.TALK in heavy)


def _ends_on_a_condition(heavy: Sequence[Kind | None]) -> bool:
    """ "If it is safe, go ahead", and where the condition's word stands behind it: 安全なら進めて."""
    if Kind.IF not in heavy:
        return False
    behind = heavy[len(heavy) - heavy[::-1].index(Kind.IF) :]
    return bool(behind) and behind[-1] in _ASSENTS and (heavy[0] is Kind.IF or _ASSENTS.issuperset(behind))


def _all_known(parsed: tuple[Clause, ...], kinds: Kinds) -> Answer | None:
    """Every word is known; None when nothing but assents are left."""
    if kinds & {Kind.IF, Kind.PART} and kinds & _ASSENTS:
        return _say(Reading.CLARIFY, "It assents on a condition, to a part, or to something more.")
    if Kind.LATER in kinds:
        return _say(Reading.COMMENT, "It puts the decision off.")
    if Kind.PART in kinds or (kinds & {Kind.WHAT, Kind.WHERE} and kinds & _ASSENTS):
        return _say(Reading.CLARIFY, "It takes a part of the plan, or more than the plan.")
    if Kind.DOUBT in kinds:
        return _say(Reading.CLARIFY, "It can mean yes or no.")
    assents = any(_is_assent(clause) for clause in parsed)
    if any(_is_refusal(clause) for clause in parsed) and not assents and kinds <= _IN_ASSENT | _NOES:
        return _say(Reading.REFUSAL, "It says no.")
    if kinds <= _IN_ASSENT and assents:
        return None
    if kinds & _ASSENTS:
        return _say(Reading.CLARIFY, "It says yes and no.")
    return _say(Reading.COMMENT, "It is not an answer to what waits.")


def _assented(words: Clauses, parsed: tuple[Clause, ...], kinds: Kinds, pending: Pending) -> Answer:
    numbers = {number for clause in parsed for item in clause for number in item.numbers()}
    if numbers - {pending.generation}:
        return _say(Reading.CLARIFY, "It names another plan than the one that is pending.")
    if words.label and _kinds(parsed[0]) <= _LIGHT:
        return _say(Reading.CLARIFY, "It begins like what somebody else says.")
    said = [item.kind for clause in parsed for item in clause if item.kind not in _SILENT]
    if words.trails or said[-1] is Kind.JOIN:
        return _say(Reading.CLARIFY, "It trails off.")
    closed = Kind.CLOSE in kinds and not kinds & {Kind.YES, Kind.GENERATION}
    if (closed or Kind.ACK in kinds) and Kind.GO not in kinds:
        return _say(Reading.CLARIFY, "It says that it was read, not that it shall be done.")
    if pending.destructive:
        return _say(Reading.CLARIFY, "What waits is destructive: it needs its typed phrase.")
    if pending.question and pending.generation is not None:
        return _say(Reading.CLARIFY, "A plan and a question both wait: it does not say which it answers.")
    return _say(Reading.ASSENT, "It assents.")
