"""The masking chokepoint: a table of cases, and the promise that no cut and no resumption lets a secret through."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oikos.domain.mask import MAX_HELD_BYTES, Masker, Secrets, mask_bytes, mask_text

CASES = tomllib.loads(Path(__file__).with_name("mask.toml").read_text(encoding="utf-8"))["case"]
SECRET = 's3cr3t-v\u00e4l"ue'
KNOWN = Secrets({"DB": SECRET, "KEY": "first line of it\nsecond line of it\n", "SHORT": "abc"})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_table(case: dict[str, str]) -> None:
    masked = case.get("masked", case["text"])
    assert mask_text(case["text"]) == masked
    assert mask_text(masked) == masked, "masking twice changes nothing"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_no_cut_and_no_resumption_changes_what_is_masked(case: dict[str, str]) -> None:
    raw = case["text"].encode()
    whole = mask_bytes(raw)
    for cut in range(len(raw) + 1):
        stream = Masker()
        first, consumed = stream.feed(raw[:cut])
        second, more = stream.feed(raw[cut:])
        rest, last = stream.flush()
        assert (first + second + rest, consumed + more + last) == (whole, len(raw))
        assert first + mask_bytes(raw[consumed:]) == whole, "a follower that resumed at the boundary"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (SECRET, "[masked:DB]"),
        (f"x{SECRET}y{SECRET}", "x[masked:DB]y[masked:DB]"),
        ('{"a": "s3cr3t-v\u00e4l\\"ue"}', '{"a": "[masked:DB]"}'),
        ('{"a": "s3cr3t-v\\u00e4l\\"ue"}', '{"a": "[masked:DB]"}'),
        ("https://h/?q=s3cr3t-v%C3%A4l%22ue&x", "https://h/?q=[masked:DB]&x"),
        ("base64 czNjcjN0LXbDpGwidWU= end", "base64 [masked:DB]= end"),
        ("> second line of it\r\n", "> [masked:KEY]\r\n"),
        ("abc is too short", "abc is too short"),
    ],
)
def test_known_values_are_masked_in_the_forms_they_travel_in(text: str, masked: str) -> None:
    assert mask_text(text, KNOWN) == masked


def test_a_known_secret_split_at_every_byte_never_leaks() -> None:
    raw = f"a {SECRET} b\n{SECRET}\nc".encode()
    secret = SECRET.encode()
    for one in range(len(raw) + 1):
        for two in range(one, len(raw) + 1):
            stream = Masker(KNOWN)
            pieces = [stream.feed(part)[0] for part in (raw[:one], raw[one:two], raw[two:])]
            pieces.append(stream.flush()[0])
            assert b"".join(pieces) == b"a [masked:DB] b\n[masked:DB]\nc"
            assert not any(secret[:4] in piece for piece in pieces)


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_raw_bytes_are_all_accounted_for(chunks: list[bytes]) -> None:
    stream, raw, out, consumed = Masker(KNOWN), b"".join(chunks), b"", 0
    for chunk in chunks:
        data, count = stream.feed(chunk)
        out, consumed = out + data, consumed + count
        assert consumed <= len(raw)
        assert raw[consumed - 1 : consumed] in (b"", b"\n", b"\r")
    data, count = stream.flush()
    assert (consumed + count, out + data) == (len(raw), mask_bytes(raw, KNOWN))


@given(st.text(alphabet=st.characters(blacklist_characters="=:$-@/.", blacklist_categories=["Cs"])))
def test_text_without_anything_to_hide_passes_unchanged(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "unit",
    [
        b"a",
        b"key",
        b"password=",
        b"://:",
        b'"a\\',
        b"-----BEGIN RSA PRIVATE KEY-----\n",
        b"eyJ",
        b"\n",
        b"$6$",
        b"token: x ",
    ],
)
@pytest.mark.parametrize("step", [977, 262_144])
def test_hostile_output_is_let_through_in_bounded_memory(unit: bytes, step: int) -> None:
    raw = unit * (300_000 // len(unit))
    stream, consumed = Masker(KNOWN), 0
    for at in range(0, len(raw), step):
        _, count = stream.feed(raw[at : at + step])
        consumed += count
        assert at + min(step, len(raw) - at) - consumed <= MAX_HELD_BYTES
    assert consumed + stream.flush()[1] == len(raw)


def test_a_secret_across_the_cut_of_an_endless_line_is_masked() -> None:
    for offset in range(0, 64, 7):
        raw = b"x" * (MAX_HELD_BYTES - 4096 - 20 + offset) + SECRET.encode() + b"y" * 50_000
        stream = Masker(KNOWN)
        out = b"".join(stream.feed(raw[at : at + 1000])[0] for at in range(0, len(raw), 1000)) + stream.flush()[0]
        assert out == raw.replace(SECRET.encode(), b"[masked:DB]")


def test_a_value_longer_than_what_is_held_is_swallowed_to_its_end() -> None:
    raw = b"token=" + b"v" * 200_000 + b" end\n"
    assert mask_bytes(raw) == b"token=[masked:token] end\n"
    stream = Masker()
    out = b"".join(stream.feed(raw[at : at + 5000])[0] for at in range(0, len(raw), 5000)) + stream.flush()[0]
    assert b"v" not in out
    assert out.endswith(b" end\n")
