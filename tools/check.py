"""make check: style, format, layers, house rules and types, each with its seconds; any one fails the whole.

Names of checks as arguments run only those.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CHECKS: dict[str, list[str]] = {
    "style": [str(BIN / "ruff"), "check", "--quiet", "--output-format", "concise", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "--output-format", "concise", "."],
    "layers": [str(BIN / "lint-imports"), "--no-logo", "--cache-dir", str(ROOT / ".cache" / "layers")],
    "rules": [sys.executable, str(ROOT / "tools" / "lint.py")],
    "types": [str(BIN / "mypy"), "--no-error-summary"],
}
"""What is checked, quickest first."""


def environment() -> dict[str, str]:
    """Plain output, and this tree's package rather than one that is installed."""
    path = f"{BIN}:{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "PATH": path, "PYTHONPATH": str(ROOT / "src")}


def main(names: list[str]) -> int:
    """Runs the checks; prints the output of those that fail, and returns how many did."""
    if unknown := set(names) - set(CHECKS):
        print(f"check: no check is called {', '.join(sorted(unknown))}; there are: {', '.join(CHECKS)}")
        return 1
    failed: list[str] = []
    for name in names or CHECKS:
        argv = CHECKS[name]
        begun = time.monotonic()
        done = subprocess.run(
            argv,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            env=environment(),
        )
        verdict = "ok" if done.returncode == 0 else "FAILED"
        print(f"check: {name:<12} {verdict:<7} {time.monotonic() - begun:5.1f} s", flush=True)
        if done.returncode:
            failed.append(name)
            print(done.stdout, flush=True)
    if failed:
        print(f"check: failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
