"""What was asked of the loop's speed, what a run of the arena found, and by how much each goal is missed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arena import EARLY, LATE, Sample, percentile

Rounds = Sequence[Mapping[str, Sample]]
"""One mapping of names to samples for each round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One line of the table."""

    name: str
    asked: float
    """At most."""
    reached: float | None
    """None: it could not be measured here."""

    def row(self) -> str:
        """Of a Markdown table."""
        if self.reached is None:
            return f"| {self.name} | ≤ {self.asked:g} | not measured | |"
        missed = self.reached > self.asked
        by = f"missed by {(self.reached / self.asked - 1) * 100:.0f} %" if missed else "reached"
        return f"| {self.name} | ≤ {self.asked:g} | {self.reached:.2f} | {by} |"


def p50(sample: Sample) -> float:
    """Median overhead in ms."""
    return statistics.median(sample.gaps_ms)


def ratio(rounds: Rounds, one: str, other: str, of: Callable[[Sample], float]) -> float:
    """Median over rounds of the ratio inside each round: the machine's speed drifts, the ratio hardly."""
    return statistics.median(of(found[one]) / max(of(found[other]), 1e-9) for found in rounds)


def growth(sample: Sample) -> float:
    """Overhead of the last iterations over that of the first."""
    return statistics.median(sample.gaps_ms[LATE]) / statistics.median(sample.gaps_ms[EARLY])


def loop_goals(rounds: Rounds) -> list[Goal]:
    """Goals of one base run."""

    def against(other: str, of: Callable[[Sample], float]) -> float:
        return ratio(rounds, "oikos", other, of)

    return [
        Goal(name="overhead p50 / floor-composed", asked=2.0, reached=against("floor-composed", p50)),
        Goal(name="overhead p50 / openai-agents + SQLite", asked=0.2, reached=against("openai-agents", p50)),
        Goal(name="CPU an iteration / openai-agents", asked=0.2, reached=against("openai-agents", lambda s: s.cpu_ms)),
        Goal(name="cold start / pydantic-ai, time", asked=0.25, reached=against("pydantic-ai", lambda s: s.cold_s)),
        Goal(name="cold start / pydantic-ai, CPU", asked=0.25, reached=against("pydantic-ai", lambda s: s.cold_cpu_s)),
        Goal(name="peak memory / pydantic-ai", asked=0.6, reached=against("pydantic-ai", lambda s: s.peak_mb)),
    ]


def token_goal(rounds: Sequence[tuple[Mapping[str, Sample], Mapping[str, Sample]]], deltas: int) -> list[Goal]:
    """CPU of a streamed token: with deltas minus without, by their number."""

    def per_token_us(name: str) -> float:
        return statistics.median(
            (streamed[name].cpu_ms - plain[name].cpu_ms) * 1000 / deltas for plain, streamed in rounds
        )

    ours, theirs = per_token_us("oikos"), per_token_us("openai-agents")
    print(f"\nCPU a streamed token: oikos {ours:.1f} us, openai-agents {theirs:.1f} us")
    return [Goal(name="CPU a streamed token / openai-agents", asked=0.1, reached=max(ours, 0.0) / max(theirs, 1e-9))]


def table(rounds: Rounds) -> str:
    """All contenders, medians over rounds."""
    lines = [
        "| contender | cold start s (CPU) | overhead ms p50 (min..max of rounds) | p95 | CPU ms | peak MB | disk KiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in rounds[0]:
        samples = [found[name] for found in rounds]
        medians = [p50(sample) for sample in samples]

        def median(of: Callable[[Sample], float], samples: Sequence[Sample] = samples) -> float:
            return statistics.median(map(of, samples))

        lines.append(
            f"| {name} | {median(lambda s: s.cold_s):.2f} ({median(lambda s: s.cold_cpu_s):.2f}) "
            f"| {statistics.median(medians):.2f} ({min(medians):.2f}..{max(medians):.2f}) "
            f"| {median(lambda s: percentile(s.gaps_ms, 0.95)):.1f} | {median(lambda s: s.cpu_ms):.2f} "
            f"| {median(lambda s: s.peak_mb):.0f} | {median(lambda s: s.disk_kib):.0f} |"
        )
    return "\n".join(lines)


def verdict(goals: Sequence[Goal]) -> str:
    """The table of goals."""
    return "\n".join(["| goal | asked | found | |", "|---|---|---|---|", *[goal.row() for goal in goals]])
