"""Questions to the operator: text, choice and secret; a secret's value is nowhere but in its file and on its way in."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from oikos.domain import events as ev
from oikos.domain.errors import Code, ConfigError, Refusal
from oikos.domain.secret_files import directory
from oikos.domain.session import Phase
from oikos.domain.verdict import Effect, EffectKind
from tests.app.conftest import LOOK, Hooked, Open, finish, plan, run

pytestmark = pytest.mark.anyio

VALUE = "correct-horse-battery"
REFERENCE = "{{secret:api}}"
STORE_IT = "cat > {{workshop}}/made"
FILE = "{{secret_file:api}}"
LINES = "correct-horse\r\nbattery-staple\n"
"""A value whose bytes a text file would change."""


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
        + plan({"command": STORE_IT, "stdin": "{{reference}}"}) + run(STORE_IT, stdin="{{reference}}")
        + run("cat {{workshop}}/made") + finish()
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


async def test_a_secret_file_holds_the_answer_while_the_command_runs_and_nothing_else_does(
    household: Open, workshop: Path
) -> None:
    copy = "cp {{file}} {{workshop}}/made; cp $0 {{workshop}}/text"
    look = "LC_ALL=C stat -c '%a %n' {{file}}; cat {{file}}"
    script = (
        "- calls: [{tool: ask_operator, args: {question: 'The key?', kind: secret, secret_name: api}}]\n"
        + plan(copy, look) + run(copy, step=1) + run(look, step=2) + finish(2)
    )  # fmt: skip
    model = Hooked(script, {"workshop": str(workshop), "file": FILE}, {})
    async with household(model) as house:
        await house.say("store the key")
        reference = await anyio.to_thread.run_sync(house.oikos.secrets.keep, "api", LINES)
        await house.rest(await house.oikos.service.answer_secret(house.session_id, reference, house.by))
        card = await house.card()
        assert card is not None
        assert f"cp {FILE} {workshop}/made;" in repr(card)
        state = await house.approve()
        assert (state.phase, state.outcome) == (Phase.DONE, "done"), state.waits_for
        assert (house.workshop / "made").read_bytes() == LINES.encode()
        started = [event.order for event in await house.only(ev.RunStarted) if isinstance(event, ev.RunStarted)]
        copied, looked = [order for order in started if FILE in order.command]
        assert (copied.command, looked.supervised) == (f"cp {FILE} {workshop}/made; cp $0 {workshop}/text", True)
        text = copied.command.replace(FILE, f"{directory(copied.run_id)}/api") + "\n"
        assert (house.workshop / "text").read_text(encoding="utf-8") == text
        answers = await house.answers("run")
        assert answers[1]["stdout"] == f"600 {directory(looked.run_id)}/api\n[masked:api]"
        assert not [made for made in (copied, looked) if await anyio.Path(directory(made.run_id)).exists()]
        record = await house.record()
        shown = "".join(message.text for messages in model.asked for message in messages)
        for line in LINES.split():
            assert line.encode() not in record
            assert line not in shown
        assert REFERENCE in shown


@pytest.mark.parametrize(
    ("command", "stdin"),
    [("cat {{open}}}}", ""), ("cat {{open}}a b}}", ""), ("cat {{open}}a{{open}}b}}}}", ""), ("cat", "{{open}}a}}")],
)
async def test_a_reference_that_would_not_be_filled_in_is_refused(
    household: Open, workshop: Path, command: str, stdin: str
) -> None:
    refused = "- refused: malformed_call\n  sees: [expects a file name]\n  text: a\n- text: b\n"
    script = LOOK + run(command, stdin=stdin) + refused
    model = Hooked(script, {"workshop": str(workshop), "open": "{{secret_file:"}, {})
    async with household(model) as house:
        await house.say("look")
        assert await house.refusals() == ["malformed_call"]


ANOTHER_COMMAND = [
    # the here-document ends at the first line, not at the last one
    "cat <<'{{secret_file:a}}b'\n{{secret_file:ab}}\ntouch WORKSHOP/made\n{{secret_file:a}}b\n",
    # the braces would end the expansion, and what follows would be quoted
    """echo "${x:-{{secret_file:a}}"'$(touch WORKSHOP/made)'"}\"""",
    "bash -c 'cat <<\"{{secret_file:a}}b\"\n{{secret_file:ab}}\ntouch WORKSHOP/made\n{{secret_file:a}}b\n'",
]
"""Reading only, as long as the references stand in them; with the paths in their place they write."""


