"""The judge of simple commands: finds the program's rules and applies them to its words."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import Action, EffectKind, Risk
from oikos.policy import (
    arguments,
    assignments,
    builtins,
    carried,
    choice,
    danger,
    disclosure,
    hosts,
    itself,
    minis,
    paths,
    unwrap,
)
from oikos.policy.call import Call, span_of
from oikos.policy.parser import Node
from oikos.policy.scene import EMPTY, MAX_COMMANDS, MAX_DEPTH, MAX_WORDS, UNKNOWN, Flow, Scene, TooMuch
from oikos.policy.spec import Program
from oikos.policy.words import HOLE, Tag, Word, WordKind

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

_HELP = frozenset(("--help", "--version"))


def call(walker: Walker, node: Node, scene: Scene) -> Flow:
    """Judge a CallExpr: its assignments, then its command."""
    args = node.get("Args")
    for assign in node.get("Assigns", ()):
        assignments.assigned(walker, assign, scene, "prefix" if args else "plain")
    if not args:
        return EMPTY
    words: list[Word] = []
    for arg in args:
        words.extend(walker.words(arg, scene))
        if len(words) > MAX_WORDS:
            raise TooMuch(f"more than {MAX_WORDS} words in one command")
    if scene.depth == 0 and words[0].literal:
        walker.heads.add(words[0].text)
    return command(walker, words, scene)


def command(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    """Judge an argument list; returns what it writes."""
    walker.count += 1
    if walker.count > MAX_COMMANDS:
        raise TooMuch(f"more than {MAX_COMMANDS} commands")
    if scene.depth > MAX_DEPTH:
        raise TooMuch(f"commands are nested deeper than {MAX_DEPTH}")
    before = len(walker.report.findings)
    actions = len(walker.report.actions)
    flow = _judge(walker, words, scene)
    found = walker.report.findings[before:]
    if len(walker.report.actions) == actions:
        risk = max((finding.risk for finding in found), key=lambda one: one.rank, default=Risk.READ_ONLY)
        argv = tuple(None if word.known is None or unwrap.PLACEHOLDER in word.text else word.text for word in words)
        walker.report.actions.append(Action(argv=argv, place=scene.place, risk=risk, span=span_of(words)))
    if any(effect.kind is EffectKind.SENSITIVE for finding in found for effect in finding.effects):
        flow = flow.plus(frozenset((Tag.SECRET,)))
    return flow


def _judge(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    head, span = words[0], span_of(words)
    if not head.literal:
        if not danger.hidden(walker, words, scene):
            walker.unclear("command.dynamic", head.span, "The command is only known when the shell runs.", scene)
        for hint in (*head.values, *head.hints)[:4]:
            split = hint.split()
            if split and HOLE not in hint and scene.depth < 6:
                guess = [Word(text, WordKind.LITERAL, head.span) for text in split] + words[1:]
                command(walker, guess, replace(scene, depth=scene.depth + 3))
        return scene.stdin.plus(UNKNOWN)
    name = head.text
    if HOLE in name or name == "":
        walker.unclear("command.empty", head.span, "The command word is empty or broken.", scene)
        return EMPTY.plus(UNKNOWN)
    itself.look(walker, words, scene)
    for word in words[1:]:
        if any(hosts.is_option(text) for text in word.spellings()):
            walker.unclear(
                "host.option", word.span, "The name of a machine that begins with a dash is an option of ssh.", scene
            )
    if name in walker.functions and "/" not in name:
        return scene.stdin.plus(frozenset[Tag]().union(*(word.tags for word in words)))
    if "/" in name:
        if not paths.in_system_bin(name):
            found = danger.in_arguments(words[1:])
            unwrap.written(walker, head, scene)
            plain = paths.normal(name)
            if plain.startswith("/etc/init.d/"):  # `/etc/init.d/ssh stop` is `service ssh stop`, only not as sure
                script = replace(head, text=posixpath.basename(plain))
                command(
                    walker, [replace(head, text="service"), script, *words[1:]], replace(scene, depth=scene.depth + 1)
                )
            if plain != name and paths.in_system_bin(plain):  # `/usr/../bin/rm`: it can only be as bad as it looks
                command(walker, [replace(head, text=plain), *words[1:]], replace(scene, depth=scene.depth + 1))
            walker.unclear("program.path", head.span, f"{name} is a local program; its name proves nothing.", scene)
            if found:
                walker.destroy("danger.argument", span, f"{danger.NOTE}: {found}.", scene)
            return scene.stdin.plus(UNKNOWN)
        name = posixpath.basename(name)
    special = builtins.HANDLERS.get(name)
    if special is not None and ("/" not in head.text or name in builtins.ALSO_PROGRAMS):
        result = special(walker, words, scene)
        if result is not None:
            return result
    program = walker.knowledge.program(name)
    if program is None:
        return unknown(walker, words, scene)
    return apply(walker, name, program, words, scene)


def unknown(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    """A program nobody described."""
    head = words[0]
    walker.unclear("program.unknown", head.span, f"The program {head.text} is not known.", scene)
    _fed_unknown(walker, head, scene)
    carried.undescribed(walker, words, scene)
    disclosure.secrets(walker, words[1:], scene)
    return scene.stdin.plus(UNKNOWN)


def _fed_unknown(walker: Walker, head: Word, scene: Scene) -> None:
    """What is taught about a command was not taught about what it reads, which may be commands."""
    if scene.stdin.piped:
        walker.unclear("stdin.unknown", head.span, f"Nobody knows what {head.text} does with what it reads.", scene)


def apply(walker: Walker, name: str, program: Program, words: list[Word], scene: Scene) -> Flow:
    """Apply a program's rules."""
    args = words[1:]
    if choice.asks_for_version(name, args) or (
        args
        and args[-1].known in _HELP
        and all(word.literal and re.fullmatch(r"[a-z][\w-]*", word.text) for word in args[:-1])
        and choice.asks_for_help(program, tuple(word.text for word in args[:-1]))
    ):
        _note(walker, f"{name}.help", words, f"{name} only prints its help or version.", scene)
        return EMPTY
    chosen = choice.choose(walker, name, program, words, scene)
    if chosen is None:
        _fed_unknown(walker, words[0], scene)
        return scene.stdin.plus(UNKNOWN)
    rule, line = chosen.rule, chosen.line
    flow = _apply_rule(Call(walker, name, words, program, rule, line, scene, chosen.sub))
    emits = rule.emits if line.args or rule.names_only or rule.risk is not Risk.READ_ONLY else rule.emits - {Tag.FILE}
    if emits:
        flow = flow.plus(emits)
    return flow


