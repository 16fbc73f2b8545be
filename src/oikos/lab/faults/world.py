"""Faults of the world outside the hosts: name resolution for everyone, web services that misbehave or never existed."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path

from oikos.lab.gateway import rules


class WorldFaults(ABC):
    """Mixed into Lab."""

    @property
    @abstractmethod
    def dir(self) -> Path: ...

    def dns_fault(self, mode: str | None) -> None:
        """servfail, nxdomain, refused or drop for every host without a fault of its own; None heals.

        Raises: LabError.
        """
        fault = None if mode is None else rules.parse_dns_fault(mode)

        def change(now: rules.Faults) -> rules.Faults:
            others = {peer: how for peer, how in now.dns.items() if peer != rules.EVERYONE}
            return replace(now, dns=others if fault is None else {**others, rules.EVERYONE: fault})

        rules.edit(self.dir, change)

    def http_rule(
        self,
        host: str,
        path: str = "",
        *,
        status: int = 200,
        body: str = "",
        times: int | None = None,
        delay_s: float = 0,
        close: bool = False,
    ) -> str:
        """The first matching rule with uses left answers; returns the rule's id, which gateway_log() names."""
        rule = rules.HttpRule(
            id=uuid.uuid4().hex[:8],
            host=host,
            path=path,
            status=status,
            body=body,
            times=times,
            delay_s=delay_s,
            close=close,
        )
        rules.edit(self.dir, lambda now: replace(now, http=(*now.http, rule)))
        return rule.id

    def heal(self) -> None:
        """Drop every DNS and HTTP fault."""
        rules.edit(self.dir, lambda _: rules.NONE)
