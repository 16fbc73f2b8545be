"""Disclosure: secret material and raw disks that are shown, and what flows to another machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import arguments, hosts, paths
from oikos.policy.call import Call
from oikos.policy.scene import Scene
from oikos.policy.words import HOLE, Tag, Tags, Word

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

_MOST_NAMES = 256


def secrets(walker: Walker, words: Sequence[Word], scene: Scene) -> bool:
    """Judge words that name secret material."""
    hit = False
    for word in words:
        if Tag.SECRET in word.tags and not word.literal:
            walker.change(
                "read.secret", word.span, "Shows secret material found by another command.", scene, EffectKind.SENSITIVE
            )
            hit = True
            continue
        for text in word.spellings():
            if paths.is_consuming(text):
                walker.change(
                    "read.consumes", word.span, f"Reading {text} takes away what another reader waits for.", scene
                )
            if paths.is_secret(text, walker.cwd):
                walker.change(
                    "read.secret", word.span, f"Touches {text.replace(HOLE, '…')}, which is secret material.", scene,
                    EffectKind.SENSITIVE, thing=text,
                )  # fmt: skip
                hit = True
                break
    return hit


def shown(this: Call) -> bool:
    """Judge what a program shows that shows what its arguments hold."""
    named = secrets(this.walker, arguments.shown(this), this.scene)
    return named | devices(this) | runs(this) | listed(this)


def devices(this: Call) -> bool:
    """Judge raw disks whose contents the program shows."""
    kinds = arguments.kinds_of(this)
    for word, arg in zip(this.line.args, kinds, strict=False):
        if arg.kind == "read" and any(paths.is_block_device(text) for text in word.spellings()):
            this.walker.change(
                "read.device",
                word.span,
                f"Shows what the disk {word.text.replace(HOLE, '…')} holds.",
                this.scene,
                EffectKind.SENSITIVE,
                thing=word.text,
            )
            return True
    return False


_READ_NAMES = frozenset("tar gtar bsdtar cpio wc sort du rsync find zip pax".split())
"""Programs that take names of files from standard input."""


def listed(this: Call) -> bool:
    """Judge the names of files on standard input: `tar -cf - -T -`, `wc --files0-from=-`."""
    text = this.scene.stdin.text
    told = any(re.search(r"(?:^|[=T@])-$|^/dev/stdin$", word.text) for word in this.words)
    if text is None or this.name not in _READ_NAMES or not (told or this.name in ("cpio", "pax")):
        return False
    names = re.split(r"[\n\0]", text)[:_MOST_NAMES]
    return secrets(this.walker, [Word(one, span=this.span) for one in names], this.scene)


_RECURSE = frozenset("rg ripgrep rgrep ag ack ugrep zip 7z 7za rsync restic borg".split())
"""Programs that read whole folders without being asked to."""


def runs(this: Call) -> bool:
    """Judge reading a folder below which other runs have their secret files for the time they take."""
    asked = this.has("-r", "-R", "-a", "--recursive", "--dereference-recursive", "--archive", "-d", "--directories")
    if this.rule.handler == "tar" or not (asked or this.name in _RECURSE):  # of tar its handler knows what is read
        return False
    if this.dry:
        return False
    chosen = [word.text for word in this.values("--include", "-g", "--glob")]
    if chosen and not any(paths.could_be_run_secret(text) for text in chosen):
        return False
    kinds = arguments.kinds_of(this)
    given = [
        word
        for at, word in enumerate(this.line.args)
        if not (at < len(kinds) and kinds[at].kind in ("text", "int", "sub", "url", "out"))
    ]
    return reads_all(this, given, this.walker.cwd)


def reads_all(this: Call, given: Sequence[Word], cwd: str) -> bool:
    """Judge that everything below some folders is read; without any, below `cwd`."""
    where = [text for word in given for text in word.spellings()] or ["."]
    found = next((text for text in where if paths.reaches_runs(paths.normal(text, cwd))), None)
    if found is not None:
        why = f"Reads all of {found.replace(HOLE, '…')}, where the secret files of other runs lie."
        this.walker.change("read.secret", this.span, why, this.scene, EffectKind.SENSITIVE, thing=found)
    return found is not None


def sent(this: Call, tags: Tags) -> None:
    """Judge what flows out to another machine (policy design, secrets and egress)."""
    given = frozenset[Tag]().union(*(word.tags for word in this.words))
    host = next((hosts.host_of(word.text) for word in this.line.args if word.literal), "")
    if Tag.SECRET in tags | given:
        this.walker.destroy(
            "egress.secret",
            this.span,
            "Secret material flows to another machine; that cannot be taken back.",
            this.scene,
            EffectKind.EGRESS,
            EffectKind.SENSITIVE,
            thing=host,
        )
    elif given & {Tag.FILE, Tag.BULK, Tag.NETWORK, Tag.DECODED} and this.scene.inserted is None:
        this.walker.change(
            "egress.data",
            this.span,
            "Contents of files go into a request to another machine.",
            this.scene,
            EffectKind.EGRESS,
            thing=host,
        )
