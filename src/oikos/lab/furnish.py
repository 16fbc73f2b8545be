"""A host before its first boot: its directory, its disk, its address, its keys and the files that make it itself."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from oikos.lab import layers, machine, pve_layer, tree
from oikos.lab.cgroups import Limits
from oikos.lab.command import run
from oikos.lab.layers import Kind
from oikos.lab.network import Network
from oikos.lab.spec import Bind, HostSpec

PORT_NAME_LIMIT = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What was asked for; `files` maps absolute paths to text."""

    name: str
    kind: Kind
    init: tuple[str, ...]
    limits: Limits
    disk_bytes: int | None
    files: dict[str, str]


def furnish(state: Path, network: Network, cache: Path, others: Sequence[HostSpec], plan: Plan) -> HostSpec:
    """Make the host's directory ready to boot. Raises: LabError."""
    index, taken = 1, {other.address for other in others}
    while network.host(index) in taken:
        index += 1
    place = state / "hosts" / plan.name
    spec = HostSpec(
        name=plan.name,
        kind=plan.kind,
        address=network.host(index),
        dir=str(place),
        lower=tuple(layers.lower(cache, plan.kind)),
        netns=f"{network.netns}-{plan.name}",
        port=f"p{index}-{plan.name}"[:PORT_NAME_LIMIT],
        init=plan.init,
        limits=plan.limits,
        binds=_binds(place, cache, plan.kind),
    )
    (place / "root").mkdir(parents=True)
    spec.store.mkdir()
    if plan.disk_bytes is not None:
        _own_disk(place / "disk.img", plan.disk_bytes, spec.store)
    if plan.kind == "machine":
        # Two lower directories of an overlay may not overlap, so the mask over `/` goes into the upper.
        run(["cp", "-a", str(machine.mask(cache)), str(spec.upper)])
    else:
        spec.upper.mkdir()
    (spec.store / "work").mkdir()
    _identity(spec, network, state / "id.pub")
    if plan.kind == "pve":
        pve_layer.furnish(
            spec.upper,
            node=plan.name,
            subnet=network.number,
            gateway=network.gateway,
            prefix_length=network.prefix_length,
            public_key=state / "id.pub",
        )
    for path, text in plan.files.items():
        tree.write(spec.upper, path, text)
    spec.save()
    (state / "hosts.d" / plan.name).write_text(spec.address, encoding="utf-8")
    return spec


def specs(state: Path) -> list[HostSpec]:
    """The hosts of a lab that is there, by name."""
    files = sorted((state / "hosts").glob("*/spec.json"))
    return [HostSpec.from_json(json.loads(file.read_text(encoding="utf-8"))) for file in files]


def _binds(place: Path, cache: Path, kind: Kind) -> tuple[Bind, ...]:
    """Directories that must lie on the real filesystem: an overlay cannot hold another overlay's upper."""
    match kind:
        case "pve":
            (place / "images").mkdir(parents=True)
            base = str(layers.path(cache, "base"))
            return (
                Bind(source=str(place / "images"), target="/var/lib/vz/images"),
                Bind(source=base, target="/var/lib/vz/lab-base", readonly=True),
            )
        case "docker":
            (place / "docker").mkdir(parents=True)
            return (Bind(source=str(place / "docker"), target="/var/lib/docker"),)
        case "host" | "machine":
            return ()


def _own_disk(image: Path, size: int, store: Path) -> None:
    with image.open("wb") as file:
        file.truncate(size)
    options = ["-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard"]
    run(["mkfs.ext4", "-q", "-F", *options, str(image)])
    run(["mount", "-o", "loop", str(image), str(store)])


def _identity(spec: HostSpec, network: Network, public_key: Path) -> None:
    upper = spec.upper
    tree.write(upper, "/etc/hostname", f"{spec.name}\n")
    tree.write(upper, "/etc/hosts", f"127.0.0.1\tlocalhost\n{spec.address}\t{spec.name}.lab {spec.name}\n")
    tree.write(upper, "/etc/resolv.conf", f"search lab\nnameserver {network.gateway}\noptions timeout:2 attempts:2\n")
    tree.write(upper, "/etc/machine-id", f"{secrets.token_hex(16)}\n")
    key = tree.directory(upper, "etc/ssh") / "ssh_host_ed25519_key"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"root@{spec.name}", "-f", str(key)])
    tree.directory(upper, "root", 0o700)
    keys = tree.directory(upper, "root/.ssh", 0o700) / "authorized_keys"
    shutil.copy(public_key, keys)
    keys.chmod(0o600)
