"""The command line as a newcomer has it: another process, a home of one's own, this machine as the only target."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import sqlite3
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.wait import until

OIKOS = str(Path(sys.executable).with_name("oikos"))
TOKEN = "a-long-random-text"
CONFIG = '[model]\nkind = "scripted"\nscript = "{home}/script.yaml"\n[targets.box]\ntransport = "local"\n'
WITHIN_S = 30.0

LOOK = """
- reasoning: they want to know what is there
  text: I look.
  calls: [{tool: run, args: {target: box, command: "ls {{workshop}}"}}]
- refused: no_goal
  calls: [{tool: set_goal, args: {goal: know what is there}}]
- calls:
    - tool: propose_plan
      args: {steps: [{title: look, target: box, commands: ["ls {{workshop}}"]}]}
- calls: [{tool: run, args: {target: box, command: "ls {{workshop}}", step: 1}}]
- calls:
    - {tool: update_plan_step, args: {seq: 1, status: done}}
    - {tool: update_entity_attributes, args: {entity: box, attributes: {seen: "yes"}, run: "{{run:last}}"}}
    - {tool: complete_task, args: {outcome: done, summary: there is a photo, evidence: ["{{run:last}}"]}}
"""
FIX = """
- calls: [{tool: set_goal, args: {goal: a note is there}}]
- calls:
    - tool: propose_plan
      args:
        steps: [{title: write it, target: box, commands: ["touch {{workshop}}/note"], undo: "rm {{workshop}}/note"}]
        checks: [{target: box, command: "stat {{workshop}}/note"}]
- calls: [{tool: run, args: {target: box, command: "touch {{workshop}}/note", step: 1}}]
- calls: [{tool: run, args: {target: box, command: "stat {{workshop}}/note"}}]
- calls:
    - {tool: update_plan_step, args: {seq: 1, status: done}}
    - {tool: update_entity_attributes, args: {entity: box, attributes: {note: written}, run: "{{run:last}}"}}
    - {tool: complete_task, args: {outcome: done, summary: the note is there, evidence: ["{{run:last}}"]}}
"""
SLOW = FIX.replace("touch {{workshop}}/note", "touch {{workshop}}/begun && sleep 60 && touch {{workshop}}/note")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(eq=False)
class Cli:
    """`oikos` on one home."""

    home: Path
    workshop: Path
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
        """Run a command without a terminal."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [OIKOS, *words],
            input=given,
            capture_output=True,
            env={**self.env, **(env or {})},
            timeout=WITHIN_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    def plays(self, script: str, *, config: str = "") -> None:
        """Configure a scripted model."""
        (self.home / "script.yaml").write_text(script.replace("{{workshop}}", str(self.workshop)))
        self.configure(config or CONFIG.format(home=self.home))

    def configure(self, text: str) -> None:
        file = self.home / "oikos.toml"
        file.write_text(text)
        file.chmod(0o600)

    def approver(self) -> dict[str, str]:
        """What makes a command without a terminal an approver's."""
        file = self.home / "approver-token"
        file.write_text(TOKEN)
        file.chmod(0o600)
        return {"OIKOS_APPROVER_TOKEN": TOKEN}

    def phase(self) -> str:
        """Of the newest session, from the database; empty while there is none."""
        file = self.home / "oikos.db"
        if not file.exists():
            return ""
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            try:
                row = database.execute("SELECT phase FROM sessions ORDER BY opened_s DESC LIMIT 1").fetchone()
            except sqlite3.OperationalError as error:
                if "no such table" not in str(error):
                    raise
                return ""
        return str(row[0]) if row is not None else ""

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command that goes on; its output is on pipes."""
        return subprocess.Popen(
            [OIKOS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env
        )

    @contextmanager
    def terminal(self, *words: str, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
        """A command at a terminal of its own."""
        master, slave = pty.openpty()
        whole = {**self.env, "TERM": "xterm", **(env or {})}
        process = subprocess.Popen(
            [OIKOS, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=whole,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        os.set_blocking(master, False)
        try:
            yield Terminal(process, master)
        finally:
            process.kill()
            process.wait()
            os.close(master)


@dataclass(eq=False)
class Terminal:
    """What a person sees and types."""

    process: subprocess.Popen[bytes]
    descriptor: int
    shown: str = ""

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def read(self) -> str:
        """Everything shown so far."""
        try:
            while data := os.read(self.descriptor, 65536):
                self.shown += data.decode("utf-8", "replace")
        except (BlockingIOError, OSError):  # nothing yet, or the command has gone
            pass
        return self.shown

    def until(self, text: str, *, times: int = 1) -> None:
        """Wait until it is shown."""
        try:
            until(lambda: self.read().count(text) >= times, f"{text!r} at the terminal", WITHIN_S)
        except AssertionError as error:
            raise AssertionError(f"{error}; shown was:\n{self.shown}") from None

    def ended(self) -> int:
        """Wait for its exit code."""
        until(lambda: (self.read(), self.process.poll() is not None)[1], "the command's end", WITHIN_S)
        return self.process.wait()


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """A fresh home, private; a workshop with a photo."""
    home, workshop = tmp_path / "home", tmp_path / "workshop"
    home.mkdir(mode=0o700)
    workshop.mkdir()
    (workshop / "photo.jpg").touch()
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return Cli(home, workshop, {**kept, "OIKOS_HOME": str(home)})


def as_json(ended: Ended) -> dict[str, object]:
    """The one object it printed."""
    body = json.loads(ended.out)
    assert isinstance(body, dict)
    return body
