"""tar: the mode decides, whatever else stands beside it."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import arguments, danger, disclosure, paths
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, Tag, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call

_MODES = {
    "t": "list", "list": "list", "x": "extract", "extract": "extract", "get": "extract", "c": "create", "create": "create", "r": "append",
    "append": "append", "u": "update", "update": "update", "A": "concatenate", "catenate": "concatenate", "concatenate": "concatenate", "d": "compare",
    "diff": "compare", "compare": "compare", "delete": "delete", "test-label": "list",
}  # fmt: skip
_QUIET = frozenset(
    """verbose gzip bzip2 xz zstd lzip lzma lzop auto-compress no-auto-compress absolute-names full-time numeric-owner wildcards no-wildcards anchored
    no-anchored ignore-case no-ignore-case wildcards-match-slash totals block-number show-transformed-names show-stored-names utc quoting-style
    ignore-zeros read-full-records sparse occurrence warning label format force-local to-stdout same-permissions preserve-permissions same-owner
    no-same-owner no-same-permissions one-file-system exclude exclude-vcs exclude-caches exclude-backups transform strip-components keep-old-files
    skip-old-files overwrite touch dereference hard-dereference owner group mode sort mtime null directory file acls xattrs selinux verbatim-files-from
    recursion no-recursion newer after-date blocking-factor record-size gunzip ungzip uncompress compress listed-incremental_ checkpoint""".split()
)
_VALUED = frozenset(
    "exclude transform strip-components owner group mode sort mtime directory file occurrence warning label format quoting-style newer after-date "
    "blocking-factor record-size".split()
)
_SHORT_VALUE = "fCbXTIKNgLHVF"
_EXEC = (
    "to-command",
    "use-compress-program",
    "rmt-command",
    "rsh-command",
    "checkpoint-action",
    "info-script",
    "new-volume-script",
)


def tar(this: Call) -> Flow | None:
    """`tar [options] [FILE…]`, old and new style."""
    walker, scene = this.walker, this.scene
    words = this.words[1:]
    mode, archive, to_stdout, place, source = "", "", False, "", []
    at = 0
    if words and words[0].literal and not words[0].text.startswith("-") and re.fullmatch(r"[A-Za-z]+", words[0].text):
        # Old style: one cluster, its values follow in order.
        values = [letter for letter in words[0].text if letter in _SHORT_VALUE]
        expanded = [Word(f"-{letter}", span=words[0].span) for letter in words[0].text if letter not in _SHORT_VALUE]
        at = 1
        for letter in values:
            if at < len(words):
                expanded += [Word(f"-{letter}", span=words[0].span), words[at]]
                at += 1
        words = [*expanded, *words[at:]]
        at = 0
    dashes = False
    while at < len(words):
        word = words[at]
        at += 1
        text = word.text
        if not word.literal and (word.could_be_option() and not word.values) and not dashes and text[:1] in ("-", HOLE):
            walker.unclear(
                "dynamic.tar",
                word.span,
                "This word is only known when the shell runs, and tar has options that run programs.",
                scene,
            )
            continue
        if text == "--":
            dashes = True
        elif text.startswith("--") and not dashes:
            name, equals, value = text[2:].partition("=")
            known = {
                *_MODES,
                *_QUIET,
                *_EXEC,
                "remove-files",
                "index-file",
                "files-from",
                "exclude-from",
                "listed-incremental",
                "incremental",
                "volno-file",
                "backup",
                "suffix",
                "unlink-first",
                "recursive-unlink",
                "verify",
                "multi-volume",
                "help",
                "version",
                "usage",
            }
            meant = (
                [name] if name in known else [one for one in sorted(known) if one.startswith(name) and len(name) > 1]
            )
            meant_one = next((one for one in meant if one in _EXEC), meant[0] if meant else "")
            if (
                not equals
                and meant_one in (*_VALUED, *_EXEC, "index-file", "files-from", "exclude-from")
                and at < len(words)
            ):
                value = words[at].text
                at += 1
            if meant_one in _MODES and len(meant_one) > 1:
                mode = _MODES[meant_one]
            elif meant_one in _EXEC:
                walker.unclear(f"tar.{meant_one}", word.span, f"--{meant_one} runs a program.", scene)
                if danger.in_text(value.removeprefix("exec=")) or (
                    mode == "extract" and re.search(r"\bsh\b|bash", value)
                ):
                    walker.destroy(
                        "danger.argument",
                        word.span,
                        "Contents of the archive, or a destructive command, are run.",
                        scene,
                        EffectKind.REMOTE_CODE,
                    )
            elif meant_one == "file":
                archive = value
            elif meant_one == "directory":
                place = value
            elif meant_one == "to-stdout":
                to_stdout = True
            elif meant_one == "recursive-unlink":
                walker.destroy("tar.unlink", word.span, "Deletes whole directories before it unpacks.", scene)
            elif meant_one == "remove-files":
                walker.destroy("tar.remove-files", word.span, "Deletes the files it packed.", scene)
            elif meant_one in ("files-from", "exclude-from"):
                if paths.is_secret(value):
                    walker.change("read.secret", word.span, "Reads secret material.", scene, EffectKind.SENSITIVE)
            elif meant_one not in _QUIET and meant_one not in ("help", "version", "usage"):
                walker.unclear(
                    f"opt.unknown.tar.--{re.sub(r'[^a-z-]', '', name)[:30]}",
                    word.span,
                    f"The option {text} of tar writes or is not known.",
                    scene,
                )
        elif text.startswith("-") and len(text) > 1 and not dashes:
            letters = text[1:]
            for index, letter in enumerate(letters):
                if letter in _MODES:
                    mode = _MODES[letter] if not mode or mode == "list" else mode
                elif letter in _SHORT_VALUE:
                    value = letters[index + 1 :]
                    if not value and at < len(words):
                        value = words[at].text
                        at += 1
                    if letter == "f":
                        archive = value
                    elif letter == "C":
                        place = value
                    elif letter in "IF":
                        walker.unclear("tar.use-compress-program", word.span, "Runs a program.", scene)
                        if danger.in_text(value):
                            walker.destroy("danger.argument", word.span, f"{danger.NOTE}.", scene)
                    break
                elif letter == "O":
                    to_stdout = True
                elif letter not in "vzjJZaPpmhklwBRSinos":
                    walker.unclear(
                        f"opt.unknown.tar.-{letter}", word.span, f"The option -{letter} of tar is not known.", scene
                    )
        else:
            source.append(word)
    if re.match(r"[\w.@-]+:", archive) and "--force-local" not in [word.text for word in words]:
        walker.unclear("tar.remote", this.span, "An archive name with a colon contacts another machine.", scene)
    return _mode(this, mode, archive, to_stdout, place, source)


def _mode(this: Call, mode: str, archive: str, to_stdout: bool, place: str, source: list[Word]) -> Flow | None:
    walker, scene = this.walker, this.scene
    secret = any(
        paths.is_secret(text.rstrip("/") + "/x" if text.endswith("private") else text)
        for word in source
        for text in word.spellings()
    )
    if mode in ("list", "compare") or (mode == "extract" and to_stdout):
        tags = scene.stdin.tags | {Tag.FILE}
        if to_stdout and secret:
            walker.change(
                "read.secret", this.span, "Shows secret material out of an archive.", scene, EffectKind.SENSITIVE
            )
        return Flow(tags, None, True)
    if mode in ("create", "append", "update"):
        secret |= disclosure.reads_all(this, source, paths.normal(place, walker.cwd) if place else walker.cwd)
    if mode == "create":
        outward = archive in ("-", "/dev/stdout") or (not archive)
        if outward or archive == "/dev/null":
            if secret:
                walker.change("read.secret", this.span, "Packs secret material.", scene, EffectKind.SENSITIVE)
            return Flow(frozenset((Tag.BULK, Tag.SECRET) if secret else (Tag.BULK,)), None, True)
        arguments.value(
            this,
            "out",
            Word(archive, Word("").kind, this.span) if HOLE not in archive else Word(archive, span=this.span),
            "tar.create",
            "archive",
        )
        if HOLE in archive:
            walker.change("tar.create", this.span, "Writes an archive.", scene)
        return None
    if mode == "extract":
        if Tag.NETWORK in scene.stdin.tags and not archive.strip("-"):
            walker.destroy(
                "exec.fetched",
                this.span,
                "Unpacks an archive straight from the network; nobody can review it.",
                scene,
                EffectKind.REMOTE_CODE,
            )
        where = paths.normal(place or ".", walker.cwd)
        walker.find(
            "tar.extract",
            Risk.CONFIG_MUTATION,
            this.span,
            f"Unpacks files into {place or 'the current directory'}.",
            scene,
            paths.write_effects(where),
            where,
        )
        return None
    if mode == "delete":
        walker.destroy("tar.delete", this.span, "Deletes members of an archive.", scene)
        return None
    if not mode and len(this.words) == 1:
        return None
    walker.change(f"tar.{mode or 'unknown'}", this.span, "Changes an archive, or what it does is not clear.", scene)
    return None
