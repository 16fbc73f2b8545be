"""What tests/conftest.py promises to every test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from blockbuster import BlockingError
from hypothesis import settings

from oikos import data

ROOT = Path(__file__).parents[2]


@pytest.mark.anyio
async def test_product_code_that_blocks_the_event_loop_fails_its_test() -> None:
    with pytest.raises(BlockingError):
        data.path("evals")


@pytest.mark.anyio
async def test_the_same_call_in_a_thread_is_fine() -> None:
    assert (await anyio.to_thread.run_sync(data.path, "evals")).is_dir()


def test_blocking_outside_of_a_loop_is_fine() -> None:
    assert data.path("runbooks").is_dir()


def test_hypothesis_has_no_deadline_and_prints_what_repeats_a_failure() -> None:
    assert (settings().deadline, settings().print_blob) == (None, True)


def test_an_operators_own_settings_do_not_reach_the_tests() -> None:
    assert [name for name in os.environ if name.startswith("OIKOS_") and not name.startswith("OIKOS_LAB_")] == []


def test_what_needs_root_is_skipped_with_a_visible_count_for_other_users(tmp_path: Path) -> None:
    (tmp_path / "test_mounts.py").write_text(
        "import pytest\n\n@pytest.mark.needs_root\ndef test_mount() -> None:\n    assert False\n", "utf-8"
    )
    # In a user namespace of its own root is nobody, who may still read what root owns.
    nobody = ["unshare", "--user"] if os.geteuid() == 0 else []
    words = ["-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml"]
    done = subprocess.run(
        [*nobody, sys.executable, *words, "--rootdir", tmp_path, tmp_path / "test_mounts.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT RUN: 1 tests need root; run them with: sudo make test" in done.stdout
    assert "1 skipped" in done.stdout


def test_warnings_are_errors() -> None:
    import warnings

    with pytest.raises(DeprecationWarning):
        warnings.warn("old", DeprecationWarning, stacklevel=1)
