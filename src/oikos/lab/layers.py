"""Root filesystem layers: what each is made of, its name in the cache, and which layers a kind of host stands on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Literal, get_args

from oikos.lab import dress, pve_layer
from oikos.lab.errors import LabError

Kind = Literal["host", "pve", "docker", "machine"]
Layer = Literal["base", "pve", "docker"]

KINDS: tuple[Kind, ...] = get_args(Kind)
SUITE = "bookworm"
PACKAGES: dict[Layer, tuple[str, ...]] = {
    "base": (
        "systemd", "systemd-sysv", "dbus", "openssh-server", "cron", "curl", "iproute2", "iputils-ping", "procps",
        "psmisc", "ca-certificates", "less", "sudo", "rsync", "unattended-upgrades", "systemd-journal-remote",
    ),
    "pve": ("lxc", "python3", "bridge-utils", "iptables", "systemd-resolved"),
    "docker": ("docker.io", "iptables"),
}  # fmt: skip
#: Packages that a layer keeps as .deb files in `KEPT`, with what they need beyond it: a host can install them offline.
DEBS: dict[Layer, tuple[str, ...]] = {"pve": ("nginx",)}
KEPT = "/var/lib/lab-debs"
DPKG_OPTIONS = (
    "force-unsafe-io",
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/locale/*",
)
#: Raised by hand when a layer changes in a way that its recipe does not show.
VERSION = 1


def parse_kind(text: str) -> Kind:
    """Raises: LabError listing the kinds."""
    for kind in KINDS:
        if kind == text:
            return kind
    raise LabError(f"unknown kind of host {text!r}: one of {', '.join(KINDS)}")


def layers_of(kind: Kind) -> tuple[Layer, ...]:
    """The layers a kind needs, bottom first; none for `machine`, which stands on this machine's own root."""
    match kind:
        case "host":
            return ("base",)
        case "pve":
            return ("base", "pve")
        case "docker":
            return ("base", "docker")
        case "machine":
            return ()


def path(cache: Path, layer: Layer) -> Path:
    """Where the layer is kept: its name carries a digest of what it is made of, so a changed recipe is a new layer."""
    recipe: list[object] = [VERSION, SUITE, PACKAGES["base"], DPKG_OPTIONS, dress.MASKED, dress.LAZY]
    recipe += [dress.JOURNALD, dress.MANAGER, dress.SSHD]
    if layer != "base":
        recipe.append([PACKAGES[layer], *DEBS.get(layer, ())])
    if layer == "pve":
        recipe.append(pve_layer.GUESTS)
    digest = hashlib.sha256(json.dumps(recipe).encode()).hexdigest()[:12]
    return cache / f"{layer}-{digest}"


def lower(cache: Path, kind: Kind) -> list[str]:
    """Overlay lower directories of a host, top first."""
    if kind == "machine":
        return ["/"]
    return [str(path(cache, layer)) for layer in reversed(layers_of(kind))]
