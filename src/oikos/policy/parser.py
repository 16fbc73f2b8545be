"""Parsing as a port: shell text in, syntax tree out.

The tree is shfmt's own JSON (`shfmt --to-json`), because of the parsers that were measured it is the
only one without a silent miss. A line of plain words takes a short cut through a strict grammar that
builds the same tree without a process; the same grammar is all there is when no shfmt can be found.
"""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

MAX_TEXT_BYTES = 65_536
"""Longer texts are not parsed: they cannot be understood (SPEC R4.4: limits count bytes)."""
MAX_TOKENS = 2_000
"""Texts with more places where a word could end are not parsed: their tree would be larger than the walk accepts."""
MAX_TREE_BYTES = 4_000_000
"""A syntax tree above this size is dropped: it holds far more nodes than the walk would accept."""
_TIMEOUT_S = 2.0

Node = dict[str, Any]
"""One node of shfmt's JSON; `Type` names it, `Pos.Offset` and `End.Offset` count bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a parser made of one text."""

    tree: Node | None
    """The `File` node, or None when the text could not be parsed."""
    parser: str
    """Name and version of the parser."""
    error: str = ""
    """Why there is no tree, in words for an operator."""


class Parser(Protocol):
    """Turns text into a tree. Deterministic: equal arguments give equal results."""

    def parse(self, text: str, dialect: str) -> Parsed:
        """Parse `text` in `dialect` (`bash` or `posix`)."""
        ...

    def heads(self, text: str) -> frozenset[str] | None:
        """Literal command words a second, independent parser sees; None when it has no opinion."""
        ...


_ENDS = tuple(" \t\n;|&(){}$`<>,'\"=:-[")
# A line of plain words, split at single blanks: nothing in it can be quoted, expanded or redirected.
_PLAIN = re.compile(r"[ ]*[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:=,@%+-]*(?:[ ]+[A-Za-z0-9_./:=,@%+-]+)*[ ]*")
_PLAIN_WORD = re.compile(r"[^ ]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# Words that begin something other than a simple command, in any dialect shfmt knows.
_RESERVED = frozenset(
    "if then elif else fi for select while until do done case esac in function time coproc let declare local "
    "export readonly typeset nameref @test".split()
)


def plain_words(text: str) -> Node | None:
    """The tree of a line of plain words, equal to shfmt's in every key the walk reads; None for any other text."""
    if not _PLAIN.fullmatch(text):
        return None
    args: list[Node] = []
    for found in _PLAIN_WORD.finditer(text):
        pos, end = {"Offset": found.start()}, {"Offset": found.end()}
        part = {"Type": "Lit", "Pos": pos, "End": end, "Value": found.group()}
        args.append({"Pos": pos, "End": end, "Parts": [part]})
    head = args[0]["Parts"][0]["Value"]
    if head in _RESERVED or _ASSIGNMENT.match(head):
        return None
    pos, end = args[0]["Pos"], args[-1]["End"]
    call = {"Type": "CallExpr", "Pos": pos, "End": end, "Args": args}
    return {"Type": "File", "Pos": pos, "End": end, "Stmts": [{"Pos": pos, "End": end, "Cmd": call}]}


def plain_throughout(text: str) -> bool:
    """Whether a text is plain words, and any text that is put together from them is too: judging it starts no process."""
    return _PLAIN.fullmatch(text) is not None and not any(
        word in _RESERVED or _ASSIGNMENT.match(word) for word in text.split()
    )


def find_shfmt() -> str:
    """Absolute path of shfmt: beside this interpreter (where its wheel puts it), then PATH; empty when absent."""
    beside = os.path.join(sysconfig.get_path("scripts"), "shfmt")
    return (
        beside
        if os.access(beside, os.X_OK)
        else os.path.abspath(shutil.which("shfmt") or "") * bool(shutil.which("shfmt"))
    )


class ShfmtParser:
    """Parses with one shfmt process a text (about 4 ms), plain words without any."""

    def __init__(self, binary: str | None = None) -> None:
        """`binary`: path of shfmt; None: look for it; empty: there is none, only plain words are understood."""
        self._binary = find_shfmt() if binary is None else binary

    @cached_property
    def _version(self) -> str:
        if not self._binary:
            return "plain words only"
        shown = subprocess.run([self._binary, "--version"], capture_output=True, text=True, check=False)
        return f"shfmt {shown.stdout.strip().removeprefix('v')}"

    def parse(self, text: str, dialect: str = "bash") -> Parsed:
        """Parse `text`; every failure is a `Parsed` without a tree."""
        if len(text) > MAX_TOKENS and sum(map(text.count, _ENDS)) > MAX_TOKENS:
            return Parsed(tree=None, parser="none", error="too many words and commands")
        plain = plain_words(text)
        if plain is not None:
            return Parsed(tree=plain, parser="plain words")
        if not self._binary:
            return Parsed(tree=None, parser="plain words only", error="shfmt is not installed")
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > MAX_TEXT_BYTES:
            return Parsed(tree=None, parser=self._version, error=f"longer than {MAX_TEXT_BYTES} bytes")
        language = "posix" if dialect in ("posix", "sh", "dash", "ash") else "bash"
        try:
            # close_fds=False lets CPython take posix_spawn; all our descriptors are close-on-exec.
            with subprocess.Popen(
                [self._binary, "--to-json", "-ln", language],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                close_fds=False,
                env={},
            ) as process:
                try:
                    out, err = process.communicate(data, timeout=_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    return Parsed(tree=None, parser=self._version, error="the parser did not finish")
        except OSError as problem:
            return Parsed(tree=None, parser=self._version, error=f"the parser could not be started: {problem}")
        if process.returncode:
            message = err.decode("utf-8", "replace").strip().splitlines()
            return Parsed(tree=None, parser=self._version, error=message[0] if message else "syntax error")
        if len(out) > MAX_TREE_BYTES:
            return Parsed(tree=None, parser=self._version, error="too many words and commands")
        try:
            return Parsed(tree=json.loads(out), parser=self._version)
        except (ValueError, RecursionError) as problem:
            return Parsed(tree=None, parser=self._version, error=f"unreadable syntax tree: {problem}")

    @cached_property
    def _second(self) -> Any:
        try:
            import tree_sitter
            import tree_sitter_bash
        except ImportError:  # no wheel for this platform: the second opinion is optional
            return None
        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))

    def heads(self, text: str) -> frozenset[str] | None:
        """Literal command words seen by tree-sitter-bash, or None when it is absent or reports an error."""
        if self._second is None:
            return None
        root = self._second.parse(text.encode("utf-8", "surrogatepass")).root_node
        if root.has_error:
            return None
        found: set[str] = set()
        todo = [root]
        while todo:
            node = todo.pop()
            if node.type == "command_name":
                raw = node.text.decode("utf-8", "replace")
                if re.fullmatch(r"[A-Za-z0-9_./+-]+", raw):
                    found.add(raw)
            todo.extend(node.named_children)
        return frozenset(found)
