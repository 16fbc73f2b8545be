"""How quick the classifier is: every row of the shared corpora uncached, then cached, then 64 KiB of hostile text.

.venv/bin/python bench/classifier.py CORPORA READER

CORPORA holds the files, READER the module that reads them.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from oikos.policy import default_classifier
from oikos.policy.classify import Classifier

HOSTILE = {
    "nested substitutions": "$(" * 16_000 + "true" + ")" * 16_000,
    "open quotes": "'\"" * 32_000,
    "one long word": "a" * 65_000,
    "many commands": "ls;" * 21_000,
    "many pipes": "cat|" * 16_000 + "cat",
    "many redirects": "echo " + ">a " * 21_000,
}


def texts(corpora: Path, reader: Path) -> list[str]:
    """The command of every row."""
    sys.path.insert(0, str(reader))
    from corpus_io import read  # of the hand-over

    return [row.command for file in sorted(corpora.glob("corpus_*.tsv")) for row in read(file)]


def took_ms(classifier: Classifier, commands: Iterable[str]) -> list[float]:
    """Of each, sorted."""
    found = []
    for command in commands:
        begun = time.perf_counter()
        classifier.classify(command)
        found.append((time.perf_counter() - begun) * 1000)
    return sorted(found)


def main() -> None:
    """Print the figures beside what was asked."""
    commands = list(dict.fromkeys(texts(Path(sys.argv[1]), Path(sys.argv[2]))))
    classifier = default_classifier()
    uncached = took_ms(classifier, commands)
    last = commands[-1000:]
    cached = took_ms(classifier, last)
    hostile = {name: took_ms(default_classifier(), [text[:65_536]])[0] for name, text in HOSTILE.items()}
    p95 = uncached[int(len(uncached) * 0.95)]
    print(f"classifier, {len(commands)} commands, parsing included")
    print("| what | asked | found |\n|---|---|---|")
    print(f"| uncached p50 ms | ≤ 6 | {statistics.median(uncached):.2f} |")
    print(f"| uncached p95 ms | ≤ 15 | {p95:.2f} |")
    print(f"| cached p50 us | ≤ 50 | {statistics.median(cached) * 1000:.1f} |")
    for name, ms in hostile.items():
        print(f"| 64 KiB of {name} ms | ≤ 250 | {ms:.0f} |")


if __name__ == "__main__":
    main()
