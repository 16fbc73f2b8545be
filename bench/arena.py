"""The arena: contenders take turns with the same scripted model, and what each one costs is measured from outside.

A contender is a command line that talks to `{BASE_URL}`, carries out what the model asks (`true 0`, `true 1`, …), goes
on until the model is done, and exits. Rounds are interleaved: A B C, A B C. Compare ratios inside one run, never
milliseconds between runs or machines.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PYTHON = HERE / "venvs" / "arena" / "bin" / "python"
"""Of the environment that holds the contenders."""
TIMEOUT_S = 300.0
EARLY, LATE = slice(2, 22), slice(-20, None)
"""Iterations that history growth is read from."""

TARGET = "here"
CONFIG = f"""\
[model]
kind = "provider"
name = "fake"
base_url = "{{BASE_URL}}"

[limits]
iterations = 100000
runs = 100000
tokens = 1000000000

[targets.{TARGET}]
transport = "local"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Who takes part, and what the model says to it."""

    argv: Sequence[str]
    """`{HOME}` is a fresh directory, `{BASE_URL}` the model, `{N}` how many measured calls."""
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Written before the start."""
    script: Mapping[str, Any] = field(default_factory=dict)
    """`before`, `call` and `after` of bench/model.py."""


def _peer(program: str, **environment: str) -> Contender:
    return Contender(argv=[str(PYTHON), str(HERE / "contenders" / f"{program}.py")], environment=environment)


def _oikos() -> Contender:
    """Everything on: plan gate, classifier, durable rows, the feed with the terminal as its reader.

    The session ends as the product demands, by write-back, closed step and complete_task: those calls come after the
    measured ones.
    """
    step = {"title": "run the command", "target": TARGET, "commands": ["true"]}
    call = ["run", {"target": TARGET, "command": "true {i}", "step": 1}]
    after = [
        ["update_entity_attributes", {"entity": TARGET, "attributes": {"bench": "done"}, "run": "{run}"}],
        ["update_plan_step", {"seq": 1, "status": "done"}],
        ["complete_task", {"outcome": "done", "summary": "All commands ran.", "evidence": ["{run}"]}],
    ]
    before = [["set_goal", {"goal": "Run the command."}], ["propose_plan", {"steps": [step]}]]
    return Contender(
        argv=[str(ROOT / ".venv" / "bin" / "oikos"), "ask", "Run the command the scripted number of times, then stop."],
        environment={"OIKOS_HOME": "{HOME}/oikos"},
        files={"{HOME}/oikos/oikos.toml": CONFIG},
        script={"before": before, "call": call, "after": after},
    )


