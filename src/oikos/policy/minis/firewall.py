"""Firewalls: single rules, and what closes everything, the way in among it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy.scene import Flow

if TYPE_CHECKING:
    from oikos.policy.call import Call


def iptables(this: Call) -> Flow | None:
    """`iptables -P CHAIN DROP` closes everything."""
    _closes(this)
    for used in this.line.used:
        if used.name in ("-P", "--policy"):
            texts = [word.text for word in (*([used.value] if used.value else []), *this.line.args)]
            if "DROP" in texts or "REJECT" in texts:
                this.walker.destroy(
                    "iptables.policy",
                    this.span,
                    "Drops everything no rule allows, the way in among it.",
                    this.scene,
                    EffectKind.CONNECTIVITY,
                )
    return None


_NARROWS = ("-s", "-d", "-p", "-i", "-o", "-m", "--source", "--destination", "--protocol", "--in-interface", "--match")


def _is_ssh(this: Call) -> bool:
    """Whether the rule is about the port of ssh, and about nothing but that port."""
    return any(
        word.text in ("22", "ssh") for word in (*this.values("--dport"), *this.values("--destination-port"))
    ) and not this.has("-s", "--source", "-d", "--destination")


def _closes(this: Call) -> None:
    """Judge `iptables -A INPUT -j DROP`: a rule that matches everything closes like a policy does."""
    target = this.value("-j", "--jump")
    chain = this.value("-A", "--append", "-I", "--insert")
    named = {word.text for word in (*([chain] if chain else []), *this.line.args)}
    table = this.value("-t", "--table")
    if (
        this.has("-A", "--append", "-I", "--insert")
        and target is not None
        and target.text in ("DROP", "REJECT")
        and named & {"INPUT", "OUTPUT"}
        and (table is None or table.text == "filter")
        and (not this.has(*_NARROWS) or _is_ssh(this))
    ) or (this.has("-D", "--delete") and target is not None and target.text == "ACCEPT" and _is_ssh(this)):
        why = "Drops whatever no earlier rule allows, the way in among it."
        this.walker.destroy("iptables.closes", this.span, why, this.scene, EffectKind.CONNECTIVITY)


def firewalld(this: Call) -> Flow | None:
    """firewall-cmd: a default zone that lets nothing in, and services that are the way in."""
    for word in this.values("--set-default-zone"):
        if word.text in ("drop", "block"):
            why = "Everything that no zone names is dropped from now on, the way in among it."
            this.walker.destroy("firewalld.closes", word.span, why, this.scene, EffectKind.CONNECTIVITY)
    for word in this.values("--set-target"):
        if word.text in ("DROP", "REJECT", "%%REJECT%%"):
            why = "The zone drops whatever no rule allows, the way in among it."
            this.walker.destroy("firewalld.closes", word.span, why, this.scene, EffectKind.CONNECTIVITY)
    for word in (*this.values("--remove-service"), *this.values("--remove-port")):
        if word.text in ("ssh", "22/tcp"):
            this.walker.destroy("firewalld.ssh", word.span, "Closes the way in.", this.scene, EffectKind.CONNECTIVITY)
    return None


def nft(this: Call) -> Flow | None:
    """nft commands, given as words or as one text."""
    walker, scene = this.walker, this.scene
    text = " ".join(word.text for word in this.line.args)
    if not text and this.has("-f", "--file"):
        text = scene.stdin.text or ""
    if not text:
        return None
    for part in re.split(r"[;\n]", text):
        words = part.split()
        if not words or (
            words[0] in ("list", "describe", "monitor", "get") and all(word.literal for word in this.line.args)
        ):
            continue
        if (
            words[0] in ("flush", "destroy")
            or words[:2] == ["delete", "table"]
            or words[:2] == ["delete", "chain"]
            or ("policy" in words and "drop" in text)
            or (
                words[0] in ("add", "insert", "replace")
                and "saddr" not in words
                and re.search(r"\bdport (?:22|ssh)\b(?! ?,).*\b(?:drop|reject)\b", part)
            )
        ):
            walker.destroy(
                f"nft.{words[0]}",
                this.span,
                "Removes firewall rules in bulk, or closes everything.",
                scene,
                EffectKind.CONNECTIVITY,
            )
        else:
            walker.change(f"nft.{words[0]}", this.span, "Changes the firewall.", scene, EffectKind.CONNECTIVITY)
    return None
