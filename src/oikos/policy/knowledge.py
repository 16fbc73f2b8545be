"""Knowledge: the rule files, found by program name and compiled one program at a time.

Only the section of a program that is asked for is parsed: a command line start pays for the programs it
needs, not for all of them.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oikos.policy.spec import Program, SpecError, compile_program

SPECS = Path(__file__).parent / "specs"
_HEADER = re.compile(r'^\[(?:"([^"\n]+)"|([A-Za-z0-9_+-]+))\][ \t]*(?:#.*)?$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Section:
    file: Path
    whole: str
    start: int
    end: int
    header: str

    @property
    def text(self) -> str:
        return self.whole[self.start : self.end]

    @property
    def line(self) -> int:
        return self.whole.count("\n", 0, self.start) + 1


class Knowledge:
    """Rules by program name. Later files win over earlier ones for the same program name."""

    def __init__(self, files: Sequence[tuple[Path, str]]) -> None:
        """`files`: path and text of each rule file, in order of precedence, last wins."""
        self._sections: dict[str, _Section] = {}
        self._programs: dict[str, Program] = {}
        digest = hashlib.sha256()
        for file, text in files:
            digest.update(text.encode())
            found = [(one.start(), one.end(), one.group(1) or one.group(2)) for one in _HEADER.finditer(text)]
            ends = [start for start, _, _ in found[1:]] + [len(text)]
            for (_, start, names), end in zip(found, ends, strict=True):
                section = _Section(file, text, start, end, names)
                for name in names.split():
                    self._sections[name] = section
        self.digest = digest.hexdigest()[:16]
        """Names the rule files in force (`Verdict.knowledge`)."""

    def __contains__(self, name: str) -> bool:
        return name in self._sections

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __len__(self) -> int:
        return len(self._sections)

    def program(self, name: str) -> Program | None:
        """The compiled rules of a program, or None when it is unknown.

        Raises:
            SpecError: its section is malformed.
        """
        program = self._programs.get(name)
        if program is None and name in self._sections:
            section = self._sections[name]
            program = _compile(section)
            for one in program.names:
                if self._sections[one] is section:
                    self._programs[one] = program
        return program

    def check(self) -> tuple[Program, ...]:
        """Compile everything; each program once.

        Raises:
            SpecError: a section is malformed; the message names file, line and what was expected.
        """
        programs = {id(section): _compile(section) for section in self._sections.values()}
        return tuple(programs.values())


def _compile(section: _Section) -> Program:
    try:
        data = tomllib.loads(section.text)
    except tomllib.TOMLDecodeError as problem:
        at = re.search(r"line (\d+)", str(problem))
        line = section.line + (int(at.group(1)) - 1 if at else 0)
        raise SpecError(f"{section.file}:{line}: {problem}") from None
    try:
        return compile_program(section.header, data)
    except (SpecError, ValueError) as problem:
        raise SpecError(f"{section.file}:{section.line}: {problem}") from None


def load(extra: Sequence[Path] = ()) -> Knowledge:
    """The packaged rules, and the operator's own files on top.

    `extra` files are checked at once; the packaged ones are checked by the project's tests.

    Raises:
        SpecError: an extra file cannot be read or is malformed.
    """
    files = [(file, file.read_text("utf-8")) for file in sorted(SPECS.glob("*.toml"))]
    for file in extra:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise SpecError(f"{file}: cannot be read: {problem}") from None
        Knowledge([(file, text)]).check()
        files.append((file, text))
    return Knowledge(files)
