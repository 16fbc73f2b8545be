"""What a tired operator is shown when a plan changed under them, and the way back after a failure."""

from __future__ import annotations

from tests.cli.conftest import FIX, Cli, as_json

_PROPOSAL = FIX.split("- calls: [{tool: run", 1)[0]
_AGAIN = _PROPOSAL + "- calls:" + _PROPOSAL.split("- calls:", 2)[2].replace("/note", "/other")
"""A plan, and after a comment another one."""
_FAILS = (
    FIX.split('- calls: [{tool: run, args: {target: box, command: "stat', 1)[0]
    + """
- calls:
    - {tool: update_plan_step, args: {seq: 1, status: failed, note: it does not help}}
    - {tool: update_entity_attributes, args: {entity: box, attributes: {seen: "yes"}, run: "{{run:last}}"}}
    - {tool: complete_task, args: {outcome: failed, summary: tried touch on box; the note is there}}
- calls: [{tool: set_goal, args: {goal: the note is gone}}]
- calls:
    - tool: propose_plan
      args:
        steps: [{title: take it back, target: box, commands: ["rm {{workshop}}/note"]}]
        checks: [{target: box, command: "ls {{workshop}}"}]
"""
)


def test_approving_what_was_shown_before_shows_what_differs_and_approves_nothing(cli: Cli) -> None:
    cli.plays(_AGAIN)
    waits = as_json(cli("ask", "--json", "make a note"))["waits_for"]
    assert isinstance(waits, dict)
    shown = str(waits["digest"])
    assert cli("ask", "--session", "-", "call it other").code == 3
    ended = cli("approve", "--digest", shown[:12], env=cli.approver())
    assert ended.code == 1
    assert f"  - box $ touch {cli.workshop}/note" in ended.err
    assert f"  + box $ touch {cli.workshop}/other" in ended.err
    assert "look at the card again" in ended.err
    assert list(cli.workshop.glob("note*")) == []


def test_after_a_failure_the_way_back_is_offered_by_name_and_only_proposed(cli: Cli) -> None:
    cli.plays(_FAILS)
    assert cli("ask", "make a note").code == 3
    failed = cli("approve", env=cli.approver())
    assert failed.code == 2
    [offer] = [line.split() for line in failed.out.splitlines() if "--plan-back" in line]
    assert offer[:2] == ["oikos", "changes"]
    back = cli(*offer[1:4], env=cli.approver())
    assert back.code == 3, back
    assert f"$ rm {cli.workshop}/note" in back.out
    assert (cli.workshop / "note").exists(), "asked for, not done"
