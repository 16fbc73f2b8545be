"""awk programs: a tokeniser that finds everything by which awk reaches beyond its input and output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.policy import paths
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE

if TYPE_CHECKING:
    from oikos.policy.call import Call

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n;]+|\\\n) | (?P<comment>\#[^\n]*) | (?P<string>"(?:[^"\\\n]|\\.|\\\n)*")
    | (?P<name>[A-Za-z_@][\w:]*) | (?P<number>0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)
    | (?P<op>>>|\|&|\|\||&&|[-+*/%^!=<>]=|\*\*=?|\+\+|--|!~|[-+*/%^!<>=~?:,(){}\[\]$|&.@'`\\])""",
    re.VERBOSE | re.DOTALL,
)
_FILTER = re.compile(
    r"(?:sort|uniq|head|tail|column|wc|cat|nl|tac|rev|cut|tr|fold|fmt|date|hostname|uname|nproc)(?:\s+[\w.,:=%+-]+)*"
)
"""Commands at the other end of a pipe whose options are read like those of any other command."""
_SECRETIVE = re.compile(r"(?i)pass|secret|token|key|cred|auth")


def awk(this: Call) -> Flow | None:
    """`awk [options] PROGRAM [FILE|NAME=VALUE…]`."""
    walker, scene = this.walker, this.scene
    args = list(this.line.args)
    programs = this.values("-e", "--source")
    if not programs and args and not this.has("-f", "--file", "-E", "--exec"):
        programs = [args.pop(0)]
    for word in args:
        if word.kind.value == "dynamic" and word.splits and word.tags:
            walker.unclear(
                "dynamic.awk",
                word.span,
                "This word is only known when the shell runs; it could be an option of awk.",
                scene,
            )
    values = [word.text.partition("=")[2] for word in this.values("-v", "--assign")]
    for word in programs:
        if not word.literal and not word.values:
            tame = not word.tags and not word.splits
            if not tame or (HOLE in word.text and _outside_string(word.text)):
                walker.unclear(
                    "awk.dynamic", word.span, "Part of the awk program is only known when the shell runs.", scene
                )
        for text in word.values or (word.text.replace(HOLE, "0"),):
            for rule, sentence, payload in check(text):
                if not (rule == "pipe" and _FILTER.fullmatch(payload)):
                    walker.unclear(f"awk.{rule}", word.span, sentence, scene)
                commands = [payload] if payload else values
                for command in commands:
                    if rule in ("system", "pipe"):
                        walker.script(command.replace(HOLE, "x"), scene.inside("awk"), word.span, None)
                    elif rule == "write" and paths.is_critical(command):
                        walker.destroy(
                            "awk.write",
                            word.span,
                            f"Writes {command}.",
                            scene,
                            *paths.write_effects(command),
                            thing=command,
                        )
    return None


def _outside_string(text: str) -> bool:
    """Whether a dynamic piece stands outside string literals."""
    return HOLE in re.sub(r'"(?:[^"\\]|\\.)*"', "", text)


