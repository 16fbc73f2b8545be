from __future__ import annotations

import pytest

from oikos.adapters.model.endpoint import endpoint
from oikos.domain.errors import ConfigError

REFUSED = [
    ("file:///etc/passwd", "http:// or https://"),
    ("ftp://models.example/v1", "http:// or https://"),
    ("models.example/v1", "http:// or https://"),
    ("http:///v1", "names no host"),
    ("http://user:secret@models.example/v1", "no user or password"),
    ("http://models.example/v1?key=1", "query"),
    ("http://models.example/v1#x", "fragment"),
    ("http://models.example/a b", "spaces"),
    ("http://models.example:99999/v1", "Port out of range"),
    ("http://0x7f000001/v1", "unusual way"),
    ("http://2130706433/v1", "unusual way"),
    ("http://127.1/v1", "unusual way"),
    ("http://0177.0.0.1/v1", "unusual way"),
    ("http://[::ffff:127.0.0.1]/v1", "hides an IPv4 address"),
    ("http://0.0.0.0:11434/v1", "link-local, unspecified"),
    ("http://[::]/v1", "link-local, unspecified"),
    ("http://169.254.169.254/latest", "link-local, unspecified"),
    ("http://224.0.0.1/v1", "multicast"),
    ("http://моdels.example/v1", "not ASCII"),
]


@pytest.mark.parametrize(("url", "reason"), REFUSED)
def test_an_address_that_hides_where_it_leads_is_refused(url: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint(url, "m")
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "origin", "path"),
    [
        ("https://api.example.net/v1/", "https://api.example.net:443", "/v1/chat/completions"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434", "/v1/chat/completions"),
        ("http://[::1]:8080", "http://[::1]:8080", "/chat/completions"),
        ("http://nas.lan:8000/v1/chat/completions", "http://nas.lan:8000", "/v1/chat/completions"),
    ],
)
def test_plain_addresses_are_taken_as_written(url: str, origin: str, path: str) -> None:
    made = endpoint(url, "m")
    assert (made.origin, made.path) == (origin, path)


def test_a_key_is_never_shown_and_never_malformed() -> None:
    assert "sk-1" not in repr(endpoint("http://h/v1", "m", key="sk-1"))
    with pytest.raises(ConfigError, match="spaces or control characters"):
        endpoint("http://h/v1", "m", key="sk-1\r\nhost: elsewhere")


def test_a_model_needs_a_name() -> None:
    with pytest.raises(ConfigError, match="has no name"):
        endpoint("http://h/v1", " ")
