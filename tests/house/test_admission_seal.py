"""An Admission cannot be forged at run time either: by hand, by replace, copy, pickle, change, or a second use."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable

import pytest

from oikos.domain.admission import Admission, seal
from oikos.domain.errors import SealError

FIELDS = {"kind": "run", "digest": "d1", "target_id": "t1", "authority": "read_only", "seq": 7}


def admission() -> Admission:
    """One as the gate makes it."""
    return seal(kind="run", digest="d1", target_id="t1", authority="read_only", seq=7)


def graft(old: Admission) -> None:
    """Lifts the seal of one Admission onto a bare object with another digest, and uses that."""
    new = object.__new__(Admission)
    for name in Admission.__slots__:
        object.__setattr__(new, name, getattr(old, name))
    object.__setattr__(new, "digest", "d2")
    new.spend(kind="run", digest="d2")


def same_graft(old: Admission) -> None:
    """Lifts everything unchanged, so that one Admission would count twice."""
    new = object.__new__(Admission)
    for name in Admission.__slots__:
        object.__setattr__(new, name, getattr(old, name))
    new.spend(kind="run", digest="d1")


def altered(old: Admission) -> None:
    """Changes a field behind the class's back."""
    object.__setattr__(old, "target_id", "t2")
    old.spend(kind="run", digest="d1")


def subclass(_: Admission) -> None:
    type("Forged", (Admission,), {})


FORGERIES: dict[str, Callable[[Admission], object]] = {
    "by hand": lambda _: Admission(object(), **FIELDS),
    "dataclasses.replace": lambda old: dataclasses.replace(old, digest="d2"),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "setattr": lambda old: setattr(old, "digest", "d2"),
    "delattr": lambda old: delattr(old, "_spent"),
    "subclass": subclass,
    "another digest under an old seal": graft,
    "a twin under an old seal": same_graft,
    "altered behind its back": altered,
    "for another order": lambda old: old.spend(kind="run", digest="d2"),
    "for a probe": lambda old: old.spend(kind="probe", digest="d1"),
}


@pytest.mark.parametrize("way", FORGERIES)
def test_a_forged_admission_starts_nothing(way: str) -> None:
    with pytest.raises((SealError, TypeError)):
        FORGERIES[way](admission())


def test_an_admission_is_spent_once() -> None:
    once = admission()
    once.spend(kind="run", digest="d1")
    with pytest.raises(SealError):
        once.spend(kind="run", digest="d1")
