"""The names the gateway passes on: those this machine's own apt and pip are set up for, read when it starts."""

from __future__ import annotations

import importlib
import re
from pathlib import Path


def names() -> frozenset[str]:
    """Lower-case host names; none is ever written into the project."""
    found: set[str] = set()
    files = [Path("/etc/apt/sources.list")]
    for pattern in ("*.list", "*.sources"):
        files += sorted(Path("/etc/apt/sources.list.d").glob(pattern))
    for file in files:
        if file.is_file():
            lines = file.read_text(encoding="utf-8").splitlines()
            text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
            found.update(re.findall(r"https?://([A-Za-z0-9.-]+)", text))
    return frozenset(name.lower() for name in found | _pip_names())


def _pip_names() -> set[str]:
    """The hosts pip itself was built with; none when there is no pip."""
    try:
        index = importlib.import_module("pip._internal.models.index").PyPI
        return {str(index.netloc), str(index.file_storage_domain)}
    except (ImportError, AttributeError):
        return set()
