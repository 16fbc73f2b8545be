from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from oikos.adapters.model.scripted import Scripted, ScriptError, load_script, script_text
from oikos.domain.errors import ConfigError, ModelError
from oikos.domain.events import ToolCall
from oikos.ports import Message, Reply, TextDelta, ToolSpec

TOOLS = (ToolSpec(name="run", description="", parameters={}), ToolSpec(name="set_goal", description="", parameters={}))


def system() -> Message:
    return Message(role="system", text="SOUL of Nomos")


def user(text: str) -> Message:
    return Message(role="user", text=text)


def said(reply: Reply) -> Message:
    return Message(role="assistant", text=reply.text, calls=reply.calls, reasoning=reply.reasoning)


def answer(call: ToolCall, **body: Any) -> Message:
    return Message(role="tool", text=json.dumps(body), call_id=call.id, name=call.name)


def test_a_script_reads_as_the_story_it_plays() -> None:
    script = script_text(
        """
- sees: ["fix it"]
  shown: [SOUL]
  not_shown: [hunter2]
  tools: [run, set_goal]
  reasoning: I want to look.
  text: Looking.
  calls:
    - {tool: run, args: {target: "{{host}}", command: "cat {{seen:/[a-z/]+}}"}}
- last_tool: run
  refused: no_plan
  calls:
    - {tool: propose_plan, args: {steps: [{title: look, target: "{{host}}", commands: [df]}]}}
- last_tool: propose_plan
  refused: nothing
  calls:
    - {tool: run, args: {step: "{{step:1}}", command: df, count: 3, keep: true, stdin: null}}
- calls:
    - {tool: update_entity_attributes, args: {run: "{{run:last}}", attributes: {used: "{{run:stdout}} of {{run:1}}"}}}
- {text: "The run was {{run:last}}."}
""",
        "story.yaml",
    )
    model = Scripted(script, {"host": "nas"})
    messages = [system(), user("fix it in /etc/fstab")]
    first = model.reply(messages, TOOLS)
    assert first == Reply(
        text="Looking.",
        reasoning="I want to look.",
        calls=(ToolCall(id="call1-1", name="run", arguments='{"target": "nas", "command": "cat /etc/fstab"}'),),
    )
    messages += [said(first), answer(first.calls[0], refused="no_plan", text="No plan.")]
    second = model.reply(messages, TOOLS)
    messages += [said(second), answer(second.calls[0], generation=1, steps=[{"seq": 7}])]
    third = model.reply(messages, TOOLS)
    assert json.loads(third.calls[0].arguments) == {"step": 7, "command": "df", "count": 3, "keep": True, "stdin": None}
    messages += [said(third), answer(third.calls[0], run="r-1", exit="exit 0", stdout="93%")]
    fourth = model.reply(messages, TOOLS)
    assert json.loads(fourth.calls[0].arguments) == {"run": "r-1", "attributes": {"used": "93% of r-1"}}
    messages += [said(fourth), answer(fourth.calls[0], written=1)]
    assert model.reply(messages, TOOLS) == Reply(text="The run was r-1.")
    # found by counting responses, so a new process goes on where the old one was
    assert Scripted(script, {"host": "nas"}).reply(messages, TOOLS) == Reply(text="The run was r-1.")
    messages += [said(Reply(text="The run was r-1.")), user("and?")]
    with pytest.raises(ScriptError, match=r"story.yaml:20: the script is over after 5 turns"):
        model.reply(messages, TOOLS)


def test_it_says_garbage_exactly_as_it_is_written() -> None:
    model = Scripted(
        script_text(
            """
- calls:
    - {tool: run, raw: '{"command": "df -h', id: same}
    - {tool: run, raw: '', id: same}
    - {tool: "rm -rf /", args: [1, "two"]}
    - {tool: run, raw: "operator approved", id: same}
  repeat: true
"""
        )
    )
    expected = (
        ToolCall(id="same", name="run", arguments='{"command": "df -h'),
        ToolCall(id="same", name="run", arguments=""),
        ToolCall(id="call1-3", name="rm -rf /", arguments='[1, "two"]'),
        ToolCall(id="same", name="run", arguments="operator approved"),
    )
    first = model.reply([user("hello")], ())
    assert first.calls == expected
    again = model.reply([user("hello"), said(first), user("go on")], ())
    assert [call.name for call in again.calls] == [call.name for call in expected]


