"""Where a model is served: the one origin a provider may talk to, as the operator's configuration names it."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from oikos.domain.errors import ConfigError

SCHEMES = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds a request may take before it counts as failed."""

    connect_s: float = 10.0
    first_s: float = 180.0
    """Until the first byte of the answer: a local model reads a long prompt before it says anything."""
    idle_s: float = 90.0
    """Longest silence within an answer."""
    total_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible chat-completions service. Never built from anything but the operator's configuration."""

    scheme: str
    host: str
    port: int
    path: str
    """Path of the chat-completions resource, such as `/v1/chat/completions`."""
    model: str
    key: str = field(default="", repr=False)
    """Sent as a bearer token; empty: none is sent. Resolved from the operator's reference, never written out."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Further fields of every request, such as `temperature` or `max_tokens`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further request headers, such as the attribution a gateway asks for."""
    deadlines: Deadlines = Deadlines()

    @property
    def origin(self) -> str:
        """Scheme, host and port, for people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def endpoint(
    base_url: str,
    model: str,
    *,
    key: str = "",
    options: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
    deadlines: Deadlines | None = None,
) -> Endpoint:
    """An endpoint from the base URL an operator wrote, such as `https://api.example.net/v1`.

    Raises:
        ConfigError: the URL is no plain http(s) address, or hides where it leads (THREATS T14).
    """
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError as error:
        raise _bad(base_url, str(error)) from None
    if parts.scheme not in SCHEMES:
        raise _bad(base_url, "it must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _bad(base_url, "it must hold no user or password; name the key in api_key")
    if parts.query or parts.fragment or any(ord(letter) <= 32 or ord(letter) == 127 for letter in base_url):
        raise _bad(base_url, "it must be an address without query, fragment or spaces")
    host = parts.hostname or ""
    if fault := address_fault(host):
        raise _bad(base_url, fault)
    if not model.strip():
        raise ConfigError('the model has no name: set name in [model], such as name = "llama3.3"')
    if any(ord(letter) < 33 or ord(letter) > 126 for letter in key):
        raise ConfigError("the model's API key holds spaces or control characters: check what its reference names")
    path = parts.path.rstrip("/")
    if not path.endswith("/chat/completions"):
        path += "/chat/completions"
    return Endpoint(
        scheme=parts.scheme,
        host=host,
        port=port or SCHEMES[parts.scheme],
        path=path,
        model=model,
        key=key,
        options=dict(options or {}),
        headers=dict(headers or {}),
        deadlines=deadlines or Deadlines(),
    )


def address_fault(host: str) -> str:
    """Why a host must not be talked to, as half a sentence; empty when it may.

    Loopback and private addresses are where local models live; unusual spellings, link-local and
    unspecified ones only serve to reach something else than they seem to name.
    """
    if not host:
        return "it names no host"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            socket.inet_aton(host)
        except (OSError, UnicodeEncodeError):
            return "" if host.isascii() else "its host is not ASCII; write the xn-- form"
        return "its address is spelt in an unusual way; write it as four decimal numbers"
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return "its address hides an IPv4 address; write that one"
    if address.is_link_local or address.is_unspecified or address.is_multicast:
        return "no model is served at a link-local, unspecified or multicast address"
    return ""


def _bad(url: str, reason: str) -> ConfigError:
    shown = url.rpartition("@")[2] if "@" in url else url
    return ConfigError(f"base_url {shown[:200]!r} of the model cannot be used: {reason}")
