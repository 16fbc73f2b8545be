"""The wheel holds what the source tree holds: code, and the files that code reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel built from this tree, without asking a registry."""
    out = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, "-w", out, ROOT], check=True, capture_output=True)
    (wheel,) = out.glob("oikos-*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def files(directory: Path, prefix: str) -> set[str]:
    """The files below a directory, as the wheel names them."""
    found = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {f"{prefix}/{path.relative_to(directory).as_posix()}" for path in found}


def test_every_file_of_the_package_is_in_the_wheel(shipped: set[str]) -> None:
    assert files(ROOT / "src" / "oikos", "oikos") - shipped == set()


@pytest.mark.parametrize("name", ["runbooks", "evals"])
def test_runbooks_and_manifests_lie_where_oikos_data_looks(shipped: set[str], name: str) -> None:
    assert files(ROOT / name, f"oikos/_data/{name}") - shipped == set()


def test_nothing_else_is_in_the_wheel(shipped: set[str]) -> None:
    assert {name.split("/")[0] for name in shipped if ".dist-info" not in name} == {"oikos"}
