"""What the runbook brain does when things do not go as the runbook says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.model.stage import Machine, Stage

from oikos import data
from oikos.adapters.model.document import parse
from oikos.adapters.model.runbook import RunbookBrain, load
from oikos.adapters.model.runbook_file import runbook_from
from oikos.domain.errors import ModelError
from oikos.domain.events import ToolCall
from oikos.ports import Message

BOOK = """
runbook: mill
title: Whether the mill turns, and making it turn
intents:
  - {say: "does the mill turn"}
  - {do: repair, say: ["fix the mill", "the mill stands still"]}
  - {do: repair, follow_up: true, say: "fix it"}
goal: See whether the mill turns
locate:
  title: "Look at the mill on {host}"
  acts:
    - run: cat /mill/state
      keep: state
      take: [{slot: mill, match: '^mill: (.+)$'}]
found: mill
facts: {mill: "{mill}"}
answer: ["The mill on {host} is: {mill}.", "Nobody knows the {wind}."]
takes:
  wind: [{slot: wind, match: 'wind (\\w+)'}]
repair:
  goal: Make the mill turn
  evidence: ["{state}"]
  healthy: [{slot: healthy, in: mill, match: '^turning$'}]
  well: ["It turns already: {mill}."]
  symptoms:
    - name: a sack blocks the gear
      text: 'blocked by (?P<sack>\\S+)'
      title: "Move {sack} out of the gear"
      look:
        - run: ls {sack}
          must: {exit: 0, otherwise: "{sack} is not there"}
      fix:
        - run: mv {sack} /store
      undo: mv /store/{sack|base} {sack}
      repaired: "{sack} was in the gear."
    - name: the miller is needed
      text: 'key is missing'
      title: Ask the miller
      operator: "Put the key into the lock of the mill on {host}."
    - name: the wrong sail is set
      text: 'wrong sail'
      title: "Set the sail {sail}"
      look:
        - run: ls /sails
          take: [{rows: sails, match: '^(?P<name>.+)$'}, {slots: {sail: name}, of: sails, pick: only}]
          ask: {slot: sail, question: "Which sail shall be set?", choices: sails.name, form: 'sail-\\w+'}
      fix:
        - run: mv /sails/{sail} /mill/sail
  apply:
    title: "Start the mill on {host}"
    acts:
      - run: systemctl start mill
        timeout_s: 60
  diagnose:
    - run: cat /mill/state
      keep: state
      take: [{slot: mill, match: '^mill: (.+)$'}]
  more:
    - run: cat /mill/log
      keep: state
  checks:
    - {run: cat /mill/turning, text: "yes"}
  answer: ["The mill on {host} turns: {mill}."]
