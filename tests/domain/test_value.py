"""A value is what the standard library's frozen, slotted dataclass is; each case is asked of both."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, get_type_hints

import pytest

from oikos.domain import value


@value.dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """Fields of every sort."""

    KIND: ClassVar[str] = "k"
    name: str
    size: int = 3
    marks: Mapping[str, int] = dataclasses.field(default_factory=dict)
    hidden: str = dataclasses.field(default="h", repr=False, compare=False)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """The same."""

    KIND: ClassVar[str] = "k"
    name: str
    size: int = 3
    marks: Mapping[str, int] = dataclasses.field(default_factory=dict)
    hidden: str = dataclasses.field(default="h", repr=False, compare=False)


@value.dataclass(frozen=True, slots=True)
class Pair:
    """Positional, checked, and matched by place."""

    left: int
    right: int = 0

    def __post_init__(self) -> None:
        if self.left < 0:
            raise ValueError("left is below zero")


@value.dataclass(frozen=True, slots=True)
class Empty:
    """Nothing."""


@value.dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, kw_only=True)
class Thing:
    """Known by identity."""

    name: str


ASKED: Mapping[str, Callable[[Any], object]] = {
    "shown": lambda kind: repr(kind(name="n", size=1)).replace(kind.__name__, "X"),
    "equal": lambda kind: kind(name="n") == kind(name="n", hidden="other"),
    "different": lambda kind: kind(name="n") == kind(name="n", size=4),
    "another kind": lambda kind: kind(name="n").__eq__(3),
    "fields": lambda kind: [(field.name, field.type, field.init) for field in dataclasses.fields(kind)],
    "as a dictionary": lambda kind: dataclasses.asdict(kind(name="n", marks={"a": 1})),
    "hints": lambda kind: get_type_hints(kind),
    "match args": lambda kind: kind.__match_args__,
    "slots": lambda kind: (kind.__slots__, hasattr(kind(name="n"), "__dict__")),
    "class variable": lambda kind: kind.KIND,
    "documented": lambda kind: (kind.__name__ in ("Ours", "Theirs"), kind.__module__),
    "is a dataclass": dataclasses.is_dataclass,
}


@pytest.mark.parametrize("case", ASKED)
def test_a_value_answers_as_a_dataclass_does(case: str) -> None:
    assert ASKED[case](Ours) == ASKED[case](Theirs)


def test_its_constructor_is_called_as_a_dataclass_is() -> None:
    ours, theirs = (inspect.signature(kind).parameters for kind in (Ours, Theirs))
    assert [(one.name, one.kind, one.annotation) for one in ours.values()] == [
        (one.name, one.kind, one.annotation) for one in theirs.values()
    ]


@pytest.mark.parametrize("arguments", [{}, {"size": 1}, {"name": "n", "sizes": 1}])
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Ours(**arguments)


def test_nothing_in_it_can_be_changed_or_removed() -> None:
    one = Ours(name="n")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.size = 4  # type: ignore[misc]  # what is tested
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.size
    assert one == Ours(name="n")


def test_each_value_gets_a_default_of_its_own() -> None:
    assert Ours(name="a").marks is not Ours(name="b").marks


def test_equal_values_have_equal_hashes() -> None:
    assert hash(Pair(1, 2)) == hash(Pair(1, 2))
    assert len({Pair(1, 2), Pair(1, 2), Pair(2, 1)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours(name="n"))  # it holds a dictionary


def test_copies_are_equal_however_they_are_made() -> None:
    one = Ours(name="n", marks={"a": 1}, hidden="x")
    for made in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (made, made.hidden) == (one, "x")


def test_a_changed_copy_is_what_the_standard_library_makes() -> None:
    one = Ours(name="n", size=5, hidden="x")
    changed = value.replace(one, name="m")
    assert (changed, changed.hidden) == (dataclasses.replace(one, name="m"), "x")
    assert one.name == "n"
    with pytest.raises(KeyError):
        value.replace(one, nothing=1)  # type: ignore[call-arg]  # what is tested


def test_a_value_that_checks_itself_is_checked_whenever_it_is_made() -> None:
    with pytest.raises(ValueError, match="below zero"):
        Pair(-1)
    with pytest.raises(ValueError, match="below zero"):
        value.replace(Pair(1), left=-1)


def test_places_match() -> None:
    match Pair(1, 2):
        case Pair(left, right):
            assert (left, right) == (1, 2)
    assert (Empty() == Empty(), hash(Empty()), repr(Empty())) == (True, hash(()), "Empty()")


def test_a_thing_is_known_by_identity() -> None:
    one = Thing(name="n")
    assert one != Thing(name="n")
    assert {one: 1}[one] == 1
