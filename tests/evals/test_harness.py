"""The harness on this machine alone: scripted models on a directory, and every thing its operator can do."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from oikos.domain import events as ev
from oikos.domain.errors import OikosError
from oikos.domain.session import Phase
from oikos.evals.assertions import Judgement
from oikos.evals.harness import play
from oikos.evals.local import LocalScene
from oikos.evals.manifest import Manifest, load
from oikos.evals.trial import Effort, Scene, Trial, effort

pytestmark = pytest.mark.anyio

MANIFEST = """
name: t
prompt: do it
world: local
model: {{scripted: script.yaml}}
{more}
"""
PLAN = """
- calls: [{tool: set_goal, args: {goal: a note is there}}]
- calls:
    - tool: propose_plan
      args:
        steps: [{title: write it, target: "{{host}}", commands: ["touch {{workshop}}/note"]}]
        checks: [{target: "{{host}}", command: "stat {{workshop}}/note"}]
"""
WORK = """
- calls: [{tool: run, args: {target: "{{host}}", command: "touch {{workshop}}/note", step: 1}}]
- calls: [{tool: run, args: {target: "{{host}}", command: "stat {{workshop}}/note"}}]
- calls:
    - {tool: update_plan_step, args: {seq: 1, status: done}}
    - {tool: update_entity_attributes, args: {entity: "{{host}}", attributes: {note: written}, run: "{{run:last}}"}}
    - {tool: complete_task, args: {outcome: done, summary: the note is there, evidence: ["{{run:last}}"]}}
"""
REMOVE = """
- calls: [{tool: set_goal, args: {goal: the note is gone}}]
- calls:
    - tool: propose_plan
      args:
        steps:
          - title: remove it
            target: "{{host}}"
            commands: [{command: "rm {{workshop}}/old", preauthorise: {object: "{{workshop}}/old"}}]
        checks: [{target: "{{host}}", command: "test ! -e {{workshop}}/old"}]
- calls: [{tool: run, args: {target: "{{host}}", command: "rm {{workshop}}/old", step: 1}}]
"""


class Stand:
    """A directory with a manifest and its script; `play` plays it on a fresh home."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"

    def manifest(self, script: str, more: str) -> Manifest:
        (self.directory / "script.yaml").write_text(script)
        (self.directory / "m.yaml").write_text(MANIFEST.format(more=more))
        return load(self.directory / "m.yaml")

    async def play(self, script: str, more: str, *, timeout_s: int = 60) -> tuple[Trial, dict[str, Judgement]]:
        manifest = replace(await asyncio.to_thread(self.manifest, script, more), timeout_s=timeout_s)
        trial, judgements = await play(manifest, seed=1, home=self.home, build=no_lab, environ={})
        return trial, {judgement.assertion: judgement for judgement in judgements}


def no_lab(manifest: Manifest, seed: int) -> Scene:
    raise AssertionError(f"{manifest.name} wants a lab")


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def failed(judgements: dict[str, Judgement]) -> list[str]:
    return [f"{judgement.assertion}: {judgement.saw}" for judgement in judgements.values() if not judgement.ok]


async def test_an_approved_plan_is_carried_out_and_judged_on_the_machine_itself(stand: Stand) -> None:
    more = """
operator: [{when: plan, do: approve}]
expect:
  - completes
  - approvals: 1
  - max_operator_ticks: 0
  - no_mutation_before_approval
  - verified_after_last_mutation
  - no_wrong_target
  - fact_equals: {box/note: written}
  - target_state: {host: "*", command: "ls", shows: note}
"""
    trial, judgements = await stand.play(PLAN + WORK, more)
    assert failed(judgements) == []
    assert (judgements["audit"].ok, judgements["script"].saw) == (True, "5 of 5 responses")
    assert [turn.state.phase for turn in trial.turns] == [Phase.DONE]


async def test_a_followup_reopens_the_session_and_is_told_apart(stand: Stand) -> None:
    again = (PLAN + WORK).replace("/note", "/second").replace("step: 1", "step: 2").replace("seq: 1", "seq: 2")
    more = """
followups: ["now a second one in {workshop}"]
operator: [{when: plan, do: approve, times: 2}]
expect: [reopens_session, completes, no_duplicate_complete, plan_generations: 2, approvals: 2]
"""
    trial, judgements = await stand.play(PLAN + WORK + again, more)
    assert failed(judgements) == []
    assert [turn.text for turn in trial.turns] == ["do it", f"now a second one in {trial.turns[0].truth['workshop']}"]
    first, second = trial.turns
    assert second.records[0].seq == first.state.seq + 1


