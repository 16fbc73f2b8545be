"""openssl: subcommands that show keys or write files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import hosts
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call


def openssl(this: Call) -> Flow | None:
    """Where it connects, and keys it would print."""
    walker, scene = this.walker, this.scene
    for word in this.values("-connect", "-host"):
        host = hosts.host_of(word.text)
        if word.literal and not hosts.is_loopback(host):
            walker.find(
                "openssl.connect", Risk.READ_ONLY, word.span, f"Connects to {host}.", scene, (EffectKind.EGRESS,), host
            )
    if (
        this.sub[:1] in (("rsa",), ("pkey",), ("ec",), ("dsa",))
        and not this.has("-noout")
        and not this.has("-pubin")
        and not this.has("-pubout")
    ):
        walker.change("openssl.key", this.span, "Prints a private key.", scene, EffectKind.SENSITIVE)
    if this.sub[:1] in (("rsa",), ("pkey",), ("ec",)) and this.has("-text") and not this.has("-pubin", "-text_pub"):
        walker.change("openssl.key", this.span, "Prints a private key.", scene, EffectKind.SENSITIVE)
    if this.sub[:1] == ("pkcs12",) and not this.has("-nokeys", "-noout"):
        walker.change("openssl.key", this.span, "Prints private keys.", scene, EffectKind.SENSITIVE)
    return None
