"""A model that plays a script and insists on what it is shown: for tests, evals and hostile answers.

A script is YAML, a list of turns (one for each response the model gives):

    - sees: [no plan]                # each occurs in what it was shown since its last response
      shown: [SOUL]                  # each occurs anywhere in what it is shown
      not_shown: [hunter2]           # none occurs anywhere
      last_tool: run                 # the newest answer is this tool's
      refused: no_plan               # … and is refused with this code; `refused: nothing` when carried out
      tools: [run, set_goal]         # these are offered
      text: looking
      reasoning: it said so
      calls:
        - {tool: run, args: {target: "{{host}}", command: "tail {{run:stdout}}"}}
        - {tool: run, raw: '{"command": "df -h', id: same}      # says exactly this
      fails: {text: overloaded, retryable: true, times: 1}      # instead of a response
      repeat: true                   # the last turn only: again for ever

Placeholders take values from what was shown: `{{run:last}}` and `{{run:2}}` are ids of runs, `{{step:1}}` the first
step of the newest plan, `{{TOOL:path}}` a member of that tool's newest answer, `{{seen:REGEX}}` the last match (its
first group, if it has one), any other name a value that was handed in. A model's turn is found by counting its
responses in the message list, so a script survives a restart.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from oikos.adapters.model.document import Node, parse, read
from oikos.adapters.model.transcript import Answered, Exchange, at, exchanges
from oikos.domain.errors import ModelError
from oikos.domain.events import ToolCall
from oikos.ports import Message, Reply, Retrying, TextDelta, ToolSpec

PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")


class ScriptError(ModelError):
    """What happened is not what the script says; the text names its line."""

    def __init__(self, text: str) -> None:
        super().__init__(text, retryable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidCall:
    """A tool call of a script: arguments with placeholders, or raw text."""

    tool: str
    args: object = None
    raw: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """A turn on which the provider fails."""

    text: str
    retryable: bool
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTurn:
    """One response, and what must hold before it."""

    line: int
    sees: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    last_tool: str = ""
    refused: str = ""
    text: str = ""
    reasoning: str = ""
    calls: tuple[SaidCall, ...] = ()
    fails: Fails | None = None
    repeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A whole script."""

    file: str
    turns: tuple[ScriptTurn, ...]


class Scripted:
    """The Model port over a script."""

    def __init__(self, script: Script, values: Mapping[str, str] | None = None) -> None:
        self._script = script
        self._values = dict(values or {})
        self._failed: dict[int, int] = {}
        """How often each failing turn has failed already."""

    @property
    def name(self) -> str:
        """`scripted`."""
        return "scripted"

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> AsyncGenerator[TextDelta | Retrying | Reply, None]:
        """Says what the script says; see the Model port.

        Raises:
            ScriptError: it is shown something else than the script expects.
            ModelError: the script says that the provider fails.
        """
        reply = self.reply(messages, tools)
        if reply.reasoning:
            yield TextDelta(text=reply.reasoning, reasoning=True)
        if reply.text:
            yield TextDelta(text=reply.text)
        yield reply

    async def close(self) -> None:
        """Nothing to let go of."""

    def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Reply:
        """The response to a message list; raises as `stream` does."""
        past = exchanges(messages)
        number = len(past) - 1
        turn = self._turn(number)
        if turn.fails is not None and self._failed.get(number, 0) < turn.fails.times:
            self._failed[number] = self._failed.get(number, 0) + 1
            raise ModelError(turn.fails.text, retryable=turn.fails.retryable)
        self._expect(turn, number, past[-1], messages, tools)
        fill = _Filler(self._script.file, turn.line, past, self._values)
        calls = []
        for position, said in enumerate(turn.calls, start=1):
            arguments = fill.text(said.raw) if said.raw is not None else json.dumps(fill.value(said.args))
            calls.append(ToolCall(id=said.id or f"call{number + 1}-{position}", name=said.tool, arguments=arguments))
        return Reply(text=fill.text(turn.text), reasoning=turn.reasoning, calls=tuple(calls))

    def _turn(self, number: int) -> ScriptTurn:
        turns = self._script.turns
        if number < len(turns):
            return turns[number]
        if turns[-1].repeat:
            return turns[-1]
        raise ScriptError(
            f"{self._script.file}:{turns[-1].line}: the script is over after {len(turns)} turns and the model is asked "
            "once more"
        )

    def _expect(
        self, turn: ScriptTurn, number: int, newest: Exchange, messages: Sequence[Message], tools: Sequence[ToolSpec]
    ) -> None:
        where = f"{self._script.file}:{turn.line}: turn {number + 1}"
        shown = "\n".join(message.text for message in messages)
        for text in turn.sees:
            if text not in newest.shown:
                raise ScriptError(f"{where}: expected to see {text!r}, but was shown {_brief(newest.shown)}")
        for text in turn.shown:
            if text not in shown:
                raise ScriptError(f"{where}: expected {text!r} somewhere in what is shown, but it is not there")
        for text in turn.not_shown:
            if text in shown:
                raise ScriptError(f"{where}: expected never to be shown {text!r}, but it is there")
        missing = [name for name in turn.tools if name not in [tool.name for tool in tools]]
        if missing:
            raise ScriptError(f"{where}: expected to be offered {', '.join(missing)}")
        self._expect_answer(turn, where, newest.answers)

    def _expect_answer(self, turn: ScriptTurn, where: str, answers: Sequence[Answered]) -> None:
        if not (turn.last_tool or turn.refused):
            return
        if not answers:
            raise ScriptError(f"{where}: expected an answer of {turn.last_tool or 'a tool'}, but there is none")
        last = answers[-1]
        if turn.last_tool and last.call.name != turn.last_tool:
            raise ScriptError(f"{where}: expected an answer of {turn.last_tool}, but the last is of {last.call.name}")
        if turn.refused and (last.refused or "nothing") != turn.refused:
            raise ScriptError(
                f"{where}: expected {last.call.name} refused with {turn.refused}, but it is "
                f"{last.refused or 'carried out'}: {_brief(last.text)}"
            )