EXPECTATIONS = [
    ("- {sees: [approved], text: x}", "expected to see 'approved', but was shown 'hello'"),
    ("- {shown: [approved], text: x}", "expected 'approved' somewhere in what is shown"),
    ("- {not_shown: [SOUL], text: x}", "expected never to be shown 'SOUL'"),
    ("- {tools: [run, fly], text: x}", "expected to be offered fly"),
    ("- {last_tool: run, text: x}", "expected an answer of run, but there is none"),
    ("- {refused: no_plan, text: x}", "expected an answer of a tool, but there is none"),
    ("- {text: 'the {{run:last}}'}", "{{run:last}} stands for nothing that was shown so far"),
    ("- {text: '{{host}}'}", "{{host}} stands for nothing"),
    ("- {text: '{{get_entity:facts.0}}'}", "{{get_entity:facts.0}} stands for nothing"),
    ("- {text: '{{seen:(}}'}", "no regular expression"),
]


@pytest.mark.parametrize(("text", "reason"), EXPECTATIONS)
def test_a_failed_expectation_names_its_line_and_what_was_there(text: str, reason: str) -> None:
    with pytest.raises(ScriptError) as caught:
        Scripted(script_text("\n" + text, "s.yaml")).reply([system(), user("hello")], TOOLS)
    assert str(caught.value).startswith("s.yaml:2: ")
    assert reason in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ("{last_tool: wait, text: x}", "expected an answer of wait, but the last is of run"),
        ("{refused: declined, text: x}", "expected run refused with declined, but it is no_plan"),
        ("{refused: nothing, text: x}", "expected run refused with nothing, but it is no_plan"),
    ],
)
def test_the_newest_answer_is_what_it_should_be(turn: str, reason: str) -> None:
    model = Scripted(script_text(f"- {{calls: [{{tool: run}}]}}\n- {turn}"))
    first = model.reply([user("hello")], ())
    with pytest.raises(ScriptError) as caught:
        model.reply([user("hello"), said(first), answer(first.calls[0], refused="no_plan")], ())
    assert reason in str(caught.value)


def test_a_provider_can_fail_for_a_while() -> None:
    model = Scripted(script_text("- {fails: {text: overloaded, times: 2}, text: at last}"))
    for _ in range(2):
        with pytest.raises(ModelError, match="overloaded") as caught:
            model.reply([user("hello")], ())
        assert caught.value.retryable
    assert model.reply([user("hello")], ()).text == "at last"


@pytest.mark.anyio
async def test_the_port_streams_reasoning_text_and_the_reply() -> None:
    model = Scripted(script_text("- {text: hello, reasoning: why not}"))
    parts = [part async for part in model.stream([user("hi")], ())]
    assert parts == [
        TextDelta(text="why not", reasoning=True),
        TextDelta(text="hello"),
        Reply(text="hello", reasoning="why not"),
    ]
    await model.close()
    assert model.name == "scripted"


MALFORMED = yaml.safe_load((Path(__file__).parent / "malformed_scripts.yaml").read_text())


@pytest.mark.parametrize("row", MALFORMED, ids=lambda row: row["expected"][:60])
def test_a_malformed_script_says_file_line_and_what_was_expected(tmp_path: Path, row: dict[str, str]) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(row["script"])
    with pytest.raises(ConfigError) as caught:
        load_script(path)
    assert str(caught.value).removeprefix(f"{tmp_path}/") == row["expected"]


def test_a_script_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.yaml cannot be read \(No such file or directory\)"):
        load_script(tmp_path / "nowhere.yaml")
