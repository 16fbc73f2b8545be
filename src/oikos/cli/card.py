"""What a session waits for, as text: risk, target and command before anything else (ux/UX §5.2)."""

from __future__ import annotations

from collections import Counter

from oikos.app.service import Card
from oikos.cli.paint import RISK_WORDS, Paint, line, safe
from oikos.domain import events as ev
from oikos.domain.consent import SNAPSHOT_ITEM, SNAPSHOT_PHRASE
from oikos.domain.plan import AfterFailed, Plan, PlannedCommand, Step
from oikos.domain.scripts import Script
from oikos.domain.verdict import Effect, Risk


def effects_text(effects: tuple[Effect, ...]) -> str:
    """Effects in words."""
    return ", ".join(f"{effect.kind}" + (f" {line(effect.object)}" if effect.object else "") for effect in effects)


def script_text(script: Script) -> str:
    """A script file and the beginning of its hash."""
    return f"{line(script.path)} " + (f"(sha256 {script.sha256[:12]})" if script.sha256 else "(not read)")


def plan_lines(plan: Plan, paint: Paint, *, status: str, ticked: frozenset[int] = frozenset()) -> list[str]:
    """A plan: counts, targets, then each step with its whole commands."""
    lines = [paint(f"PLAN {plan.generation}", "bold") + f" · {status} · goal: {line(plan.goal)}"]
    counts = Counter(command.risk for _, command in plan.commands())
    counted = [count_text(counts[risk], risk) for risk in reversed(Risk) if counts[risk]]
    targets = ", ".join(line(entry.slug) for entry in plan.scope)
    lines.append(f"  {' · '.join(counted) or 'no commands yet'} · targets: {targets or 'none'}")
    slugs = {entry.target_id: entry.slug for entry in plan.scope}
    for made in plan.creates:
        lines.append(f"  creates {line(made.name)} ({line(made.kind)}) on {line(slugs.get(made.on_target_id, ''))}")
    item = 0
    for step in plan.steps:
        for position, command in enumerate(step.commands):
            if command.preauthorise is not None:
                item += 1
            lines += _command_lines(step, command, paint, first=position == 0, item=item, ticked=item in ticked)
        if not step.commands:
            lines.append(
                f"  {step.seq:>2} {paint.risk(step.risk)} {line(step.target)}  {line(step.title)} (commands not fixed)"
            )
        if step.undo:
            lines.append(f"        undo: {line(step.undo)}")
    for number, check in enumerate(plan.checks, start=1):
        wanted = [f"exit {check.expect_exit}"] if check.expect_exit is not None else []
        wanted += [f"shows {line(check.expect_text)!r}"] if check.expect_text else []
        lines.append(f"  check {number} {line(check.target)} $ {line(check.command)}  ({' and '.join(wanted)})")
    return lines


def count_text(count: int, risk: Risk) -> str:
    """`1 change`, `3 changes`, `2 destructive`."""
    return "1 change" if count == 1 and risk is Risk.CONFIG_MUTATION else f"{count} {RISK_WORDS[risk]}"


def _command_lines(
    step: Step, command: PlannedCommand, paint: Paint, *, first: bool, item: int, ticked: bool
) -> list[str]:
    lines: list[str] = []
    if first:
        lines.append(f"  {step.seq:>2} {paint.risk(step.risk)} {line(step.target)}  {line(step.title)}")
    mark = "" if first and command.risk is step.risk else f"{paint.risk(command.risk)} "
    lines += [
        ("        " if index else f"     {mark}$ ") + safe(text) for index, text in enumerate(command.text.split("\n"))
    ]
    lines += _input_lines(command.stdin, "        ")
    if command.risk is not Risk.READ_ONLY and command.why:
        lines.append(paint(f"        why {RISK_WORDS[command.risk]}: {line(command.why)}", "dim"))
    if command.effects:
        lines.append(f"        effects: {effects_text(command.effects)}")
    lines += [f"        runs {script_text(script)}" for script in command.scripts]
    if command.preauthorise is not None:
        pre = command.preauthorise
        when = (
            f"only after step {pre.condition.step} failed"
            if isinstance(pre.condition, AfterFailed)
            else "whenever it is due"
        )
        tick = "allowed" if ticked else f"type `{pre.phrase}` to allow it"
        lines.append(paint(f"        item {item}: {when}, at most {pre.max_uses} time(s): {tick}", "red"))
    return lines


