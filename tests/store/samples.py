"""Values of any of the domain's dataclasses, made from their annotations: one fixed sample, and a strategy."""

from __future__ import annotations

import enum
import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any

from hypothesis import strategies as st

from oikos.domain.events import Event

EVENT_CLASSES: tuple[type[Any], ...] = typing.get_args(Event)


def sample(hint: Any, name: str = "") -> Any:
    """A fixed, telling value: texts carry their field's name, tuples one element, unions their first record."""
    if hint is str:
        return f"{name} ü"
    if hint is bool:
        return True
    if hint is int:
        return 7
    if hint is float:
        return 1.5
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return list(hint)[-1]
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        cls: Any = hint
        return cls(**{field.name: sample(hints[field.name], field.name) for field in fields(cls)})
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return tuple(sample(arg, name) for arg in args if arg is not Ellipsis)
    if origin is typing.Literal:
        return args[0]
    if origin in (types.UnionType, typing.Union):
        return sample(next(arg for arg in args if arg is not types.NoneType), name)
    raise TypeError(f"no sample for {hint!r}")


SCALARS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
"""What a stored text may hold (DESIGN §6.4)."""
LONG = st.builds(lambda text, times: text * times, SCALARS, st.sampled_from([1, 1, 1, 400]))
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def strategy(hint: Any, texts: st.SearchStrategy[str] = LONG) -> st.SearchStrategy[Any]:
    """Every value an annotation allows, with finite numbers."""
    if hint is str:
        return texts
    if hint is bool:
        return st.booleans()
    if hint is int:
        return st.integers(-(2**63), 2**63 - 1)
    if hint is float:
        return FINITE
    if hint is types.NoneType:
        return st.none()
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(list(hint))
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        cls: Any = hint
        return st.builds(cls, **{field.name: strategy(hints[field.name], texts) for field in fields(cls)})
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(strategy(args[0], texts), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(strategy(arg, texts) for arg in args))
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*(strategy(arg, texts) for arg in args))
    raise TypeError(f"no strategy for {hint!r}")
