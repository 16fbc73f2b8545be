"""The table of SPEC R1.11: operator action × state, one test a cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.domain.table_r1_11 import ACTIONS, CELLS, COLUMNS, NOW_S, ROWS, STATES, Does
from tests.domain.world import VERA

from oikos.domain.errors import Refusal
from oikos.domain.session import Decided, decide
from oikos.domain.state import TERMINAL


@pytest.mark.parametrize("cell", CELLS)
def test_what_an_action_does_in_a_state(cell: str) -> None:
    action, _, name = cell.partition("-while-")
    session = STATES[name]().pass_s(NOW_S)
    expected = CELLS[cell]
    if callable(expected):
        expected = expected(session)

    before, intent = session.state, ACTIONS[action](session)
    decision = session.do(intent)

    if isinstance(expected, Does):
        assert isinstance(decision, Decided), decision
        assert decision.events == expected.events
        assert session.phase == expected.phase
        assert expected.notice in decision.notice
    else:
        assert isinstance(decision, Refusal), decision
        assert decision.code is expected.code
        assert [word for word in expected.words if word not in decision.text] == []
        assert session.state == before


def test_the_table_has_every_cell() -> None:
    assert [f"{row}-while-{column}" for row in ROWS for column in COLUMNS if f"{row}-while-{column}" not in CELLS] == []


@pytest.mark.parametrize("state", ["done", "failed", "stopped"])
@pytest.mark.parametrize(
    "action", [name for name in ACTIONS if name not in ("comment", "assent", "clarify", "halt-with-more")]
)
def test_nothing_but_a_message_revives_an_ended_session(action: str, state: str) -> None:
    session = STATES[state]().pass_s(NOW_S)
    session.do(ACTIONS[action](session))
    assert session.state.phase in TERMINAL


def test_each_state_is_what_its_name_says() -> None:
    phases = {name: build().phase for name, build in STATES.items()}
    assert {name: phase for name, phase in phases.items() if phase.split("_")[0] != name.split("-")[0]} == {}


@pytest.mark.parametrize("action", ROWS)
@pytest.mark.parametrize("state", COLUMNS)
def test_a_viewer_decides_nothing(state: str, action: str) -> None:
    session = STATES[state]()
    decision = decide(session.state, replace(ACTIONS[action](session), by=VERA), session.now)
    assert isinstance(decision, Refusal)
    assert "vera" in decision.text