class _Filler:
    """Fills placeholders from what was shown."""

    def __init__(self, file: str, line: int, past: Sequence[Exchange], values: Mapping[str, str]) -> None:
        self._where = f"{file}:{line}"
        self._past = past
        self._values = values

    def value(self, value: object) -> object:
        match value:
            case str():
                whole = PLACEHOLDER.fullmatch(value)
                return self._find(whole[1]) if whole else self.text(value)
            case list():
                return [self.value(item) for item in value]
            case dict():
                return {key: self.value(item) for key, item in value.items()}
            case _:
                return value

    def text(self, text: str) -> str:
        return PLACEHOLDER.sub(lambda found: _as_text(self._find(found[1])), text)

    def _find(self, name: str) -> object:
        kind, colon, rest = name.partition(":")
        found = self._values.get(name) if not colon else self._shown(kind, rest)
        if found is None:
            raise ScriptError(f"{self._where}: {{{{{name}}}}} stands for nothing that was shown so far")
        return found

    def _shown(self, kind: str, rest: str) -> object:
        answers = [answer for exchange in self._past for answer in exchange.answers]
        if kind == "seen":
            try:
                matches = list(re.finditer(rest, "\n".join(exchange.shown for exchange in self._past)))
            except re.error as error:
                raise ScriptError(f"{self._where}: {rest!r} is no regular expression: {error}") from None
            return (matches[-1][1] if matches[-1].re.groups else matches[-1][0]) if matches else None
        if kind == "run" and (rest == "last" or rest.isdecimal()):
            runs = [answer.body["run"] for answer in answers if answer.call.name == "run" and "run" in answer.body]
            return at(runs, "-1" if rest == "last" else str(int(rest) - 1))
        if kind == "step" and rest.isdecimal():
            plans = [answer.body for answer in answers if "steps" in answer.body and "generation" in answer.body]
            return at(plans, f"-1.steps.{int(rest) - 1}.seq")
        bodies = [answer.body for answer in answers if answer.call.name == kind and not answer.refused]
        return at(bodies, f"-1.{rest}")


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _brief(text: str) -> str:
    return repr(text if len(text) <= 400 else text[:200] + " … " + text[-200:])


# ---- reading --------------------------------------------------------------------------------------------------------

TURN_FIELDS: Final = ("sees", "shown", "not_shown", "tools", "last_tool", "refused", "text", "reasoning", "calls",
                      "fails", "repeat")  # fmt: skip


def load_script(path: Path) -> Script:
    """A script from a file.

    Raises:
        ConfigError: file, line, and what was expected.
    """
    return script_from(read(path))


def script_text(text: str, file: str = "script") -> Script:
    """A script from a text; raises as `load_script` does."""
    return script_from(parse(text, file))


def script_from(node: Node) -> Script:
    """A script from a part of another document, such as an eval's; raises as `load_script` does."""
    nodes = node.items()
    if not nodes:
        node.fail("at least one turn")
    turns = tuple(_turn(item) for item in nodes)
    for turn, item in zip(turns[:-1], nodes[:-1], strict=True):
        if turn.repeat:
            item.fail("repeat at the last turn only")
    return Script(file=node.file, turns=turns)


def _turn(node: Node) -> ScriptTurn:
    fields = node.fields(optional=TURN_FIELDS)
    lists = {
        key: tuple(fields[key].texts()) if key in fields else () for key in ("sees", "shown", "not_shown", "tools")
    }
    words = {key: fields[key].text() if key in fields else "" for key in ("last_tool", "refused", "text", "reasoning")}
    turn = ScriptTurn(
        line=node.line,
        sees=lists["sees"],
        shown=lists["shown"],
        not_shown=lists["not_shown"],
        tools=lists["tools"],
        last_tool=words["last_tool"],
        refused=words["refused"],
        text=words["text"],
        reasoning=words["reasoning"],
        calls=tuple(_call(item) for item in fields["calls"].items()) if "calls" in fields else (),
        fails=_fails(fields["fails"]) if "fails" in fields else None,
        repeat=fields["repeat"].flag() if "repeat" in fields else False,
    )
    if not (turn.text or turn.calls or turn.fails):
        node.fail("something to say: text, calls or fails")
    return turn


def _call(node: Node) -> SaidCall:
    fields = node.fields(required=("tool",), optional=("args", "raw", "id"))
    if "args" in fields and "raw" in fields:
        fields["raw"].fail("either args or raw")
    args = fields["args"].plain() if "args" in fields else {}
    return SaidCall(
        tool=fields["tool"].text(),
        args=args,
        raw=fields["raw"].verbatim() if "raw" in fields else None,
        id=fields["id"].text() if "id" in fields else "",
    )


def _fails(node: Node) -> Fails:
    fields = node.fields(required=("text",), optional=("retryable", "times"))
    return Fails(
        text=fields["text"].text(),
        retryable=fields["retryable"].flag() if "retryable" in fields else True,
        times=fields["times"].integer(1) if "times" in fields else 1,
    )
