"""Rules about one program, compiled from a section of a rule file.

A section says what the program does by default, which options it knows (everything else is unknown), which
positional arguments it takes, and what its subcommands and modes do. The notation is described in
`docs/classifier.md`.
"""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from oikos.domain.verdict import EffectKind, HopKind, Risk
from oikos.policy.words import Tag, Tags


class SpecError(ValueError):
    """A rule file is malformed; the message names file, line and what was expected."""


class Takes(enum.Enum):
    """Whether an option has a value."""

    NOTHING = "nothing"
    VALUE = "value"
    OPTIONAL = "optional"
    """Only when glued: `-bFILE`, `--color=always`."""


@dataclass(frozen=True, slots=True)
class Option:
    """One spelling of an option and what it does to the class."""

    name: str
    takes: Takes
    kind: str = "any"
    risk: Risk = Risk.READ_ONLY
    """Class the option raises to; READ_ONLY: it raises nothing."""
    why: str = ""
    effects: tuple[EffectKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Arg:
    """One positional argument."""

    kind: str
    required: bool
    repeats: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """What a program, subcommand or mode does."""

    name: str
    """Dotted rule id, such as `docker.volume.rm`."""
    risk: Risk
    why: str
    effects: tuple[EffectKind, ...] = ()
    options: Mapping[str, Option] = ()  # type: ignore[assignment]  # replaced by every constructor call below
    lenient: str = ""
    """How unknown options are read: empty: they are findings; `*`: as flags; `*=`: with a value."""
    args: tuple[Arg, ...] | None = None
    """None: any arguments."""
    extra: str = ""
    """Why more or other arguments than `args` change something; empty: they are not understood."""
    wraps: int | None = None
    """Number of arguments before an inner command; None: this is no wrapper."""
    console: bool = False
    """Without arguments the program carries out the lines of its standard input."""
    fed: frozenset[str] = frozenset()
    """Programs that take what they read for commands or keys, whatever their arguments."""
    carries: str = ""
    """`command`: somewhere among the arguments an inner command begins; `console`: they are lines of a console."""
    inner: str = "argv"
    """How the inner command is given: `argv`, `script` (words joined and parsed again), `text` (one word)."""
    hop: HopKind | None = None
    handler: str = ""
    dry: frozenset[str] = frozenset()
    dynamic: bool = False
    """Audited: no dynamic word, whatever it turns into, makes it do more."""
    verb: str = ""
    emits: Tags = frozenset()
    sink: bool = False
    """Whether it sends data to another machine."""
    advice: str = ""
    permute: bool = True
    single: bool = False
    """Options with one dash are whole words (`-connect`), never clusters."""
    names_only: bool = False
    """It shows names and attributes of its file arguments, never their contents."""
    needs: frozenset[str] = frozenset()
    """Options of which one must be present for this rule to hold."""


@dataclass(frozen=True, slots=True)
class Program:
    """Everything known about one program."""

    names: tuple[str, ...]
    base: Rule
    subs: Mapping[tuple[str, ...], tuple[Rule, ...]]
    """By subcommand words; of several rules the first whose `needs` are met holds, the last one otherwise."""
    modes: tuple[tuple[frozenset[str], Rule], ...]
    """By options: the first of which one is used holds. `-R+-n` stands for both, `none` for no arguments."""
    between: Mapping[tuple[str, ...], Mapping[str, Option]]
    """Options that may stand behind a subcommand word and before the next one."""
    sub_at: int
    abbreviates: bool
    examples: Mapping[Risk, tuple[str, ...]]


RISKS = {"read": Risk.READ_ONLY, "change": Risk.CONFIG_MUTATION, "destroy": Risk.DESTRUCTIVE}

OBJECTS = frozenset(
    "guest container service dataset snapshot volume device database file host user image pod release table interface "
    "pool repo key mount package network queue job".split()
)
"""Argument kinds that name an object (SPEC R3.5)."""
_KINDS = OBJECTS | frozenset(
    "any text path read out exec env url script sql noassign int sub secret name target remote".split()
)

_TOKEN = re.compile(
    r"(?P<name>-#|-\[[^\]]+\]|--?[A-Za-z0-9?@%][\w.@?%+-]*|\+[A-Za-z][\w-]*|--)"
    r"(?P<takes>=\??|::?)?(?P<kind>[^!\s]*?)(?P<marks>!{0,2})"
)
_KEYS = {
    "risk": str, "why": str, "options": str, "args": str, "extra": str, "wraps": int, "inner": str, "hop": str,
    "handler": str, "dry": str, "dynamic": str, "verb": str, "emits": str, "sink": bool, "advice": str, "permute": bool,
    "single": bool, "console": bool, "fed": str, "carries": str, "names_only": bool, "needs": str, "because": dict, "do": list, "sub_at": int, "abbreviates": bool,
    "read": list, "change": list, "destroy": list, "between": dict,
}  # fmt: skip
_ROW_KEYS = frozenset(_KEYS) - {"do", "sub_at", "abbreviates", "read", "change", "destroy", "between"}


def marked(text: str) -> tuple[tuple[EffectKind, ...], str]:
    """Split `[outage egress] Sentence.` into effects and sentence."""
    found = re.match(r"\[([a-z_ ]+)\]\s*", text)
    if not found:
        return (), text
    return tuple(EffectKind(name) for name in found.group(1).split()), text[found.end() :]


@cache
def _common() -> dict[str, Option]:
    """Options that all over the world only choose what is shown, and how: the notation `~`."""
    return parse_options(
        "-[aAlqvhjwrxt] -n:text -p:text -c:text -m:text --all --long --json --yaml --quiet --verbose --no-color --no-colors --color=? --format=text --limit=int "
        "--filter=text --sort=text --wide --short --plain --no-headers --no-header --help --version --show-details --output-format=text --start=text "
        "--since=text --until=text --type=text --name=text --namespace=text --repo=text --list --details --full --summary --human-readable --no-pager "
        "--no-trunc --tree --debug --host=text --port=text --user=text --username=text --server=text --timeout=text --count --columns=text --fields=text "
        "--project=text --region=text --zone=text --profile=text --status=text --tail=text --follow --lines=text --vmid=text --vhost=text --node=text "
        "--query=text --path=text --id=text --max-results=text --page=text --per-page=text --typefilter=text --errors=text --source=text --userfilter=text",
        {},
        "common options",
    )[0]


def parse_options(text: str, because: Mapping[str, str], owner: str) -> tuple[dict[str, Option], str]:
    """Options table and leniency from their notation.

    Raises:
        SpecError: a token is malformed.
    """
    reasons = {name: reason for names, reason in because.items() for name in names.split()}
    table: dict[str, Option] = {}
    lenient = ""
    for token in text.split():
        if token in ("*", "*="):
            lenient = token
            continue
        if token == "~":
            table.update(_common())
            continue
        found = _TOKEN.fullmatch(token)
        if not found:
            raise SpecError(f"{owner}: cannot read the option {token!r}; expected -x, -x:kind, --long, --long=kind, …")
        name, takes, kind, marks = found.group("name", "takes", "kind", "marks")
        how = {None: Takes.NOTHING, "=": Takes.VALUE, "=?": Takes.OPTIONAL, ":": Takes.VALUE, "::": Takes.OPTIONAL}[
            takes
        ]
        if kind and how is Takes.NOTHING:
            raise SpecError(f"{owner}: option {token!r} has a kind but takes no value")
        if kind and kind not in _KINDS and "|" not in kind:
            raise SpecError(f"{owner}: unknown kind {kind!r} in {token!r}; known: {', '.join(sorted(_KINDS))}")
        risk = (Risk.READ_ONLY, Risk.CONFIG_MUTATION, Risk.DESTRUCTIVE)[len(marks)]
        names = [f"-{letter}" for letter in name[2:-1]] if name.startswith("-[") else [name]
        for one in names:
            effects, why = marked(reasons.get(one, ""))
            table[one] = Option(one, how, kind or "any", risk, why, effects)
    return table, lenient


def parse_args(text: str, owner: str) -> tuple[Arg, ...] | None:
    """Positional arguments from their notation.

    Raises:
        SpecError: a token is malformed.
    """
    if text == "*":
        return None
    args = []
    for token in text.split():
        found = re.fullmatch(r"(\[?)([\w|.:,+/=%-]+?)(\.\.\.)?(\]?)", token)
        if not found or bool(found.group(1)) != bool(found.group(4)):
            raise SpecError(f"{owner}: cannot read the argument {token!r}; expected kind, [kind], kind... or [kind...]")
        kind = found.group(2)
        if kind not in _KINDS and "|" not in kind:
            raise SpecError(f"{owner}: unknown argument kind {kind!r}; known: {', '.join(sorted(_KINDS))}")
        args.append(Arg(kind, not found.group(1), bool(found.group(3))))
    return tuple(args)


def _rule(name: str, data: Mapping[str, Any], parent: Rule | None, because: Mapping[str, str]) -> Rule:
    risk = RISKS.get(data.get("risk", ""))
    if risk is None:
        raise SpecError(f"{name}: risk is {data.get('risk')!r}; expected one of {', '.join(RISKS)}")
    effects, why = marked(data.get("why", ""))
    if risk is not Risk.READ_ONLY and not why:
        raise SpecError(f"{name}: a rule above read_only needs a why")
    if "args" not in data and risk is Risk.READ_ONLY and not data.get("handler") and "wraps" not in data:
        raise SpecError(f"{name}: a read_only rule must declare args")
    because = {**because, **data.get("because", {})}
    # Rules that already change something do not need their options spelled out, unless they say so.
    options, lenient = parse_options(
        data.get("options", "" if risk is Risk.READ_ONLY or data.get("dry") else "*"), because, name
    )
    dry = frozenset(data.get("dry", "").split())
    for one in dry:
        options.setdefault(one, Option(one, Takes.OPTIONAL if one.startswith("--") else Takes.NOTHING, "text"))
    if parent is not None:
        options = {**parent.options, **options}
    base = parent or Rule("", risk, "")
    hop = data.get("hop")
    return Rule(
        name=name,
        risk=risk,
        why=why,
        effects=effects,
        options=options,
        lenient=lenient,
        args=parse_args(data.get("args", "*"), name),
        extra=data.get("extra", ""),
        wraps=data.get("wraps"),
        inner=data.get("inner", "argv"),
        console=data.get("console", False),
        fed=frozenset(data["fed"].split()) if "fed" in data else base.fed,
        carries=data.get("carries", base.carries if parent else ""),
        hop=HopKind(hop) if hop else None,
        handler=data.get("handler", base.handler if parent else ""),
        dry=dry,
        dynamic=data["dynamic"] == "ok" if "dynamic" in data else base.dynamic and parent is not None,
        verb=data.get("verb", name.rsplit(".", 1)[-1]),
        emits=frozenset(Tag(tag) for tag in data.get("emits", "").split()) or (base.emits if parent else frozenset()),
        sink=data.get("sink", base.sink if parent else False),
        advice=data.get("advice", base.advice if parent else ""),
        permute=data.get("permute", base.permute if parent else data.get("wraps") is None),
        single=data.get("single", base.single if parent else False),
        names_only=data.get("names_only", base.names_only if parent else False),
        needs=frozenset(data.get("needs", "").split()),
    )


def _check_keys(name: str, data: Mapping[str, Any], allowed: frozenset[str]) -> None:
    for key, value in data.items():
        if key not in allowed:
            raise SpecError(f"{name}: unknown key {key!r}; expected one of {', '.join(sorted(allowed))}")
        if not isinstance(value, _KEYS[key]):
            raise SpecError(f"{name}: {key} must be {_KEYS[key].__name__}, not {type(value).__name__}")


def compile_program(header: str, data: Mapping[str, Any]) -> Program:
    """Compile one section; `header` lists the program names it is about.

    Raises:
        SpecError: the section is malformed.
    """
    names = tuple(header.split())
    first = names[0]
    _check_keys(first, data, frozenset(_KEYS))
    because = data.get("because", {})
    plain = {key: value for key, value in data.items() if key in _ROW_KEYS}
    if "risk" not in plain:
        # A program of subcommands: without one it prints its usage.
        plain.update(risk="read", args="")
    base = _rule(first, plain, None, because)
    subs: dict[tuple[str, ...], tuple[Rule, ...]] = {}
    modes: list[tuple[frozenset[str], Rule]] = []
    for row in data.get("do", []):
        if not isinstance(row, list) or not 3 <= len(row) <= 6:
            raise SpecError(f"{first}: a row of `do` is [risk, names, options, args, why, {{more}}]; got {row!r}")
        risk, spelled, *rest = row
        more = dict(rest.pop()) if isinstance(rest[-1], dict) else {}
        fields = dict(zip(("options", "args", "why"), rest, strict=False))
        if fields.get("options") == "" and risk != "read" and "dry" not in more:
            del fields["options"]
        _check_keys(first, more, _ROW_KEYS)
        pattern: Rule | None = None
        for one in spelled.split(","):
            words = tuple(one.split())
            if not words:
                raise SpecError(f"{first}: empty name in {row!r}")
            dotted = ".".join((first, *(word.lstrip("-") or word for word in words)))
            if pattern is None:
                pattern = _rule(dotted, {"risk": risk, **fields, **more}, base, because)
            rule = replace(pattern, name=dotted, verb=more.get("verb", words[-1].lstrip("-")))
            if words[0] == "none" or words[0].startswith("-"):
                when = frozenset(words)
                named = " ".join(word.replace("+", " ") for word in words if word != "none")
                flags, _ = parse_options(named, because, dotted)
                known = {name: rule.options.get(name, option) for name, option in flags.items()}
                modes.append((when, replace(rule, options={**known, **rule.options})))
            else:
                known_rules = subs.get(words, ())
                # A later plain rule replaces an earlier one; rules with needs come first.
                subs[words] = (rule, *known_rules) if rule.needs else (*(one for one in known_rules if one.needs), rule)
    examples = {risk: tuple(data.get(word, ())) for word, risk in RISKS.items()}
    between = {
        tuple(prefix.split()): {**base.options, **parse_options(text, because, first)[0]}
        for prefix, text in data.get("between", {}).items()
    }
    return Program(
        names, base, subs, tuple(modes), between, data.get("sub_at", 0), data.get("abbreviates", False), examples
    )
