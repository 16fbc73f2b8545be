"""sed scripts: a parser for the commands, so that `w`, `e` and friends are seen wherever they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import Risk
from oikos.policy import arguments, paths
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call

_PLAIN = frozenset("pdqQlnNPDgGhHxzF=")


def sed(this: Call) -> Flow | None:
    """`sed [options] SCRIPT [FILE…]`."""
    walker, scene = this.walker, this.scene
    scripts = this.values("-e", "--expression")
    args = list(this.line.args)
    if not scripts and not this.has("-f", "--file") and args:
        scripts = [args.pop(0)]
    if this.has("-i", "--in-place"):
        for word in args:
            path = paths.normal(word.text, walker.cwd)
            if paths.is_critical(path) and not path.startswith("/root/.ssh"):
                walker.destroy(
                    "sed.critical", word.span, f"Edits {path} in place.", scene, *paths.write_effects(path), thing=path
                )
            else:
                walker.find(
                    "sed.in-place",
                    Risk.CONFIG_MUTATION,
                    word.span,
                    f"Edits {word.text.replace(HOLE, '…')} in place.",
                    scene,
                    paths.write_effects(path),
                    path,
                )
    for word in this.line.loose:
        if word not in scripts and word.could_be_option() and not word.values:
            if word.kind.value == "glob" and not word.could_be_option_glob():
                continue
            walker.unclear(
                "dynamic.sed",
                word.span,
                "This word is only known when the shell runs; it could be an option of sed.",
                scene,
            )
    for word in scripts:
        if not word.literal and not word.values:
            walker.unclear("sed.dynamic", word.span, "Part of the sed script is only known when the shell runs.", scene)
        for text in word.values or (word.text,):
            for rule, risk_text, payload in check(text):
                walker.unclear(f"sed.{rule}", word.span, risk_text, scene)
                if rule in ("w", "W", "s.w") and payload:
                    arguments.value(this, "out", Word(payload, span=word.span), "sed.w", "w")
                    if paths.is_block_device(payload) or (paths.is_critical(payload)):
                        walker.destroy(
                            "sed.w",
                            word.span,
                            f"Overwrites {payload}.",
                            scene,
                            *paths.write_effects(payload),
                            thing=payload,
                        )
                if rule in ("e", "s.e") and payload:
                    walker.script(payload.replace(HOLE, "x"), scene.inside("sed e"), word.span, None)
                if rule in ("r", "R") and paths.is_secret(payload):
                    arguments.value(this, "secret", word, "sed.r", "r")
    return None


def check(script: str) -> list[tuple[str, str, str]]:
    """What a sed script does besides editing its stream, as (rule, sentence, file or command)."""
    found: list[tuple[str, str, str]] = []
    at = 0
    size = len(script)

    def address(at: int) -> int:
        if at < size and script[at] in "/\\":
            delimiter = script[at]
            if delimiter == "\\":
                at += 1
                delimiter = script[at] if at < size else ""
            at = _until(script, at + 1, delimiter)
            while at < size and script[at] in "IM":
                at += 1
            return at
        plain = re.compile(r"\d+(?:~\d+)?|\$|[+~]\d+").match(script, at)
        return plain.end() if plain else at

    while at < size:
        while at < size and script[at] in " \t\n;":
            at += 1
        if at >= size:
            break
        begin = at
        at = address(at)
        if at != begin:
            at = _blanks(script, at)
            if at < size and script[at] == ",":
                at = address(_blanks(script, at + 1))
        at = _blanks(script, at)
        while at < size and script[at] == "!":
            at = _blanks(script, at + 1)
        if at >= size:
            break
        command = script[at]
        at += 1
        if command in "{}":
            continue
        if command == "#":
            at = _line_end(script, at)
        elif command in _PLAIN:
            if command in "qQlL":
                at = _blanks(script, at)
                while at < size and script[at].isdigit():
                    at += 1
        elif command in ":btT":
            end = re.compile(r"[;\n}]" if command != ":" else r"[;\n]").search(script, at)
            at = end.start() if end else size
        elif command in "aic":
            at = _text_end(script, at)
        elif command in "rRwW":
            stop = _line_end(script, at)
            name = script[at:stop].strip()
            at = stop
            if command in "wW":
                if not paths.is_sink(name):
                    found.append((command, f"The sed command {command} writes the file {name}.", name))
            else:
                found.append((command, f"The sed command {command} reads the file {name}.", name)) if paths.is_secret(
                    name
                ) else None
        elif command == "e":
            stop = _line_end(script, at)
            found.append(("e", "The sed command e runs a program.", script[at:stop].strip()))
            at = stop
        elif command == "s":
            at = _substitute(script, at, found)
        elif command == "y":
            delimiter = script[at : at + 1]
            at = _until(script, _until(script, at + 1, delimiter), delimiter)
        else:
            found.append(("unknown", f"The sed command {command!r} is not understood.", ""))
            break
    return found


def _substitute(script: str, at: int, found: list[tuple[str, str, str]]) -> int:
    delimiter = script[at : at + 1]
    if not delimiter or delimiter in "\n\\":
        found.append(("unknown", "The sed substitution is not understood.", ""))
        return len(script)
    at = _until(script, at + 1, delimiter)
    begin = at
    at = _until(script, at, delimiter)
    replacement = script[begin : max(begin, at - 1)]
    flags = re.compile(r"[gpIiMm0-9]*").match(script, at)
    at = flags.end() if flags else at
    while at < len(script) and script[at] in "gpIiMmew0123456789":
        flag = script[at]
        at += 1
        if flag == "e":
            found.append(
                (
                    "s.e",
                    "The e flag runs the changed line as a command.",
                    replacement.replace("\\/", "/").replace("\\", ""),
                )
            )
        elif flag == "w":
            end = _line_end(script, at)
            name = script[at:end].strip()
            if not paths.is_sink(name):
                found.append(("s.w", f"The w flag writes the file {name}.", name))
            return end
    tail = script[at : at + 1]
    if tail and tail not in " \t\n;}#":
        found.append(("unknown", "The flags of the sed substitution are not understood.", ""))
        return len(script)
    return at


def _until(script: str, at: int, delimiter: str) -> int:
    """Index behind the next unescaped delimiter, character classes respected."""
    if not delimiter:
        return len(script)
    in_class = False
    while at < len(script):
        char = script[at]
        if char == "\\":
            at += 2
            continue
        if char == "[" and not in_class and delimiter != "[":
            close = re.compile(r"\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]").match(script, at)
            if close and close.end() <= len(script):
                inside = script[at : close.end()]
                if delimiter not in inside:
                    at = close.end()
                    continue
        if char == delimiter:
            return at + 1
        at += 1
    return len(script)


def _blanks(script: str, at: int) -> int:
    while at < len(script) and script[at] in " \t":
        at += 1
    return at


def _line_end(script: str, at: int) -> int:
    end = script.find("\n", at)
    return len(script) if end < 0 else end


def _text_end(script: str, at: int) -> int:
    """End of the text of a, i or c: lines ending in a backslash go on."""
    while True:
        end = _line_end(script, at)
        if end >= len(script) or script[end - 1] != "\\":
            return end
        at = end + 1
