"""What a command carries along for something else to run: a command behind its own words, or a console's text.

Rules that already change something leave their arguments open; this look can only raise them to destructive.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import Risk
from oikos.policy import builtins, danger, unwrap
from oikos.policy.findings import Report
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.judge import Call

MOST_WORDS = 24
"""So many words are looked at for the beginning of an inner command."""
_NAME = re.compile(r"[\w./+-]+")
_DELETES = re.compile(
    r"(?i)(?:m?(?:rm|del)|rmdir|delete|deltree|erase|purge|wipe|destroy|truncate|discard|fsync-discard|fpunch|punch|zero|pwrite|"
    r"unlink|mkfs\S*|part-(?:disk|del|init)|pvremove|vgremove|lvremove|zero-device|del(?:ete)?_?(?:prin\w*|pol\w*|ent)|ktrem\w*|"
    r"changetype:\s*(?:delete|modrdn)|flush(?:all|db)?|clear|reset|shutdown|halt|reboot|poweroff|mirror\s+.*--delete\S*|glob\s+rm|drop|cluster_?reset|format)\b"
)
"""Words with which a console's line loses something for good (sftp, lftp, smbclient, kadmin, xfs_io, guestfish)."""
_ALONE = ("shutdown", "halt", "reboot", "flushall", "wipe")
"""Those that name nothing."""
_SECRET_OUT = re.compile(r"(?i)(?:m?put|send|reput)\b(?P<what>.*)")


def look(this: Call) -> None:
    """Judge what a changing command carries; nothing is ever lowered."""
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


def _command(this: Call) -> None:
    """The first word that is a known program begins the inner command; a word with blanks is a text for a shell."""
    words = this.words[1:]
    dashes = next((at for at, word in enumerate(words) if word.known == "--"), -1)
    words = words[dashes + 1 :]
    for at, word in enumerate(words[:MOST_WORDS]):
        text = word.text.rpartition("=")[2] if word.text.startswith("--") else word.text
        if re.search(r"\s", text):
            unwrap.hidden(this.walker, text.lstrip("!"), this.scene, word.span, this.name)
        elif word.literal and _NAME.fullmatch(word.text) and _is_program(this, word.text, first=at == 0):
            _only_destruction(this, words[at:])
            return


def _is_program(this: Call, text: str, *, first: bool) -> bool:
    name = posixpath.basename(text)
    if first and (name,) in this.program.subs:  # `toolbox run …`: a subcommand that is also somebody's name
        return False
    return name in builtins.HANDLERS or this.walker.knowledge.program(name) is not None


def _only_destruction(this: Call, words: list[Word]) -> None:
    walker = this.walker
    report, walker.report = walker.report, Report()
    try:
        walker.command(words, this.scene.inside(this.name))
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
    joined = " ".join(texts)
    for text in (*texts, joined, this.scene.stdin.text or ""):
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
