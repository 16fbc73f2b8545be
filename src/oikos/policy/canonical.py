"""The canonical text of a command: equal for texts that differ only in quoting and white space (SPEC R3.10)."""

from __future__ import annotations

import re
import shlex
from typing import Any

from oikos.policy.expand import is_bare, plain_text
from oikos.policy.parser import Node, plain_words
from oikos.policy.words import has_glob


def canonical(text: str, tree: Node | None) -> str:
    """`text` with each literal word in its shortest quoting and single blanks between; nothing is reordered."""
    if tree is None or plain_words(text) is not None:
        return " ".join(text.split())
    data = text.encode("utf-8", "surrogatepass")
    out: list[str] = []
    at = 0
    for start, end, word in sorted(_words(tree), key=lambda one: one[0]):
        if start < at:
            continue
        out.append(_gap(data[at:start].decode("utf-8", "replace")))
        literal = plain_text(word)
        raw = data[start:end].decode("utf-8", "replace")
        keep = literal is None or (is_bare(word) and (has_glob(raw) or "{" in raw or raw.startswith("~")))
        out.append(raw if keep else shlex.quote(literal or ""))
        at = end
    out.append(_gap(data[at:].decode("utf-8", "replace")))
    return re.sub(r"^[ ;]+|[ ;]+$", "", "".join(out))


def _gap(text: str) -> str:
    """What stands between words: operators and blanks, without comments."""
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"(^|\s)#[^\n]*", r"\1", text)
    text = re.sub(r"[ \t]*\n\s*", "; ", text)
    return re.sub(r"[ \t]+", " ", text)


def _words(tree: Node) -> list[tuple[int, int, Node]]:
    """Outermost word nodes as (start, end, node) in bytes."""
    found: list[tuple[int, int, Node]] = []
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            if "Parts" in node and "Pos" in node:
                found.append((node["Pos"]["Offset"], node["End"]["Offset"], node))
            else:
                todo.extend(node.values())
    return found
