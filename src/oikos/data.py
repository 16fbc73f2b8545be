"""Where the files that ship with Oikos lie: runbooks and eval manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def path(name: Literal["runbooks", "evals"]) -> Path:
    """The directory of shipped files called `name`, in an installed wheel as in a checkout.

    Raises:
        FileNotFoundError: the package was built without its data.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_data" / name, package.parents[1] / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"the shipped {name} are missing beside {package}: install Oikos again")
