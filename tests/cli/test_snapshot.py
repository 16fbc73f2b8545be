"""The snapshot that a plan offers: on the card with its command, chosen by a flag or a word, else refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from oikos.bootstrap import open_store
from oikos.config import load
from oikos.domain.inventory import AccessPath, Entity, Transport
from tests.cli.conftest import FIX, Cli, as_json

CHANGES = FIX.split("- calls: [{tool: run", 1)[0].replace("target: box", "target: photos")
"""A plan that changes a container."""


async def _add(home: Path) -> None:
    node = Entity(id="e-attic", kind="node", slug="attic", access=AccessPath(transport=Transport.LOCAL))
    guest = AccessPath(transport=Transport.PCT, via="attic", guest="131")
    photos = Entity(id="e-photos", kind="lxc", slug="photos", parent=node.id, access=guest)
    async with open_store(load({"OIKOS_HOME": str(home)})) as store:
        for entity in (node, photos):
            await store.put_entity(entity)


@pytest.fixture
def asked(cli: Cli) -> str:
    """A session that waits for the approval of a change of a container; its id."""
    cli.plays(CHANGES)
    asyncio.run(_add(cli.home))
    waits = as_json(cli("ask", "--json", "make a note"))
    return str(waits["session"])


def test_the_card_shows_what_would_be_taken_where_and_how_to_choose_it(cli: Cli, asked: str) -> None:
    shown = cli("approve", "--digest", "0000", env=cli.approver()).out
    offer = (
        f"  snapshot offered: photos as it is before its first change, attic $ pct snapshot 131 oikos-{asked[:12]}-1"
    )
    how = f"  to choose it: oikos approve {asked[:8]} --snapshot   ·   in a chat type `snapshot`, then go"
    assert shown.splitlines()[-3:-1] == [offer, how]


def test_it_is_taken_only_if_chosen(cli: Cli, asked: str) -> None:
    decided = cli("approve", "--no-follow", env=cli.approver())
    assert decided.out.splitlines()[-1] == "Plan 1 approved; window 30 min on photos."


def test_chosen_it_is_part_of_the_consent(cli: Cli, asked: str) -> None:
    decided = cli("approve", "--snapshot", "--no-follow", env=cli.approver())
    words = "Plan 1 approved; window 30 min on photos. A snapshot of photos comes before the first change."
    assert decided.out.splitlines()[-1] == words
    assert "✓ plan 1 approved, a snapshot first" in cli("sessions", "show", asked[:8]).out


def test_at_a_terminal_the_word_chooses_it_and_decides_nothing_else(cli: Cli, asked: str) -> None:
    with cli.terminal("chat", asked[:8]) as terminal:
        terminal.until("snapshot offered")
        terminal.type("snapshot\n")
        terminal.until("snapshot chosen: photos")
        assert cli.phase() == "awaiting_approval"
        terminal.type("go\n")
        terminal.until("A snapshot of photos comes before the first change.")


def test_where_none_is_offered_the_flag_approves_nothing(cli: Cli) -> None:
    cli.plays(FIX)
    assert cli("ask", "make a note").code == 3
    ended = cli("approve", "--snapshot", env=cli.approver())
    offers = "Plan 1 offers no snapshot: none of its targets is a guest of a node that can be reached."
    assert (ended.code, ended.err) == (4, f"refused (wrong_state): {offers}\n")
    assert cli.phase() == "awaiting_approval"
