"""The Admission as the gate makes it: for one order, once, and by nobody else (DESIGN §1).

What a determined caller can try on a bare Admission is tried in tests/house; here are the ways around the gate.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.domain.world import CHANGE, FIX, WEB1, Session, verdict

import oikos
from oikos.domain.admission import Admission, seal
from oikos.domain.errors import SealError
from oikos.domain.gate import admit, admit_probe
from oikos.domain.run import RunOrder

SOURCES = Path(oikos.__file__).parent


def admitted() -> tuple[Admission, RunOrder]:
    session = Session.opened().approved()
    question = session.question(FIX, verdict(FIX, CHANGE))
    outcome = admit(question)
    assert isinstance(outcome, Admission)
    return outcome, question.order


def unlocked(old: Admission) -> None:
    """Resets the mark of its use, to use it again."""
    old.spend(kind="run", digest=old.digest)
    object.__setattr__(old, "_spent", False)
    old.spend(kind="run", digest=old.digest)


def emptied(_: Admission) -> None:
    object.__new__(Admission).spend(kind="run", digest="d")


def with_own_init(old: Admission) -> None:
    old.__init__(object(), kind="run", digest="d2", target_id="t", authority="a", seq=1)


def reduced(old: Admission) -> None:
    old.__reduce__()


FORGERIES: dict[str, Callable[[Admission], object]] = {
    "dataclasses.replace": lambda old: dataclasses.replace(old, digest="d2"),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of what holds it": lambda old: copy.deepcopy([old]),
    "pickle": pickle.dumps,
    "an old pickle protocol": lambda old: pickle.dumps(old, protocol=0),
    "reduce": reduced,
    "object.__new__": emptied,
    "init again": with_own_init,
    "setattr": lambda old: setattr(old, "digest", "d2"),
    "delattr": lambda old: delattr(old, "digest"),
    "a new attribute": lambda old: setattr(old, "extra", 1),
    "subclass": lambda _: type("Forged", (Admission,), {}),
    "its use undone": unlocked,
}


@pytest.mark.parametrize("way", FORGERIES)
def test_what_the_gate_made_cannot_be_made_into_another(way: str) -> None:
    admission, _ = admitted()
    with pytest.raises((SealError, TypeError, AttributeError)):
        FORGERIES[way](admission)


@pytest.mark.parametrize("field", ["kind", "digest", "target_id", "authority", "seq", "_mac"])
def test_a_change_behind_its_back_breaks_the_seal(field: str) -> None:
    admission, order = admitted()
    old = getattr(admission, field)
    object.__setattr__(
        admission, field, old + 1 if isinstance(old, int) else old[:-1] + type(old)(b"x" if field == "_mac" else "x")
    )
    with pytest.raises(SealError, match="altered"):
        admission.spend(kind="run", digest=order.digest())


def test_it_is_spent_on_its_own_order_and_only_once() -> None:
    admission, order = admitted()
    with pytest.raises(SealError, match="for another order"):
        admission.spend(kind="run", digest=dataclasses.replace(order, command="reboot").digest())
    with pytest.raises(SealError, match="for another order"):
        admission.spend(kind="probe", digest=order.digest())
    admission.spend(kind="run", digest=order.digest())
    with pytest.raises(SealError, match="used before"):
        admission.spend(kind="run", digest=order.digest())


def test_a_probes_admission_starts_no_run() -> None:
    probe = admit_probe(Session.opened().state, WEB1)
    assert isinstance(probe, Admission)
    with pytest.raises(SealError):
        probe.spend(kind="run", digest=WEB1.id)
    probe.spend(kind="probe", digest=WEB1.id)


def test_two_of_the_same_words_are_two() -> None:
    one = seal(kind="run", digest="d", target_id="t", authority="read_only", seq=1)
    two = seal(kind="run", digest="d", target_id="t", authority="read_only", seq=1)
    one.spend(kind="run", digest="d")
    two.spend(kind="run", digest="d")
    assert one != two


def test_it_shows_what_it_admits_and_not_its_seal() -> None:
    assert repr(seal(kind="run", digest="d", target_id="t", authority="window:k", seq=1)) == (
        "Admission(kind='run', target_id='t', authority='window:k')"
    )


def _sources() -> dict[str, ast.Module]:
    """Every source file that speaks of admissions or seals, parsed."""
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text("utf-8") for path in SOURCES.rglob("*.py")}
    words = ("admission", "Admission(", "seal", "_GATE", "_Maker", "_KEY")
    return {name: ast.parse(text, name) for name, text in texts.items() if any(word in text for word in words)}


def _uses_of_the_maker(tree: ast.Module) -> set[str]:
    """What a source file takes from `oikos.domain.admission` beside the type."""
    taken: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "oikos.domain.admission":
            taken |= {alias.name for alias in node.names} - {"Admission"}
        if isinstance(node, ast.ImportFrom) and node.module == "oikos.domain":
            taken |= {alias.name for alias in node.names} & {"admission"}
        if isinstance(node, ast.Import):
            taken |= {alias.name for alias in node.names if alias.name == "oikos.domain.admission"}
        if isinstance(node, ast.Attribute) and node.attr in ("seal", "_GATE", "_Maker", "_KEY"):
            taken.add(node.attr)
    return taken


def test_only_the_gate_takes_the_seal() -> None:
    users = {name: _uses_of_the_maker(tree) for name, tree in _sources().items()}
    assert {name: taken for name, taken in users.items() if taken} == {"domain/gate.py": {"seal"}}


def test_only_its_own_module_calls_the_admission() -> None:
    calls = {
        name
        for name, tree in _sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Admission"
    }
    assert calls == {"domain/admission.py"}
