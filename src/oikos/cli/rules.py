"""`oikos classify` and `oikos assent`: ask the rules themselves."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Callable, Mapping

import click
import orjson

from oikos.adapters.clock import SystemClock
from oikos.app.teaching import Teaching
from oikos.bootstrap import make_classifier, new_id, open_store, sync_targets
from oikos.cli.paint import safe
from oikos.config import load
from oikos.domain.errors import ConfigError, OikosError, Refusal
from oikos.domain.inventory import Entity
from oikos.domain.teaching import phrase_for, teachable
from oikos.domain.verdict import Risk


@click.command()
@click.argument("command", required=False)
@click.option(
    "--jsonl",
    is_flag=True,
    help='Read {"id","command"}, and "stdin" if it is given any, a line from standard input; write a verdict a line.',
)
@click.option(
    "--teach",
    type=click.Choice(["read_only", "config_mutation"]),
    default=None,
    help="Teach what an unknown COMMAND counts as.",
)
@click.option(
    "--target", "targets", multiple=True, help="With --teach: on this target only; may be given more than once."
)
@click.option("--phrase", default="", help="With --teach: the typed phrase, when no terminal asks for it.")
@click.option("--rules", "list_rules", is_flag=True, help="List the taught rules.")
@click.option("--remove", default="", help="Remove the taught rule whose id begins so.")
def classify(
    command: str | None,
    jsonl: bool,
    teach: str | None,
    targets: tuple[str, ...],
    phrase: str,
    list_rules: bool,
    remove: str,
) -> None:
    """Say how risky COMMAND is, with every reason; or teach what an unknown one counts as."""
    if list_rules or remove:
        asyncio.run(_rules(remove))
        return
    if teach is not None:
        if command is None:
            raise click.UsageError("give the COMMAND to teach")
        asyncio.run(_teach(command, Risk(teach), targets, phrase))
        return
    from oikos.policy import explain

    classifier = make_classifier(load())
    if jsonl:

        def judged(row: Mapping[str, object]) -> dict[str, object]:
            stdin = _text(row, "stdin") if row.get("stdin") is not None else None
            return {"id": row.get("id"), **explain.as_jsonl(classifier.classify(_text(row, "command"), stdin))}

        _lines(judged)
        return
    if command is None:
        raise click.UsageError("give a COMMAND, or --jsonl")
    click.echo(explain.tree(classifier.classify(command), command))


@click.command()
@click.argument("text", required=False)
@click.option(
    "--jsonl",
    is_flag=True,
    help='Read {"id","text"} a line from standard input, write {"id","verdict","reason"} a line.',
)
def assent(text: str | None, jsonl: bool) -> None:
    """Say whether TEXT would approve a pending plan without destructive steps, and why."""
    from oikos.domain import assent as grammar

    if jsonl:
        _lines(lambda row: dict(grammar.jsonl({"id": row.get("id"), "text": _text(row, "text")})))
        return
    if text is None:
        raise click.UsageError("give a TEXT, or --jsonl")
    click.echo(grammar.explain(text))


async def _teach(command: str, risk: Risk, names: tuple[str, ...], typed: str) -> None:
    from oikos.cli.decide import approver

    config = load()
    by = approver(config)
    async with open_store(config) as store:
        await sync_targets(store, config)
        inventory = await store.inventory()
        targets: list[Entity] = []
        for name in names:
            found = inventory.resolve(name)
            if not isinstance(found, Entity):
                raise ConfigError(f"there is no target {name}: `oikos fleet list`")
            targets.append(found)
        verdict = make_classifier(config).classify(command)
        argv = teachable(verdict)
        if isinstance(argv, tuple) and not typed and sys.stdin.isatty():
            click.echo(f"From now on `{command}` counts as {risk} on {', '.join(names) or 'no target'}.")
            typed = click.prompt(f"type `{phrase_for(argv)}` to teach it", default="", show_default=False)
        rule = await Teaching(store, SystemClock(), new_id).teach(verdict, risk, targets, by, typed)
        if isinstance(rule, Refusal):
            raise OikosError(rule.text)
        click.echo(
            f"✓ rule {rule.id[:8]}: {command} counts as {risk} on {', '.join(names)}; `oikos classify --rules` lists it"
        )


async def _rules(remove: str) -> None:
    from oikos.cli.decide import approver
    from oikos.cli.records import when

    config = load()
    async with open_store(config) as store:
        teaching = Teaching(store, SystemClock(), new_id)
        if remove:
            removed = await teaching.remove(remove, approver(config))
            if isinstance(removed, Refusal):
                raise OikosError(removed.text)
            click.echo(f"✓ rule {removed.id[:8]} no longer counts")
            return
        inventory = await store.inventory()
        rules = await teaching.rules()
        if not rules:
            click.echo("No rule was taught.")
        for rule in rules:
            names = ", ".join(entity.slug if (entity := inventory.get(t)) is not None else t[:8] for t in rule.targets)
            click.echo(
                f"{rule.id[:8]}  {when(rule.at_s)}  {rule.by}  {rule.risk} on {names}: {safe(' '.join(rule.argv))}"
            )


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ConfigError(f'"{key}" must be a string')
    return value


def _lines(answer: Callable[[Mapping[str, object]], Mapping[str, object]]) -> None:
    """One answer a line; a malformed line is answered with its error, and the exit code says that there was one."""
    bad = 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if not line.strip():
            continue
        row: object = None
        try:
            row = json.loads(line.strip().decode("utf-8-sig"), parse_float=_finite, parse_constant=_finite)
            if not isinstance(row, dict):
                raise ConfigError("the line is no JSON object")
            written = _written(answer(row))
        except (ValueError, RecursionError, ConfigError) as error:
            bad += 1
            known = row.get("id") if isinstance(row, dict) and not isinstance(error, RecursionError) else None
            why = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
            written = _written({"id": known, "error": f"line {number}: {why}"})
        sys.stdout.buffer.write(written + b"\n")
    sys.stdout.flush()
    if bad:
        sys.exit(1)


def _finite(digits: str) -> float:
    """A number of JSON; one that JSON cannot write back would be another id."""
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is no number that JSON can write back")
    return value


def _written(body: Mapping[str, object]) -> bytes:
    """As UTF-8; what orjson does not write (long integers, deep nests, half a surrogate pair) as plain ASCII."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body, separators=(",", ":")).encode()