def _apply_rule(this: Call) -> Flow:
    walker, rule, line, scene = this.walker, this.rule, this.line, this.scene
    risk, why = rule.risk, rule.why
    dry = this.dry
    if rule.needs and not choice.meets(rule, line.used):
        walker.unclear(
            f"{this.id}.needs",
            this.span,
            f"`{this.name}` is only known to look with {' or '.join(sorted(rule.needs))}.",
            scene,
        )
    if dry:
        risk, why = Risk.READ_ONLY, ""
    arguments.options_used(this, strict=risk is Risk.READ_ONLY, dry=dry)
    if risk is Risk.READ_ONLY:
        _loose(this)
    named = arguments.positional(this, risk, dry)
    thing = named or next((word.text for word in line.args if word.literal), "")
    if risk is Risk.READ_ONLY:
        plain = f"{this.title} runs another command." if rule.wraps is not None else f"{this.title} only looks."
        _note(walker, this.id, this.words, why or plain, scene)
        if rule.effects:
            walker.find(this.id, risk, this.span, why, scene, rule.effects, thing)
    else:
        effects = rule.effects or ((EffectKind.IRREVERSIBLE,) if risk is Risk.DESTRUCTIVE else ())
        walker.find(this.id, risk, this.span, why, scene, effects, thing)
        if risk is Risk.CONFIG_MUTATION:
            carried.removes(this)
            if rule.lenient or rule.carries:
                carried.look(this)
    if rule.console and not line.args and not line.rest:
        carried.spoken(this)
    if this.name in rule.fed and not line.rest:
        carried.typed(this)
    if rule.advice:
        walker.report.advice.append(rule.advice)
    tags = frozenset[Tag]().union(scene.stdin.tags, *(word.tags for word in this.words))
    flow = Flow(tags, None, True)
    if rule.wraps is not None and rule.handler not in minis.OWN_WRAPPING:
        flow = unwrap.inner(this)
    if rule.handler:
        handled = minis.HANDLERS[rule.handler](this)
        flow = handled if handled is not None else flow
    shows = not rule.names_only and rule.wraps is None
    if shows and disclosure.shown(this):
        flow = flow.plus(frozenset((Tag.SECRET,)))
    if rule.sink:
        disclosure.sent(this, flow.tags | (scene.stdin.tags & {Tag.SECRET}))
    return flow


def _note(walker: Walker, rule: str, words: list[Word], text: str, scene: Scene) -> None:
    walker.find(
        rule, Risk.READ_ONLY, span_of(words), text[:1].upper() + text[1:] if not text[:1].islower() else text, scene
    )


def _loose(this: Call) -> None:
    """Dynamic words that could turn into options."""
    if this.rule.dynamic or this.rule.handler in minis.OWN_WORDS:
        return
    for word in this.line.loose:
        if word.values and not any(value.startswith("-") for value in word.values) and not word.splits:
            continue
        tame = word.kind is WordKind.DYNAMIC and not word.tags and this.rule.wraps is not None
        if tame:
            continue
        if word.kind is WordKind.GLOB and not word.could_be_option_glob():
            continue
        this.walker.unclear(
            f"dynamic.{this.name}", word.span, f"This word is only known when the shell runs, and {this.name} has options that change things.",
            this.scene,
        )  # fmt: skip
        return
