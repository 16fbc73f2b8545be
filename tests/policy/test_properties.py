"""Properties that hold for every text (policy design §5)."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import random
import shlex
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oikos.domain.verdict import Risk
from oikos.policy import default_classifier
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import load
from oikos.policy.parser import Parsed, ShfmtParser
from tests.policy.corpora import Row

CLASSIFIER = default_classifier()
COMMANDS = (
    "ls -la /srv", "cat /etc/hosts", "df -h /", "systemctl status cron", "journalctl -u cron -n 5", "docker ps", "pct list", "grep -c root /etc/passwd",
    "touch /srv/x", "systemctl restart cron", "apt-get install -y htop", "pct start 300", "sed -i s/a/b/ f", "docker restart web",
    "rm -rf /srv/x", "zfs destroy tank/x", "reboot", "docker rm -f web", "dd if=/dev/zero of=/dev/sdq", "pct destroy 300",
    "foo --bar", "cat /etc/shadow", "curl -s http://nas.lan/", "find /srv -name x", "sort -o a b", "awk '{print $1}' f", "ls $(id)",
)  # fmt: skip
commands = st.sampled_from(COMMANDS)


def risk(text: str) -> Risk:
    return CLASSIFIER.classify(text).risk


@settings(max_examples=60)
@given(commands, commands, st.sampled_from(("; ", " && ", " || ", " | ", "\n", " & ")))
def test_adding_a_command_never_lowers(first: str, second: str, operator: str) -> None:
    assert risk(first + operator + second) >= max(risk(first), risk(second), key=lambda one: one.rank)


@settings(max_examples=60)
@given(
    commands,
    st.sampled_from(("sudo {}", "timeout 5 {}", "nice {}", "env {}", "bash -c {q}", "sh -c {q}", "pct exec 300 -- {}", "pct exec 300 -- sh -c {q}",
                     "ssh web {q}", "docker exec web {}", "( {} )", "{{ {}; }}", "if {}; then :; fi", "echo $({})", "x=$({})", "cat <({})")),
)  # fmt: skip
def test_wrapping_keeps_or_raises(command: str, wrapper: str) -> None:
    wrapped = wrapper.format(command, q=shlex.quote(command))
    assert risk(wrapped) >= risk(command)


@settings(max_examples=60)
@given(commands, st.randoms(use_true_random=False))
def test_quoting_words_in_another_way_keeps_the_verdict(command: str, chance: random.Random) -> None:
    if "$" in command:
        return
    words = shlex.split(command)
    ways = (
        shlex.quote,
        lambda word: '"' + word.replace("$", "\\$") + '"',
        lambda word: "".join("\\" + char if char != "\n" else "'\n'" for char in word),
    )
    other = " ".join(chance.choice(ways)(word) for word in words)
    assert risk(other) is risk(command)


@settings(max_examples=60)
@given(commands, st.integers(0, 6))
def test_a_substitution_in_the_place_of_a_word_never_lowers(command: str, at: int) -> None:
    if "$" in command:
        return
    words = shlex.split(command)
    index = min(at, len(words) - 1)
    if index == 0 and risk(command) is Risk.DESTRUCTIVE:
        index = len(words) - 1
    quoted = [shlex.quote(word) for word in words]
    inner = quoted[index]
    quoted[index] = f"$(printf %s {inner})"
    assert risk(" ".join(quoted)) >= min(
        risk(command), Risk.CONFIG_MUTATION if index else Risk.DESTRUCTIVE, key=lambda one: one.rank
    )


@settings(max_examples=40)
@given(commands, st.sampled_from(("  {}  ", "{} # a comment", "{}\n", "\n{}", "{};", "{} \\\n", "# first\n{}")))
def test_white_space_and_comments_keep_the_verdict(command: str, shape: str) -> None:
    other = CLASSIFIER.classify(shape.format(command))
    plain = CLASSIFIER.classify(command)
    assert (other.risk, other.canonical) == (plain.risk, plain.canonical)


def test_a_verdict_does_not_depend_on_the_cache_or_the_order() -> None:
    fresh = [Classifier(ShfmtParser(), load()) for _ in range(2)]
    forward = [fresh[0].classify(text) for text in COMMANDS]
    backward = [fresh[1].classify(text) for text in reversed(COMMANDS)]
    assert forward == backward[::-1]
    assert forward == [fresh[0].classify(text) for text in COMMANDS]


def test_a_crash_of_the_analyser_is_destructive() -> None:
    class Broken(ShfmtParser):
        def parse(self, text: str, dialect: str = "bash") -> Parsed:
            raise KeyError("boom")

    verdict = Classifier(Broken(), load()).classify("ls")
    assert verdict.risk is Risk.DESTRUCTIVE
    assert verdict.reasons[0].rule == "analyser.crash"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 30_000, "$(" * 20_000, "a;" * 32_000, "a " * 32_000, "`" * 60_000, "{a,b}" * 12_000, "'" + "x" * 65_000, "<<E\n" * 16_000,
        "a|" * 30_000, "ls $((" * 9_000, "[[ " * 20_000, "x=1 " * 15_000, "${a:-" * 12_000, "\\" * 65_001, "rm${IFS}" * 8_000,
    ],
    ids=lambda text: text[:6],
)  # fmt: skip
def test_hostile_text_is_answered_and_never_a_look(text: str) -> None:
    started = time.process_time()
    assert CLASSIFIER.classify(text).risk is not Risk.READ_ONLY
    assert (
        time.process_time() - started < 1.0
    )  # seconds of this process; the promise of 0.25 s is measured by the benchmark


@pytest.mark.slow
def test_every_look_of_the_corpora_keeps_the_properties(classifier: Classifier, corpora: list[Row]) -> None:
    for row in corpora:
        verdict = classifier.classify(row.command)
        if "\n" in row.command or "#" in row.command:
            continue
        assert classifier.classify(row.command + "; rm -rf /srv/x").risk is Risk.DESTRUCTIVE, row.command
        assert classifier.classify(f"bash -c {shlex.quote(row.command)}").risk >= min(
            verdict.risk, Risk.CONFIG_MUTATION
        ), row.command
        assert classifier.classify(f"pct exec 300 -- sh -c {shlex.quote(row.command)}").risk >= min(
            verdict.risk, Risk.CONFIG_MUTATION
        )