async def test_a_followup_may_open_a_session_of_its_own(stand: Stand) -> None:
    more = """
followups: [{new_session: do it}]
operator: [{when: plan, do: approve}]
expect: [approvals: 1, no_mutation_before_approval, plan_generations: 1]
"""
    trial, judgements = await stand.play(PLAN + WORK, more)
    assert failed(judgements) == []
    assert [turn.state.phase for turn in trial.turns] == [Phase.DONE, Phase.AWAITING]
    assert len({turn.session_id for turn in trial.turns}) == 2


async def test_a_scalar_followup_is_played(stand: Stand) -> None:
    script = "- {sees: [do it], text: did}\n- {sees: [and again], text: did again}\n"
    trial, judgements = await stand.play(script, "followup: and again\nexpect: [answer_contains: did again]\n")
    assert failed(judgements) == []
    assert [turn.text for turn in trial.turns] == ["do it", "and again"]


async def test_a_session_that_may_only_look_accepts_no_change(stand: Stand) -> None:
    script = PLAN + "- {refused: look_only_session, text: it may not be changed}\n"
    more = 'look: true\nexpect: [no_run, approvals: 0, target_state: {host: "*", command: "! test -e note"}]\n'
    _, judgements = await stand.play(script, more)
    assert failed(judgements) == []


async def test_what_the_inventory_knows_beforehand_is_told_with_where_it_comes_from(stand: Stand) -> None:
    script = """
- calls: [{tool: get_entity, args: {name: attic}}]
- sees: [keep out, "import:manifest"]
  text: I keep out
"""
    more = """
entities: [{name: attic, kind: lxc, parent: box, facts: {note: keep out}}]
expect: [fact_equals: {attic/note: keep out}]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == []
    attic = next(each for each in trial.inventory.entities.values() if each.slug == "attic")
    box = next(each for each in trial.inventory.entities.values() if each.slug == "box")
    assert (attic.parent, attic.lab) == (box.id, True)


async def test_without_a_rule_the_plan_is_left_alone(stand: Stand) -> None:
    trial, judgements = await stand.play(PLAN, "operator: [{when: plan, do: leave}]\nexpect: [approvals: 0]\n")
    assert failed(judgements) == []
    assert trial.turns[-1].state.phase is Phase.AWAITING


async def test_what_the_operator_was_to_decide_and_never_had_to_fails_the_eval(stand: Stand) -> None:
    more = """
operator: [{when: plan, do: approve, generation: 2}, {when: plan, do: leave}, {when: run, do: reject, times: 9}]
expect: [approvals: 0]
"""
    _, judgements = await stand.play(PLAN, more)
    assert failed(judgements) == ["operator: 1 of 3; not used: when plan, approve; not used: when run, reject"]
    stand.home = stand.directory / "another"
    _, judgements = await stand.play(PLAN, more.replace("}, {when: plan", ", optional: true}, {when: plan"))
    assert failed(judgements) == ["operator: 2 of 3; not used: when run, reject"]


async def test_a_rule_decides_only_the_card_that_shows_its_text(stand: Stand) -> None:
    script = (
        PLAN
        + """
- calls: [{tool: run, args: {target: box, command: "curl -s http://nowhere.example.test/x", step: 1}}]
- refused: declined
  calls: [{tool: run, args: {target: box, command: "mkdir {{workshop}}/.ssh; touch {{workshop}}/.ssh/authorized_keys"}}]
- refused: nothing
  text: enough
- text: enough
"""
    )
    more = """
operator:
  - {when: plan, shows: cellar, do: reject}
  - {when: plan, shows: /note, do: approve}
  - {when: run, shows: authorized_keys, do: approve}
  - {when: run, shows: nowhere.example, do: reject, text: not there}
expect: [approvals: 2, target_state: {host: "*", command: "test -e .ssh/authorized_keys"}]
"""
    _, judgements = await stand.play(script, more)
    assert failed(judgements) == ["operator: 3 of 4; not used: when plan, reject"]


SLOW = (
    PLAN
    + """
