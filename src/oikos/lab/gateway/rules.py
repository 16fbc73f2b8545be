"""The fault rules of a lab's gateway: a JSON file that the lab's API writes and the gateway reads when it changes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from oikos.lab.errors import LabError

DnsFault = Literal["servfail", "nxdomain", "refused", "drop"]
DNS_FAULTS: tuple[DnsFault, ...] = get_args(DnsFault)
EVERYONE = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRule:
    """An invented web service, or trouble with a real one. `path` is a regular expression; `times` None = for ever."""

    id: str
    host: str
    path: str = ""
    status: int = 200
    body: str = ""
    times: int | None = None
    delay_s: float = 0.0
    close: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """`dns` maps a host's address, or EVERYONE, to how its questions are answered."""

    dns: dict[str, DnsFault]
    http: tuple[HttpRule, ...]


NONE = Faults(dns={}, http=())


def parse_dns_fault(text: str) -> DnsFault:
    """Raises: LabError listing the faults."""
    for fault in DNS_FAULTS:
        if fault == text:
            return fault
    raise LabError(f"unknown DNS fault {text!r}: one of {', '.join(DNS_FAULTS)}, or none to heal")


def _file(state: Path) -> Path:
    return state / "faults.json"


def read(state: Path) -> Faults:
    """The lab's faults now; none when nothing was ever set."""
    try:
        value: dict[str, Any] = json.loads(_file(state).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return NONE
    return Faults(dns=value["dns"], http=tuple(HttpRule(**rule) for rule in value["http"]))


def edit(state: Path, change: Callable[[Faults], Faults]) -> None:
    """Replace the file by a changed one, at once."""
    new = _file(state).with_suffix(".new")
    new.write_text(json.dumps(asdict(change(read(state)))), encoding="utf-8")
    new.rename(_file(state))


class LiveRules:
    """The gateway's view: the file's content, read again when it was replaced, and how often each rule answered."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._stamp: tuple[int, int] = (0, 0)
        self._faults = NONE
        self._used: dict[str, int] = {}

    def now(self) -> Faults:
        try:
            stat = os.stat(_file(self._state))
        except FileNotFoundError:
            return NONE
        if (stat.st_ino, stat.st_mtime_ns) != self._stamp:
            self._faults, self._stamp = read(self._state), (stat.st_ino, stat.st_mtime_ns)
        return self._faults

    def dns(self, peer: str) -> DnsFault | None:
        faults = self.now().dns
        return faults.get(peer) or faults.get(EVERYONE)

    def hosts(self) -> frozenset[str]:
        """Names that exist because a rule invents them."""
        return frozenset(rule.host for rule in self.now().http)

    def http(self, host: str, path: str) -> HttpRule | None:
        """The first matching rule with uses left; counts the use."""
        for rule in self.now().http:
            used = self._used.get(rule.id, 0)
            spent = rule.times is not None and used >= rule.times
            if rule.host in (EVERYONE, host) and re.search(rule.path, path) and not spent:
                self._used[rule.id] = used + 1
                return rule
        return None