CONTENDERS: Mapping[str, Contender] = {
    "floor-fast": _peer("floor"),
    "floor-composed": _peer("floor", DURABLE="1"),
    "oikos": _oikos(),
    "openai-agents": _peer("openai_agents"),
    "langgraph": _peer("langgraph_agent"),
    "pydantic-ai": _peer("pydantic_agent"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One contender, one round."""

    cold_s: float
    """Start of the process to the first byte of its first request."""
    cold_cpu_s: float
    gaps_ms: Sequence[float]
    """Overhead of each measured iteration."""
    cpu_ms: float
    """CPU per measured iteration, the command included."""
    peak_mb: float
    body: tuple[int, int]
    """Bytes of the first and the last request."""
    disk_kib: float
    syncs: int = 0
    """fsync and fdatasync calls, with strace only."""
    order: str = ""
    """R a request, F an fsync, X a command, in the order of strace."""


class Arena:
    """The model's process, and rounds against it."""

    def __init__(self) -> None:
        self._model = subprocess.Popen([PYTHON, HERE / "model.py"], stdout=subprocess.PIPE, text=True)
        assert self._model.stdout is not None
        self._port = int(self._model.stdout.readline())
        self._temporary = Path(tempfile.mkdtemp(prefix="arena-", dir=_temporary()))

    def close(self) -> None:
        """End the model."""
        self._control("quit")
        self._model.wait(10)
        shutil.rmtree(self._temporary, ignore_errors=True)

    def play(self, name: str, n: int, *, deltas: int = 0, strace: bool = False) -> Sample:
        """One contender through `n` measured iterations.

        Raises:
            SystemExit: it did not play the whole script; its last words are printed.
        """
        contender, home = CONTENDERS[name], Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._temporary))
        words = {"{HOME}": str(home), "{BASE_URL}": f"http://127.0.0.1:{self._port}/v1", "{N}": str(n)}
        for path, text in contender.files.items():
            file = Path(_filled(path, words))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_filled(text, words), encoding="utf-8")
        self._control("reset", {"n": n, "deltas": deltas, **contender.script})
        argv = [_filled(word, words) for word in contender.argv]
        trace = home / "strace"
        if strace:
            calls = "trace=fsync,fdatasync,execve,sendto"
            argv = ["strace", "-f", "-qq", "-s", "200", "-e", calls, "-o", str(trace), *argv]
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "WORK": str(home), "TMPDIR": str(home), "LANG": "C.UTF-8",
            "NO_COLOR": "1", "TERM": "dumb", "OPENAI_API_KEY": "x", "BASE_URL": words["{BASE_URL}"], "N": str(n),
            "LANGSMITH_TRACING": "false",
        } | {key: _filled(value, words) for key, value in contender.environment.items()}  # fmt: skip
        began, code, peak_mb = self._run(argv, environment, home)
        log = self._control("log")["log"]
        calls = n + sum(len(contender.script.get(part, ())) for part in ("before", "after"))
        if code or sum(row["kind"] in ("before", "measured", "after") for row in log) != calls:
            said = (home / "output").read_text(encoding="utf-8", errors="replace")[-3000:]
            raise SystemExit(f"bench: {name} ended with {code} after {len(log)} of {calls} requests:\n{said}")
        sample = _sample(log, began, peak_mb, home)
        if strace:
            syncs, order = _traced(trace.read_text(encoding="utf-8", errors="replace"))
            sample = replace(sample, syncs=syncs, order=order)
        shutil.rmtree(home, ignore_errors=True)
        return sample

    def _run(self, argv: Sequence[str], environment: Mapping[str, str], home: Path) -> tuple[float, int, float]:
        """(start, exit code, peak MB) of a process that begins once the model knows its group."""
        gate, opener = os.pipe()
        with (home / "output").open("wb") as output:
            pid = os.fork()
            if pid == 0:
                os.setsid()
                os.chdir(home)
                for to, descriptor in enumerate((os.open(os.devnull, os.O_RDONLY), output.fileno(), output.fileno())):
                    os.dup2(descriptor, to)
                os.read(gate, 1)
                os.closerange(3, 64)
                os.execvpe(argv[0], argv, environment)
        self._control("group", {"group": pid})
        began = time.monotonic()
        os.write(opener, b"x")
        os.close(opener)
        os.close(gate)
        while True:
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                break
            if time.monotonic() - began > TIMEOUT_S:
                os.killpg(pid, signal.SIGKILL)
            time.sleep(0.01)
        return began, os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024

    def _control(self, verb: str, given: Mapping[str, Any] | None = None) -> Any:
        data = json.dumps(given or {}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/ctl/{verb}", data=data, method="POST")
        with urllib.request.urlopen(request, timeout=30) as reply:
            return json.loads(reply.read())


def _sample(log: Sequence[Mapping[str, Any]], began: float, peak_mb: float, home: Path) -> Sample:
    gaps = [
        (after["whole"] - row["left"]) * 1000 for row, after in itertools.pairwise(log) if row["kind"] == "measured"
    ]
    marks = [row["used"] for row in log if row.get("used")]
    files = [path for path in home.rglob("*") if path.is_file() and path.name not in ("output", "strace")]
    return Sample(
        cold_s=log[0]["came"] - began,
        cold_cpu_s=marks[0]["cpu_s"],
        gaps_ms=gaps,
        cpu_ms=(marks[1]["cpu_s"] - marks[0]["cpu_s"]) * 1000 / len(gaps),
        peak_mb=max(peak_mb, *(mark["peak_kib"] / 1024 for mark in marks)),
        body=(log[0]["bytes"], log[-1]["bytes"]),
        disk_kib=sum(path.stat().st_size for path in files) / 1024,
    )


def _traced(trace: str) -> tuple[int, str]:
    """How many syncs, and the order of requests, syncs and commands."""
    order = []
    for line in trace.splitlines():
        if "resumed>" in line:
            continue
        if re.search(r"\bf(data)?sync\(", line):
            order.append("F")
        elif "execve(" in line and ('"true"' in line or '"true ' in line):
            order.append("X")
        elif "sendto(" in line and '"POST ' in line:
            order.append("R")
    return order.count("F"), "".join(order)


def _filled(text: str, words: Mapping[str, str]) -> str:
    for mark, value in words.items():
        text = text.replace(mark, value)
    return text


def _temporary() -> Path:
    """On the disk that holds the checkout: /tmp may be memory, where an fsync costs nothing."""
    place = HERE / "tmp"
    place.mkdir(exist_ok=True)
    return place


def percentile(values: Sequence[float], part: float) -> float:
    """Of a sorted copy."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(part * (len(ordered) - 1)))]


def line(name: str, sample: Sample) -> str:
    """One round for people."""
    gaps = sample.gaps_ms
    speed = (
        f"overhead p50 {statistics.median(gaps):.2f} p95 {percentile(gaps, 0.95):.2f} ms  CPU {sample.cpu_ms:.2f} ms"
    )
    size = f"peak {sample.peak_mb:.0f} MB  body {sample.body[0]}..{sample.body[1]} B  disk {sample.disk_kib:.0f} KiB"
    return f"{name:<15} cold {sample.cold_s:.2f} s ({sample.cold_cpu_s:.2f} CPU)  {speed}  {size}"


def main() -> None:
    """Some contenders alone, for work on one of them: arena.py NAMES N ROUNDS [DELTAS]."""
    names, n, rounds = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
    deltas = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    arena = Arena()
    try:
        for _ in range(rounds):
            for name in names:
                print(line(name, arena.play(name, n, deltas=deltas)), flush=True)
    finally:
        arena.close()


if __name__ == "__main__":
    main()
