"""Brings a checkout to life: Debian packages, the virtual environment, Python packages by hash, Oikos itself.

Standard library only: it runs under the system's Python, before anything is installed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SYSTEM_PATH = "/usr/sbin:/sbin"
"""Where Debian keeps the programs of root; not on everyone's PATH."""

PURPOSES = {"run": ["run", "build"], "dev": ["dev"]}
"""What is set up for -> the requirements files that it takes; dev holds the others."""


class SetupError(Exception):
    """What stopped the set-up, as one line for the person who typed make."""


class Package(NamedTuple):
    """One row of requirements/debian.txt."""

    name: str
    program: str
    reason: str


def packages(table: str) -> list[Package]:
    """The rows of requirements/debian.txt: package, program, and why Oikos wants it."""
    rows = (line.split(None, 2) for line in table.splitlines() if line.strip() and not line.startswith("#"))
    return [Package(*row) for row in rows]


def present(program: str, path: str) -> bool:
    """Whether `program` can be started, or, for `python3:MODULE`, whether that Python module is there."""
    if program.startswith("python3:"):
        wanted = {"venv": "import venv, ensurepip"}[program.partition(":")[2]]
        return subprocess.run([sys.executable, "-c", wanted], capture_output=True, check=False).returncode == 0
    return shutil.which(program, path=path) is not None


def become_root() -> list[str] | None:
    """The words that make a command run as root without a question, or None when there are none."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and not subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode:
        return ["sudo", "-n"]
    return None


def run(argv: Sequence[str], what: str) -> None:
    """Runs one command of the set-up quietly.

    Raises:
        SetupError: it failed; its last lines are printed first.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, check=False).returncode
        if code == 0:
            return
        log.seek(0)
        sys.stderr.write("".join(log.readlines()[-30:]))
    raise SetupError(f"{what} failed (exit {code}): {' '.join(argv[:6])} … ; see the lines above")


def debian() -> list[str]:
    """Installs what is missing of requirements/debian.txt; what nobody here may install is named in the lines returned.

    Raises:
        SetupError: apt-get failed, or Python has no venv module and nobody may install it.
    """
    path = f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}"
    table = (ROOT / "requirements" / "debian.txt").read_text("utf-8")
    missing = [package for package in packages(table) if not present(package.program, path)]
    names = " ".join(package.name for package in missing)
    prefix = become_root()
    if missing and prefix is not None and shutil.which("apt-get"):
        # SYSTEMD_OFFLINE: a package that brings a service (openssh-server) must not start it now.
        apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "SYSTEMD_OFFLINE=1", "apt-get", "-qq"]
        apt += ["-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3"]
        install = [*apt, "install", "-y", "--no-install-recommends", *names.split()]
        # The lists of a new machine are empty, those of an old one stale: then they are fetched first.
        if subprocess.run(install, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode != 0:
            run([*apt, "update"], "refreshing the list of Debian packages")
            run(install, f"installing {names}")
        return []
    if any(package.program == "python3:venv" for package in missing):
        raise SetupError(f"Python has no venv module, so nothing can be set up; as root: apt-get install {names}")
    said = [f"missing {package.program} (package {package.name}): {package.reason}" for package in missing]
    return [*said, f"install them as root: apt-get install {names}"] if said else []


def environment(venv: Path) -> None:
    """Makes the virtual environment, anew when it belongs to another Python or another place."""
    python = venv / "bin" / "python"
    wanted = f"{sys.version_info.major}.{sys.version_info.minor} {venv}"
    if python.exists():
        probe = "import sys; print('%d.%d' % sys.version_info[:2], sys.prefix)"
        found = subprocess.run([str(python), "-c", probe], capture_output=True, text=True, check=False)
        if found.stdout.strip() == wanted and (venv / "bin" / "pip").exists():
            return
        shutil.rmtree(venv)
    run([sys.executable, "-m", "venv", str(venv)], f"making {venv.name}")


def pip(venv: Path, *words: str) -> list[str]:
    """A pip of the environment that installs `words`, quietly and without asking."""
    options = ["--disable-pip-version-check", "--no-input", "install", "--quiet"]
    as_root = ["--root-user-action=ignore"] if os.geteuid() == 0 else []
    return [str(venv / "bin" / "python"), "-m", "pip", *options, *as_root, *words]


def python_packages(venv: Path, names: Sequence[str]) -> None:
    """Installs the exact versions of requirements files, each checked against its hash."""
    files = [word for name in names for word in ("-r", str(ROOT / "requirements" / f"{name}.txt"))]
    # Not compiled here: most modules of these packages are never imported.
    run(pip(venv, "--require-hashes", "--no-compile", *files), "installing Python packages")


def oikos(venv: Path) -> None:
    """Installs this checkout into its environment, without asking any registry."""
    words = ["--no-build-isolation", "--no-deps", "--no-index", "--editable", str(ROOT)]
    run(pip(venv, *words), "installing Oikos")


def step(title: str, work: Callable[[], Sequence[str] | None]) -> None:
    """Does one step, prints its seconds, then the lines it has to say."""
    print(f"setup: {title} …", end="", flush=True)
    begun = time.monotonic()
    lines = work()
    print(f" {time.monotonic() - begun:.1f} s", flush=True)
    for line in lines or ():
        print(f"setup: {line}", flush=True)


def steps(venv: Path, purpose: str) -> None:
    """Every step, each of which does nothing when nothing is due."""
    step("Debian packages", debian)
    step("virtual environment", lambda: environment(venv))
    step("Python packages", lambda: python_packages(venv, PURPOSES[purpose]))
    step("Oikos", lambda: oikos(venv))


def main(purpose: str) -> int:
    """Runs every step: `run` is what Oikos itself needs, `dev` adds what tests and checks need."""
    if sys.version_info < (3, 11):  # noqa: UP036 - an older Python is just what this line is for
        version = sys.version.split()[0]
        print(
            f"setup: {sys.executable} is {version}; Oikos needs 3.11 or newer: make PYTHON=python3.12 …",
            file=sys.stderr,
        )
        return 1
    venv = ROOT / ".venv"
    try:
        # Two makes in one checkout take turns; the second finds the work done.
        with (ROOT / "tools" / "setup.py").open("rb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            steps(venv, purpose)
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
