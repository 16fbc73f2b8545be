"""Arguments: judges the options and the positional arguments of a call by the kinds its rule declares."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import carried, danger, environment, paths, unwrap
from oikos.policy.call import Call
from oikos.policy.choice import cleaned
from oikos.policy.spec import OBJECTS, Arg, Takes, marked
from oikos.policy.words import HOLE, Tag, Word

_SCRIPT_OPTIONS = (
    "-e", "-f", "-E", "--expression", "--regexp", "--file", "--from-file", "--source", "--exec", "--script",
    "--script-file",
)  # fmt: skip


def options_used(this: Call, *, strict: bool, dry: bool) -> None:
    """Judge the options; `strict`: the rule only looks, so an unknown one is a finding."""
    walker, rule, scene = this.walker, this.rule, this.scene
    first = this.name
    for used in this.line.used:
        option = used.option
        if option is None:
            if not rule.lenient or (strict and rule.risk is not Risk.READ_ONLY):
                walker.unclear(
                    f"opt.unknown.{first}.{cleaned(used.name)}",
                    used.word.span,
                    f"The option {used.name} of {this.name} is not known.",
                    scene,
                )
            continue
        switch = used.value is not None and used.value.literal and used.value.text in ("true", "false")
        if option.takes is Takes.NOTHING and used.value is not None and not switch and strict:
            walker.unclear(
                f"opt.value.{first}.{cleaned(used.name)}",
                used.word.span,
                f"The option {used.name} of {this.name} takes no value.",
                scene,
            )
        if option.risk is not Risk.READ_ONLY and not (option.risk is Risk.DESTRUCTIVE and dry):
            why = option.why or f"With {used.name}, {this.title} does more than look."
            effects = option.effects or ((EffectKind.IRREVERSIBLE,) if option.risk is Risk.DESTRUCTIVE else ())
            if option.risk > (Risk.READ_ONLY if dry else rule.risk) or effects:
                walker.find(
                    f"{this.id}.{used.name.lstrip('-')}",
                    option.risk,
                    used.word.span,
                    why,
                    scene,
                    effects,
                    used.value.text if used.value else "",
                )
        if used.value is not None:
            value(this, option.kind, used.value, f"{first}.{cleaned(used.name.lstrip('-'))}", used.name)


_NAMES_WHAT_FOLLOWS = frozenset(
    "list ls lst show get status info version help describe view search find check verify validate diff cat dump "
    "top stats ping history logs log ps inspect tree query read lookup about explain can-i completion policy wait "
    "test tail".split()
)
"""Subcommands behind which a word is a name, whatever it says."""
_ACTS = frozenset(
    "abort activate add allow approve attach ban bind block cancel checkout clear close commit configure connect "
    "copy create deactivate delete demote deny deploy destroy detach disable disconnect down drop edit enable "
    "erase evict exec expire extend fail fix flush fork format freeze generate import init insert install invoke "
    "join kill leave load lock login logout merge migrate mount move new off on pause promote publish purge push "
    "put reboot rebuild recover register reject release reload remove rename renew repair replace reset restart "
    "restore resume revoke rm rollback rotate run save scale send set shutdown sign split start stop suspend "
    "switch sync terminate trigger trust unban unbind unblock uninstall unload unlock unmount unregister unset up "
    "update upgrade upload wipe write".split()
)
"""Words that are commands in many programs."""


def _acting(this: Call) -> None:
    """Behind a noun (`addons`, `port`, `account`) a further word may be the command that acts on it."""
    if not this.sub or any(word in _NAMES_WHAT_FOLLOWS for word in this.sub):
        return
    for word, arg in list(zip(this.line.args, kinds_of(this), strict=False))[:3]:
        if arg.kind in ("text", "any") and (word.known or "").partition("-")[0] in _ACTS:
            why = f"`{this.title} … {word.text}` may be a command that acts."
            this.walker.unclear(f"arg.acts.{this.id}", word.span, why, this.scene)
            carried.undescribed(this.walker, this.words, this.scene)
            return


def positional(this: Call, risk: Risk, dry: bool) -> str:
    """Judge the positional arguments; returns the first object named."""
    rule, line, walker, scene = this.rule, this.line, this.walker, this.scene
    if rule.args is None:
        return ""
    if risk is Risk.READ_ONLY and not dry:
        _acting(this)
    kinds = kinds_of(this)
    first = ""
    for index, word in enumerate(line.args):
        arg = kinds[index] if index < len(kinds) else None
        if arg is None:
            if risk is Risk.READ_ONLY or not rule.lenient:
                why = rule.extra
                if why:
                    effects, sentence = marked(why)
                    walker.find(
                        f"{this.id}.argument", Risk.CONFIG_MUTATION, word.span, sentence, scene, effects, word.text
                    )
                else:
                    walker.unclear(
                        f"arg.extra.{this.id}",
                        word.span,
                        f"{this.title} does not take the argument {word.text.replace(HOLE, '…')}.",
                        scene,
                    )
            break
        value(this, arg.kind, word, this.id, "argument")
        if arg.kind in OBJECTS and word.text:
            for name in word.values or (word.text,):
                shown = name.replace(HOLE, "")
                if HOLE not in name:
                    walker.report.name(arg.kind, shown, scene.place, Risk.READ_ONLY if dry else this.worst, rule.verb)
                    first = first or shown
    return first


def value(this: Call, kind: str, word: Word, rule: str, what: str) -> None:
    """Judge a value or argument by its kind."""
    walker, scene = this.walker, this.scene
    text = word.text
    if "|" in kind:
        choices = kind.split("|")
        if not word.literal or not all(one in choices for one in (text.split(",") if text not in choices else [text])):
            walker.unclear(
                f"arg.{rule}",
                word.span,
                f"The value {text.replace(HOLE, '…')} of {this.name} {what} is not known.",
                scene,
            )
        return
    match kind:
        case "out":
            if Tag.NETWORK in this.rule.emits and word.literal:
                walker.written[paths.normal(text, walker.cwd)] = ""
            if not (word.literal and (paths.is_sink(text) or text == "-")):
                effects = paths.write_effects(paths.normal(text, walker.cwd))
                if (
                    any(paths.is_critical(paths.normal(one, walker.cwd)) for one in word.spellings())
                    and this.rule.risk is not Risk.DESTRUCTIVE
                    and paths.is_block_device(text)
                ):
                    walker.destroy(f"write.{rule}", word.span, f"{this.name} overwrites {text}.", scene, thing=text)
                else:
                    walker.find(
                        f"write.{rule}",
                        Risk.CONFIG_MUTATION,
                        word.span,
                        f"{this.name} writes the file {text.replace(HOLE, '…')}.",
                        scene,
                        effects,
                        text,
                    )
        case "exec":
            walker.unclear(f"exec.{rule}", word.span, f"{this.name} {what} runs a program.", scene)
            if re.search(r"\s", text):
                unwrap.hidden(walker, text.removeprefix("exec="), scene, word.span, what)
            elif danger.in_text(text):
                walker.destroy("danger.argument", word.span, f"{danger.NOTE}: {text}.", scene)
        case "env":
            name, equals, value = text.partition("=")
            known = value if word.literal else None
            if not (equals and HOLE not in name and environment.free_for_commands(name, known)):
                walker.unclear(
                    f"env.{rule}", word.span, f"The variable {name} may change what the command does.", scene
                )
        case "noassign":
            if "=" in text or (not word.literal and HOLE in text and word.splits):
                walker.change(
                    f"arg.{rule}", word.span, this.rule.extra or f"{this.name} with NAME=VALUE writes a setting.", scene
                )
        case "int":
            if not (word.literal and re.fullmatch(r"[+-]?[\d.,:]+[A-Za-z%]*", text)) and not (
                not word.literal and not word.splits
            ):
                walker.unclear(f"arg.{rule}", word.span, f"{text.replace(HOLE, '…')} is not a number.", scene)
        case "remote":
            if HOLE in text and not this.rule.dynamic:
                walker.unclear(f"arg.{rule}", word.span, "The other machine is only known when the shell runs.", scene)
        case "secret":
            walker.change(
                f"read.secret.{rule}",
                word.span,
                f"{this.name} shows secret material.",
                scene,
                EffectKind.SENSITIVE,
                thing=text,
            )
        case _:
            pass


def kinds_of(this: Call) -> list[Arg]:
    """The declared kind of each argument given."""
    args = this.rule.args or ()
    scripted = any(used.name in _SCRIPT_OPTIONS and used.value is not None for used in this.line.used)
    if scripted and len(args) > 1 and args[0].kind in ("text", "sql") and args[1].kind == "read":
        args = args[1:]  # `grep -e PATTERN FILE`, `sed -f SCRIPT FILE`: every argument is a file
    return _assigned(args, len(this.line.args))


def _assigned(args: Sequence[Arg], count: int) -> list[Arg]:
    """Which declared argument each given one is; a repeating one takes what the others leave."""
    out: list[Arg] = []
    for index, arg in enumerate(args):
        after = sum(1 for one in args[index + 1 :] if one.required)
        if arg.repeats:
            room = max(count - len(out) - after, 0)
            out.extend([arg] * room)
        elif arg.required or count - len(out) > after:
            out.append(arg)
    return out


def shown(this: Call) -> list[Word]:
    """Words whose files the program may read."""
    quiet = {"text", "int", "sub", "url"}
    words: list[Word] = []
    kinds = kinds_of(this)
    for index, word in enumerate(this.line.args):
        if index < len(kinds) and (kinds[index].kind in quiet or "|" in kinds[index].kind):
            continue
        words.append(word)
    for used in this.line.used:
        if used.value is not None and (
            used.option is None or (used.option.kind not in quiet and "|" not in used.option.kind)
        ):
            words.append(used.value)
    return words
