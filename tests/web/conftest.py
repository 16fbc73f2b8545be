"""A real server process on a home of its own, with a scripted model and this machine as the only target."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import FIX, WITHIN_S, Cli
from tests.wait import until

ASK = """
- calls: [{tool: ask_operator, args: {question: which token, kind: secret, secret_name: registry}}]
- text: thank you
"""
RESTING = ("idle", "awaiting_approval", "blocked", "done", "failed", "stopped")


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass(frozen=True)
class Sent:
    """One server-sent event."""

    kind: str
    id: int | None
    data: Any


@dataclass(eq=False)
class Served:
    """A server, and its home."""

    cli: Cli
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, name: str, role: str) -> str:
        """A new token."""
        ended = self.cli("serve", "token", "add", name, "--role", role, env=self.cli.approver())
        assert ended.code == 0, ended.err
        self.tokens[name] = ended.out.strip()
        return self.tokens[name]

    def start(self) -> None:
        """Serve; on the same port as before when it did already."""
        self.process = self.cli.begin("serve", "--port", str(self.port))
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/api/v1", line)
        assert found, f"{line!r} {self.process.stderr.read() if self.process.stderr else b''!r}"
        self.port = int(found[1])

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it; exit code and what it said on standard error."""
        assert self.process is not None
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=WITHIN_S)
        code, self.process = self.process.returncode, None
        return code, err.decode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        as_: str = "anna",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request; `as_` names a token, empty for none."""
        own = {"Authorization": f"Bearer {self.tokens[as_]}"} if as_ else {}
        if method == "POST":
            own["Content-Type"] = "application/json"
        raw = body if isinstance(body, bytes) else json.dumps(body or {}).encode() if method == "POST" else None
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)) as connection:
            connection.request(method, f"/api/v1{path}", body=raw, headers={**own, **(headers or {})})
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )

    def get(self, path: str, *, as_: str = "anna") -> Any:
        answer = self.ask("GET", path, as_=as_)
        assert answer.status == 200, answer.raw
        return answer.body

    def open(self, text: str) -> str:
        """A session with a first message."""
        answer = self.ask("POST", "/sessions", {"text": text})
        assert answer.status == 201, answer.raw
        return str(answer.body["id"])

    def rested(self, session_id: str, *phases: str) -> Any:
        """The snapshot once the session rests, or is in one of the phases."""
        return until(
            lambda: (found := self.get(f"/sessions/{session_id}"))["phase"] in (phases or RESTING) and found,
            f"session {session_id[:8]} to rest",
            WITHIN_S,
        )

    def shown(self, session_id: str) -> dict[str, object]:
        """What an approval of the card must carry."""
        card = self.rested(session_id, "awaiting_approval")["card"]
        run = {"run_id": card["run"]["order"]["run_id"]} if card["run"] else {}
        return {"generation": card["generation"], "digest": card["digest"], **run}

    @contextmanager
    def stream(self, session_id: str, *, after: int | None = None, as_: str = "anna") -> Iterator[Iterator[Sent]]:
        """The events of a session; closing it cuts the connection."""
        headers = {"Authorization": f"Bearer {self.tokens[as_]}"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WITHIN_S)) as connection:
            connection.request("GET", f"/api/v1/sessions/{session_id}/events", headers=headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield _sent(response)

    def at_once(self, *acts: Callable[[], Answer]) -> list[Answer]:
        """Answers to requests that are sent at the same moment."""
        gate, answers = threading.Barrier(len(acts)), list[Answer]()

        def go(act: Callable[[], Answer]) -> None:
            gate.wait()
            answers.append(act())

        threads = [threading.Thread(target=go, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN_S)
        return answers


def _sent(response: http.client.HTTPResponse) -> Iterator[Sent]:
    found: dict[str, str] = {}
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line:
            name, _, value = line.partition(": ")
            found[name] = value
        else:
            if "data" in found:
                yield Sent(found["event"], int(found["id"]) if "id" in found else None, json.loads(found["data"]))
            found = {}


@contextmanager
def serving(directory: Path, script: str) -> Iterator[Served]:
    """A server with one approver, anna, whose model plays a script."""
    home, workshop = directory / "home", directory / "workshop"
    home.mkdir(mode=0o700)
    workshop.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    cli = Cli(home, workshop, {**kept, "OIKOS_HOME": str(home)})
    cli.plays(script)
    served = Served(cli)
    served.token("anna", "approver")
    served.start()
    try:
        yield served
    finally:
        if served.process is not None:
            code, err = served.end()
            assert (code, err) == (0, ""), f"the server ended with {code}: {err}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """One that repairs something."""
    with serving(tmp_path, FIX) as running:
        yield running
