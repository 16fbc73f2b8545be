"""The labs of this suite: one with systemd hosts and a node for most tests, and names that no other run uses."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from oikos.lab import Host, Lab


@pytest.fixture(scope="session")
def lab_name() -> Callable[[str], str]:
    """`a` -> a lab name that no other process uses."""
    return lambda letter: f"{letter}{os.getpid()}"


@pytest.fixture(scope="session")
def lab(lab_name: Callable[[str], str]) -> Iterator[Lab]:
    """web1 and db1 (a disk of its own) run systemd, tiny1 does not."""
    with Lab(lab_name("t")) as made:
        made.add("web1")
        made.add("db1", disk="900M")
        made.add("tiny1", systemd=False)
        yield made


@pytest.fixture(scope="session")
def web(lab: Lab) -> Host:
    return lab.hosts["web1"]


@pytest.fixture(scope="session")
def db(lab: Lab) -> Host:
    return lab.hosts["db1"]


@pytest.fixture(scope="session")
def tiny(lab: Lab) -> Host:
    return lab.hosts["tiny1"]


@pytest.fixture(scope="session")
def pve(lab: Lab) -> Host:
    return lab.add("pve1", kind="pve")
