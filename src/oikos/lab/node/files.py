"""What a node writes into a container's root filesystem, before it is created and before each start."""

from __future__ import annotations

import hashlib
import os

from oikos.lab.node.conf import Conf
from oikos.lab.node.net import address
from oikos.lab.node.options import properties
from oikos.lab.node.site import LAB_KEY, NAMES, image, run


def put(vmid: str, path: str, text: str, mode: int = 0o644, directory_mode: int = 0o755) -> None:
    """Write a file at an absolute path of the container; `directory_mode` is for its last new directory."""
    place = f"{image(vmid)}/upper"
    parts = os.path.dirname(path).strip("/").split("/")
    for index, part in enumerate(parts):
        place = f"{place}/{part}"
        if not os.path.isdir(place):
            os.mkdir(place)
            os.chmod(place, directory_mode if index == len(parts) - 1 or part == "root" else 0o755)
    file = f"{place}/{os.path.basename(path)}"
    if os.path.islink(file):
        os.unlink(file)
    with open(file, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(file, mode)


def new_machine_id(vmid: str) -> None:
    put(vmid, "/etc/machine-id", hashlib.md5(os.urandom(16)).hexdigest() + "\n")


def new_host_key(vmid: str, hostname: str) -> str:
    """Make the container's SSH host key; its fingerprint."""
    key = f"{image(vmid)}/key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"root@{hostname}", "-f", key)
    fingerprint = run("ssh-keygen", "-lf", key).stdout.split()[1]
    for suffix, mode in (("", 0o600), (".pub", 0o644)):
        with open(key + suffix, encoding="utf-8") as file:
            put(vmid, f"/etc/ssh/ssh_host_ed25519_key{suffix}", file.read(), mode)
        os.unlink(key + suffix)
    return fingerprint


def authorize(vmid: str, keys_file: str | None) -> None:
    """Let in the keys of a file, and the lab's own."""
    keys = ""
    for path in (keys_file, LAB_KEY):
        if path is not None and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                keys += file.read()
    put(vmid, "/root/.ssh/authorized_keys", keys, 0o600, 0o700)


def _own(keyword: str) -> list[str]:
    """What the node's own resolv.conf names: a container without such a setting gets that, a stub's address too."""
    with open("/etc/resolv.conf", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return [word for line in lines if line[:1] == [keyword] for word in line[1:] if word != "."]


def dress(conf: Conf) -> None:
    """Host name, hosts, resolver and interfaces, and the name for the lab's DNS."""
    vmid, name = conf.vmid, conf.hostname
    net = properties(conf.get("net0", ""))
    cidr, gateway = address(vmid, net)
    ip = cidr.partition("/")[0]
    own = f"{ip} {name}.lab {name}\n" if ip else ""
    put(vmid, "/etc/hostname", f"{name}\n")
    put(vmid, "/etc/hosts", f"127.0.0.1\tlocalhost\n# --- BEGIN PVE ---\n{own}# --- END PVE ---\n")
    servers = conf.get("nameserver", "").replace(",", " ").split() or _own("nameserver")
    search = conf.get("searchdomain") or " ".join(_own("search")) or "lab"
    resolver = f"search {search}\n" + "".join(f"nameserver {server}\n" for server in servers)
    put(vmid, "/etc/resolv.conf", f"# --- BEGIN PVE ---\n{resolver}# --- END PVE ---\n")
    if net.get("name"):
        stanza = f"auto {net['name']}\niface {net['name']} inet static\n\taddress {cidr or 'manual'}\n"
        stanza += f"\tgateway {gateway}\n" if gateway else ""
        put(vmid, "/etc/network/interfaces", f"auto lo\niface lo inet loopback\n\n{stanza}")
    os.makedirs(NAMES, exist_ok=True)
    with open(f"{NAMES}/{vmid}", "w", encoding="utf-8") as file:
        file.write(f"{name} {ip}\n")