"""
HOST = {"name": "hill-1", "kind": "host", "mode": "ask", "parent": None, "reachable": True}


@pytest.fixture(scope="module")
def mill() -> RunbookBrain:
    return RunbookBrain([runbook_from(parse(BOOK, "mill.yaml"))])


def table(**results: Any) -> Callable[..., Machine]:
    """A machine by the first letters of its commands; a list is used up result by result, its last one stays."""

    def machine(target: str, command: str) -> tuple[int, str, str]:
        for start, result in sorted(results.items(), key=lambda pair: -len(pair[0])):
            if command.replace(" ", "_").replace("/", "_").startswith(start):
                answer = (result.pop(0) if len(result) > 1 else result[0]) if isinstance(result, list) else result
                return answer if isinstance(answer, tuple) else (0, answer, "")
        return 0, "", ""

    return machine  # type: ignore[return-value] # a machine, built by keyword


def stage(brain: RunbookBrain, machine: Any, **options: Any) -> Stage:
    return Stage(brain=brain, machine=machine, entities=[HOST], **options)


BLOCKED = "mill: still, blocked by /mill/sack\n"
TURNS = "yes\n"


def test_what_no_intent_says_is_answered_with_what_is_known(mill: RunbookBrain) -> None:
    played = stage(mill, table()).say("make me a sandwich")
    assert played.replies[-1].text == (
        "I have no runbook for that. I know:\n"
        "- Whether the mill turns, and making it turn, for example: does the mill turn"
    )
    assert (played.replies[-1].calls, played.plans, played.outcome) == ((), [], "")
    assert played.say("does the mill turn?").outcome == "failed"
    assert played.facts == {"mill.checked": "failed"}


def test_a_clause_without_a_value_is_left_out(mill: RunbookBrain) -> None:
    assert (
        stage(mill, table(cat="mill: turning\n")).say("does the mill turn?").summary
        == "The mill on hill-1 is: turning."
    )


def test_nothing_is_repaired_that_is_well(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat="mill: turning\n")).say("fix the mill")
    assert (played.outcome, played.summary, len(played.plans)) == ("nothing_to_do", "It turns already: turning.", 1)


def test_a_known_symptom_is_repaired_and_checked(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED, cat__mill_turning=TURNS), decisions=["approve"]).say("fix the mill")
    assert (played.outcome, played.summary.splitlines()[-1]) == ("done", "/mill/sack was in the gear.")
    assert [run["command"] for run in played.runs] == [
        *("cat /mill/state", "ls /mill/sack", "mv /mill/sack /store", "systemctl start mill", "cat /mill/turning")
    ]
    assert played.plans[1]["steps"][0]["undo"] == "mv /store/sack /mill/sack"


def test_a_remedy_that_does_not_apply_is_not_tried(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED, ls=(2, "", "no such file"))).say("fix the mill")
    assert (played.outcome, len(played.plans)) == ("failed", 1)
    assert "/mill/sack is not there" in played.questions[0]
    assert played.summary.endswith("The operator said: Stop here\nNothing was changed on hill-1.")


def test_an_unknown_failure_is_read_once_more_and_then_asked_with_the_evidence(mill: RunbookBrain) -> None:
    machine = table(
        cat="mill: still, nobody knows why\n", cat__mill_log="the wheel is cursed\n", cat__mill_turning=TURNS
    )
    played = stage(mill, machine, answers=["Try again"], decisions=["approve"]).say("fix the mill")
    assert "nothing known fits: the wheel is cursed" in played.questions[0]
    assert (played.outcome, len(played.questions), [len(plan["steps"]) for plan in played.plans]) == ("done", 1, [1, 1])
    assert [run["command"] for run in played.runs].count("cat /mill/log") == 1


def test_the_one_more_read_may_show_a_known_symptom(mill: RunbookBrain) -> None:
    machine = table(cat="mill: still\n", cat__mill_log="blocked by /mill/rat\n", cat__mill_turning=TURNS)
    played = stage(mill, machine, decisions=["approve"]).say("fix the mill")
    assert (played.outcome, played.questions) == ("done", [])
    assert "mv /mill/rat /store" in played.plans[1]["steps"][0]["commands"]


def test_a_symptom_that_shows_again_is_not_repaired_for_ever(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED, systemctl=(1, "", "failed")), decisions=["approve"]).say("fix the mill")
    assert played.outcome == "failed"
    assert "a sack blocks the gear was repaired already and shows again" in played.questions[0]
    assert [run["command"] for run in played.runs].count("mv /mill/sack /store") == 1
    assert "On hill-1 these commands had run: `mv /mill/sack /store`; `systemctl start mill`." in played.summary


def test_a_failed_check_is_a_failure_like_any_other(mill: RunbookBrain) -> None:
    states = ["mill: still, blocked by /a\n", "mill: still, key is missing\n"]
    machine = table(cat=states, cat__mill_turning=["no\n", TURNS])
    played = stage(mill, machine, answers=["Try again"], decisions=["approve"]).say("fix the mill")
    assert (played.outcome, len(played.questions)) == ("done", 1)
    assert played.questions[0].startswith("Put the key into the lock of the mill on hill-1.")
    starts = [run for run in played.runs if run["command"] == "systemctl start mill"]
    assert len(starts) == 2


def test_what_only_the_operator_can_do_is_asked_before_a_plan(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat="mill: still, key is missing\n", cat__mill_turning=TURNS), answers=["Try again"],
                   decisions=["approve"]).say("fix the mill")  # fmt: skip
    assert (played.outcome, len(played.questions), len(played.plans[1]["steps"])) == ("done", 1, 1)


def test_a_slot_that_looking_does_not_show_is_asked(mill: RunbookBrain) -> None:
    machine = table(cat="mill: still, wrong sail\n", ls="sail-a\nsail-b\n", cat__mill_turning=TURNS)
    played = stage(mill, machine, answers=["sail-b"], decisions=["approve"]).say("fix the mill")
    assert (played.outcome, played.questions) == ("done", ["Which sail shall be set?"])
    assert played.plans[1]["steps"][0]["commands"] == ["mv /sails/sail-b /mill/sail"]


def test_an_answer_of_another_form_is_not_used(mill: RunbookBrain) -> None:
    machine = table(cat="mill: still, wrong sail\n", ls="sail-a\nsail-b\n")
    played = stage(mill, machine, answers=["$(reboot)"]).say("fix the mill")
    assert (played.outcome, len(played.plans)) == ("failed", 1)


@pytest.mark.parametrize(("said", "questions"), [("use sail-b.", 0), ("not that one", 1)])
def test_changes_fill_the_slot_they_name_or_ask_for_it(mill: RunbookBrain, said: str, questions: int) -> None:
    machine = table(cat="mill: still, wrong sail\n", ls="sail-a\n", cat__mill_turning=TURNS)
    played = stage(mill, machine, answers=["sail-b"], decisions=[f"changes: {said}", "approve"]).say("fix the mill")
    assert (played.outcome, len(played.questions), len(played.plans)) == ("done", questions, 3)
    assert [plan["steps"][0]["commands"] for plan in played.plans[1:]] == [
        *(["mv /sails/sail-a /mill/sail"], ["mv /sails/sail-b /mill/sail"])
    ]


def test_changes_that_no_slot_takes_are_refused_in_words(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED), decisions=["changes: do it tomorrow"]).say("fix the mill")
    assert (played.outcome, "cannot change it as asked: do it tomorrow" in played.summary) == ("failed", True)


def test_a_comment_on_a_waiting_plan_gets_an_answer_and_the_plan_stays(mill: RunbookBrain) -> None:
    machine = table(cat=BLOCKED, cat__mill_turning=TURNS)
    played = stage(mill, machine, decisions=["say: why so?", "approve"]).say("fix the mill")
    assert (played.outcome, len(played.plans)) == ("done", 2)
    assert any("waits for your decision" in reply.text for reply in played.replies)


def test_a_rejected_plan_leaves_everything_as_it_is_and_the_next_request_is_new(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED, cat__mill_turning=TURNS)).say("fix the mill")
    assert played.outcome == ""
    played.note("operator rejected plan generation 2. They said: not today")
    played.steps = {}
    played.decisions = ["approve"]
    played.say("fix the mill")
    assert (played.outcome, len(played.plans)) == ("done", 4)


@pytest.mark.parametrize("asked", ["mv /mill/sack /store", "systemctl start mill"])
def test_a_declined_run_completes_as_failed(mill: RunbookBrain, asked: str) -> None:
    declined = {"refused": "declined", "text": "The operator declined this command.", "comment": "not on a Sunday"}
    played = stage(mill, table(cat=BLOCKED), decisions=["approve"], refusals={f"run {asked}": [declined]})
    played.say("fix the mill")
    assert (played.outcome, f"`{asked}` was declined: not on a Sunday" in played.summary) == ("failed", True)
    assert set(played.steps.values()) <= {"done", "skipped"}


@pytest.mark.parametrize("code", ["target_busy", "expired", "duplicate"])
def test_a_refusal_that_passes_is_tried_again(mill: RunbookBrain, code: str) -> None:
    refusal = {"refused": code, "text": code, "do": "again"}
    played = stage(mill, table(cat=BLOCKED, cat__mill_turning=TURNS), decisions=["approve"],
                   refusals={"run systemctl start mill": [refusal]}).say("fix the mill")  # fmt: skip
    assert played.outcome == "done"


@pytest.mark.parametrize("code", ["unreachable", "target_locked", "identity_mismatch", "out_of_scope", "no_plan"])
def test_a_refusal_that_stays_ends_the_task_with_its_text(mill: RunbookBrain, code: str) -> None:
    refusal = {"refused": code, "text": f"because {code}", "do": "stop"}
    played = stage(mill, table(cat=BLOCKED), refusals={"run cat /mill/state": [refusal] * 9}).say("does the mill turn?")
    assert (played.outcome, "nothing of the kind was found on hill-1" in played.summary) == ("failed", True)
    assert played.steps == {1: "failed"}


def test_a_refused_proposal_or_goal_ends_the_task(mill: RunbookBrain) -> None:
    refusal = {"refused": "look_only_session", "text": "This session may only look.", "do": "stop"}
    played = stage(mill, table(cat=BLOCKED), refusals={"propose_plan": [refusal]}).say("fix the mill")
    assert played.summary == "Not done: the plan was refused: This session may only look."
    played = stage(mill, table(cat=BLOCKED), refusals={"set_goal": [refusal]}).say("fix the mill")
    assert (played.outcome, "This session may only look" in played.summary) == ("failed", True)


def test_a_run_that_goes_on_in_the_background_is_waited_for(mill: RunbookBrain) -> None:
    running = {"run": "r99", "status": "running", "why": "time limit", "do": "wait"}
    played = stage(mill, table(cat=BLOCKED, cat__mill_turning=TURNS), decisions=["approve"],
                   refusals={"run systemctl start mill": [running],
                             "wait": [{"waited": True, "ended_by": "timer"}, {"waited": True, "ended_by": "run"}],
                             "read_output": [{"run": "r99", "outcome": "exit 0", "text": ""}]})  # fmt: skip
    played.say("fix the mill")
    assert played.outcome == "done"
    names = [call.name for reply in played.replies for call in reply.calls]
    assert names.count("wait") == 2
    assert names.index("read_output") > names.index("wait")


def test_a_message_in_the_middle_is_noticed_and_the_plan_goes_on(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED, cat__mill_turning=TURNS)).say("fix the mill")
    played.note("operator approved plan generation 2; its window is open.")
    played.messages.append(Message(role="user", text="by the way, nice weather"))
    played.go_on()
    assert played.outcome == "done"


def test_a_stopped_session_begins_anew_with_the_next_request(mill: RunbookBrain) -> None:
    played = stage(mill, table(cat=BLOCKED, cat__mill_turning=TURNS)).say("fix the mill")
    played.note("The session was stopped and is reopened by a follow-up; plan generation 2 is history.")
    played.steps = {}
    played.say("does the mill turn?")
    assert (played.outcome, played.summary) == ("done", "The mill on hill-1 is: still, blocked by /mill/sack.")


def test_history_of_another_model_is_not_continued(mill: RunbookBrain) -> None:
    foreign = [
        Message(role="user", text="does the mill turn?"),
        Message(role="assistant", text="", calls=(ToolCall(id="1", name="run", arguments="{}"),)),
        Message(role="tool", text="{}", call_id="1", name="run"),
    ]
    with pytest.raises(ModelError, match="begin a new session"):
        mill.reply(foreign)


ANSWERS = st.one_of(
    st.just('{"generation": 1, "status": "accepted", "steps": [{"seq": 1}]}'),
    st.just('{"generation": 1, "status": "awaiting_approval", "steps": [{"seq": 1}, {"seq": 2}]}'),
    st.just('{"entities": [{"name": "hill-1", "kind": "host", "reachable": true}]}'),
    st.builds('{{"run": "r", "exit": "exit 0", "stdout": {}}}'.format,
              st.sampled_from(['"mill: still, blocked by /a"', '"mill: turning"', '""', "3", "null", "[]"])),
    st.builds(lambda code: f'{{"refused": "{code}", "text": "no", "do": "stop"}}',
              st.sampled_from(["batch_ended", "declined", "steps_open", "no_write_back", "check_not_passed", "x"])),
    st.sampled_from(["", "{}", "[]", "null", "plain text", '{"answer": "Try again"}', '{"answer": null}', "{" * 50]),
)  # fmt: skip


SAID = st.sampled_from(["", "", "fix it", "[oikos] operator approved plan generation 1; go"])


@settings(max_examples=50)
@given(st.lists(st.tuples(ANSWERS, SAID), max_size=25))
def test_whatever_it_is_told_the_same_list_gives_the_same_reply_and_never_an_exception(
    told: list[tuple[str, str]],
) -> None:
    brain = RunbookBrain([runbook_from(parse(BOOK, "mill.yaml"))])
    messages = [Message(role="user", text="fix the mill")]
    for text, said in told:
        reply = brain.reply(messages)
        assert (reply.text, reply.calls) == (brain.reply(list(messages)).text, brain.reply(messages).calls)
        assert reply.text or reply.calls
        messages.append(Message(role="assistant", text=reply.text, calls=reply.calls))
        messages += [Message(role="tool", text=text, call_id=call.id, name=call.name) for call in reply.calls]
        if said or not reply.calls:
            messages.append(Message(role="user", text=said or "and now?"))


@pytest.mark.anyio
async def test_the_port_streams_the_text_and_then_the_reply(mill: RunbookBrain) -> None:
    parts = [part async for part in mill.stream([Message(role="user", text="hm")], ())]
    assert [type(part).__name__ for part in parts] == ["TextDelta", "Reply"]
    assert (mill.name, parts[0].text) == ("runbook", parts[1].text)  # type: ignore[union-attr] # both have text
    await mill.close()


def test_the_shipped_runbooks_can_be_read() -> None:
    assert load(data.path("runbooks")).name == "runbook"
