"""Raw connections: a connect test and small protocols that only ask are looks, anything else carries data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import hosts
from oikos.policy.minis import http
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call

_ASKS = re.compile(
    r"(?:show|list|get|help|prompt)(?:\s+[\w./:-]+)*|stats(?:\s+(?!reset|detail)\w+)?|version|ruok|mntr|srvr|stat|info|ping|quit|exit|"
    r"(?:GET|HEAD) /[\w./-]* HTTP/1\.[01]|(?:Host|Connection|User-Agent|Accept): ?[\w.:*/ -]+|",
    re.IGNORECASE,
)
"""Lines that only ask, in the small protocols people speak by hand (haproxy, memcached, zookeeper, HTTP)."""


def _stdio_to_socket(texts: list[str]) -> bool:
    """`socat stdio /run/x.sock`: from here to one socket of this machine."""
    plain = [text for text in texts if not re.fullmatch(r"-[tT]\s?\d+|-u|\d+|-t|-T", text)]
    return (
        len(plain) == 2
        and plain[0].lower() in ("-", "stdio")
        and re.fullmatch(
            r"(?i)(?:unix(?:-connect|-client)?:/[\w./-]+|/[\w./-]+(?:\.(?:sock|socket|ctl)|[./]stats?))", plain[1]
        )
        is not None
    )


def _only_asks(text: str | None) -> bool:
    """Whether every line sent is one of those; a request may not name an action in its path."""
    lines = re.split(r"\r?\n|;", (text or "").replace("\\r\\n", "\n").replace("\\n", "\n").strip())
    return any(lines) and all(_ASKS.fullmatch(line.strip()) and not http.ACTION.search(line) for line in lines)


def netcat(this: Call) -> Flow | None:
    """nc, ncat, socat: only a connect test is a look."""
    walker, scene = this.walker, this.scene
    texts = [word.text for word in this.words[1:]]
    joined = " ".join(texts)
    runs = any(
        re.fullmatch(r"-[a-zA-Z]*[ec]|--exec|--sh-exec|--lua-exec|-[ec]\S+", text)
        and not re.fullmatch(r"-[zvwunN46]+c?", text)
        for text in texts
    )
    if this.name == "socat":
        runs = bool(re.search(r"(?i)\b(?:exec|system|shell):", joined))
    host = next((text for text in texts if not text.startswith("-") and not text.isdigit()), "")
    if runs and this.name != "socat":
        walker.destroy(
            f"{this.name}.exec",
            this.span,
            "Hands a shell to whoever is at the other end.",
            scene,
            EffectKind.REMOTE_CODE,
            EffectKind.EGRESS,
            thing=host,
        )
    elif runs:
        both = re.search(r"(?i)\b(?:tcp|udp|openssl|sctp|vsock|listen)", joined)
        if both:
            walker.destroy(
                "socat.exec",
                this.span,
                "Joins a program to a network connection.",
                scene,
                EffectKind.REMOTE_CODE,
                EffectKind.EGRESS,
                thing=host,
            )
        else:
            walker.unclear("socat.exec", this.span, "Runs a program.", scene)
    elif this.name == "socat" and _stdio_to_socket(texts) and _only_asks(scene.stdin.text):
        pass
    elif this.name == "socat":
        walker.unclear("socat.relay", this.span, "Relays data between two addresses.", scene)
    elif any(re.fullmatch(r"-[a-zA-Z]*z[a-zA-Z]*\d*|--zero", text) for text in texts) and not any(
        re.fullmatch(r"-[a-zA-Z]*l[a-zA-Z]*|--listen", text) for text in texts
    ):
        for text in texts:
            if text.startswith("-") and not re.fullmatch(
                r"-(?:[zvunNd46tr]*[wiGqs]?\d*|w)|--(?:zero|wait(?:=\d+)?|verbose|udp|nodns)", text
            ):
                walker.unclear(
                    f"opt.unknown.{this.name}", this.span, f"The option {text} of {this.name} is not known.", scene
                )
        if any(re.fullmatch(r"\d+-\d+", text) for text in texts):
            walker.change("netcat.scan", this.span, "Scans a range of ports.", scene)
        if host and not hosts.is_loopback(host):
            walker.find(
                "netcat.probe",
                Risk.READ_ONLY,
                this.span,
                f"Tries to connect to {host}.",
                scene,
                (EffectKind.EGRESS,),
                host,
            )
    elif _only_asks(scene.stdin.text) and all(
        re.fullmatch(r"-[vnNuqw46C]*[wqG]?\d*|-U|--(?:wait|idle-timeout)=\d+|[\w.:/-]+", text) for text in texts
    ):
        walker.find(
            "netcat.asks", Risk.READ_ONLY, this.span, f"Asks {host} something.", scene, (EffectKind.EGRESS,), host
        )
    else:
        walker.change(
            f"{this.name}.data",
            this.span,
            "Opens a connection that carries data.",
            scene,
            EffectKind.EGRESS,
            thing=host,
        )
    return None
