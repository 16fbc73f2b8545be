"""Events and entities as JSON and back: strict to read, scalar-safe to write, long texts apart from the rest.

Writing takes orjson's fast path, which serialises dataclasses by itself. Reading goes version → upcasters →
dataclass through decoders made once per class from its annotations; anything unexpected is a StoreError that
refuses the one session it is in. Texts over `BLOB_BYTES` leave the body and are referred to by their SHA-256, so
that they can be purged while the chain over the bodies stays valid (SPEC R10.1).
"""

from __future__ import annotations

import enum
import hashlib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import orjson

from oikos.domain.errors import StoreError
from oikos.domain.events import Event

BLOB_BYTES = 2048
"""Texts with more UTF-8 bytes than this are blobs."""
_BLOB = "$blob"
_BLOB_MARK = '{"$blob":'
"""Cannot occur inside a JSON string, where a quote is always escaped, nor as a key of a dataclass."""
_NUL_JSON = b"\\u0000"

T = TypeVar("T")
Decoder = Callable[[Any], Any]
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobPurged:
    """A long text or an output was removed on purpose; of the store's own stream, no session's (SPEC R10.1)."""

    KIND: ClassVar[str] = "blob.purged"
    sha256: str
    size_bytes: int
    reason: str
    output: str = ""
    """`RUN/STREAM` when it was output."""


VERSIONS: dict[str, int] = {}
"""Current version by kind; 1 where nothing is said."""
UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""(kind, version) to what makes version + 1 of a body; released ones stay for ever."""
CLASSES: dict[str, type[Any]] = {cls.KIND: cls for cls in (*typing.get_args(Event), BlobPurged)}


class Encoded(NamedTuple):
    """An event ready to be stored."""

    event: Event | BlobPurged
    """Scalar-safe; equal to what decoding gives back."""
    kind: str
    version: int
    body: str
    sha256: bytes
    """Of the body."""
    blobs: tuple[tuple[bytes, bytes], ...]
    """(SHA-256, UTF-8 text) of every long text."""


def encode(event: Event | BlobPurged) -> Encoded:
    """The stored form of an event.

    Raises:
        StoreError: it holds something JSON cannot (an integer of more than 64 bits).
    """
    kind = event.KIND
    raw = _dumps(event)
    if raw is None:
        event = decode_as(type(event), _dumps_or_raise(_scrubbed(event), kind))
        raw = _dumps_or_raise(event, kind)
    blobs: list[tuple[bytes, bytes]] = []
    if len(raw) > BLOB_BYTES:
        raw = orjson.dumps(_extract(orjson.loads(raw), blobs))
    return Encoded(event, kind, VERSIONS.get(kind, 1), raw.decode(), hashlib.sha256(raw).digest(), tuple(blobs))


def decode(kind: str, version: int, body: str, blob: Callable[[bytes], bytes | None]) -> Event | BlobPurged:
    """The event of a stored body; `blob` finds a long text by its SHA-256, None when it was purged.

    Raises:
        StoreError: unknown kind, newer version, or a body that does not fit its class.
    """
    cls = CLASSES.get(kind)
    current = VERSIONS.get(kind, 1)
    if cls is None or version > current:
        raise StoreError(f"event kind {kind!r} version {version} is unknown: use the Oikos that wrote it, or newer")
    try:
        data = orjson.loads(body)
        if _BLOB_MARK in body:
            data = _restore(data, blob)
        for step in range(version, current):
            data = UPCASTERS[kind, step](data)
        return typing.cast("Event | BlobPurged", _decoder_of(cls)(data))
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"stored event {kind!r} cannot be read: {error}") from error


def dump(value: object) -> str:
    """Any of the domain's dataclasses as scalar-safe JSON text (entities, consents)."""
    name = type(value).__name__
    raw = _dumps(value)
    return (_dumps_or_raise(_scrubbed(value), name) if raw is None else raw).decode()


def decode_as(cls: type[T], raw: str | bytes) -> T:
    """What `dump` wrote.

    Raises:
        StoreError: it does not fit the class.
    """
    try:
        return typing.cast(T, _decoder_of(cls)(orjson.loads(raw)))
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"stored {cls.__name__} cannot be read: {error}") from error


def clean(text: str) -> str:
    """The text with scalar values only: surrogates become U+FFFD, NUL becomes U+2400 (DESIGN §6.4)."""
    if "\0" in text:
        text = text.replace("\0", "\u2400")
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def references(body: str) -> list[tuple[bytes, int]]:
    """(SHA-256, size in bytes) of every blob that a stored body refers to."""
    found: list[tuple[bytes, int]] = []

    def note(sha256: bytes, size: int) -> str:
        found.append((sha256, size))
        return ""

    if _BLOB_MARK in body:
        _restore_each(orjson.loads(body), note)
    return found


# ---- writing --------------------------------------------------------------------------------------------------------


def _dumps(value: object) -> bytes | None:
    """JSON, or None when a text in it must be cleaned (or something else is wrong with it) first."""
    try:
        raw = orjson.dumps(value)
    except TypeError:
        return None
    return None if _NUL_JSON in raw else raw


