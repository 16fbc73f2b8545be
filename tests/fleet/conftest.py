from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from oikos.adapters.fleet import wrap
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


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for sudo and pct, which are not on every machine that runs tests; found by no other test."""
    place = tmp_path_factory.mktemp("tools")
    (place / "pct").write_text(
        '#!/bin/sh\n[ "$1 $3" = "exec --" ] || exit 64\n'
        '[ "$2" = 101 ] || { echo "container \'$2\' not running!" >&2; exit 255; }\n'
        'shift 3; HOST_LEAK=1; export HOST_LEAK; exec "$@"\n'
    )
    (place / "sudo").write_text(
        "#!/bin/sh\n"
        'case "$1 $2" in "-n true") exit 1;; "-S -p") IFS= read -r p; [ "$p" = opensesame ] || '
        '{ echo "sudo: 1 incorrect password attempt" >&2; exit 1; }; shift 5; exec "$@";; esac\n'
        'echo "sudo: a password is required" >&2; exit 1\n'
    )
    for path in place.iterdir():
        path.chmod(0o755)
    return place


@pytest.fixture
def with_tools(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first machine finds them; root's home is the test's own, and its path the answer."""
    place = tmp_path / "root"
    place.mkdir(mode=0o700)
    monkeypatch.setattr(wrap, "ROOT_HOME", str(place))
    monkeypatch.setitem(wrap.ENVIRONMENT, "PATH", f"{tools}:{wrap.PATH}")  # type: ignore[arg-type]  # a dict behind Mapping
    return place
