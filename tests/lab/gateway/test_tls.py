"""The server name of a real ClientHello."""

from __future__ import annotations

import ssl

from oikos.lab.gateway.tls import server_name


def hello(name: str | None) -> bytes:
    """What a real TLS client sends first."""
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = name is not None
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def test_the_name_a_client_asks_for_is_read() -> None:
    assert server_name(hello("Packages.Example.org")) == "packages.example.org"


def test_a_hello_without_a_name_has_none() -> None:
    assert server_name(hello(None)) is None


def test_anything_else_has_none() -> None:
    assert [server_name(data) for data in (b"", b"GET / HTTP/1.1\r\n\r\n", hello("a.example")[:60])] == [None] * 3
