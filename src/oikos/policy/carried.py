"""What a command carries along for something else to run: a command behind its own words, or a console's text.

Rules that already change something leave their arguments open; this look can only raise them to destructive.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import builtins, danger, unwrap
from oikos.policy.call import span_of
from oikos.policy.findings import Report
from oikos.policy.scene import EMPTY, Scene
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call
    from oikos.policy.walk import Walker

MOST_WORDS = 24
"""So many words are looked at for the beginning of an inner command."""
_NAME = re.compile(r"[\w./+-]+")
_DELETES = re.compile(
    r"(?i)(?:m?(?:rm|del)|rmdir|delete|deltree|erase|purge|wipe|destroy|truncate|discard|fsync-discard|fpunch|punch|zero|pwrite|"
    r"unlink|mkfs\S*|part-(?:disk|del|init)|pvremove|vgremove|lvremove|zero-device|del(?:ete)?_?(?:prin\w*|pol\w*|ent)|ktrem\w*|"
    r"changetype:\s*(?:delete|modrdn)|flush(?:all|db)?|clear|reset|shutdown|halt|reboot|poweroff|mirror\s+.*--delete\S*|glob\s+rm|drop|cluster_?reset|format)\b"
)
"""Words with which a console's line loses something for good (sftp, lftp, smbclient, kadmin, xfs_io, guestfish)."""
_LEAVES = ("quit", "exit", "bye", "q")
"""How one leaves a console."""
_ALONE = ("shutdown", "halt", "reboot", "flushall", "wipe")
"""Those that name nothing."""
_SECRET_OUT = re.compile(r"(?i)(?:m?put|send|reput)\b(?P<what>.*)")


_TEXT_OPTION = re.compile(r"--?(?:c|e|q|x|cmd|command|exec|execute|eval|run|script|query)")
_METHOD = ("-X", "--request", "--method")
_GIVES_UP = re.compile(r"--(?:discard-my-data|overwrite-data-of-peer|discard-changes|delete-all|destroy-all|wipe-all)")
_VITAL = re.compile(
    r"(?:pip|apt|dpkg|rpm|apk-tools|dnf|yum|libc6|glibc|musl|systemd|init|bash|coreutils|util-linux|busybox|sudo|openssh(?:-server|-sftp-server)?|dropbear|"
    r"network-manager|NetworkManager|ifupdown2?|netplan\.io|linux-image-\S+|proxmox-ve|pve-manager|pve-cluster|grub\S*|kernel(?:-core)?)(?::\w+)?"
)
"""Packages without which the machine does not boot, cannot be reached or cannot install anything."""
_REMOVING = {"dpkg": ("-r", "--remove"), "rpm": ("-e", "--erase"), "pacman": ("-R", "--remove")}
_REMOVES = frozenset("remove rm purge uninstall erase del autoremove".split())


def undescribed(walker: Walker, given: Sequence[Word], scene: Scene) -> None:
    """Judge a command that nobody described, or of whose rules none fits: does anything in it say destruction?"""
    found = danger.in_arguments(given)
    if found:
        walker.destroy("danger.argument", span_of(given), f"{danger.NOTE}: {found}.", scene)
    words(walker, given, scene, given[0].text)
    verb = danger.destroying_verb(given[1:])
    if verb:
        walker.destroy("danger.verb", span_of(given), f"`{verb}` says that something is lost for good.", scene)


def words(walker: Walker, given: Sequence[Word], scene: Scene, label: str) -> None:
    """Judge words nobody described: a command behind two dashes, a text behind `--command`, a method DELETE."""
    span = given[0].span[0], given[-1].span[1]
    dashes = next((at for at, word in enumerate(given) if word.known == "--"), len(given))
    behind = list(given[dashes + 1 :])
    if behind and behind[0].literal and _known(walker, behind[0].text):
        _only_destruction(walker, behind, scene.inside(label))
    for at, word in enumerate(given[1:], 1):
        before = given[at - 1].text
        option, equals, value = word.text.partition("=")
        text = ""
        if equals and _TEXT_OPTION.fullmatch(option):
            text = value
        elif _TEXT_OPTION.fullmatch(before):
            text = word.text
        if re.search(r"\s", text):
            unwrap.hidden(walker, text.lstrip("!"), scene, word.span, label)
            if any(loses(line) for line in re.split(r"[;\n]\s*", text)):
                walker.destroy("danger.console", word.span, f"What {label} is told to do there loses data.", scene)
        if (option in _METHOD and value == "DELETE") or (before in _METHOD and word.text == "DELETE"):
            walker.destroy("danger.method", word.span, "Asks a server to delete something.", scene)
        if _GIVES_UP.fullmatch(word.text):
            walker.destroy("danger.option", span, f"{word.text} says that something is lost for good.", scene)


