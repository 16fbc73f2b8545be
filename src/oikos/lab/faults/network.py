"""Faults of one host's network: its cable, its bandwidth, its name resolution."""

from __future__ import annotations

from dataclasses import replace

from oikos.lab.command import run
from oikos.lab.faults.target import FaultTarget
from oikos.lab.gateway import rules


class NetworkFaults(FaultTarget):
    """Mixed into Host."""

    def net_cut(self) -> None:
        """Pull the cable: packets vanish, nothing is refused."""
        run(["ip", "-n", self.lab_netns, "link", "set", self.spec.port, "down"])

    def net_restore(self) -> None:
        run(["ip", "-n", self.lab_netns, "link", "set", self.spec.port, "up"])

    def net_slow(self, kbit: int) -> None:
        """Limit what the host receives to so many kbit/s."""
        limit = ["rate", f"{kbit}kbit", "burst", "4kb", "latency", "2s"]
        run(["tc", "-n", self.lab_netns, "qdisc", "replace", "dev", self.spec.port, "root", "tbf", *limit])

    def net_fast(self) -> None:
        """Lift net_slow's limit."""
        run(["tc", "-n", self.lab_netns, "qdisc", "del", "dev", self.spec.port, "root"], check=False)

    def dns_fault(self, mode: str | None) -> None:
        """servfail, nxdomain, refused or drop for this host's questions only; None heals. Raises: LabError."""
        fault = None if mode is None else rules.parse_dns_fault(mode)

        def change(now: rules.Faults) -> rules.Faults:
            others = {peer: how for peer, how in now.dns.items() if peer != self.spec.address}
            return replace(now, dns=others if fault is None else {**others, self.spec.address: fault})

        rules.edit(self.lab_dir, change)
