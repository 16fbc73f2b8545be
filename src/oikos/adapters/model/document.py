"""YAML that people write: every value knows its line, and what is wrong with it is one line with file and remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import yaml

from oikos.domain.errors import ConfigError

FILE_CAP_BYTES: Final = 512 * 1024
WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]*)")
DECIMAL: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


class Node:
    """One value of a document.

    Words mean what they say: only `true`, `false`, `null` and decimal numbers, unquoted, are anything but text
    (YAML's own `no`, `on` and `03:30` are not).
    """

    def __init__(self, node: yaml.Node, file: str, name: str = "the document") -> None:
        self._node = node
        self.file = file
        self.name = name

    @property
    def line(self) -> int:
        """Line in the file, from 1."""
        return int(self._node.start_mark.line) + 1

    def fail(self, expected: str) -> NoReturn:
        """Refuse the value.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(f"{self.file}:{self.line}: {self.name}: expected {expected}")

    @property
    def is_text(self) -> bool:
        """Whether it is a plain value, neither list nor mapping."""
        return isinstance(self._node, yaml.ScalarNode)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self._node, yaml.SequenceNode)

    def text(self) -> str:
        """Text as it is written; not empty."""
        if not isinstance(self._node, yaml.ScalarNode) or not self._node.value.strip():
            self.fail("text")
        return str(self._node.value)

    def verbatim(self) -> str:
        """Text as it is written; it may be empty."""
        if not isinstance(self._node, yaml.ScalarNode):
            self.fail("text")
        return str(self._node.value)

    def choice(self, *allowed: str) -> str:
        """One of some words."""
        word = self.text()
        if word not in allowed:
            self.fail(f"one of {', '.join(allowed)}, not {word!r}")
        return word

    def integer(self, least: int = 0, most: int = 1_000_000_000) -> int:
        """A whole number within bounds."""
        value = self.plain()
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.fail(f"a whole number from {least} to {most}")
        return value

    def flag(self) -> bool:
        """true or false."""
        value = self.plain()
        if not isinstance(value, bool):
            self.fail("true or false")
        return value

    def items(self) -> list[Node]:
        """The members of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            self.fail("a list")
        return [Node(child, self.file, f"{self.name}[{n}]") for n, child in enumerate(self._node.value, start=1)]

    def texts(self) -> list[str]:
        """A list of texts; a single text counts as a list of one."""
        return [self.text()] if self.is_text else [item.text() for item in self.items()]

    def fields(self, required: Sequence[str] = (), optional: Sequence[str] = ()) -> Mapping[str, Node]:
        """The members of a mapping whose keys are known."""
        found = self.mapping()
        known = (*required, *optional)
        for key, value in found.items():
            if key not in known:
                value.fail(f"no such field; known are {', '.join(known)}")
        for key in required:
            if key not in found:
                self.fail(f"the field {key}")
        return found

    def mapping(self) -> Mapping[str, Node]:
        """The members of a mapping with free keys."""
        if not isinstance(self._node, yaml.MappingNode):
            self.fail("a mapping")
        found: dict[str, Node] = {}
        for key, value in self._node.value:
            if not isinstance(key, yaml.ScalarNode):
                Node(key, self.file, f"a key of {self.name}").fail("a word")
            name = str(key.value)
            if name in found:
                Node(key, self.file, name).fail("each field once")
            found[name] = Node(value, self.file, name)
        return found

    def plain(self) -> object:
        """The value as JSON has it."""
        node = self._node
        if isinstance(node, yaml.MappingNode):
            return {key: value.plain() for key, value in self.mapping().items()}
        if isinstance(node, yaml.SequenceNode):
            return [item.plain() for item in self.items()]
        word = self.verbatim()
        if getattr(node, "style", None) is not None:
            return word
        if word in ("true", "false"):
            return word == "true"
        if word in ("null", "~", ""):
            return None
        if WHOLE.fullmatch(word):
            return int(word)
        return float(word) if DECIMAL.fullmatch(word) else word


def read(path: Path) -> Node:
    """The one document of a file.

    Raises:
        ConfigError: it cannot be read, or is no YAML.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): check that it is there") from None
    return parse(data, str(path))


def parse(data: bytes | str, file: str) -> Node:
    """The one document in a text; `file` names it in errors.

    Raises:
        ConfigError: it is no YAML, or more than a person writes.
    """
    if len(data) > FILE_CAP_BYTES:
        raise ConfigError(f"{file}: expected at most {FILE_CAP_BYTES >> 10} KiB")
    try:
        node = yaml.compose(data, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"{file}{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as fault:  # a byte or a character that no YAML holds
        raise ConfigError(f"{file}:{_line_of(data, fault)}: not valid YAML: {fault.reason}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        reason = " ".join(str(fault).split())
        raise ConfigError(f"{file}: not valid YAML: {reason[:200]}") from None
    if node is None:
        raise ConfigError(f"{file}:1: the file is empty: expected a document")
    if (again := _alias(node)) is not None:
        raise ConfigError(f"{file}:{again}: expected no aliases (&, *): write the value out")
    return Node(node, file)


def _line_of(data: bytes | str, fault: yaml.reader.ReaderError) -> int:
    """Its position counts characters once the text is decoded, and bytes where that fails."""
    if isinstance(data, bytes) and fault.encoding != "unicode":
        return data[: fault.position].count(b"\n") + 1
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    return text[: fault.position].count("\n") + 1


def _alias(root: yaml.Node) -> int | None:
    """The line of a value that stands at two places: a few lines of aliases unfold into gigabytes."""
    seen: set[int] = set()
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            return int(node.start_mark.line) + 1
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            stack += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            stack += node.value
    return None
