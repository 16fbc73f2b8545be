"""The one chokepoint that keeps secrets out of the store, the feed and the model (SPEC R5.10, security/THREATS T15).

Three layers, in this order of certainty: values that Oikos itself knows (exactly, and in the encodings they usually
travel in), shapes of well-known secrets, and values of keys that look secret in KEY=VALUE, JSON and YAML. What is
hidden becomes `[masked:NAME]`.

Streams: `Masker.feed` holds back what could still become a secret and releases whole lines. With the masked bytes it
returns how many *raw* bytes they stand for; a follower that resumes reading there, with a fresh Masker, sees the same
as one that never stopped. So offsets are committed only up to that boundary:

    data, raw_bytes = masker.feed(chunk)
    store.put_output(run_id, stream, offset, data); offset += raw_bytes

Limits, by intention: known values of fewer than four bytes are not masked (they would blank out everything); a value
of several lines is masked line by line; one secret longer than 64 KiB on a single line may be seen in part by a
follower that resumes inside it.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

MAX_HELD_BYTES: Final = 65_536
"""A line, or an open private key, longer than this is cut."""
LOOKAHEAD_BYTES: Final = 4_096
"""What stays behind such a cut, so that a secret across it is still seen whole."""
MIN_SECRET_BYTES: Final = 4

_LINE_END = re.compile(rb"[\n\r]")
_WORD_PART = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

_SECRET_PARTS: Final = frozenset(
    (
        b"pass", b"passwd", b"password", b"passwords", b"passphrase", b"passcode", b"pwd", b"pw",
        b"secret", b"secrets", b"token", b"tokens", b"key", b"keys", b"apikey", b"privkey", b"psk",
        b"credential", b"credentials", b"creds", b"authkey", b"dbpass", b"userpass", b"rootpw", b"accesskey",
        b"secretkey", b"privatekey", b"mypass", b"pgpassword", b"sshpass", b"apitoken", b"authtoken",
    )
)  # fmt: skip
"""A key whose name has one of these parts looks secret."""
_PUBLIC_PARTS: Final = frozenset(
    (
        b"public", b"pub", b"path", b"file", b"files", b"dir", b"type", b"name", b"fingerprint", b"size", b"length",
        b"usage", b"algorithm", b"algorithms", b"count", b"expiry", b"expires", b"exchange", b"map", b"host",
        b"primary",
        b"foreign", b"sort", b"authentication", b"limit", b"policy", b"age", b"version",
    )
)  # fmt: skip
"""… unless another part says that the value is something about it."""
_HARMLESS: Final = re.compile(
    rb"(?i:true|false|yes|no|on|off|none|null|nil|n/a|unset|empty|required|optional|\(none\)|\(hidden\)|-|x|\*+|"
    rb"(?:files|compat|db|systemd|ldap|sss|nis)(?: [a-z \[\]=!]*)?|<[a-z _-]+>|\[masked:.*|"
    rb"\$\{?[A-Za-z_][A-Za-z0-9_]*\}?|\{\{.*|\$\()?"
)
_NUMBER: Final = re.compile(rb"[0-9]{1,6}(?:\.[0-9]+)?[a-zA-Z%]{0,2}")

_ASSIGNMENT = re.compile(
    rb"""(?<![A-Za-z0-9_.\-])
    (?P<mark>["']?)(?P<key>[A-Za-z0-9_.\-]{2,128}+)(?P=mark)
    (?P<gap>[ \t]{0,8}(?:=>?|:=?)[ \t]{0,8})
    (?:"(?P<double>(?:[^"\\\n]|\\.){1,8192}+)" | '(?P<single>[^'\n]{1,8192})'
      | (?P<bare>[^\s"',;&|<>(){}\[\]][^\s"',;&|<>)}\]]*))""",
    re.VERBOSE,
)
_YAML_LINE = re.compile(rb"(?m)^[ \t]*(?:-[ \t]+)?([A-Za-z0-9_.\-]{2,128}):[ \t]+([^\s\"'|>{\[&*#][^\n\r#]*)")
_OPTION = re.compile(
    rb"(?<![A-Za-z0-9_\-])--?([a-z][a-z\-]{1,60})[ \t]+(\"[^\"\n]+\"|'[^'\n]+'|[^\s\"'\-|;&<>][^\s|;&<>]*)"
)
_WORD_BEFORE = re.compile(rb"([A-Za-z]+)[ \t]+[\"']?$")

_PEM = re.compile(
    rb"-----BEGIN[ ](?:[A-Z0-9]{1,12}[ ]){0,3}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----(?:\r?\n|\\r\\n|\\n)?"
    rb"(?:[ \t>|]{0,40}(?:[A-Za-z0-9+/=]{1,128}|[A-Za-z\-]{2,24}:[ ][^\n\\]{0,128})?[ \t]*(?:\r?\n|\\r\\n|\\n))*"
    rb"[ \t>|]{0,40}(?:-----END[ ][A-Z0-9 ]{3,60}-----|-----(?:E|EN|END[A-Z0-9 ]{0,64}-{0,4})?\Z|-{1,4}\Z"
    rb"|[A-Za-z0-9+/=]{0,128})",
)
_SHAPES: Final = tuple(
    (needle, name, re.compile(pattern))
    for needle, name, pattern in (
        (b"akia", "aws-key", rb"\bAKIA[0-9A-Z]{16}\b"),
        (b"asia", "aws-key", rb"\bASIA[0-9A-Z]{16}\b"),
        (b"ghp_", "github-token", rb"\bghp_[A-Za-z0-9]{30,255}"),
        (b"gho_", "github-token", rb"\bgho_[A-Za-z0-9]{30,255}"),
        (b"ghs_", "github-token", rb"\bghs_[A-Za-z0-9]{30,255}"),
        (b"github_pat_", "github-token", rb"\bgithub_pat_[A-Za-z0-9_]{22,255}"),
        (b"glpat-", "gitlab-token", rb"\bglpat-[A-Za-z0-9_\-]{20,255}"),
        (b"xox", "slack-token", rb"\bxox[abeoprs]-[A-Za-z0-9\-]{10,255}"),
        (b"sk-", "api-key", rb"\bsk-[A-Za-z0-9_\-]{20,255}"),
        (b"aiza", "google-key", rb"\bAIza[A-Za-z0-9_\-]{35}"),
        (b"eyj", "jwt", rb"\beyJ[A-Za-z0-9_\-]{8,4096}\.eyJ[A-Za-z0-9_\-]{8,8192}\.[A-Za-z0-9_\-]{8,2048}"),
        (b"tskey-", "tailscale-key", rb"\btskey-[A-Za-z0-9\-]{10,255}"),
        (b"hf_", "huggingface-token", rb"\bhf_[A-Za-z0-9]{30,255}"),
        (b"npm_", "npm-token", rb"\bnpm_[A-Za-z0-9]{36}"),
        (b"_v1_", "digitalocean-token", rb"\bdo[opr]_v1_[a-f0-9]{64}"),
        (b"hvs.", "vault-token", rb"\bhvs\.[A-Za-z0-9_\-]{20,255}"),
        (b"-secret-key-1", "age-key", rb"\bAGE-SECRET-KEY-1[0-9A-Z]{58}"),
        (b"://", "url-password", rb"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s/:@\"'<>]{0,128}:([^\s/@\"'<>]{1,512})@"),
        (b"$", "password-hash", rb"\$(?:[1567y]|gy|2[abxy]|argon2(?:id|i|d))\$[A-Za-z0-9./$=,+\-]{20,512}"),
        (
            b"authorization", "authorization",
            rb"(?i)\b(?:proxy-)?authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?"
            rb"(?:(?:basic|bearer|token|digest|apikey|pveapitoken)[ =]{1,4})?([^\s\"',;]{4,8192})",
        ),
        (b"bearer", "bearer", rb"(?i)\bbearer[ \t]+([A-Za-z0-9+/_.=~\-]{12,8192})"),
        (b"pveapitoken=", "pve-token", rb"PVEAPIToken=[^\s!=]{1,64}![^\s=]{1,64}=([0-9a-f\-]{8,64})"),
    )
)  # fmt: skip
"""What a line must hold, in lower case, to be looked at; the name; the shape, or its group 1, that is masked."""

_KEY_WORDS: Final = (b"pass", b"pw", b"psk", b"secret", b"token", b"key", b"cred")
# Found with bytes.find, so that output without any of them costs little. Of the shapes, those that stand alone.
_TRIGGERS: Final = (
    *_KEY_WORDS, b"authorization", b"bearer", b"://", b"akia", b"asia", b"ghp_", b"gho_", b"ghs_", b"github_pat_",
    b"glpat-", b"xox", b"sk-", b"aiza", b"eyj", b"hf_", b"npm_", b"_v1_", b"hvs.", b"$",
)  # fmt: skip


class Secrets:
    """The values Oikos holds, by name, ready to be looked for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        names: dict[bytes, str] = {}
        for name, value in values.items():
            for form in _forms(value):
                if len(form) >= MIN_SECRET_BYTES:
                    names.setdefault(form, name)
        self._names = names
        self.longest_bytes = max(map(len, names), default=0)

    def find(self, data: bytes) -> Iterator[_Segment]:
        """Every occurrence of every form."""
        for form, name in self._names.items():
            at = data.find(form)
            while at >= 0:
                yield _Segment(at, at + len(form), name)
                at = data.find(form, at + 1)


NONE: Final = Secrets({})


class Masker:
    """Masks one stream. Whole lines come out as soon as nothing in them can still change."""

    def __init__(self, secrets: Secrets = NONE) -> None:
        self._secrets = secrets
        self._held = bytearray()
        self._scan_at_bytes = 0
        """While a private key is open: do not look again before there is so much."""
        self._swallowing = False
        """Inside a secret that was too long to hold."""

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """Take more raw bytes; returns masked bytes, and the number of raw bytes that they stand for."""
        self._held += data
        if len(self._held) < MAX_HELD_BYTES:
            if _LINE_END.search(data) is None:
                return b"", 0
            if len(self._held) < self._scan_at_bytes and b"-----" not in data:
                return b"", 0
        return self._release(last=False)

    def flush(self) -> tuple[bytes, int]:
        """The stream has ended: the rest."""
        return self._release(last=True) if self._held else (b"", 0)

    def _release(self, *, last: bool) -> tuple[bytes, int]:
        out, consumed = bytearray(), 0
        while True:
            data = bytes(self._held)
            segments = _merge(_scan(data, self._secrets))
            cut = len(data) if last else _boundary(data, segments, self._secrets.longest_bytes)
            if not cut:
                self._scan_at_bytes = 2 * len(data)
                break
            out += self._mask(data[:cut], segments, open_end=not last and cut == len(data))
            consumed += cut
            del self._held[:cut]
            self._scan_at_bytes = 0
            if last or len(self._held) < MAX_HELD_BYTES:
                break
        return bytes(out), consumed

    def _mask(self, data: bytes, segments: Iterable[_Segment], *, open_end: bool) -> bytes:
        out, at = bytearray(), 0
        if self._swallowing:
            end = re.search(rb"[\s\"',;]", data)
            at = end.start() if end else len(data)
            self._swallowing = end is None
        for segment in segments:
            if segment.start >= len(data):
                break
            if segment.end <= at:
                continue
            out += data[at : max(at, segment.start)] + b"[masked:%s]" % segment.name.encode()
            at = segment.end
            if open_end and at == len(data) and _LINE_END.search(data[-1:]) is None:
                self._swallowing = True
        return bytes(out + data[at:])


def mask_text(text: str, secrets: Secrets = NONE) -> str:
    """Mask a whole text: a command, a standard input, a goal, a message."""
    raw = text.encode("utf-8", "surrogatepass")
    if not any(map(raw.lower().__contains__, _TRIGGERS)) and next(secrets.find(raw), None) is None:
        return text  # most texts: nothing in them could begin to look like a secret
    masker = Masker(secrets)
    head, _ = masker.feed(raw)
    tail, _ = masker.flush()
    masked = head + tail
    return text if masked == raw else masked.decode("utf-8", "surrogatepass" if _paired(masked) else "replace")


def mask_bytes(data: bytes, secrets: Secrets = NONE) -> bytes:
    """Mask a whole output."""
    masker = Masker(secrets)
    return masker.feed(data)[0] + masker.flush()[0]


class _Segment(NamedTuple):
    start: int
    end: int
    name: str


def _paired(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _forms(value: str) -> Iterator[bytes]:
    """A secret as it may be seen: itself, its lines, and how JSON, shells, URLs and base64 write it."""
    raw = value.encode("utf-8", "surrogatepass")
    yield raw
    for line in raw.splitlines():
        yield line.strip()
    text = raw.decode("utf-8", "replace")
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    yield shlex.quote(text).strip("'").encode("utf-8", "replace")
    yield urllib.parse.quote(text, safe="").encode()
    yield urllib.parse.quote_plus(text).encode()
    if len(raw) >= 6:
        yield base64.b64encode(raw).rstrip(b"=")


def _scan(data: bytes, secrets: Secrets) -> Iterator[_Segment]:
    yield from secrets.find(data)
    if b"PRIVATE KEY" in data:
        for match in _PEM.finditer(data):
            yield _Segment(match.start(), match.end(), "private-key")
    for start, end in _suspicious(data):
        yield from _in_line(data, start, end)


def _suspicious(data: bytes) -> Iterator[tuple[int, int]]:
    """The lines that hold a trigger, each once."""
    low = data.lower()
    lines: dict[int, int] = {}
    for trigger in _TRIGGERS:
        at = low.find(trigger)
        while at >= 0:
            start = max(data.rfind(b"\n", 0, at), data.rfind(b"\r", 0, at)) + 1
            found = _LINE_END.search(data, at)
            end = found.start() if found else len(data)
            lines[start] = end
            at = low.find(trigger, end)
    yield from sorted(lines.items())


def _in_line(data: bytes, start: int, end: int) -> Iterator[_Segment]:
    low = data[start:end].lower()
    for needle, name, shape in _SHAPES:
        if needle in low:
            group = shape.groups
            for match in shape.finditer(data, start, end):
                yield _Segment(match.start(group), match.end(group), name)
    if not any(word in low for word in _KEY_WORDS):
        return
    if b"=" in low or b":" in low:
        for match in _ASSIGNMENT.finditer(data, start, end):
            yield from _assignment(data, match)
    for mark, pattern in ((b": ", _YAML_LINE), (b"-", _OPTION)):
        if mark not in low:
            continue
        for match in pattern.finditer(data, start, end):
            value = match[2].rstrip()
            if _looks_secret(match[1]) and not _harmless(match[1], value.strip(b"\"'")):
                yield _Segment(match.start(2), match.start(2) + len(value), _name(match[1]))


def _assignment(data: bytes, match: re.Match[bytes]) -> Iterator[_Segment]:
    key, gap = match["key"], match["gap"]
    if not _looks_secret(key):
        return
    if not match["mark"] and b":" in gap and gap.endswith(b":"):
        return  # `secret:latest`, `key:22`: no YAML without a space, no JSON without quotes
    before = _WORD_BEFORE.search(data, max(0, match.start() - 40), match.start())
    if before and before[1].lower() in _PUBLIC_PARTS:
        return  # `Public key: …`
    group = next(group for group in ("double", "single", "bare") if match[group] is not None)
    if not _harmless(key, match[group]):
        yield _Segment(match.start(group), match.end(group), _name(key))


def _looks_secret(key: bytes) -> bool:
    parts = {part.lower() for part in _WORD_PART.findall(key)}
    return not parts.isdisjoint(_SECRET_PARTS) and parts.isdisjoint(_PUBLIC_PARTS)


def _harmless(key: bytes, value: bytes) -> bool:
    """Values that hide nothing: switches, placeholders, references, and small numbers of `tokens` or `keys`."""
    if _HARMLESS.fullmatch(value):
        return True
    counted = {part.lower() for part in _WORD_PART.findall(key)} & {b"key", b"keys", b"token", b"tokens"}
    return bool(counted) and _NUMBER.fullmatch(value.split(b" ")[0]) is not None


def _name(key: bytes) -> str:
    return key.decode("ascii").lstrip("-")


def _merge(segments: Iterable[_Segment]) -> list[_Segment]:
    """In order and without overlap; what overlaps is hidden together."""
    merged: list[_Segment] = []
    for segment in sorted(segments):
        if merged and segment.start < merged[-1].end:
            if segment.end > merged[-1].end:
                merged[-1] = merged[-1]._replace(end=segment.end)
        else:
            merged.append(segment)
    return merged


def _boundary(data: bytes, segments: list[_Segment], longest_bytes: int) -> int:
    """Up to where the data may go out: a line's end outside every segment, else a cut of what is too long."""
    cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
    for segment in reversed(segments):
        if segment.start < cut and (segment.end > cut or segment.end == len(data)):
            cut = max(data.rfind(b"\n", 0, segment.start), data.rfind(b"\r", 0, segment.start)) + 1
    if cut or len(data) < MAX_HELD_BYTES:
        return cut
    cut = len(data) - max(LOOKAHEAD_BYTES, longest_bytes)
    for segment in segments:
        if segment.start < cut < segment.end:
            if segment.end < len(data):
                return segment.end
            # A secret that has no end yet: before it, or, when it is most of what is held, after its marker.
            return segment.start if segment.start > MAX_HELD_BYTES // 2 else len(data)
    return cut
