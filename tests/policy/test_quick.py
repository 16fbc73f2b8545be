"""What is judged on the event loop: only what starts no process, and with the same verdict."""

from __future__ import annotations

import pytest

from oikos.policy.classify import Classifier
from oikos.policy.knowledge import load
from oikos.policy.parser import Parsed, ShfmtParser, plain_words


class Watched(ShfmtParser):
    """Remembers what it could not parse without a process."""

    def __init__(self) -> None:
        super().__init__()
        self.costly: list[str] = []

    def parse(self, text: str, dialect: str = "bash") -> Parsed:
        if plain_words(text) is None:
            self.costly.append(text)
        return super().parse(text, dialect)


PLAIN = [
    "true 3", "df -h /", "systemctl status nginx.service", "sudo systemctl restart nginx", "rm -rf /", "sh -c reboot",
    "env -i ls -l", "timeout 5 ssh web1 reboot", "journalctl --since=-1h -u cron", "pct exec 131 -- df -h", "watch ls",
    "nice -n 5 bash -c uptime", "xargs rm", "find / -delete", "nosuchprogram --force", "eval ls", "exec ls",
]  # fmt: skip
NOT_PLAIN = [
    "time ls",
    "ls | wc",
    "sh -c if",
    "ssh web1 A=1 ls",
    "echo 'x'",
    "ls $HOME",
    "ls *",
    "A=1 ls",
    "x" * 201,
    "",
    "ls\nls",
    "ls é",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_words_are_judged_at_once_without_a_process(text: str) -> None:
    parser = Watched()
    verdict = Classifier(parser, load()).quick(text)
    assert parser.costly == []
    assert verdict == Classifier(ShfmtParser(), load()).classify(text)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_anything_else_is_left_to_a_thread(text: str) -> None:
    assert Classifier(Watched(), load()).quick(text) is None


def test_what_was_judged_before_is_known_at_once() -> None:
    classifier = Classifier(ShfmtParser(), load())
    verdict = classifier.classify("ls | wc")
    assert classifier.quick("ls | wc") is verdict
