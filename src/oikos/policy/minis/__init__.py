"""Small parsers for the languages and odd argument lists that option tables cannot describe."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

_WHERE = {
    "shell": "shells", "xargs": "shells", "env": "shells", "su": "shells", "watch": "shells", "ssh": "shells", "tmux": "shells",
    "flock": "shells", "parallel": "shells", "busybox": "shells", "ansible": "automation", "inventory": "automation", "expect": "shells", "sudo": "shells",
    "find": "find", "fd": "find", "sed": "sed", "awk": "awk", "jq": "jq", "tar": "archives", "dd": "files",
    "copy": "files", "chmod": "files", "chown": "files", "remove": "files", "ps": "files", "date": "files", "tee": "files",
    "curl": "http", "wget": "http", "httpie": "http", "psql": "sql", "mysql": "sql", "sqlite": "sql", "redis": "stores", "mongo": "stores",
    "sqltext": "sql", "influx": "stores", "python": "code", "perl": "code", "node": "code", "crontab": "cron", "at": "cron",
    "systemctl": "services", "service": "services", "kill": "services", "ip": "network", "ifconfig": "network", "dns": "network",
    "netcat": "sockets", "ping": "network", "iptables": "firewall", "nft": "firewall", "firewalld": "firewall", "git": "vcs", "gitconfig": "vcs", "rsync": "transfer",
    "scp": "transfer", "rclone": "transfer", "dockerrun": "containers", "inspect": "containers", "kubeget": "containers",
    "compose": "containers", "apiwrite": "containers", "pvesh": "proxmox", "pctset": "proxmox", "openssl": "crypto", "less": "pagers", "vim": "pagers",
    "visudo": "pagers",
    "busctl": "services", "make": "code", "aptopts": "packages", "debugfs": "storage", "hdparm": "storage", "lines": "lines", "complete": "lines", "parted": "storage", "mkswap": "storage", "setcap": "files", "grep": "files", "wg": "network", "modprobe": "files", "printenv": "files", "restic": "transfer", "ghapi": "http", "lxdapi": "http",
    "push": "vcs", "sysctl": "services",
    "miller": "tools", "strace": "tools", "nmap": "tools", "smartctl": "tools", "ntpq": "tools", "dc": "tools", "envsubst": "tools", "browser": "tools",
}  # fmt: skip

OWN_WORDS = frozenset(("tar", "find", "fd", "sed", "awk", "jq", "curl", "wget", "xargs", "dns"))
"""Handlers that judge dynamic words themselves."""

OWN_WRAPPING = frozenset(("sudo", "env", "xargs", "watch", "flock", "parallel", "busybox", "su", "tmux"))
"""Handlers that unwrap the inner command themselves."""


class _Lazy:
    """Imports a small parser when it is first needed: a command line start should not pay for all of them."""

    def __getitem__(self, name: str) -> Callable[[Call], Flow | None]:
        module = importlib.import_module(f"oikos.policy.minis.{_WHERE[name]}")
        handler: Callable[[Call], Flow | None] = getattr(module, name)
        return handler

    def __contains__(self, name: str) -> bool:
        return name in _WHERE


HANDLERS = _Lazy()
