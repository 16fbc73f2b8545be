from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from oikos.adapters.fleet.runner import FleetRunner
from tests.fleet.kit import runner
from tests.fleet.servers import Proxy, Server, server


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A private OpenSSH server."""
    with server(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture
async def proxy(sshd: Server) -> AsyncIterator[Proxy]:
    """A relay in front of it."""
    relay = Proxy(target=sshd.port)
    await relay.start()
    yield relay
    await relay.stop()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the user that runs Oikos, so that local spools are the test's own."""
    (tmp_path / "me").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    return tmp_path / "me"


@pytest.fixture
async def fleet(home: Path) -> AsyncIterator[FleetRunner]:
    """A runner, closed at the end."""
    made = runner(home)
    yield made
    await made.close()
