"""Expansion: evaluates one word node of the syntax tree to the words it can become."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.policy import environment
from oikos.policy.parser import Node
from oikos.policy.scene import MAX_DEPTH, UNKNOWN, Flow, Scene, TooMuch
from oikos.policy.words import HOLE, NOTHING, Tag, Tags, Word, WordKind, ansi_c, expand_braces, has_glob, unescape

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

# Shell variables every shell sets to something tame by itself.
_TAME = {
    "HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/bash", "PWD": "", "OLDPWD": "", "HOSTNAME": "", "UID": "0",
    "EUID": "0", "PPID": "1", "RANDOM": "1", "SECONDS": "1", "LINENO": "1", "BASHPID": "1", "EPOCHSECONDS": "1", "OSTYPE": "linux-gnu",
    "EPOCHREALTIME": "1", "BASH_VERSION": "5", "MACHTYPE": "", "HOSTTYPE": "", "SHLVL": "1", "PIPESTATUS": "0", "?": "0", "$": "1", "!": "1", "#": "0",
}  # fmt: skip


class WordMaker:
    """Evaluates one word node."""

    def __init__(self, walker: Walker, node: Node, scene: Scene) -> None:
        self.walker = walker
        self.node = node
        self.scene = scene
        self.span = scene.source.span(node)
        self.pieces: list[Word] = []
        self.odd = False

    def make(self) -> list[Word]:
        parts = self.node.get("Parts", ())
        raw = []
        for part in parts:
            if part.get("Type") == "Lit":
                raw.append(part["Value"])
            else:
                piece = self.part(part, quoted=False)
                raw.append(chr(0xF0000 + len(self.pieces)))
                self.pieces.append(piece)
        joined = "".join(raw)
        spelled = expand_braces(joined) if "{" in joined else [joined]
        if spelled is None:
            self.walker.unclear("expand.braces", self.span, "The braces expand to too many words.", self.scene)
            return [Word(HOLE, WordKind.DYNAMIC, self.span, splits=True)]
        self.odd = self.odd or len(spelled) > 1 or "\\" in joined
        made = [self.one(text, len(spelled) == 1) for text in spelled]
        if len(made) == 1 and made[0].kind is WordKind.DYNAMIC:
            number = self.walker.numbers.value(self.walker, self.node, frozenset())
            return [replace(made[0], number=number)]
        return made

    def body(self) -> int | None:
        parts = self.node["Parts"]
        if len(parts) != 1:
            return None
        part = parts[0]
        start = part["Pos"]["Offset"]
        if part["Type"] == "SglQuoted" and not part.get("Dollar"):
            return self.scene.source.body(start + 1)
        if part["Type"] == "DblQuoted" and len(part.get("Parts", ())) == 1 and part["Parts"][0]["Type"] == "Lit":
            return None if "\\" in part["Parts"][0]["Value"] else self.scene.source.body(start + 1)
        return None

    def one(self, raw: str, alone: bool) -> Word:
        out: list[str] = []
        hints = [""]
        exact: list[str] | None = [""]
        kind, splits, tags = WordKind.LITERAL, False, NOTHING
        for chunk in re.split(r"([\U000F0000-\U000FFFFF])", raw):
            if not chunk:
                continue
            if chunk[0] >= "\U000f0000":
                piece = self.pieces[ord(chunk[0]) - 0xF0000]
                out.append(piece.text)
                if piece.kind is not WordKind.LITERAL:
                    kind = WordKind.DYNAMIC if WordKind.DYNAMIC in (kind, piece.kind) else piece.kind
                splits |= piece.splits
                tags |= piece.tags
                known = [piece.text] if piece.literal else list(piece.values)
                exact = (
                    [a + b for a in exact for b in known][:64]
                    if exact is not None and known and len(exact) * len(known) <= 64
                    else None
                )
                options = [one for one in piece.spellings() if one != HOLE] or [piece.text]
                hints = [a + b for a in hints for b in options[:8]][:16]
                continue
            if has_glob(chunk):
                kind = WordKind.GLOB if kind is WordKind.LITERAL else kind
                splits = True
            text = unescape(chunk, quoted=False)
            out.append(text)
            exact = None if exact is None else [one + text for one in exact]
            hints = [one + text for one in hints]
        text = "".join(out)
        if kind is WordKind.LITERAL:
            return Word(text, kind, self.span, False, tags, body=self.body() if alone else None, odd=self.odd)
        values = tuple(exact) if exact and kind is WordKind.DYNAMIC else ()
        more = tuple(one for one in dict.fromkeys(hints) if one != text)
        return Word(text, kind, self.span, splits, tags, values, more, None, self.odd)

    def part(self, part: Node, *, quoted: bool) -> Word:
        span = self.span
        match part.get("Type"):
            case "SglQuoted":
                self.odd = self.odd or bool(part.get("Dollar"))
                value = part.get("Value", "")
                return Word(ansi_c(value) if part.get("Dollar") else value, WordKind.LITERAL, span)
            case "DblQuoted":
                return self.double(part)
            case "ParamExp":
                return self.parameter(part, quoted)
            case "CmdSubst":
                scene = replace(self.scene, depth=self.scene.depth + 1)
                if scene.depth > MAX_DEPTH:
                    raise TooMuch(f"commands are nested deeper than {MAX_DEPTH}")
                if part.get("ReplyVar"):
                    self.walker.unclear(
                        "expand.value", span, "The value substitution ${| …} is not understood.", self.scene
                    )
                cwd = self.walker.cwd
                flow = self.walker.statements(part.get("Stmts", ()), scene)
                self.walker.cwd = cwd
                read = scene.stdin.text or ""  # `$(cat)` is what it reads
                hints = (flow.text.strip(),) if flow.text else tuple(read.split("\n")[:8]) if read.strip() else ()
                lead = "/" if _prints_path(part.get("Stmts", ())) else ""
                return Word(lead + HOLE, WordKind.DYNAMIC, span, not quoted, flow.tags, (), hints)
            case "ProcSubst":
                cwd = self.walker.cwd
                scene = replace(self.scene, depth=self.scene.depth + 1)
                if part.get("Op") == ">(":
                    scene = replace(scene, stdin=Flow(UNKNOWN, None, True))
                flow = self.walker.statements(part.get("Stmts", ()), scene)
                self.walker.cwd = cwd
                return Word("/dev/fd/63", WordKind.DYNAMIC, span, False, flow.tags, ("/dev/fd/63",))
            case "ArithmExp":
                self.walker.reckon(part.get("X"), self.scene)
                return Word(HOLE, WordKind.DYNAMIC, span, False, NOTHING, ("0",))
            case "ExtGlob":
                return Word("*", WordKind.GLOB, span, True)
            case unknown:
                self.walker.unclear(
                    "syntax.unsupported", span, f"The shell construct {unknown} is not understood.", self.scene
                )
                self.walker.visit(part, self.scene)
                return Word(HOLE, WordKind.DYNAMIC, span, True, UNKNOWN)

    def double(self, part: Node) -> Word:
        inner: list[Word] = []
        for one in part.get("Parts", ()):
            if one.get("Type") == "Lit":
                inner.append(Word(unescape(one["Value"], quoted=True), WordKind.LITERAL, self.span))
            else:
                inner.append(self.part(one, quoted=True))
        if all(word.literal for word in inner):
            return Word("".join(word.text for word in inner), WordKind.LITERAL, self.span)
        tags: Tags = NOTHING
        hints, exact = [""], [""]
        for word in inner:
            tags |= word.tags
            options = [one for one in word.spellings() if one != HOLE] or [word.text]
            hints = [a + b for a in hints for b in options[:8]][:16]
            known = [word.text] if word.literal else list(word.values)
            exact = [a + b for a in exact for b in known][:64] if known else []
        return Word(
            "".join(word.text for word in inner),
            WordKind.DYNAMIC,
            self.span,
            any(word.splits and word.text == HOLE + "@" for word in inner),
            tags,
            tuple(exact),
            tuple(dict.fromkeys(hints)),
        )

    def parameter(self, part: Node, quoted: bool) -> Word:
        walker, scene, span = self.walker, self.scene, self.span
        name = part.get("Param", {}).get("Value", "")
        index = part.get("Index")
        expansion = part.get("Exp") or {}
        names = bool(part.get("Names")) or (index is not None and plain_text(index) in ("@", "*"))
        if part.get("Excl") and not names:
            walker.unclear("expand.indirect", span, f"${{!{name}}} expands whatever another variable names.", scene)
        op = expansion.get("Op", "")
        if op == "@" and (plain_text(expansion.get("Word", {})) or "P").upper() == "P":
            walker.unclear("expand.prompt", span, f"${{{name}@P}} runs substitutions held in the variable.", scene)
        extra: Tags = NOTHING
        alternatives: list[str] = []
        if part.get("Repl"):
            walker.expressions(part["Repl"], scene)
        for key in ("Index", "Slice"):
            if part.get(key) and plain_text(part[key]) not in ("@", "*"):
                keyed = key == "Index" and not part.get("Short") and walker.numbers.is_keyed(name, scene)
                (walker.expressions if keyed else walker.reckon)(part[key], scene)
        if expansion.get("Word"):
            for word in walker.words(expansion["Word"], scene):
                extra |= word.tags
                walker.wake(word, scene)
                alternatives.extend(word.spellings())
        if op in ("=", ":=") and environment.acts_on_shell(name):
            walker.unclear(
                "expand.assign", span, f"The default assigned to {name} changes how later commands run.", scene
            )
        if part.get("Length") or part.get("Width"):
            return Word(HOLE, WordKind.DYNAMIC, span, False, NOTHING, ("0",))
        simple = not op and not any(part.get(key) for key in ("Excl", "Slice", "Repl", "Index"))
        variable = walker.variables.get(name)
        if name in ("@", "*") or name.isdigit():
            return self.positional(name, quoted, extra)
        if variable is None:
            tame = _TAME.get(name)
            values = (tame,) if tame and tame.isdigit() and simple else ()
            known = tame is not None
            if op not in ("+", ":+") and environment.holds_secret(name):
                extra |= {Tag.CREDENTIAL}
            return Word(
                HOLE,
                WordKind.DYNAMIC,
                span,
                not quoted and not known,
                extra if known else extra | UNKNOWN,
                values,
                tuple(alternatives) + ((tame,) if tame else ()),
            )
        whole = index is not None and plain_text(index) in ("@", "*")
        texts: tuple[str, ...] = (
            tuple(variable.values)
            if variable.complete and variable.values and not variable.rooted and (simple or whole)
            else ()
        )
        path = variable.rooted and variable.complete and simple and all(one[:1] == "/" for one in variable.values)
        dirty = any(re.search(r"[\s*?\[]", value) or not value for value in texts)
        splits = not quoted and (dirty or not texts) and (variable.blanks or not variable.one_word)
        return Word(
            "/" + HOLE if path else HOLE,
            WordKind.DYNAMIC,
            span,
            splits,
            variable.tags | extra,
            texts,
            tuple(dict.fromkeys((*variable.values, *variable.hints, *alternatives)))[:8],
        )

    def positional(self, name: str, quoted: bool, extra: Tags) -> Word:
        given = self.scene.positional
        if given is not None:
            chosen = given[1:] if name in ("@", "*") else given[int(name) : int(name) + 1]
            tags = frozenset[Tag]().union(*(word.tags for word in chosen)) | extra
            literal = tuple(word.text for word in chosen if word.literal)
            values = literal if name not in ("@", "*") and len(literal) == len(chosen) == 1 else ()
            splits = not quoted and not (values and not re.search(r"[\s*?\[]", values[0]))
            return Word(HOLE, WordKind.DYNAMIC, self.span, splits, tags, values, literal[:4])
        variable = self.walker.variables.get(f"${name}")
        hints = tuple(variable.hints) if variable else ()
        return Word(HOLE, WordKind.DYNAMIC, self.span, not quoted or name == "@", UNKNOWN | extra, (), hints)


def _prints_path(statements: Sequence[Node]) -> bool:
    """Whether a substitution is one command that prints a path from the root, or nothing that begins with a dash."""
    if len(statements) != 1 or statements[0].get("Redirs") or statements[0].get("Negated"):
        return False
    command = statements[0].get("Cmd", {})
    if command.get("Type") != "CallExpr" or command.get("Assigns"):
        return False
    words = [plain_text(word) for word in command.get("Args", ())]
    return words[:2] in (["command", "-v"], ["readlink", "-f"], ["readlink", "-e"]) or words[:1] == ["which"]


def plain_text(word: Node) -> str | None:
    """The text of a word of literal parts only, else None."""
    out = []
    for part in word.get("Parts", ()):
        match part.get("Type"):
            case "Lit":
                out.append(unescape(part["Value"], quoted=False))
            case "SglQuoted":
                out.append(ansi_c(part.get("Value", "")) if part.get("Dollar") else part.get("Value", ""))
            case "DblQuoted" if all(one.get("Type") == "Lit" for one in part.get("Parts", ())):
                out.append("".join(unescape(one["Value"], quoted=True) for one in part.get("Parts", ())))
            case _:
                return None
    return "".join(out)


def keeps_blanks(word: Node) -> bool:
    """Whether what a word stands for may hold blanks: names of files, dynamic text in quotes."""
    for part in word.get("Parts", ()):
        match part.get("Type"):
            case "Lit" if re.search(r"[*?]|\[[!^:]|\[\[", part["Value"]):
                return True
            case "ExtGlob":
                return True
            case "DblQuoted" if any(one.get("Type") != "Lit" for one in part.get("Parts", ())):
                return True
            case _:
                pass
    return False


def is_bare(word: Node) -> bool:
    return all(part.get("Type") == "Lit" for part in word.get("Parts", ()))
