"""The scene: where a command stands, on which machine, behind which wrappers, and what flows into it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from oikos.domain.verdict import Hop
from oikos.policy.findings import Span
from oikos.policy.parser import Node
from oikos.policy.words import NOTHING, Tag, Tags, Word


@dataclass(frozen=True, slots=True)
class Flow:
    """What a command reads on standard input or writes to standard output, as far as the text shows."""

    tags: Tags = NOTHING
    text: str | None = None
    """The literal text, when the script itself says it."""
    piped: bool = False
    """Whether the script connects it to anything at all."""
    here: bool = False
    """Whether it is a here-document or here-string: what a reader of the text sees is what is read."""
    file: bool = False
    """Whether it is a file named in the text (`< FILE`), not what another command wrote."""

    def plus(self, tags: Tags) -> Flow:
        return replace(self, tags=self.tags | tags, piped=True)


EMPTY = Flow()


MAX_COMMANDS = 200
MAX_DEPTH = 12
MAX_WORDS = 1000
"""Words of one command."""


class TooMuch(Exception):  # a limit, not an error: it ends the walk
    """The text holds more commands, words or nesting than is looked at."""


class Source:
    """One text that was parsed, and how its byte offsets lead to characters of the classified text."""

    def __init__(self, text: str, shift: int | None, outer: Span) -> None:
        """`shift`: where the text stands verbatim; None: it does not, and every span is `outer`."""
        self.text = text
        self._shift = shift
        self._outer = outer
        self._chars: list[int] | None = None
        if shift is not None and not text.isascii():
            self._chars = []
            for index, char in enumerate(text):
                self._chars.extend([index] * len(char.encode("utf-8", "surrogatepass")))
            self._chars.append(len(text))

    def char(self, offset: int) -> int:
        """Character of `text` at a byte offset."""
        return self._chars[min(offset, len(self._chars) - 1)] if self._chars else offset

    def span(self, node: Node) -> Span:
        """Range of the classified text the node stands for."""
        if self._shift is None:
            return self._outer
        return self.char(node["Pos"]["Offset"]) + self._shift, self.char(node["End"]["Offset"]) + self._shift

    def body(self, offset: int) -> int | None:
        """Character of the classified text at a byte offset of this text, when it stands there verbatim."""
        return None if self._shift is None else self.char(offset) + self._shift


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything around one command that its class may depend on."""

    source: Source
    via: tuple[str, ...] = ()
    place: tuple[Hop, ...] = ()
    depth: int = 0
    stdin: Flow = EMPTY
    positional: tuple[Word, ...] | None = None
    """Arguments of `sh -c TEXT NAME ARGS…`, `$0` first; None at the top."""
    reads: frozenset[str] = frozenset()
    """Literal words of the other stages of the same pipeline: files one of them may be reading."""
    inserted: Tags | None = None
    """Sources of words a wrapper fills into the text, such as `{}` of xargs."""

    def inside(self, label: str, hop: Hop | None = None, *, stdin: Flow | None = None) -> Scene:
        """The scene of a wrapper's inner command."""
        return replace(
            self,
            via=(*self.via, label),
            place=(*self.place, hop) if hop else self.place,
            depth=self.depth + 1,
            stdin=self.stdin if stdin is None else stdin,
        )


@dataclass(slots=True)
class Variable:
    """What a script does to one shell variable."""

    values: list[str] = field(default_factory=list)
    complete: bool = True
    """Whether `values` is all it can ever be in this script."""
    tags: Tags = NOTHING
    hints: list[str] = field(default_factory=list)
    rooted: bool = False
    """Set from a file pattern that begins with a slash as well: its other texts are paths of unknown length."""
    one_word: bool = False
    """A loop variable: the splitting has been done."""
    blanks: bool = False
    """But names of files, and what was quoted, may hold blanks: without quotes it is split once more."""


UNKNOWN: Tags = frozenset((Tag.UNKNOWN,))
TAINTS: Tags = frozenset((Tag.FILE, Tag.NETWORK, Tag.DECODED, Tag.SECRET, Tag.BULK, Tag.UNKNOWN))
