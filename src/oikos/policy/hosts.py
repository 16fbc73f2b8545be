"""Host names and addresses: loopback, home network or third party."""

from __future__ import annotations

import ipaddress
import re

_HOME_SUFFIX = (
    ".lan", ".local", ".home", ".internal", ".localdomain", ".home.arpa", ".intranet", ".private", ".corp", ".svc",
    ".cluster.local", ".localhost",
)  # fmt: skip


def host_of(text: str) -> str:
    """The host of a URL, `user@host:path` or `host:port`; empty when there is none."""
    rest = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://", "", text)
    rest = re.split(r"[/?#]", rest, maxsplit=1)[0]
    rest = rest.rsplit("@", 1)[-1]
    if rest.startswith("["):
        return rest[1:].split("]", 1)[0]
    return rest.split(":", 1)[0] if rest.count(":") == 1 else rest


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    if host.lower() in ("localhost", "ip6-localhost", "") or host.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback or host == "0.0.0.0"  # compared, not bound
    except ValueError:
        return False


def is_third_party(host: str) -> bool:
    """Whether the host lies outside a home network: a public address or a public name."""
    if is_loopback(host):
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." in host and not host.lower().endswith(_HOME_SUFFIX)
    private = (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    )
    return not any(
        address in ipaddress.ip_network(net) for net in private if ipaddress.ip_network(net).version == address.version
    )


_OPTION = re.compile(r"(?:^|=)[A-Za-z][\w+.-]*://(?:[^/@\s]*@)?-|^(?:[\w.]+@)?-oProxyCommand=[^:]*:", re.IGNORECASE)


def is_option(text: str) -> bool:
    """Whether ssh reads the machine of an address as an option: `ssh://-oProxyCommand=…/x` (CVE-2017-1000117)."""
    return _OPTION.search(text) is not None
