"""What every test gets: asyncio only, no blocked event loop, repeatable hypothesis, seconds per suite."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import HealthCheck, settings

# An operator's own configuration must not reach a test; where the lab keeps its state may.
for name in [name for name in os.environ if name.startswith("OIKOS_") and not name.startswith("OIKOS_LAB_")]:
    del os.environ[name]

# A loaded machine is slow, not wrong: no deadline, and no health check that measures time.
settings.register_profile("house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("house"), derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "house")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio is the only event loop Oikos runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_blocked_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails an async test in which product code makes a blocking call on the event loop."""
    if request.node.get_closest_marker("anyio") is None:
        yield
        return
    with blockbuster_ctx("oikos", excluded_modules=["oikos.lab"]):  # the lab is synchronous by design
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what needs root for other users, and keeps the lab's tests together in one process."""
    root = os.geteuid() == 0
    for item in items:
        if item.get_closest_marker("needs_root") is None:
            continue
        if not root:
            item.add_marker(pytest.mark.skip(reason="needs root"))
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("lab"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the seconds of each suite (a directory of tests/), and how many tests only root could run."""
    seconds: dict[str, float] = defaultdict(float)
    tests: dict[str, set[str]] = defaultdict(set)
    unprivileged = 0
    for reports in terminalreporter.stats.values():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            parts = Path(report.nodeid.partition("::")[0]).parts
            suite = parts[1] if len(parts) > 2 else "tests"
            seconds[suite] += report.duration
            tests[suite].add(report.nodeid)
            if report.skipped and isinstance(report.longrepr, tuple) and report.longrepr[2].endswith("needs root"):
                unprivileged += 1
    for suite in sorted(seconds):
        terminalreporter.write_line(f"suite {suite:<12} {len(tests[suite]):>5} tests {seconds[suite]:8.1f} s")
    if unprivileged:
        terminalreporter.write_line(f"NOT RUN: {unprivileged} tests need root; run them with: sudo make test")
