"""A container's network settings: `netN` values, their defaults, and the address each stands for."""

from __future__ import annotations

import hashlib
import os
import re

from oikos.lab.node.errors import Die, bad_parameter
from oikos.lab.node.options import properties
from oikos.lab.node.site import site

ORDER = ("name", "bridge", "firewall", "gw", "hwaddr", "ip", "ip6", "tag", "type")
#: The range Proxmox Server Solutions registered.
PREFIX = "BC:24:11:"


def keys(settings: dict[str, str]) -> list[str]:
    """net0, net1, … as far as they are set."""
    return sorted(key for key in settings if re.fullmatch(r"net\d+", key))


def address(vmid: str, net: dict[str, str]) -> tuple[str, str]:
    """CIDR and gateway, empty where there is none. Raises: Die."""
    ip = net.get("ip", "")
    if ip == "dhcp":
        return site().lease(vmid), site().gateway
    if ip in ("", "manual"):
        return "", ""
    if re.fullmatch(r"\d+\.\d+\.\d+\.\d+/\d+", ip) is None:
        why = "invalid format - format error\nnet0.ip: value does not look like a valid ipv4 network configuration"
        raise bad_parameter("net0", why)
    return ip, net.get("gw", "")


def complete(vmid: str, settings: dict[str, str]) -> None:
    """Check every netN of `settings` and fill in bridge, type and hardware address. Raises: Die."""
    for key in keys(settings):
        net = properties(settings[key])
        if "name" not in net:
            raise bad_parameter(
                key, f"invalid format - format error\n{key}.name: property is missing and it is not optional"
            )
        net.setdefault("bridge", "vmbr0")
        net.setdefault("type", "veth")
        if not os.path.isdir(f"/sys/class/net/{net['bridge']}"):
            raise Die(f"bridge '{net['bridge']}' does not exist")
        address(vmid, net)
        if "hwaddr" not in net:
            digest = hashlib.sha256(f"{site().node}{vmid}{key}".encode()).hexdigest().upper()
            net["hwaddr"] = PREFIX + ":".join(digest[i : i + 2] for i in (0, 2, 4))
        settings[key] = ",".join(f"{name}={net[name]}" for name in ORDER if name in net)
