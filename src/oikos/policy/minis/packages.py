"""Package managers: options that smuggle programs into a harmless call."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

_FREE = re.compile(
    r"(?i)(?:Debug::[\w:]+|APT::Get::Assume-Yes|APT::Color|APT::Sandbox::User|APT::Update::Error-Mode|Dpkg::Options::?|DPkg::Lock::Timeout|Dpkg::Use-Pty|Acquire::\w+::(?:Timeout|Proxy_|No-Cache)|"
    r"Acquire::(?:Retries|ForceIPv[46]|Check-Valid-Until_|Languages)|quiet|APT::Get::(?:Show-Upgraded|Show-Versions|List-Cleanup)|Acquire::http::Timeout|APT::Cmd::Disable-Script-Warning|"
    r"APT::Install-(?:Recommends|Suggests)|APT::Get::AllowUnauthenticated_)="
)


def aptopts(this: Call) -> Flow | None:
    """`-o NAME=VALUE` of apt and dpkg."""
    for word in this.values("-o", "--option"):
        if not word.literal or not _FREE.match(word.text):
            this.walker.unclear(
                "apt.option",
                word.span,
                f"The setting {word.text.partition('=')[0]} may run a program or change what apt does.",
                this.scene,
            )
    return None
