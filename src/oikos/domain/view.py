"""Output bytes as text: for the model, and for people (SPEC R5.4, security/THREATS T16).

Bytes are kept as they came; this is only how they are looked at. Both views decode lossily, replay carriage returns
and backspaces as a terminal would leave them, and make every character visible that could hide or reorder text.
For the model escape sequences are dropped. For people nothing is dropped but what a terminal would have overwritten:
colours are emitted anew when asked for, every other escape sequence is shown instead of obeyed.
"""

from __future__ import annotations

import re
from typing import Final

from oikos.domain.value import dataclass

HEAD_CHARS: Final = 6_000
TAIL_CHARS: Final = 6_000
"""What the model sees of an output that is too long: both ends."""

# CSI, then OSC/DCS/SOS/PM/APC up to their terminator (or the line's end), then two-character escapes; 7 and 8 bit.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,64})m")
_RESET: Final = "\x1b[0m"

UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f"
    "\u205f-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, and what is drawn as nothing or turns the direction of text. No command may hold one (`policy/text.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown of one output stream."""

    text: str
    whole: bool
    """Whether nothing was left out."""


def for_model(
    data: bytes, *, total_bytes: int | None = None, head_chars: int = HEAD_CHARS, tail_chars: int = TAIL_CHARS
) -> View:
    """The output as a language model reads it.

    `total_bytes` is what the command wrote, when `data` holds less than that. Too long a text keeps its head and its
    tail, cut at lines where that loses little, and says exactly how much is missing and how to see it.
    """
    text = _visible(_ESCAPE.sub("", _settled(_decoded(data))))
    missing_bytes = 0 if total_bytes is None else max(0, total_bytes - len(data))
    if len(text) <= head_chars + tail_chars and not missing_bytes:
        return View(text=text, whole=True)
    if len(text) <= head_chars + tail_chars:
        note = f"[{missing_bytes} of {total_bytes} bytes were not kept]"
        return View(text=f"{text.rstrip()}\n{note}\n", whole=False)
    head = text[:head_chars]
    head = head[: head.rfind("\n", head_chars // 2) + 1 or head_chars]
    start = len(text) - tail_chars
    tail = text[text.find("\n", start - 1, start + tail_chars // 2) + 1 or start :]
    left_out = text[len(head) : len(text) - len(tail)]
    lines = left_out.count("\n")
    first = head.count("\n") + 1
    note = f"[… {len(left_out)} characters left out, {lines} lines from line {first} on; use read_output to see them"
    if missing_bytes:
        note += f"; {missing_bytes} of {total_bytes} bytes were not kept"
    gap = "" if head.endswith("\n") else "\n"
    return View(text=f"{head}{gap}{note} …]\n{tail}", whole=False)


def for_people(data: bytes, *, colour: bool) -> str:
    """The output as it may be written to a terminal or a page: nothing in it acts.

    With `colour` the SGR sequences are emitted anew, and the text ends with a reset; without, they are dropped.
    """
    out: list[str] = []
    at, coloured = 0, False
    text = _settled(_decoded(data))
    for match in _ESCAPE.finditer(text):
        out.append(_visible(text[at : match.start()]))
        at = match.end()
        sgr = _SGR.fullmatch(match[0])
        if sgr is None:
            out.append(_visible(match[0]))
        elif colour:
            out.append(f"\x1b[{sgr[1]}m")
            coloured = True
    out.append(_visible(text[at:]))
    if coloured:
        out.append(_RESET)
    return "".join(out)


def text_for_people(text: str) -> str:
    """One string that others wrote (a title, a name, a note), harmless on a terminal, newlines kept."""
    return _visible(text)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _settled(text: str) -> str:
    """Each line as carriage returns and backspaces leave it: the last thing written there."""
    if "\r" not in text and "\b" not in text:
        return text
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if "\r" in line:
            line = next((part for part in reversed(line.split("\r")) if part), "")
        lines.append(_backspaced(line) if "\b" in line else line)
    return "\n".join(lines)


def _backspaced(line: str) -> str:
    kept: list[str] = []
    for character in line:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def _visible(text: str) -> str:
    return UNSEEN.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"\\u{{{code:x}}}"
