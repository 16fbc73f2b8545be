"""Questions to the operator: text, choice and secret; a secret's value is nowhere but in its file and on its way in."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from oikos.domain import events as ev
from oikos.domain.errors import Code, Refusal
from oikos.domain.session import Phase
from tests.app.conftest import Hooked, Open, finish, plan, run

pytestmark = pytest.mark.anyio

VALUE = "correct-horse-battery"
REFERENCE = "{{secret:api}}"
STORE_IT = "cat > {{workshop}}/made"


async def test_an_answer_resumes_the_turn_and_answers_the_call(household: Open) -> None:
    script = """
- calls: [{tool: ask_operator, args: {question: "Which one, the big or the small?"}}]
- sees: ['"answer":"the small one"']
  text: The small one then.
"""
    async with household(script.replace('":"', '": "')) as house:
        state = await house.say("clean it")
        card = await house.card()
        assert card is not None
        assert (state.phase, card.kind, card.text) == (Phase.BLOCKED, "question", "Which one, the big or the small?")
        state = await house.say("the small one")
        assert (state.phase, state.question) == (Phase.IDLE, None)
        assert len(await house.only(ev.QuestionAnswered)) == 1


async def test_a_choice_is_answered_by_one_of_its_words_even_by_a_plain_no(household: Open) -> None:
    script = """
- calls: [{tool: ask_operator, args: {question: 'Restart?', kind: choice, choices: ["yes", "no"]}}]
- sees: ['"answer": "no"']
  text: Not then.
"""
    async with household(script) as house:
        await house.say("is it up?")
        state = await house.say("no")
        assert state.phase is Phase.IDLE


async def test_a_choice_of_one_is_no_question(household: Open) -> None:
    script = """
- calls: [{tool: ask_operator, args: {question: 'Restart?', kind: choice, choices: ["yes"]}}]
- refused: malformed_call
  calls: [{tool: ask_operator, args: {question: 'Password?', kind: secret}}]
- refused: malformed_call
  text: then not
"""
    async with household(script) as house:
        state = await house.say("is it up?")
        assert state.phase is Phase.IDLE


async def test_a_secret_reaches_the_command_and_nothing_else(household: Open, workshop: Path) -> None:
    script = (
        "- calls: [{tool: ask_operator, args: {question: 'The key?', kind: secret, secret_name: api}}]\n"
        + plan(STORE_IT) + run(STORE_IT, stdin="{{reference}}") + run("cat {{workshop}}/made") + finish()
    )  # fmt: skip
    model = Hooked(script, {"workshop": str(workshop), "reference": REFERENCE}, {})
    async with household(model) as house:
        await house.say("store the key")
        refusal = await house.oikos.service.send(house.session_id, VALUE, house.by)
        assert isinstance(refusal, Refusal)
        assert refusal.code is Code.NEEDS_OPERATOR, "a secret is not answered in the conversation"
        reference = await anyio.to_thread.run_sync(house.oikos.secrets.keep, "api", VALUE)
        await house.rest(await house.oikos.service.answer_secret(house.session_id, reference, house.by))
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        assert (house.workshop / "made").read_text(encoding="utf-8") == VALUE
        answers = await house.answers("run")
        assert answers[1]["stdout"] == "[masked:api]"
        assert VALUE.encode() not in await house.record()
        shown = "".join(message.text for messages in model.asked for message in messages)
        assert VALUE not in shown
        assert REFERENCE in shown
        assert (await anyio.Path(house.oikos.config.home / "secrets" / "api").stat()).st_mode & 0o777 == 0o600


async def test_a_secret_never_goes_on_a_command_line(household: Open, workshop: Path) -> None:
    script = plan("touch {{workshop}}/made") + (
        "- calls: [{tool: run, args: {target: box, command: 'echo {{reference}} >> {{workshop}}/made'}}]\n"
        "- refused: malformed_call\n  sees: [standard input]\n  text: a\n- text: b\n"
    )
    model = Hooked(script, {"workshop": str(workshop), "reference": REFERENCE}, {})
    async with household(model) as house:
        await house.say("store the key")
        state = await house.approve()
        assert state.phase is Phase.BLOCKED
        assert not (house.workshop / "made").exists()


async def test_a_secret_nobody_gave_starts_nothing(household: Open, workshop: Path) -> None:
    script = (
        plan(STORE_IT)
        + run(STORE_IT, stdin="{{reference}}")
        + "- sees: ['nobody gave the secret api']\n  text: a\n- text: b\n"
    )
    model = Hooked(script, {"workshop": str(workshop), "reference": REFERENCE}, {})
    async with household(model) as house:
        await house.say("store the key")
        await house.approve()
        assert not (house.workshop / "made").exists()
        [finished] = [event for event in await house.only(ev.RunFinished) if isinstance(event, ev.RunFinished)][1:]
        assert finished.report.outcome.kind == "never_started"


async def test_a_command_whose_secret_was_masked_is_not_run_with_the_marker_in_it(household: Open) -> None:
    script = (
        plan("touch {{workshop}}/made")
        + run("echo password=hunter2hunter2 >> {{workshop}}/made")
        + ("- refused: malformed_call\n  text: a\n- text: b\n")
    )
    async with household(script) as house:
        await house.say("store it")
        state = await house.approve()
        assert state.phase is Phase.BLOCKED
        assert not (house.workshop / "made").exists()
        assert b"hunter2hunter2" not in await house.record()
