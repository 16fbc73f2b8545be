"""The token file: private, hashed, read again when it changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from oikos.domain.consent import Channel, Principal, Role
from oikos.domain.errors import ConfigError
from oikos.web.tokens import FILE, Tokens


def test_a_token_is_known_by_its_hash_alone(tmp_path: Path) -> None:
    text = Tokens(tmp_path).add("anna", Role.APPROVER, now_s=1.0)
    assert text not in (tmp_path / FILE).read_text()
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert Tokens(tmp_path).who(text) == Principal(id="api:anna", role=Role.APPROVER, channel=Channel.API)
    for wrong in ("", text[:-1], text + "A", text.lower(), text.removeprefix("oikos_"), " " + text):
        assert Tokens(tmp_path).who(wrong) is None


def test_a_change_by_another_process_counts_at_once(tmp_path: Path) -> None:
    here, elsewhere = Tokens(tmp_path), Tokens(tmp_path)
    assert here.who("oikos_x") is None
    text = elsewhere.add("anna", Role.VIEWER, now_s=1.0)
    assert here.who(text) is not None
    elsewhere.revoke("anna")
    assert here.who(text) is None
    assert [row.name for row in here.rows()] == []


def test_a_file_that_others_could_have_written_lets_nobody_in(tmp_path: Path) -> None:
    text = Tokens(tmp_path).add("anna", Role.ADMIN, now_s=1.0)
    (tmp_path / FILE).chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        Tokens(tmp_path).who(text)


@pytest.mark.parametrize(
    "content", ["", "{", "[1]", '[{"name": "a"}]', '[{"name":"a","role":"god","sha256":"","created_s":1}]']
)
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    (tmp_path / FILE).chmod(0o600)
    with pytest.raises(ConfigError, match="damaged"):
        Tokens(tmp_path).rows()


def test_names_are_names_and_belong_to_one_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    tokens.add("anna", Role.VIEWER, now_s=1.0)
    for name, said in (("anna", "already"), ("An na", "lower-case"), ("", "lower-case")):
        with pytest.raises(ConfigError, match=said):
            tokens.add(name, Role.VIEWER, now_s=1.0)
    with pytest.raises(ConfigError, match="no token berta"):
        tokens.revoke("berta")