def _input_lines(stdin: str | None, indent: str) -> list[str]:
    """What the command is given to read: as much part of what is approved as the command."""
    if stdin is None:
        return []
    lines = stdin.removesuffix("\n").split("\n")
    return [f"{indent}standard input, {len(stdin)} characters:", *(f"{indent}< {safe(text)}" for text in lines)]


def run_lines(run: ev.RunParked, paint: Paint) -> list[str]:
    """A parked run."""
    lines = [f"{paint.risk(run.risk)} {line(run.target)}"]
    lines += [("    " if index else "  $ ") + safe(text) for index, text in enumerate(run.order.command.split("\n"))]
    lines.append(f"  asked because: {line(run.why)}")
    if run.effects:
        lines.append(f"  effects: {effects_text(run.effects)}")
    lines += [f"  runs {script_text(script)}" for script in run.scripts]
    lines += _input_lines(run.order.stdin, "  ")
    if run.phrase:
        lines.append(paint(f"  to confirm type: {run.phrase}", "red"))
    return lines


def _offer_lines(card: Card) -> list[str]:
    """Snapshots that can be chosen, each with the command that takes it (SPEC R5.12)."""
    assert card.plan is not None
    lines = [
        f"  {'snapshot chosen' if SNAPSHOT_ITEM in card.ticked else 'snapshot offered'}: {line(kept.target)} as it is "
        f"before its first change, {line(kept.node)} $ {line(kept.command(card.session_id, card.generation))}"
        for kept in card.plan.snapshots
    ]
    if lines and SNAPSHOT_ITEM not in card.ticked:
        choose = f"oikos approve {card.session_id[:8]} --snapshot"
        lines.append(f"  to choose it: {choose}   ·   in a chat type `{SNAPSHOT_PHRASE}`, then go")
    return lines


def card_lines(card: Card, paint: Paint) -> list[str]:
    """The whole card, ending with what can be done."""
    short = card.session_id[:8]
    match card.kind:
        case "plan":
            assert card.plan is not None
            lines = plan_lines(card.plan, paint, status="waits for approval", ticked=card.ticked)
            machines = ", ".join(line(entry.slug) for entry in card.plan.scope)
            if card.plan.creates:
                machines += f" and the new {', '.join(line(made.name) for made in card.plan.creates)}"
            lines.append(f"  Approving grants, for 30 min, on {machines}: reads and changes this goal needs.")
            lines.append("  Not granted: other targets, any other destructive command, any other guarded effect.")
            lines += _offer_lines(card)
            lines.append(
                f"  oikos approve {short}   ·   oikos deny {short} [--changes TEXT]   ·   digest {card.digest[:12]}"
            )
        case "run":
            assert card.run is not None
            lines = [paint("WAITS FOR YOU", "bold"), *run_lines(card.run, paint)]
            how = f"oikos approve {short} --phrase '{card.run.phrase}'" if card.run.phrase else f"oikos approve {short}"
            lines.append(f"  {how}   ·   oikos deny {short}")
        case "question":
            assert card.question is not None
            lines = [paint("QUESTION", "bold") + f"  {line(card.question.text)}"]
            lines += [f"  - {line(choice)}" for choice in card.question.choices]
            lines.append(
                f"  oikos answer {short}" + (" (the value is not shown)" if card.question.kind == "secret" else " TEXT")
            )
        case "limit":
            lines = [paint("LIMIT", "bold") + f"  {line(card.text)}", f"  oikos raise {short}   ·   oikos stop {short}"]
        case "halted":
            lines = [paint("HALTED", "bold") + f"  {line(card.text)}", f"  oikos stop {short}"]
        case _:
            lines = [
                paint("BLOCKED", "bold") + f"  {line(card.text)}",
                f"  write to it: oikos chat {short}   ·   oikos stop {short}",
            ]
    return lines
