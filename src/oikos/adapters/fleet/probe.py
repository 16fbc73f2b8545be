"""Who a machine says it is: constant bytes, read-only (SPEC R5.8, §3)."""

from __future__ import annotations

import asyncio
import re
from typing import Final

from oikos.adapters.fleet import wrap
from oikos.adapters.fleet.carrier import Carrier, last_words
from oikos.adapters.fleet.flow import End
from oikos.adapters.fleet.wrap import Way
from oikos.domain.errors import TargetError
from oikos.domain.inventory import Transport
from oikos.domain.run import Identity, Stream

PROBE_S: Final = 20.0

COMMAND: Final = """\
r() { { IFS= read -r v <"$1"; } 2>/dev/null || v=; printf '%s=%s\\n' "$2" "$v"; }
r /proc/sys/kernel/hostname hostname
r /etc/machine-id machine
r /proc/sys/kernel/random/boot_id boot
r /sys/class/dmi/id/product_uuid uuid
while read -r l; do case $l in *' / / '*) printf 'root=%s\\n' "$l";; esac; done </proc/self/mountinfo
"""
"""The bytes of the probe; a test holds them."""

_DISK = re.compile(r"(?:subvol-|vm--|vm-|images/)([1-9][0-9]{2,8})(?:-disk|--disk|/)")
"""The guest id in the name of a Proxmox container's root disk."""


async def ask(carrier: Carrier, way: Way) -> Identity:
    """Ask.

    Raises:
        TargetError: unreachable, or it gave no answer.
    """
    program = wrap.plain(wrap.SH, COMMAND)
    text, complaint = bytearray(), bytearray()
    process = await carrier.start(way, program)
    try:
        async with asyncio.timeout(PROBE_S):
            while chunks := await process.flow.read():
                for stream, data in chunks:
                    (text if stream is Stream.OUT else complaint).extend(data)
    except TimeoutError:
        raise TargetError(f"{way.name}: did not say who it is within {PROBE_S:g} s") from None
    finally:
        process.close()
    end = process.flow.end or End(lost="closed")
    if end.code != 0 or b"hostname=" not in text:
        raise TargetError(f"{way.name}: did not say who it is: {last_words(complaint, end)}")
    return identity(text.decode("utf-8", "replace"), way)


def identity(answer: str, way: Way) -> Identity:
    """Read the probe's answer."""
    said = dict(line.partition("=")[::2] for line in answer.splitlines() if "=" in line)
    guest = ""
    for transport, name in way.guests:
        guest = name if transport is Transport.PCT else guest
    if not guest:
        found = _DISK.search(said.get("root", ""))
        guest = found[1] if found else said.get("uuid", "").lower()
    return Identity(
        hostname=said.get("hostname", ""), machine_id=said.get("machine", ""), guest_id=guest,
        boot_id=said.get("boot", ""),
    )  # fmt: skip
