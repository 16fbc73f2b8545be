"""Frozen values: what `dataclasses` offers, made and changed faster. To whoever reads the types it is `dataclasses`.

The standard library compiles six functions for each class, one by one; with a few hundred classes that is a third of
the time Oikos takes to start. Here only `__init__` is compiled, and the rest is shared. Fields, defaults, slots and
`__match_args__` are still the standard library's own.
"""

from __future__ import annotations

import dataclasses
import sys  # allow: pure - only to find a class's module, where its annotations are understood
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(cls=None, /, *, frozen, slots, eq=True, **options):
        """`dataclasses.dataclass` for frozen, slotted classes."""
        assert (frozen, slots) == (True, True), "values are frozen and slotted"
        if cls is None:
            return lambda found: dataclass(found, frozen=True, slots=True, eq=eq, **options)
        own = {"__init__": None, "__setattr__": _refuse, "__delattr__": _refuse, "__setstate__": _restore}
        own |= {"__getstate__": _state, "__repr__": _show} | ({"__eq__": _equal, "__hash__": _hash} if eq else {})
        written = [name for name in own if name in cls.__dict__]
        made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=True, **options)
        own["__init__"] = _init(made)
        for name, function in own.items():
            if name not in written:
                setattr(made, name, function)
        return made

    def replace(value, /, **changes):
        """`dataclasses.replace`, past the constructor unless the value checks itself."""
        kind = _kind(type(value))
        if kind.checked:
            return dataclasses.replace(value, **changes)
        held = list(kind.read(value))
        for name, new in changes.items():
            held[kind.places[name]] = new
        made = object.__new__(type(value))
        for write, item in zip(kind.writers, held, strict=True):
            write(made, item)
        return made


class _Kind:
    """How the fields of one kind of value are read and, past its being frozen, written."""

    __slots__ = ("checked", "compared", "hashed", "places", "read", "writers")

    def __init__(self, kind: type[Any]) -> None:
        fields = dataclasses.fields(kind)
        names = [field.name for field in fields]
        self.checked = hasattr(kind, "__post_init__")
        self.places = {name: place for place, name in enumerate(names)}
        self.writers = tuple([getattr(kind, name).__set__ for name in names])
        self.read = _reader(names)
        self.compared = _reader([field.name for field in fields if field.compare])
        self.hashed = _reader([field.name for field in fields if (field.compare if field.hash is None else field.hash)])


def _reader(names: list[str]) -> Any:
    """A function that gives the values of fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda value: (getattr(value, names[0]),)) if names else (lambda _: ())


_UNSET: Any = object()
_kind: Any = cache(_Kind)


def _init(kind: type[Any]) -> Any:
    """`__init__` as `dataclasses` would make it."""
    words, lines = ["self"], []
    names: dict[str, Any] = {"_unset": _UNSET}
    fields = [field for field in dataclasses.fields(kind) if field.init]
    for field in sorted(fields, key=lambda field: bool(field.kw_only)):
        name, default = field.name, ""
        if field.kw_only and "*" not in words:
            words.append("*")
        names[f"_set_{name}"] = getattr(kind, name).__set__
        given = name
        if field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            default, given = "=_unset", f"_make_{name}() if {name} is _unset else {name}"
        words.append(name + default)
        lines.append(f"  _set_{name}(self, {given})\n")
    if hasattr(kind, "__post_init__"):
        lines.append("  self.__post_init__()\n")
    body = "".join(lines) or "  pass\n"
    text = f"def make({', '.join(names)}):\n def __init__({', '.join(words)}):\n{body} return __init__"
    made: dict[str, Any] = {}
    exec(text, vars(sys.modules[kind.__module__]), made)
    init = made["make"](**names)
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields} | {"return": None}
    return init


def _refuse(self: Any, name: str, *_value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r}")


def _equal(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    read = _kind(type(self)).compared
    return read(self) == read(other)


def _hash(self: Any) -> int:
    return hash(_kind(type(self)).hashed(self))


def _show(self: Any) -> str:
    shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _state(self: Any) -> list[Any]:
    return list(_kind(type(self)).read(self))


def _restore(self: Any, state: list[Any]) -> None:
    for write, item in zip(_kind(type(self)).writers, state, strict=True):
        write(self, item)