def removes(this: Call) -> None:
    """Judge a package manager that takes away what is needed to put anything back."""
    taken = this.sub[-1] in _REMOVES if this.sub else this.has(*_REMOVING.get(this.name, ()))
    if taken and not this.has(*this.rule.dry):
        for word in this.line.args:
            if word.literal and _VITAL.fullmatch(word.text):
                why = f"Removes {word.text}; without it nothing can put it back."
                this.walker.destroy(f"{this.id}.vital", word.span, why, this.scene, EffectKind.OUTAGE)


def look(this: Call) -> None:
    """Judge what a changing command carries; nothing is ever lowered."""
    words(this.walker, this.words, this.scene, this.name)
    texts = [word for word in this.words[1:] if re.search(r"\s", word.text)]
    found = danger.in_arguments(texts)
    verb = danger.destroying_verb(this.line.args)
    if found:
        this.walker.destroy("danger.argument", this.span, f"{danger.NOTE}: {found}.", this.scene)
    elif verb:
        this.walker.destroy("danger.verb", this.span, f"`{verb}` says that something is lost for good.", this.scene)
    match this.rule.carries:
        case "command":
            _command(this)
        case "console":
            _console(this)
        case _:
            pass


def spoken(this: Call) -> None:
    """Judge what a console reads from its standard input: every line is a command of the same program."""
    walker, scene, stdin = this.walker, this.scene, this.scene.stdin
    if stdin.text is None:
        if stdin.piped:
            why = f"{this.name} carries out what it reads, and that is only known when the shell runs."
            walker.unclear("console.stdin", this.span, why, scene)
        return
    inner = replace(scene.inside(this.name), stdin=EMPTY)
    for line in re.split(r"[;\n]", stdin.text):
        said = line.split()
        if said and not said[0].startswith("#") and said[0] not in _LEAVES:
            walker.command([Word(text, span=this.span) for text in (this.name, *said)], inner)


def typed(this: Call) -> None:
    """Judge what a program reads that takes it for keys, or hands it to a shell."""
    stdin = this.scene.stdin
    if not stdin.piped or this.has("-c"):  # `ntpq -c COMMAND` reads none
        return
    why = f"{this.name} does what it reads on standard input."
    this.walker.unclear("console.stdin", this.span, why, this.scene)
    if stdin.text:
        unwrap.hidden(this.walker, stdin.text, this.scene, this.span, this.name)
        if any(loses(line) for line in re.split(r"[;\n]\s*", stdin.text)):
            this.walker.destroy("danger.console", this.span, f"What {this.name} reads there loses data.", this.scene)


def _command(this: Call) -> None:
    """The first word that is a known program begins the inner command; a word with blanks is a text for a shell."""
    rest = this.words[1:]
    for at, word in enumerate(rest[:MOST_WORDS]):
        text = word.text.rpartition("=")[2] if word.text.startswith("--") else word.text
        if re.search(r"\s", text):
            unwrap.hidden(this.walker, text.lstrip("!"), this.scene, word.span, this.name)
        elif word.literal and _NAME.fullmatch(word.text) and _is_program(this, word.text, first=at == 0):
            _only_destruction(this.walker, rest[at:], this.scene.inside(this.name))
            return


def _is_program(this: Call, text: str, *, first: bool) -> bool:
    name = posixpath.basename(text)
    if first and (name,) in this.program.subs:  # `toolbox run …`: a subcommand that is also somebody's name
        return False
    return _known(this.walker, text)


def _known(walker: Walker, text: str) -> bool:
    name = posixpath.basename(text)
    return name in builtins.HANDLERS or walker.knowledge.program(name) is not None


def _only_destruction(walker: Walker, inner: list[Word], scene: Scene) -> None:
    report, walker.report = walker.report, Report()
    try:
        walker.command(inner, scene)
    finally:
        report.findings.extend(one for one in walker.report.findings if one.risk is Risk.DESTRUCTIVE)
        walker.report = report


def loses(line: str) -> bool:
    """Whether a console's line loses something for good."""
    words = line.split()
    return bool(words) and _DELETES.match(line.strip()) is not None and (len(words) > 1 or words[0].lower() in _ALONE)


def _console(this: Call) -> None:
    from oikos.policy import paths

    texts = [word.text.rpartition("=")[2] if word.text.startswith("--") else word.text for word in this.words[1:]]
    tails = (" ".join(texts[at:]) for at in range(min(len(texts), MOST_WORDS)))
    for text in (*texts, *tails, this.scene.stdin.text or ""):
        for line in re.split(r"[;\n]\s*|\s:\s", text):
            words = line.replace(HOLE, "…").strip().lstrip("-@!").split(None, 1)
            if not words or words[0].startswith("-"):
                continue
            spoken = " ".join(words)
            if loses(spoken):
                why = f"`{spoken[:60]}` is carried out by {this.name}, and what it names is lost."
                this.walker.destroy("danger.console", this.span, why, this.scene)
                return
            sends = _SECRET_OUT.match(spoken)
            if sends and any(paths.is_secret(one, "") for one in sends.group("what").split()):
                this.walker.destroy("egress.secret", this.span, "Sends secret material to another machine.", this.scene)
                return