def check(program: str) -> list[tuple[str, str, str]]:
    """What an awk program does besides printing, as (rule, sentence, literal command or file)."""
    found: list[tuple[str, str, str]] = []
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(program):
        if program[at] == "/" and _regex_may_start(tokens):
            end = _regex_end(program, at)
            tokens.append(("regex", program[at:end]))
            at = end
            continue
        match = _TOKEN.match(program, at)
        if not match:
            return [("unknown", f"The awk program is not understood at {program[at : at + 10]!r}.", "")]
        at = match.end()
        kind = match.lastgroup or ""
        if kind == "space" and "\n" not in match.group() and ";" not in match.group():
            continue
        if kind != "comment":
            tokens.append((kind, match.group()))
    printing, depth = False, 0
    for index, (kind, text) in enumerate(tokens):
        before = tokens[index - 1] if index else ("", "")
        after = tokens[index + 1] if index + 1 < len(tokens) else ("", "")
        if kind == "space" or text in "{}":
            printing = False
        elif kind == "name":
            if text in ("print", "printf"):
                printing, depth = True, 0
            elif text.startswith("@") or text in ("@load", "@include"):
                found.append(("load", "The awk program loads another file or calls a function by name.", ""))
            elif text == "system":
                literal = tokens[index + 2][1] if index + 2 < len(tokens) and tokens[index + 2][0] == "string" else ""
                found.append(("system", "The awk function system runs a command.", _unquote(literal)))
            elif text == "ARGV" and _chooses_files(tokens, index):
                found.append(("argv", "The awk program chooses itself which files it reads.", ""))
            elif text == "ENVIRON" and not (
                index + 2 < len(tokens)
                and tokens[index + 2][0] == "string"
                and not _SECRETIVE.search(tokens[index + 2][1])
            ):
                found.append(("environ", "The awk program prints the environment, passwords among it.", ""))
            elif text == "getline":
                source = before[1] in ("|", "|&")
                if source:
                    command = tokens[index - 2] if index >= 2 else ("", "")
                    found.append(
                        (
                            "pipe",
                            "The awk program runs a command and reads it.",
                            _unquote(command[1]) if command[0] == "string" else "",
                        )
                    )
                elif after[1] == "<" or (index + 2 < len(tokens) and tokens[index + 2][1] == "<"):
                    found.append(("getline", "The awk program reads another file.", ""))
        elif text == "@":
            found.append(("load", "The awk program loads another file or calls a function by name.", ""))
        elif text == "(":
            depth += printing
        elif text == ")":
            depth -= printing
        elif text in ("|", "|&") and not (after[0] == "name" and after[1] == "getline"):
            found.append(
                ("pipe", "The awk program starts a command.", _unquote(after[1]) if after[0] == "string" else "")
            )
        elif text in (">", ">>") and printing and depth <= 0:
            target = _unquote(after[1]) if after[0] == "string" else ""
            if target not in ("/dev/stderr", "/dev/stdout", "/dev/null"):
                found.append(("write", f"The awk program writes the file {target or 'named by a variable'}.", target))
        elif text in ("'", "`", "\\"):
            found.append(("unknown", "The awk program is not understood.", ""))
        elif kind == "string" and text.startswith(('"/inet', '"/dev/tcp')):
            found.append(("network", "The awk program opens a connection.", ""))
    return found


def _chooses_files(tokens: list[tuple[str, str]], index: int) -> bool:
    """Whether ARGV is assigned to at `index`, or handed to a function that may do so."""
    texts = [text for _, text in tokens]
    if {"sub", "gsub", "split", "patsplit", "asort", "asorti"} & set(texts) or texts[index + 1 : index + 2] != ["["]:
        return True
    depth, at = 0, index + 1
    while at < len(texts):
        depth += (texts[at] == "[") - (texts[at] == "]")
        at += 1
        if not depth:
            break
    return at < len(texts) and (texts[at] in ("=", "++", "--") or bool(re.fullmatch(r"[-+*/%^]=|\*\*=", texts[at])))


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else ""


def _regex_may_start(tokens: list[tuple[str, str]]) -> bool:
    """After an operand a slash divides; else it begins a regular expression."""
    if not tokens:
        return True
    kind, text = tokens[-1]
    if kind in ("number", "string", "regex") or text in (")", "]", "++", "--"):
        return False
    return (
        not (
            kind == "name"
            and text
            not in ("print", "printf", "return", "in", "case", "getline", "delete", "else", "do", "if", "while")
        )
        and text != "$"
    )


def _regex_end(program: str, at: int) -> int:
    index, in_class = at + 1, False
    while index < len(program):
        char = program[index]
        if char == "\\":
            index += 2
            continue
        if char == "[":
            in_class = True
        elif char == "]":
            in_class = False
        elif (char == "/" and not in_class) or char == "\n":
            return index + 1
        index += 1
    return len(program)