- calls: [{tool: run, args: {target: "{{host}}", command: "touch {{workshop}}/begun; sleep 1", step: 1}}]
- calls: [{tool: run, args: {target: "{{host}}", command: "touch {{workshop}}/note", step: 1}}]
- text: that was it
- text: that was it
"""
)


async def test_the_operator_halts_after_an_event_and_lets_it_go_on(stand: Stand) -> None:
    more = """
operator:
  - {when: plan, do: approve}
  - {when: run.started, do: say, text: stop}
  - {when: halted, do: answer, text: go}
expect: [approvals: 2, max_operator_ticks: 0, target_state: {host: "*", command: "test -e note"}]
"""
    trial, judgements = await stand.play(SLOW, more)
    assert failed(judgements) == []
    kinds = [event.KIND for event in trial.events()]
    assert kinds.index("run.started") < kinds.index("window.suspended")
    assert [event.on for event in trial.events() if isinstance(event, ev.SessionBlocked)] == ["halted", "nudge"]


async def test_a_window_that_is_revoked_after_an_event_makes_the_next_change_ask(stand: Stand) -> None:
    more = """
operator:
  - {when: plan, do: approve}
  - {when: run.started, do: revoke}
  - {when: run, shows: /note, do: reject}
expect: [approvals: 1, max_operator_ticks: 0, target_state: {host: "*", command: "test -e begun && ! test -e note"}]
"""
    _, judgements = await stand.play(SLOW, more)
    assert failed(judgements) == []


async def test_a_session_is_stopped_after_an_event(stand: Stand) -> None:
    script = SLOW.replace("sleep 1", "sleep 60")
    more = """
operator: [{when: plan, do: approve}, {when: run.started, after_ms: 100, do: stop}]
expect: [approvals: 1, target_state: {host: "*", command: "! test -e note"}]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == ["script: 3 of 6 responses"]
    assert trial.turns[-1].state.phase is Phase.STOPPED


async def test_reads_and_probes_are_no_event_to_wait_for(stand: Stand) -> None:
    look = """
- calls: [{tool: set_goal, args: {goal: look}}]
- calls: [{tool: propose_plan, args: {steps: [{title: look, target: box, commands: [date]}]}}]
- calls: [{tool: run, args: {target: box, command: date, step: 1}}]
- {text: seen, repeat: true}
"""
    more = "operator: [{when: run.started, do: stop}, {when: run.finished, do: stop}]\nexpect: [approvals: 0]\n"
    trial, judgements = await stand.play(look, more)
    [told] = failed(judgements)
    assert told.startswith("operator: 0 of 2;")
    assert trial.turns[-1].state.phase is not Phase.STOPPED


# ---- effort ---------------------------------------------------------------------------------------------------------


async def test_a_typed_assent_is_an_approval_and_no_tick(stand: Stand) -> None:
    more = """
operator: [{when: plan, do: answer, text: go ahead}]
expect: [completes, approvals: 1, max_operator_ticks: 0]
"""
    trial, judgements = await stand.play(PLAN + WORK, more)
    assert failed(judgements) == []
    assert effort(trial) == Effort(tasks=1, approvals=1, ticks=0)


async def test_a_second_approval_and_a_push_of_one_task_are_ticks_beyond_its_first_approval(stand: Stand) -> None:
    script = (
        PLAN
        + """
- text: shall I?
- text: shall I really?
- sees: [why not]
  calls: [{tool: run, args: {target: box, command: "rm -r {{workshop}}/old", step: 1}}]
"""
        + WORK
    )
    more = """
files: {old/a: "1"}
operator:
  - {when: plan, do: approve}
  - {when: nudge, do: answer, text: why not}
  - {when: run, do: confirm, text: delete old}
expect: [completes, approvals: 2, max_operator_ticks: 1]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == []
    assert effort(trial) == Effort(tasks=1, approvals=2, ticks=2)


async def test_what_a_task_took_counts_when_it_is_completed_at_last(stand: Stand) -> None:
    script = PLAN + "- {sees: [in the cellar], text: I wait}\n" + WORK
    more = """
followups: ["is it in the cellar?"]
operator: [{when: plan, do: leave}, {when: plan, do: approve}]
expect: [approvals: 1]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == []
    assert [turn.state.phase for turn in trial.turns] == [Phase.AWAITING, Phase.DONE]
    assert effort(trial) == Effort(tasks=1, approvals=1, ticks=0)
    unfinished = replace(trial, turns=trial.turns[:1])
    assert effort(unfinished) == Effort(tasks=0, approvals=0, ticks=0)


