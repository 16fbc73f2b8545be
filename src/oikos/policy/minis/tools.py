"""Programs whose arguments are small languages of their own: mlr, nmap, smartctl, ntpq, dc, envsubst, text browsers."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import environment
from oikos.policy.minis import http
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE

if TYPE_CHECKING:
    from oikos.policy.call import Call

_MILLER_VERBS = frozenset(
    "altkv bar bootstrap bottom cat count count-distinct count-similar cut decimate fill-down fill-empty flatten format-values fraction gap grep "
    "group-by group-like gsub having-fields head histogram json-parse json-stringify join label latin1-to-utf8 least-frequent merge-fields most-frequent "
    "nest nidx nothing regularize rename reorder repeat reshape sec2gmt sec2gmtdate sec2str seqgen shuffle skip-trivial-records sort sort-within-records "
    "sort-within-records-values sparsify split-join split-lines splitax ssub stats1 stats2 step strptime sub summary tac tail template top utf8-to-latin1 "
    "unflatten uniq unspace unsparsify sec2gmt filter put".split()
)
"""Verbs of Miller that only transform records; `tee`, `split` and `case -f` are not among them."""
_MILLER_REACH = re.compile(
    r"\b(?:system|exec|os_type|hostname)\s*\(|\b(?:tee|emit\w*|dump|edump|print\w*)\b[^;{}]*(?:>|\|)"
)
_SMART_LOG = re.compile(
    r"(?:error|selftest|selective|directory|scttemp|scttempsts|scttemphist|scterc|background|sasphy|sataphy|farm|zdevstat|tapealert|envrep|genstats|"
    r"ssd|defects|devstat|gplog|smartlog|nvmelog|xerror|xselftest)(?:,(?:0x[\da-fA-F]+|\d+)(?:[-+]\d*)?)*(?:,(?:error|selftest))?"
)
_NTP_ASKS = re.compile(
    r"(?:peers|lpeers|opeers|apeers|as|associations|lassociations|passociations|pstats|rv|readvar|rl|readlist|cv|clockvar|cl|clocklist|sysinfo|sysstats|"
    r"kerninfo|iostats|monstats|mrulist|mru|ifstats|reslist|authinfo|version|help|timerstats|ntpversion|host|raw|cooked|dmpeers|listpeers|sysstats|loopinfo|"
    r"monlist|authenticate|timeout|delay|hostnames|debug)(?:\s[^:;]*)?"
)


def miller(this: Call) -> Flow | None:
    """`mlr [options] VERB … [then VERB …] [FILE…]`: tee, split and the DSL can write and run programs."""
    walker, scene = this.walker, this.scene
    start = True
    for word in this.line.args:
        text = word.text
        if text == "then":
            start = True
            continue
        if start:
            start = False
            if not word.literal or text not in _MILLER_VERBS:
                walker.unclear(
                    "mlr.verb",
                    word.span,
                    f"The verb {text.replace(HOLE, '…')} of mlr writes files or is not known.",
                    scene,
                )
                break
        if _MILLER_REACH.search(text):
            walker.unclear("mlr.program", word.span, "The expression runs a command or writes a file.", scene)
    if any(word.text in ("-f", "-s", "--from-file") for word in this.words[2:]) and {"put", "filter"} & {
        word.text for word in this.line.args
    }:
        walker.unclear("mlr.file", this.span, "The expression stands in a file that is not shown here.", scene)
    return None


def nmap(this: Call) -> Flow | None:
    """A scan of many machines for services is not a look (policy labels, network scans)."""
    many = [word for word in this.line.args if re.search(r"/(?:[0-9]|[12]\d|3[01])$|[*]|\d-\d+(?:\.|$)|,", word.text)]
    if (many or this.has("-iL", "-iR")) and not this.has("-sn", "-sL", "-sP"):
        this.walker.change("nmap.scan", this.span, "Scans the services of many machines.", this.scene)
    return None


def smartctl(this: Call) -> Flow | None:
    """`-l scterc,70,70` and its like set what they seem to print."""
    for word in this.values("-l", "--log"):
        if (
            not word.literal
            or not _SMART_LOG.fullmatch(word.text)
            or re.match(r"scterc,|scttempint|.*,reset", word.text)
        ):
            this.walker.change(
                "smartctl.log",
                word.span,
                f"The log {word.text.replace(HOLE, '…')} sets something or is not known.",
                this.scene,
            )
    return None


def ntpq(this: Call) -> Flow | None:
    """Commands of ntpq and ntpdc: only questions."""
    for word in this.values("-c"):
        if not word.literal or not _NTP_ASKS.fullmatch(word.text.strip()):
            this.walker.unclear(
                "ntpq.command",
                word.span,
                f"The command {word.text.replace(HOLE, '…')} of {this.name} is not a question.",
                this.scene,
            )
    return None


def strace(this: Call) -> Flow | None:
    """strace only watches, unless it makes system calls fail."""
    for word in (*this.values("-e"), *this.values("--trace")):
        if re.match(r"(?:inject|fault)=", word.text):
            this.walker.unclear(
                "strace.inject",
                word.span,
                "Makes system calls of the program fail, or return something else.",
                this.scene,
            )
    return None


def dc(this: Call) -> Flow | None:
    """dc runs the rest of a line behind `!`, unless it begins a comparison."""
    texts = [(word.text, word.span) for word in this.values("-e", "--expression")]
    for word in this.line.args:
        this.walker.unclear("dc.file", word.span, "dc runs lines of the file that begin with `!`.", this.scene)
    if this.scene.stdin.text is not None:
        texts.append((this.scene.stdin.text, this.span))
    elif this.scene.stdin.piped and not this.line.args and not texts:
        this.walker.unclear(
            "dc.stdin", this.span, "dc runs lines behind `!`, and what it reads is not known.", this.scene
        )
    for text, span in texts:
        for found in re.finditer(r"!(?![<>=])([^\n]*)", re.sub(r"\[[^\]!]*\]", "", text)):
            this.walker.unclear("dc.shell", span, "dc runs the rest of this line as a command.", this.scene)
            this.walker.script(found.group(1), this.scene.inside("dc"), span, None)
    return None


def envsubst(this: Call) -> Flow | None:
    """Prints variables its input names."""
    text = this.scene.stdin.text or ""
    if any(environment.is_secretive(name) for name in re.findall(r"\$\{?([A-Za-z_]\w*)", text)):
        this.walker.change(
            "envsubst.secret", this.span, "Prints a variable that holds a secret.", this.scene, EffectKind.SENSITIVE
        )
    return None


def browser(this: Call) -> Flow | None:
    """A text browser fetches what it is told to, like curl."""
    for word in this.line.args:
        http.judge_url(this, word)
    return None
