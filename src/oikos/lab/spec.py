"""What one host of a lab is made of; written to its directory, read by the supervisor and by whoever attaches."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oikos.lab.cgroups import Limits
from oikos.lab.errors import LabError
from oikos.lab.layers import Kind, parse_kind

#: PID 1 of a host without a service manager: an SSH server and a reaper, at a tenth of systemd's cost.
TINY_INIT = (
    "/bin/sh",
    "-c",
    "mkdir -p /run/sshd; trap 'exit 0' TERM INT; /usr/sbin/sshd -D -e & while :; do wait; sleep 60 & wait $!; done",
)
SYSTEMD = ("/lib/systemd/systemd",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A directory of this machine shown inside a host."""

    source: str
    target: str
    readonly: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSpec:
    """One host. `store` holds the overlay's upper and work directories, `port` is its end on the lab's bridge."""

    name: str
    kind: Kind
    address: str
    dir: str
    lower: tuple[str, ...]
    netns: str
    port: str
    init: tuple[str, ...] = SYSTEMD
    limits: Limits = field(default_factory=Limits)
    binds: tuple[Bind, ...] = ()

    @property
    def store(self) -> Path:
        """On the state directory's filesystem, or on the host's own disk image when it has one."""
        return Path(self.dir) / "store"

    @property
    def upper(self) -> Path:
        """The host's own files, over the shared layers."""
        return self.store / "upper"

    def to_json(self) -> dict[str, Any]:
        """A JSON object that from_json reads back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> HostSpec:
        """Raises: KeyError, TypeError or LabError when this is no spec."""
        return cls(
            **{
                **value,
                "kind": parse_kind(value["kind"]),
                "lower": tuple(value["lower"]),
                "init": tuple(value["init"]),
                "limits": Limits(**value["limits"]),
                "binds": tuple(Bind(**bind) for bind in value["binds"]),
            }
        )

    def save(self) -> None:
        """Write spec.json into the host's directory."""
        (Path(self.dir) / "spec.json").write_text(json.dumps(self.to_json()), encoding="utf-8")


def size_bytes(text: str | int | None) -> int | None:
    """`512M`, `1G`, `64KiB` or plain bytes. Raises: LabError."""
    if text is None or isinstance(text, int):
        return text
    found = re.fullmatch(r"(\d+)([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise LabError(f"not a size: {text!r}; write e.g. 512M or 1G")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]
