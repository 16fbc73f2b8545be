from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.golden import GOLDEN, path_of
from tests.store.samples import EVENT_CLASSES, sample, strategy

from oikos.adapters.store import codec
from oikos.domain import events as ev
from oikos.domain.errors import StoreError
from oikos.domain.run import Exited, RunReport

SAID = ev.AssistantSaid(text="hello", calls=(ev.ToolCall(id="1", name="run", arguments="{}"),))


def there_and_back(event: Any) -> Any:
    encoded = codec.encode(event)
    return codec.decode(encoded.kind, encoded.version, encoded.body, dict(encoded.blobs).get)


@given(event=st.one_of([strategy(cls) for cls in EVENT_CLASSES]))
def test_every_event_reads_back_as_it_was_written(event: ev.Event) -> None:
    assert there_and_back(event) == event


@given(event=st.one_of([strategy(cls, st.text(st.characters(), max_size=20)) for cls in EVENT_CLASSES]))
def test_any_text_is_made_scalar_safe_before_it_is_stored(event: ev.Event) -> None:
    encoded = codec.encode(event)
    assert there_and_back(event) == encoded.event
    assert "\\u0000" not in encoded.body
    encoded.body.encode()


def test_surrogates_and_nul_become_visible_replacements() -> None:
    event = replace(SAID, text="a\ud800b\0c")
    assert there_and_back(event) == replace(SAID, text="a\ufffdb\u2400c")
    assert codec.clean("a\udfffb\0c") == "a\ufffdb\u2400c"


def test_a_text_that_spells_an_escaped_nul_is_left_alone() -> None:
    event = replace(SAID, text="\\u0000")
    assert there_and_back(event) == event


def test_a_long_text_leaves_the_body_and_is_found_by_its_hash() -> None:
    event = replace(SAID, text="ü" * 2000)
    encoded = codec.encode(event)
    assert len(encoded.body) < 500
    assert [raw.decode() for _, raw in encoded.blobs] == [event.text]
    assert codec.references(encoded.body) == [(encoded.blobs[0][0], 4000)]
    assert there_and_back(event) == event


def test_a_purged_text_reads_as_a_note_of_what_was_there() -> None:
    encoded = codec.encode(replace(SAID, text="x" * 3000))
    event = codec.decode(encoded.kind, encoded.version, encoded.body, lambda _: None)
    assert isinstance(event, ev.AssistantSaid)
    assert event.text == f"[purged: 3000 bytes, sha256 {encoded.blobs[0][0].hex()}]"


def test_a_text_that_looks_like_a_reference_stays_a_text() -> None:
    event = replace(SAID, text='{"$blob":"00","bytes":1}' + "x" * 100)
    assert there_and_back(event) == event
    assert codec.references(codec.encode(event).body) == []


def test_a_number_that_json_lacks_reads_back_as_not_a_number() -> None:
    finished = ev.RunFinished(run_id="r", report=RunReport(outcome=Exited(code=0), duration_s=math.inf))
    assert math.isnan(there_and_back(finished).report.duration_s)


def test_an_integer_beyond_64_bits_is_refused_before_anything_is_written() -> None:
    with pytest.raises(StoreError, match=r"assistant\.said cannot be stored"):
        codec.encode(replace(SAID, tokens_in=2**64))


BROKEN = {
    "unknown field": {"text": "a", "new": 1},
    "missing field": {},
    "number for a text": {"text": 1},
    "text for a number": {"text": "a", "tokens_in": "1"},
    "truth for a number": {"text": "a", "tokens_in": True},
    "null for a text": {"text": None},
    "text for a list": {"text": "a", "calls": "b"},
    "list for a record": {"text": "a", "calls": [[]]},
    "record for a text": {"text": {"a": 1}},
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_a_body_that_does_not_fit_its_class_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        codec.decode("assistant.said", 1, json.dumps(data), lambda _: None)


@pytest.mark.parametrize(
    "body", ["[]", "{", "null", '{"run_id":"r","report":{"outcome":{"kind":"melted"}}}', '{"run_id":"r","report":1}']
)
def test_a_damaged_outcome_is_refused(body: str) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        codec.decode("run.finished", 1, body, lambda _: None)


@pytest.mark.parametrize(("kind", "version"), [("session.dreamed", 1), ("session.opened", 99)])
def test_what_a_newer_oikos_wrote_is_refused_by_kind_and_version(kind: str, version: int) -> None:
    with pytest.raises(StoreError, match=f"{kind}.*{version}.*use the Oikos that wrote it"):
        codec.decode(kind, version, "{}", lambda _: None)


def test_an_older_shape_goes_through_its_upcasters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codec.VERSIONS, "goal.set", 3)
    monkeypatch.setitem(codec.UPCASTERS, ("goal.set", 1), lambda old: {"aim": old["wish"]})
    monkeypatch.setitem(codec.UPCASTERS, ("goal.set", 2), lambda old: {"goal": old["aim"]})
    assert codec.decode("goal.set", 1, '{"wish":"a"}', lambda _: None) == ev.GoalSet(goal="a")
    assert codec.decode("goal.set", 2, '{"aim":"b"}', lambda _: None) == ev.GoalSet(goal="b")
    assert codec.encode(ev.GoalSet(goal="c")).version == 3


@pytest.mark.parametrize("cls", [*EVENT_CLASSES, codec.BlobPurged], ids=lambda cls: cls.KIND)
def test_every_kind_has_a_golden_file_of_its_current_version(cls: type[Any]) -> None:
    version = codec.VERSIONS.get(cls.KIND, 1)
    path = path_of(cls.KIND, version)
    assert path.exists(), "run: python -m tests.store.golden"
    assert codec.decode(cls.KIND, version, path.read_text(), lambda _: None) == sample(cls), (
        "the shape of a released event changed: raise its version, add an upcaster, run python -m tests.store.golden"
    )


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_every_released_shape_loads_for_ever(path: Any) -> None:
    kind, _, version = path.stem.rpartition(".v")
    event = codec.decode(kind, int(version), path.read_text(), lambda _: None)
    assert kind == event.KIND
