"""`oikos classify` and `oikos assent`: ask the rules themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import click
import orjson

from oikos.bootstrap import make_classifier
from oikos.config import load
from oikos.domain.errors import ConfigError


@click.command()
@click.argument("command", required=False)
@click.option("--jsonl", is_flag=True, help='Read {"id","command"} a line from standard input, write a verdict a line.')
def classify(command: str | None, jsonl: bool) -> None:
    """Say how risky COMMAND is, with every reason."""
    from oikos.policy import explain

    classifier = make_classifier(load())
    if jsonl:
        _lines(lambda row: {"id": row.get("id"), **explain.as_jsonl(classifier.classify(_text(row, "command")))})
        return
    if command is None:
        raise click.UsageError("give a COMMAND, or --jsonl")
    click.echo(explain.tree(classifier.classify(command), command))


@click.command()
@click.argument("text", required=False)
@click.option("--jsonl", is_flag=True, help='Read {"id","text"} a line from standard input, write {"id","verdict","reason"} a line.')
def assent(text: str | None, jsonl: bool) -> None:
    """Say whether TEXT would approve a pending plan without destructive steps, and why."""
    from oikos.domain import assent as grammar

    if jsonl:
        _lines(lambda row: dict(grammar.jsonl({"id": row.get("id"), "text": _text(row, "text")})))
        return
    if text is None:
        raise click.UsageError("give a TEXT, or --jsonl")
    click.echo(grammar.explain(text))


def _text(row: Mapping[str, object], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise ConfigError(f"{key} must be a text")
    return value


def _lines(answer: Callable[[Mapping[str, object]], Mapping[str, object]]) -> None:
    """One answer a line; a malformed line is answered with its error, and the exit code says that there was one."""
    bad = 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if not line.strip():
            continue
        row: object = None
        try:
            row = orjson.loads(line)
            if not isinstance(row, dict):
                raise ConfigError("the line is no JSON object")
            body = answer(row)
        except (orjson.JSONDecodeError, ConfigError) as error:
            bad += 1
            body = {"id": row.get("id") if isinstance(row, dict) else None, "error": f"line {number}: {error}"}
        sys.stdout.buffer.write(orjson.dumps(body) + b"\n")
    sys.stdout.flush()
    if bad:
        sys.exit(1)
