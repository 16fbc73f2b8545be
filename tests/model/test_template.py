from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oikos.adapters.model.template import Hole, command, fill, fill_known, fill_pattern, intent, words

VALUES = {"host": "nas", "path": "/srv/a b/it's.txt", "pid": "12", "unit": "Wiki.service"}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("cat {path}", "cat '/srv/a b/it'\"'\"'s.txt'"),
        ("ls -l {path|dir} | grep -F -- {path|base}", "ls -l '/srv/a b' | grep -F -- 'it'\"'\"'s.txt'"),
        ("test -e {path} && echo 'a && b'", "test -e '/srv/a b/it'\"'\"'s.txt' && echo 'a && b'"),
        ("ss -ltnp 'sport = :{pid}'", "ss -ltnp 'sport = :12'"),
        ("systemctl start {unit|lower}", "systemctl start wiki.service"),
        ("find / -name {unit|unit_name}*", "find / -name 'wiki*'"),
        ("find / -name {unit|stem}", "find / -name Wiki"),
        ("awk '{print $1}' {path|base}", "awk '{print $1}' 'it'\"'\"'s.txt'"),
    ],
)
def test_a_command_is_filled_word_by_word(template: str, filled: str) -> None:
    assert command(words(template), VALUES) == filled


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=60))
def test_whatever_a_machine_printed_stays_one_word(value: str) -> None:
    try:
        line = command(words("cat {value} /x{value}y -- | wc -l"), {"value": value})
    except Hole:
        assert value.startswith("-") or any(ord(letter) < 32 or ord(letter) == 127 for letter in value)
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = ""
    assert list(lexer) == ["cat", value, f"/x{value}y", "--", "|", "wc", "-l"]


@settings(max_examples=60)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30),
       st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30))  # fmt: skip
def test_sed_replaces_exactly_what_it_is_told(old: str, new: str) -> None:
    line = words("sed 's|{old|sed_from}|{new|sed_to}|'")
    script = shlex.split(command(line, {"old": old, "new": new}))[1]
    done = subprocess.run(["sed", script], input=f"KEY={old}#\n", capture_output=True, text=True, check=True)
    assert done.stdout == f"KEY={old}#\n".replace(old, new, 1)


def test_a_value_that_is_missing_or_could_be_an_option_fills_nothing() -> None:
    with pytest.raises(Hole, match="nothing"):
        fill("is {nothing}", VALUES)
    with pytest.raises(Hole, match="could be taken for an option"):
        command(words("cat {x}"), {"x": "-rf"})
    with pytest.raises(Hole, match="could be taken for an option"):
        command(words("cat {x}"), {"x": ""})
    with pytest.raises(Hole, match="control characters"):
        command(words("cat {x}"), {"x": "a\nb"})


def test_values_in_patterns_match_themselves_only() -> None:
    assert fill_pattern(r"^{path}: (\d{2,3})$", {"path": "/a.b+"}) == r"^/a\.b\+: (\d{2,3})$"


@pytest.mark.parametrize(
    ("pattern", "said", "slots"),
    [
        ("when ... last ... backup", "When did the last cloud backup run, and when is the next one?", {}),
        ("when ... last ... backup", "when was the last backup", {}),
        ("when ... last ... backup", "the last backup was when?", None),
        ("fix the {job} [backup] (job|failure)", "now fix the repos job", {"job": "repos"}),
        ("fix the {job} [backup] (job|failure)", "Fix the photos-2 backup failure!", {"job": "photos-2"}),
        ("fix the {job} [backup] (job|failure)", "fix the job", None),
        ("{service} [service] is (down|dead)", "Wiki is down. Find out why", {"service": "Wiki"}),
        ("{service} [service] is (down|dead)", "the wiki service is dead", {"service": "wiki"}),
        ("{service} is (down|dead)", "wiki is downloading", None),
        ("list [all] [the|my] {kind}", "list all my LXCs", {"kind": "LXCs"}),
        ("list [all] [the|my] {kind}", "List hosts", {"kind": "hosts"}),
        ("list [all] [the|my] {kind}", "enlist hosts", None),
    ],
)
def test_intents_find_their_slots(pattern: str, said: str, slots: dict[str, str] | None) -> None:
    found = intent(pattern).search(said)
    assert (found.groupdict() if found else None) == slots


def test_unbalanced_intents_and_commands_are_refused() -> None:
    with pytest.raises(ValueError, match="not closed"):
        intent("fix (it")
    with pytest.raises(ValueError, match="quotation"):
        words("echo 'a")


def test_a_sentence_keeps_what_is_known_and_shows_what_is_not() -> None:
    assert fill_known("Install {package} on {host}", {"package": "rsync"}) == "Install rsync on …"