@pytest.mark.parametrize("command", ANOTHER_COMMAND)
async def test_a_command_is_judged_as_the_shell_reads_it_with_the_paths_in_place(
    household: Open, workshop: Path, command: str
) -> None:
    script = LOOK + run("{{command}}") + "- refused: plan_not_approved\n  text: a\n- text: b\n"
    model = Hooked(script, {"command": command.replace("WORKSHOP", str(workshop))}, {})
    async with household(model) as house:
        for name in ("a", "ab"):
            await anyio.to_thread.run_sync(house.oikos.secrets.keep, name, VALUE)
        await house.say("look")
        assert not (house.workshop / "made").exists()
        assert len(await house.refusals()) == 1


async def test_a_secret_file_that_nobody_gave_starts_nothing(household: Open, workshop: Path) -> None:
    command = "cp {{file}} {{workshop}}/made"
    script = plan(command) + run(command) + "- sees: ['nobody gave the secret api']\n  text: a\n- text: b\n"
    model = Hooked(script, {"workshop": str(workshop), "file": FILE}, {})
    async with household(model) as house:
        await house.say("store the key")
        await house.approve()
        assert not (house.workshop / "made").exists()
        [finished] = [event for event in await house.only(ev.RunFinished) if isinstance(event, ev.RunFinished)][1:]
        assert finished.report.outcome.kind == "never_started"


async def test_a_secret_too_long_for_a_file_starts_nothing(household: Open, workshop: Path) -> None:
    script = (
        plan("wc -c {{file}}") + run("wc -c {{file}}") + "- sees: [longer than 65536 bytes]\n  text: a\n- text: b\n"
    )
    model = Hooked(script, {"workshop": str(workshop), "file": FILE}, {})
    async with household(model) as house:
        await anyio.to_thread.run_sync(house.oikos.secrets.keep, "api", "x" * 65537)
        await house.say("look")
        await house.approve()
        finished = [event for event in await house.only(ev.RunFinished) if isinstance(event, ev.RunFinished)]
        assert [event.report.outcome.kind for event in finished] == ["never_started"]
        with pytest.raises(ConfigError, match="holds a NUL"):
            await anyio.to_thread.run_sync(house.oikos.secrets.keep, "api", "a\0b")


async def test_a_secret_nobody_gave_starts_nothing(household: Open, workshop: Path) -> None:
    script = (
        plan({"command": STORE_IT, "stdin": "{{reference}}"})
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


@pytest.mark.parametrize(
    ("command", "stdin"), [("rev", "{{reference}}"), ("base64 {{file}}", None), ("cat", "{{reference}}")]
)
async def test_a_run_is_given_a_secret_only_as_the_plan_says_or_by_an_approval(
    household: Open, workshop: Path, command: str, stdin: str | None
) -> None:
    """What a command prints of it in another form no mask finds."""
    script = plan("touch {{workshop}}/made") + run(command, **({} if stdin is None else {"stdin": stdin}))
    model = Hooked(script, {"workshop": str(workshop), "reference": REFERENCE, "file": FILE}, {})
    async with household(model) as house:
        await anyio.to_thread.run_sync(house.oikos.secrets.keep, "api", VALUE)
        await house.say("touch it")
        state = await house.approve()
        card = await house.card()
        assert state.phase is Phase.AWAITING
        assert card is not None
        assert card.run is not None
        assert Effect(kind=EffectKind.SENSITIVE, object="secret api") in card.run.effects


async def test_a_plan_that_only_looks_is_given_no_secret_without_an_approval(household: Open, workshop: Path) -> None:
    look = plan({"command": "rev", "stdin": "{{reference}}"})
    model = Hooked(look, {"workshop": str(workshop), "reference": REFERENCE}, {})
    async with household(model) as house:
        state = await house.say("look at it")
        assert (state.phase, state.awaiting_plan) == (Phase.AWAITING, True)


async def test_a_check_is_given_no_secret(household: Open, workshop: Path) -> None:
    script = plan("touch {{workshop}}/made", check="rev {{file}}") + "- refused: malformed_call\n  text: so\n"
    model = Hooked(script, {"workshop": str(workshop), "file": FILE}, {})
    async with household(model) as house:
        await house.say("touch it")
        [told] = [answer for answer in await house.answers("propose_plan") if "refused" in answer]
        assert told["text"] == f"The check `rev {FILE}` must be read-only: it is sensitive"
