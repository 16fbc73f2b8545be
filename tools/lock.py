"""Writes requirements/*.txt: exact versions with the hashes of the published files, and no index address."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = "# Written by make lock from pyproject.toml. Install: pip install --require-hashes -r requirements/{name}.txt\n"
TARGETS = {
    "dev": ["pyproject.toml", "--group", "pyproject.toml:dev"],
    "run": ["pyproject.toml", "--constraint", "requirements/dev.txt"],
    "build": ["--group", "pyproject.toml:build", "--constraint", "requirements/dev.txt"],
    "bench": ["--group", "pyproject.toml:bench"],
}
"""What each file holds; dev comes first, because run and build must agree with it."""


def resolver() -> Path:
    """The resolver's program, in an environment of its own: no other verb needs it."""
    home = ROOT / ".cache" / "lock"
    program = home / "bin" / "uv"
    if not program.exists():
        venv.create(home, with_pip=True)
        subprocess.run([home / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    return program


def tidy(text: str) -> str:
    """Drops the condition that is true wherever Oikos runs, and refuses a line that names an address."""
    text = re.sub(r" and sys_platform == 'linux'|(?<=\S) ; sys_platform == 'linux'", "", text)
    if re.search(r"https?://|--(extra-)?index|--find-links", text):
        raise SystemExit("lock: the resolver wrote an address; requirements files must hold none")
    return text


def main() -> int:
    """Resolves every target."""
    program = resolver()
    for name, sources in TARGETS.items():
        options = ["--universal", "--python-version", "3.11", "--generate-hashes"]
        quiet = ["--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate", "--quiet"]
        done = subprocess.run(
            [program, "pip", "compile", *options, *quiet, *sources],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        text = HEAD.format(name=name) + tidy(done.stdout)
        (ROOT / "requirements" / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"lock: requirements/{name}.txt, {text.count('==')} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