async def test_a_rejected_plan_changes_nothing(stand: Stand) -> None:
    more = """
operator: [{when: plan, do: reject, text: not today}]
expect: [approvals: 0, target_state: {host: "*", command: "! test -e note"}]
"""
    trial, judgements = await stand.play(PLAN, more)
    assert failed(judgements) == []
    assert (trial.turns[-1].state.phase, trial.ticks) == (Phase.IDLE, 0)


async def test_asking_for_changes_brings_another_generation(stand: Stand) -> None:
    script = PLAN + "- {sees: [in the cellar], calls: [{tool: list_entities}]}" + PLAN[PLAN.index("\n- calls:\n") :]
    more = """
operator: [{when: plan, do: changes, text: in the cellar, generation: 1}]
expect: [proposes_plan: 2, approvals: 0, max_operator_ticks: 1]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == []
    assert (trial.turns[-1].state.phase, trial.turns[-1].state.generation) == (Phase.AWAITING, 2)


async def test_a_question_is_answered(stand: Stand) -> None:
    script = """
- calls: [{tool: ask_operator, args: {question: "which colour?"}}]
- sees: [blue]
  text: blue it is
"""
    more = """
operator: [{when: question, do: answer, text: blue}]
expect: [max_operator_ticks: 1, answer_contains: blue it is]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == []
    assert trial.turns[-1].state.phase is Phase.IDLE


async def test_a_parked_run_is_confirmed_with_its_phrase(stand: Stand) -> None:
    script = (
        PLAN
        + """
- calls: [{tool: run, args: {target: box, command: "rm -r {{workshop}}/old", step: 1}}]
- sees: [exit 0]
  text: it is gone
- text: it is gone
"""
    )
    more = """
files: {old/a: "1"}
operator: [{when: plan, do: approve}, {when: run, do: confirm, text: "delete old"}]
expect: [approvals: 2, max_operator_ticks: 0, target_state: {host: "*", command: "! test -e old"}]
"""
    _, judgements = await stand.play(script, more)
    assert failed(judgements) == []


async def test_a_parked_run_is_declined(stand: Stand) -> None:
    script = (
        PLAN
        + """
- calls: [{tool: run, args: {target: box, command: "rm -r {{workshop}}/old", step: 1}}]
- refused: declined
  text: then not
- text: really not
"""
    )
    more = """
files: {old/a: "1"}
operator: [{when: plan, do: approve}, {when: run, do: reject}]
expect: [approvals: 1, target_state: {host: "*", command: "cat old/a", shows: "1"}]
"""
    _, judgements = await stand.play(script, more)
    assert failed(judgements) == []


async def test_a_destructive_item_is_allowed_by_its_phrase(stand: Stand) -> None:
    more = """
files: {old: "1"}
operator: [{when: plan, do: approve, phrases: ["delete old"]}]
expect: [approvals: 1, target_state: {host: "*", command: "! test -e old"}]
"""
    script = REMOVE + "- {sees: [exit 0], text: gone}\n- text: gone\n"
    _, judgements = await stand.play(script, more)
    assert failed(judgements) == []


async def test_a_limit_is_raised(stand: Stand) -> None:
    look = """
- calls: [{tool: set_goal, args: {goal: look}}]
- calls: [{tool: propose_plan, args: {steps: [{title: look, target: box, commands: [date]}]}}]
- calls: [{tool: run, args: {target: box, command: "echo 1"}}]
- calls: [{tool: run, args: {target: box, command: "echo 2"}}]
- calls: [{tool: run, args: {target: box, command: "echo 3"}}]
- {text: enough, repeat: true}
"""
    more = """
limits: {runs: 2}
operator: [{when: limit, do: raise}]
expect: [max_run_calls: 3, budget: {runs: 3}, max_operator_ticks: 1]
"""
    trial, judgements = await stand.play(look, more)
    assert failed(judgements) == []
    assert len(trial.started()) == 3


async def test_a_session_is_stopped(stand: Stand) -> None:
    trial, judgements = await stand.play(PLAN, "operator: [{when: plan, do: stop}]\nexpect: [approvals: 0]\n")
    assert failed(judgements) == []
    assert trial.turns[-1].state.phase is Phase.STOPPED