def _dumps_or_raise(value: object, name: str) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise StoreError(f"{name} cannot be stored: {error}") from error


def _scrubbed(value: object) -> object:
    match value:
        case enum.Enum():
            return value.value
        case str():
            return clean(value)
        case tuple() | list():
            return [_scrubbed(item) for item in value]
        case dict():
            return {clean(str(key)): _scrubbed(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            return {field.name: _scrubbed(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def _extract(value: Any, blobs: list[tuple[bytes, bytes]]) -> Any:
    if isinstance(value, str):
        if len(value) * 4 <= BLOB_BYTES:
            return value
        raw = value.encode()
        if len(raw) <= BLOB_BYTES:
            return value
        digest = hashlib.sha256(raw)
        blobs.append((digest.digest(), raw))
        return {_BLOB: digest.hexdigest(), "bytes": len(raw)}
    if isinstance(value, list):
        return [_extract(item, blobs) for item in value]
    if isinstance(value, dict):
        return {key: _extract(item, blobs) for key, item in value.items()}
    return value


# ---- reading --------------------------------------------------------------------------------------------------------


def _restore(value: Any, blob: Callable[[bytes], bytes | None]) -> Any:
    def text(sha256: bytes, size: int) -> str:
        raw = blob(sha256)
        return f"[purged: {size} bytes, sha256 {sha256.hex()}]" if raw is None else raw.decode()

    return _restore_each(value, text)


def _restore_each(value: Any, text: Callable[[bytes, int], str]) -> Any:
    if isinstance(value, dict):
        if _BLOB in value:
            return text(bytes.fromhex(value[_BLOB]), value["bytes"])
        return {key: _restore_each(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_restore_each(item, text) for item in value]
    return value


def _decoder_of(cls: type[Any]) -> Decoder:
    hint: Any = cls
    return _decoder(hint)


@cache
def _decoder(kind: Any) -> Decoder:
    """The strict decoder of an annotation; made once, when its class is first read."""
    if kind is str or kind is int or kind is bool:
        return _exactly(kind)
    if kind is float:
        return _float
    if kind is types.NoneType:
        return _none
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind
    if is_dataclass(kind):
        return _record(typing.cast("type[Any]", kind))
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _many(_decoder(args[0]))
    if origin is tuple:
        return _row(tuple(_decoder(arg) for arg in args))
    if origin is typing.Literal:
        return _one_of(args)
    if origin in (types.UnionType, typing.Union):
        return _union(args)
    raise TypeError(f"no decoder for {kind!r}")


def _exactly(kind: type) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"expected {kind.__name__}, found {type(value).__name__}")
        return value

    return decode


def _float(value: Any) -> float:
    if value is None:  # JSON has no NaN and no infinity: orjson writes null
        return float("nan")
    if type(value) is not float and type(value) is not int:
        raise ValueError(f"expected a number, found {type(value).__name__}")
    return float(value)


def _none(value: Any) -> None:
    if value is not None:
        raise ValueError(f"expected null, found {type(value).__name__}")


def _one_of(values: tuple[Any, ...]) -> Decoder:
    def decode(value: Any) -> Any:
        if value not in values:
            raise ValueError(f"expected one of {values}, found {value!r}")
        return value

    return decode


def _many(item: Decoder) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not list:
            raise ValueError(f"expected a list, found {type(value).__name__}")
        return tuple([item(element) for element in value])

    return decode


def _row(items: tuple[Decoder, ...]) -> Decoder:
    def decode(value: Any) -> Any:
        if type(value) is not list or len(value) != len(items):
            raise ValueError(f"expected a list of {len(items)}")
        return tuple([item(element) for item, element in zip(items, value, strict=True)])

    return decode


def _union(args: tuple[Any, ...]) -> Decoder:
    """`X | None`, or dataclasses told apart by their `kind` literal."""
    records = [arg for arg in args if is_dataclass(arg)]
    if len(records) > 1:
        by_kind: Mapping[Any, Any] = {
            typing.get_args(typing.get_type_hints(record)["kind"])[0]: record for record in records
        }

        def decode(value: Any) -> Any:
            record = by_kind.get(value.get("kind")) if type(value) is dict else None
            if record is None:
                raise ValueError(f"expected one of the kinds {sorted(by_kind)}")
            return _decoder(record)(value)

        return decode
    some = [arg for arg in args if arg is not types.NoneType]
    if len(some) != 1 or len(args) != 2:
        raise TypeError(f"no decoder for the union of {args!r}")
    inner = _decoder(some[0])
    return lambda value: None if value is None else inner(value)


def _record(cls: type[Any]) -> Decoder:
    hints = typing.get_type_hints(cls)
    known = {field.name: _decoder(hints[field.name]) for field in fields(cls)}
    needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}

    def decode(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"expected {cls.__name__}, found {type(value).__name__}")
        if not needed <= value.keys():
            raise ValueError(f"{cls.__name__} lacks {', '.join(sorted(needed - value.keys()))}")
        try:
            return cls(**{name: known[name](item) for name, item in value.items()})
        except KeyError as error:
            raise ValueError(f"{cls.__name__} has no field {error}") from error

    return decode
