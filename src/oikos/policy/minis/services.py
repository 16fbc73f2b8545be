"""Services and processes: which unit or process a command takes down."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE

if TYPE_CHECKING:
    from oikos.policy.call import Call

# Units that carry the way in: without them nobody can undo a mistake from outside.
_ACCESS = re.compile(
    r"(?:ssh|sshd|dropbear|networking|network|NetworkManager|systemd-networkd|wpa_supplicant|tailscaled|zerotier-one|wg-quick@.*|openvpn.*|"
    r"ifup@.*|dhcpcd|dhclient|connman|netplan.*|frr|network-online|network\.target|openvswitch-switch|ovs-vswitchd|pve-cluster|corosync|"
    r"systemd-logind|dbus|dbus-broker)(?:\.service|\.socket|\.target)?"
)
_ACCESS_NAMES = tuple(
    name + ending
    for name in (
        "ssh",
        "sshd",
        "networking",
        "NetworkManager",
        "systemd-networkd",
        "tailscaled",
        "pve-cluster",
        "dbus",
        "systemd-logind",
    )
    for ending in ("", ".service")
)
_DOWN = frozenset(
    ("stop", "disable", "mask", "kill", "zap", "del", "delete", "remove", "down", "off", "exit", "force-stop")
)


def carries_access(unit: str) -> bool:
    """Whether stopping the unit may cut the only way in."""
    if re.search(r"[*?\[]", unit):  # systemctl takes patterns of unit names
        return any(fnmatch.fnmatchcase(known, unit) for known in _ACCESS_NAMES)
    return _ACCESS.fullmatch(unit) is not None


def systemctl(this: Call) -> Flow | None:
    """`systemctl stop ssh` and its like."""
    if this.sub[:1] == ("show",):
        for word in this.values("-p", "-P", "--property"):
            if "Environment" in word.text.split(","):
                this.walker.change(
                    "systemctl.environment", word.span, "Shows the environment of a service.", this.scene, EffectKind.SENSITIVE
                )  # fmt: skip
    if not this.sub or this.sub[0] not in _DOWN:
        return None
    signal = this.value("-s", "--signal")
    named = (
        signal.text
        if signal
        else next((word.text.partition("=")[2] for word in this.words if word.text.startswith("--signal=")), "")
    )
    if this.sub[0] == "kill" and named.upper().removeprefix("SIG") in ("9", "KILL"):
        this.walker.destroy(
            f"{this.id}.kill", this.span, "Kills without letting the program clean up.", this.scene, EffectKind.OUTAGE
        )
    for word in this.line.args:
        for text in word.spellings():
            if carries_access(text):
                _cut(this, text)
                break
    return None


def service(this: Call) -> Flow | None:
    """`service NAME ACTION`, `rc-service NAME ACTION`, `rc-update del NAME`."""
    words = [word.text for word in this.words[1:] if not word.text.startswith("-")]
    if not set(words) & _DOWN:
        return None
    for text in words:
        if carries_access(text):
            _cut(this, text)
            break
    return None


def _cut(this: Call, unit: str) -> None:
    this.walker.destroy(
        f"{this.id}.access", this.span, f"{unit} carries the way in; without it this cannot be undone from outside.", this.scene,
        EffectKind.CONNECTIVITY, thing=unit,
    )  # fmt: skip
    this.walker.report.name("service", unit, this.scene.place, Risk.DESTRUCTIVE, "stop")


_SIGNALS_READ = re.compile(r"-l\d*|-L|--list(?:=.*)?|--table|-0")


def kill(this: Call) -> Flow | None:
    """kill, pkill, killall, skill: which signal, which process."""
    walker, scene = this.walker, this.scene
    words = this.words[1:]
    texts = [word.text for word in words]
    if texts and (_SIGNALS_READ.fullmatch(texts[0]) or texts[0] in ("--list", "-V")) and "-9" not in texts[1:]:
        return None
    signal, targets = "TERM", []
    at = 0
    while at < len(texts):
        text = texts[at]
        named = re.fullmatch(r"-(?:SIG)?([A-Z]+\d?|\d+)", text)
        if text in ("-s", "--signal", "-n") and at + 1 < len(texts):
            signal = texts[at + 1]
            at += 2
            continue
        if text.startswith("--signal="):
            signal = text.partition("=")[2]
        elif named and (at == 0 or this.name != "kill"):
            signal = named.group(1)
        elif text != "--":
            targets.append(text)
        at += 1
    signal = signal.upper().removeprefix("SIG")
    patterns = [text for text in targets if not text.startswith("-") or this.name == "kill"]
    hard = signal in ("9", "KILL")
    first = ("1" in patterns and this.name == "kill") or any(text in ("-1", "systemd", "init") for text in patterns)
    access = this.name != "kill" and any(
        re.fullmatch(r"\^?\(?(?:sshd?|NetworkManager|tailscaled|dropbear|systemd.*)\$?", text) for text in patterns
    )
    if signal == "0":
        walker.find("kill.probe", Risk.READ_ONLY, this.span, "Signal 0 only asks whether the process exists.", scene)
        return None
    name = next((text for text in patterns if HOLE not in text and not text.startswith("-")), "")
    if hard or first or access:
        why = (
            "Kills without letting the program clean up."
            if hard
            else "Hits the first process, or every process."
            if first
            else "May cut the way in."
        )
        walker.destroy(f"{this.name}.kill", this.span, why, scene, EffectKind.OUTAGE, thing=name)
    else:
        walker.change(
            f"{this.name}.signal",
            this.span,
            f"Sends the signal {signal} to a process.",
            scene,
            EffectKind.OUTAGE,
            thing=name,
        )
    return None


def sysctl(this: Call) -> Flow | None:
    """`sysctl NAME=VALUE` writes even without -w."""
    for word in this.line.args:
        if any("=" in text for text in word.spellings()):
            this.walker.change("sysctl.write", word.span, "Writes a kernel setting.", this.scene)
            if re.search(r"kernel\.sysrq|sysrq-trigger|vm\.drop_caches|kernel\.panic=", word.text):
                continue
        elif not word.literal and word.splits and word.tags:
            this.walker.unclear(
                "dynamic.sysctl",
                word.span,
                "This word is only known when the shell runs; it could set something.",
                this.scene,
            )
    return None


_BUS_READS = re.compile(
    r"(?:.*\.)?(?:Get\w*|List\w*|Introspect|Ping|GetAll|GetMachineId|Can\w+|Describe\w*|Lookup\w*|Resolve\w*|NameHasOwner|Query\w*|Inhibitors)"
)
_BUS_ENDS = re.compile(
    r"(?:.*\.)?(?:Reboot\w*|PowerOff\w*|Halt\w*|KExec|Suspend\w*|Hibernate\w*|HybridSleep|SoftReboot|Exit|SetUserLinger)"
)


def busctl(this: Call) -> Flow | None:
    """busctl call, gdbus call, dbus-send: the method decides."""
    texts = [word.text for word in this.words[1:]]
    if "--method" in texts:
        method = texts[texts.index("--method") + 1] if texts.index("--method") + 1 < len(texts) else ""
    elif this.name == "busctl":
        args = [word.text for word in this.line.args]
        method = args[3] if len(args) > 3 else ""
    else:
        dotted = [text for text in texts if re.fullmatch(r"[\w]+(?:\.\w+){2,}", text)]
        method = dotted[-1] if dotted else ""
    if _BUS_ENDS.fullmatch(method):
        this.walker.destroy(
            f"{this.name}.power", this.span, f"{method} takes the machine down.", this.scene, EffectKind.OUTAGE
        )
    elif not _BUS_READS.fullmatch(method):
        this.walker.unclear(
            f"{this.name}.call", this.span, f"The bus method {method or '(none)'} may change something.", this.scene
        )
    return None
