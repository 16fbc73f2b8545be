"""Network tools: addresses, links, routes, name queries, probes, tunnels."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import hosts
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, Tag

if TYPE_CHECKING:
    from oikos.policy.call import Call

_OBJECTS = (
    "address addrlabel maddress route rule neighbor neighbour ntable ntbl link l2tp fou ila macsec tunnel tunl tuntap tap token tcpmetrics tcp_metrics "
    "monitor xfrm mroute mrule netns netconf vrf sr nexthop mptcp ioam stats vpn help"
).split()
_VERBS = {
    "address": "add change replace del show list lst flush save restore restore showdump",
    "route": "list show lst flush get add delete change replace append prepend test save restore showdump",
    "rule": "list show lst add delete flush save restore",
    "neighbor": "add change replace delete get show list lst flush",
    "link": "set add replace change delete show list lst xstats afstats property help",
    "maddress": "add delete show list lst",
    "tunnel": "add change del show list lst prl 6rd",
    "tuntap": "add del show list lst",
    "netns": "list show lst add delete set identify pids exec monitor attach list-id",
    "monitor": "all",
    "xfrm": "state policy monitor",
    "netconf": "show",
    "vrf": "show list exec identify pids",
    "tcp_metrics": "show flush delete",
    "tcpmetrics": "show flush delete",
    "mroute": "show list",
    "mrule": "show list",
    "token": "list show get set del",
    "nexthop": "show list get add del flush replace",
    "stats": "show set",
    "mptcp": "endpoint limits monitor",
    "addrlabel": "list add del flush",
    "ntable": "show change",
    "sr": "show hmac tunsrc",
    "macsec": "show add set del",
    "l2tp": "show add del",
}
_LOOKS = frozenset("show list lst get save showdump help identify pids monitor list-id xstats afstats all test".split())
_GLOBAL_VALUE = frozenset(("-f", "-family", "-n", "-netns", "-l", "-loops", "-rc", "-rcvbuf", "-b", "-batch"))
_GLOBALS = re.compile(
    r"-(?:4|6|0|B|M|V|Version|s|stats|statistics|d|details|r|resolve|iec|br|brief|j|json|p|pretty|o|oneline|t|timestamp|ts|tshort|c|color|color=\w+|"
    r"h|human|human-readable|N|Numeric|a|all|echo|force|ss|sss|dd)"
)


def ip(this: Call) -> Flow | None:
    """iproute2: objects and verbs may be abbreviated, the first that begins so is meant."""
    walker, scene = this.walker, this.scene
    words = this.words[1:]
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if text in _GLOBAL_VALUE:
            if text in ("-b", "-batch"):
                walker.unclear("ip.batch", words[at].span, "ip -batch runs commands from a file.", scene)
            if text in ("-l", "-loops", "-rc", "-rcvbuf", "-f", "-family", "-n", "-netns"):
                at += 1
        elif not _GLOBALS.fullmatch(text):
            walker.unclear(
                "opt.unknown.ip." + text.lstrip("-")[:20],
                words[at].span,
                f"The option {text} of ip is not known.",
                scene,
            )
        at += 1
    if at >= len(words):
        return None
    if not words[at].literal:
        walker.unclear("sub.dynamic", words[at].span, "The ip command is only known when the shell runs.", scene)
        return None
    thing = next((one for one in _OBJECTS if one.startswith(words[at].text)), "")
    thing = {"neighbour": "neighbor", "tunl": "tunnel", "tap": "tuntap", "ntbl": "ntable"}.get(thing, thing)
    rest = words[at + 1 :]
    if not thing:
        walker.unclear(
            "sub.unknown.ip", words[at].span, f"`ip {words[at].text}` is not a command this classifier knows.", scene
        )
        return None
    if thing == "help":
        return None
    if thing == "xfrm":
        return _xfrm(this, [word.text for word in rest])
    if not rest:
        if thing in ("monitor",):
            walker.report.advice.append("ip monitor never ends by itself: bound it with timeout")
        return None
    if rest[0].text == "help":
        return None
    verbs = _VERBS.get(thing, "show list").split()
    if not rest[0].literal:
        walker.unclear("sub.dynamic", rest[0].span, "The ip command is only known when the shell runs.", scene)
        return None
    verb = next((one for one in verbs if one.startswith(rest[0].text)), "")
    text = " ".join(word.text.replace(HOLE, "…") for word in rest)
    if thing in ("netns", "vrf") and verb == "exec":
        inner = rest[2:]
        if inner:
            return walker.command(inner, scene.inside(f"ip {thing} exec"))
        return None
    if thing == "monitor" and all(word.literal for word in rest):
        return None
    if thing == "sr" and [word.text for word in rest] == ["tunsrc", "show"]:
        return None
    if not verb and thing in ("monitor", "netconf", "address", "link", "neighbor", "maddress", "tunnel"):
        # `ip addr eth0` is no command in current versions, `ip link eth0` shows.
        walker.unclear(
            f"sub.unknown.ip.{thing}",
            rest[0].span,
            f"`ip {thing} {rest[0].text}` is not a command this classifier knows.",
            scene,
        )
        return None
    if verb in _LOOKS:
        for word in rest[1:]:
            if not word.literal and word.splits and word.tags & {Tag.UNKNOWN, Tag.FILE, Tag.NETWORK}:
                continue
        return None
    _change(this, thing, verb or rest[0].text, [word.text for word in rest[1:]], text)
    return None


def _change(this: Call, thing: str, verb: str, args: list[str], text: str) -> None:
    walker, scene, rule = this.walker, this.scene, f"ip.{thing}.{verb}"
    device = next((args[index + 1] for index, word in enumerate(args[:-1]) if word == "dev"), args[0] if args else "")
    default = any(word in ("default", "0.0.0.0/0", "::/0", "0/0") for word in args) or (thing == "route" and not args)

    def cuts(why: str) -> None:
        walker.destroy(rule, this.span, why, scene, EffectKind.CONNECTIVITY, thing=device)

    match thing, verb:
        case "link", "set" if "down" in args or "nomaster" in args or "netns" in args:
            cuts(f"Takes {device} down or away; it may carry the way in.")
        case "link", "delete":
            cuts(f"Removes the interface {device}.")
        case "address", "del" | "flush":
            cuts("Removes an address; the way in may use it.")
        case "route", "delete" if default:
            cuts("Removes the default route.")
        case "route", "flush" if "cache" not in args:
            cuts("Empties a routing table.")
        case "rule", "flush" | "delete" if verb == "flush":
            cuts("Empties the routing rules.")
        case "netns", "delete":
            walker.destroy(
                rule,
                this.span,
                "Removes a network namespace and what runs in it.",
                scene,
                EffectKind.CONNECTIVITY,
                thing=device,
            )
        case _:
            walker.change(
                rule,
                this.span,
                f"`ip {thing} {text}` changes the network.",
                scene,
                EffectKind.CONNECTIVITY,
                thing=device,
            )


def _xfrm(this: Call, words: list[str]) -> Flow | None:
    kind = words[0] if words else "state"
    verb = words[1] if len(words) > 1 else "list"
    if kind.startswith("m"):
        return None
    if any(verb.startswith(one) for one in ("a", "u", "d", "f", "set")):
        this.walker.change("ip.xfrm.change", this.span, "Changes IPsec state.", this.scene, EffectKind.CONNECTIVITY)
    elif "state".startswith(kind) and "nokeys" not in words and verb not in ("count", "co", "c"):
        this.walker.change("ip.xfrm.state", this.span, "Prints the IPsec keys.", this.scene, EffectKind.SENSITIVE)
    return None


def ifconfig(this: Call) -> Flow | None:
    """`ifconfig [-a] [-s] [INTERFACE]`; more words change it."""
    args = [word for word in this.words[1:] if not re.fullmatch(r"-[asv]+", word.text)]
    for word in args:
        if word.text.startswith("-") and word.text != "-promisc":
            this.walker.unclear(
                "opt.unknown.ifconfig", word.span, f"The option {word.text} of ifconfig is not known.", this.scene
            )
    if len(args) <= 1:
        return None
    texts = [word.text for word in args]
    if "down" in texts or "0.0.0.0" in texts or texts[1:] == ["0"] or "del" in texts:
        this.walker.destroy(
            "ifconfig.down",
            this.span,
            f"Takes {texts[0]} down; it may carry the way in.",
            this.scene,
            EffectKind.CONNECTIVITY,
            thing=texts[0],
        )
    else:
        this.walker.change(
            "ifconfig.change",
            this.span,
            f"Changes the interface {texts[0]}.",
            this.scene,
            EffectKind.CONNECTIVITY,
            thing=texts[0],
        )
    return None


def dns(this: Call) -> Flow | None:
    """dig, host, nslookup: what is asked leaves this network."""
    walker, scene = this.walker, this.scene
    for word in this.words[1:]:
        if word.literal and word.text.startswith("@"):
            server = word.text[1:]
            if not hosts.is_loopback(server):
                walker.find(
                    "dns.server",
                    Risk.READ_ONLY,
                    word.span,
                    f"Asks the name server {server}.",
                    scene,
                    (EffectKind.EGRESS,),
                    server,
                )
        if word.kind.value == "dynamic" and word.tags & {Tag.FILE, Tag.BULK, Tag.NETWORK, Tag.SECRET}:
            if Tag.SECRET in word.tags:
                walker.destroy(
                    "egress.secret",
                    word.span,
                    "Secret material leaves in a name query.",
                    scene,
                    EffectKind.EGRESS,
                    EffectKind.SENSITIVE,
                )
            elif scene.inserted is None:
                walker.change(
                    "egress.data", word.span, "Contents of files leave in a name query.", scene, EffectKind.EGRESS
                )
        elif (
            word.kind.value == "dynamic"
            and "." in word.text.strip(HOLE)
            and any(hosts.is_third_party(text.replace(HOLE, "x").strip(".")) for text in (word.text,))
            and word.tags
        ):
            walker.change(
                "egress.data", word.span, "Data of this machine leaves in a name query.", scene, EffectKind.EGRESS
            )
        if (
            word.kind.value == "dynamic"
            and word.text[:1] == HOLE
            and word.splits
            and word.tags & {Tag.UNKNOWN}
            and len(this.words) == 2
        ):
            continue
    return None


def ping(this: Call) -> Flow | None:
    """ping may carry a pattern, and may flood."""
    if this.name.startswith("ping") and this.has("-f", "-A"):
        this.walker.change("ping.flood", this.span, "Floods the other machine.", this.scene, EffectKind.OUTAGE)
    for used in this.line.used:
        if used.name == "-p" and used.value is not None and not used.value.literal:
            this.walker.change(
                "ping.pattern",
                used.value.span,
                "Data of this machine leaves in a ping pattern.",
                this.scene,
                EffectKind.EGRESS,
            )
    return None


def wg(this: Call) -> Flow | None:
    """`wg show … dump` and its like print private keys."""
    for word in this.line.args:
        if word.text in ("dump", "private-key", "preshared-keys"):
            this.walker.change("wg.keys", word.span, "Prints keys of the tunnel.", this.scene, EffectKind.SENSITIVE)
    return None