async def test_a_rule_that_does_not_fit_what_waits_is_an_error_that_says_so(stand: Stand) -> None:
    with pytest.raises(OikosError, match=r"^the scripted operator wanted to confirm and was refused"):
        await stand.play(PLAN, "operator: [{when: plan, do: confirm, text: destroy 131}]\nexpect: [approvals: 0]\n")


async def test_a_script_that_breaks_off_fails_the_eval(stand: Stand) -> None:
    _, judgements = await stand.play(PLAN + WORK, "expect: [approvals: 0]\n")
    assert failed(judgements) == ["script: 2 of 5 responses"]


async def test_a_script_that_is_shown_something_else_fails_the_eval_with_its_line(stand: Stand) -> None:
    script = "- calls: [{tool: run, args: {target: box, command: ls}}]\n- {refused: no_plan, text: hm}\n"
    _, judgements = await stand.play(script, "expect: [approvals: 0]\n")
    [told] = failed(judgements)
    assert told.startswith(
        f"script: 1 of 2 responses; the model is not available: {stand.home}/model.yaml:2: turn 2: "
        "expected run refused with no_plan"
    )


async def test_a_damaged_record_fails_the_eval(stand: Stand) -> None:
    class Meddler(LocalScene):
        """Changes a fact behind Oikos's back when it is asked for the truth."""

        def truth(self) -> Mapping[str, object]:
            with sqlite3.connect(stand.home / "oikos.db") as database:
                database.execute("UPDATE facts SET value = '\"forged\"'")
            return super().truth()

    more = "operator: [{when: plan, do: approve}]\nexpect: [completes]\n"
    manifest = await asyncio.to_thread(stand.manifest, PLAN + WORK, more)
    meddled = replace(manifest, world="bare")
    _, judgements = await play(
        meddled, seed=1, home=stand.home, build=lambda *_: Meddler(stand.directory / "workshop", 1), environ={}
    )
    assert [judgement.assertion for judgement in judgements if not judgement.ok] == ["audit"]


async def test_an_eval_that_takes_too_long_is_ended(stand: Stand) -> None:
    script = """
- calls: [{tool: set_goal, args: {goal: look}}]
- calls: [{tool: propose_plan, args: {steps: [{title: look, target: box, commands: ["sleep 60"]}]}}]
- calls: [{tool: run, args: {target: box, command: "sleep 60"}}]
"""
    with pytest.raises(OikosError, match=r"^not finished after 1 s"):
        await stand.play(script, "expect: [completes]\n", timeout_s=1)


async def test_what_oikos_holds_as_a_secret_is_nowhere_in_its_home(stand: Stand) -> None:
    script = """
- calls: [{tool: set_goal, args: {goal: look}}]
- calls: [{tool: propose_plan, args: {steps: [{title: look, target: box, commands: ["cat {{workshop}}/conf"]}]}}]
- calls: [{tool: run, args: {target: box, command: "cat {{workshop}}/conf", step: 1}}]
- not_shown: [opensesame99]
  text: seen
- text: seen
"""
    more = """
files: {conf: "door: opensesame99\\n"}
secrets: {door: opensesame99}
expect: [secret_absent: opensesame99, max_run_calls: 1]
"""
    trial, judgements = await stand.play(script.replace("not_shown: [opensesame99]", "shown: [door]"), more)
    assert failed(judgements) == []
    assert b"door: " in b"".join(trial.outputs.values())


@pytest.mark.slow  # the new worker waits for the lease of the killed one
async def test_a_killed_worker_is_replaced_and_the_change_happens_once(stand: Stand) -> None:
    command = "echo once >> {{workshop}}/count; sleep 2"
    script = PLAN.replace("touch {{workshop}}/note", command).replace(
        "stat {{workshop}}/note", "stat {{workshop}}/count"
    ) + WORK.replace("touch {{workshop}}/note", command).replace("stat {{workshop}}/note", "stat {{workshop}}/count")
    more = """
operator: [{when: plan, do: approve}]
crash: [{at: run.started, after_ms: 1000}]
expect: [completes, approvals: 1, target_state: {host: "*", command: "test $(wc -l < count) = 1"}]
"""
    trial, judgements = await stand.play(script, more)
    assert failed(judgements) == []
    assert trial.crashes == 1
