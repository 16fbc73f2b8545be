"""Secrets of a home: what another process was given is seen at once, and asking costs nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from oikos.adapters.secrets import KnownSecrets, SecretFiles
from oikos.domain.mask import mask_text


def files(home: Path) -> tuple[SecretFiles, KnownSecrets]:
    known = KnownSecrets({})
    return SecretFiles(home / "secrets", known), known


def test_what_another_process_was_given_is_learnt(tmp_path: Path) -> None:
    mine, known = files(tmp_path)
    mine.refresh()
    SecretFiles(tmp_path / "secrets").keep("token", "hunter-2-hunter-2")
    assert mine.changed()
    mine.refresh()
    assert not mine.changed()
    assert mask_text("x hunter-2-hunter-2 y", known) != "x hunter-2-hunter-2 y"


def test_nothing_new_is_told_without_a_look(tmp_path: Path) -> None:
    mine, _ = files(tmp_path)
    assert mine.changed()
    mine.refresh()
    assert not mine.changed()


def test_a_directory_that_was_made_anew_is_looked_at_again(tmp_path: Path) -> None:
    mine, known = files(tmp_path)
    mine.refresh()
    shutil.rmtree(tmp_path / "secrets")
    assert mine.changed()
    SecretFiles(tmp_path / "secrets").keep("token", "hunter-3-hunter-3")
    mine.refresh()
    assert not mine.changed()
    assert mask_text("hunter-3-hunter-3", known) != "hunter-3-hunter-3"


def test_a_home_that_cannot_hold_secrets_has_none(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    mine, _ = files(tmp_path / "home")
    mine.refresh()
    assert mine.changed()
