"""The judge of simple commands: finds the program's rules and applies them to its words."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import Action, EffectKind, Hop, HopKind, Risk
from oikos.policy import builtins, carried, danger, environment, hosts, minis, options, paths, unwrap
from oikos.policy.findings import Span
from oikos.policy.parser import Node
from oikos.policy.scene import EMPTY, UNKNOWN, Flow, Scene, TooMuch, Variable
from oikos.policy.spec import OBJECTS, Arg, Option, Program, Rule, Takes
from oikos.policy.words import HOLE, NOTHING, Tag, Tags, Word, WordKind, join

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

MAX_COMMANDS = 200
MAX_DEPTH = 12
MAX_WORDS = 1000
_HELP = frozenset(("--help", "--version"))
_DRY_NO = frozenset(("none", "false", "no", "0", "off", "f"))
_PATH_WORD = re.compile(r"[/~.]")


@dataclass(slots=True)
class Call:
    """One simple command with everything that was found out about it."""

    walker: Walker
    name: str
    words: list[Word]
    program: Program
    rule: Rule
    line: options.Line
    scene: Scene
    sub: tuple[str, ...] = ()
    emits: Tags = NOTHING

    @property
    def id(self) -> str:
        """The rule id, with the name the program was called by."""
        return self.name + self.rule.name[len(self.program.names[0]) :]

    @property
    def span(self) -> Span:
        return span_of(self.words)

    def value(self, *names: str) -> Word | None:
        """Value of the last use of an option."""
        for used in reversed(self.line.used):
            if used.name in names:
                return used.value
        return None

    def has(self, *names: str) -> bool:
        return any(used.name in names for used in self.line.used)

    def values(self, *names: str) -> list[Word]:
        return [used.value for used in self.line.used if used.name in names and used.value is not None]


def span_of(words: Sequence[Word]) -> Span:
    """From the first to the last word."""
    return min(word.span[0] for word in words), max(word.span[1] for word in words)


def call(walker: Walker, node: Node, scene: Scene) -> Flow:
    """Judge a CallExpr: its assignments, then its command."""
    args = node.get("Args")
    for assign in node.get("Assigns", ()):
        assignment(walker, assign, scene, "prefix" if args else "plain")
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


def assignment(walker: Walker, node: Node, scene: Scene, kind: str) -> None:
    """Judge one assignment: plain, as a command's prefix, or exported."""
    name = node.get("Name", {}).get("Value", "")
    span = scene.source.span(node)
    variable = walker.variables.setdefault(name, Variable(complete=False))
    value: Word | None = None
    if node.get("Index"):
        walker.expressions(node["Index"], scene)
        variable.complete = False
    if node.get("Value"):
        for word in walker.words(node["Value"], scene):
            value = word
            walker.wake(word, scene)
            variable.tags |= word.tags
            variable.hints.extend(one for one in word.spellings() if one != HOLE)
            if paths.is_secret(word.text, walker.cwd) and word.literal and _PATH_WORD.search(word.text):
                variable.hints.append(word.text)
    if node.get("Array"):
        for element in node["Array"].get("Elems", ()):
            if element.get("Index"):
                walker.expressions(element["Index"], scene)
            for word in walker.words(element.get("Value", {}), scene):
                walker.wake(word, scene)
                variable.tags |= word.tags
                variable.hints.extend(one for one in word.spellings() if one != HOLE)
    judge_name(walker, name, value.known if value else "" if not node.get("Value") else None, kind, span, scene)


def judge_name(walker: Walker, name: str, value: str | None, kind: str, span: Span, scene: Scene) -> None:
    """Judge the name of an assignment."""
    if value and " " in value and kind != "plain" and not environment.free_for_commands(name, value):
        found = danger.in_text(value)
        if found:
            walker.destroy("danger.argument", span, f"{danger.NOTE}: {found}.", scene)
        elif environment.acts_on_shell(name):  # pagers, editors, transports: the value is a command
            unwrap.hidden(walker, value.lstrip("|!"), scene, span, name)
    if kind == "plain":
        if name in ("BASH_ALIASES", "BASH_CMDS"):
            walker.unclear("env.alias", span, f"{name} changes which program a name stands for.", scene)
        elif environment.acts_on_shell(name) and not environment.free_for_commands(name, value):
            walker.unclear(f"env.{name.lower()}", span, f"The variable {name} changes how later commands run.", scene)
        return
    if value and hosts.is_option(value):
        walker.unclear("host.option", span, "The name of a machine that begins with a dash is an option of ssh.", scene)
        return
    if name == "IFS" or environment.free_for_commands(name, value):
        return
    if kind == "export" and re.fullmatch(r"[a-z][a-z0-9_]*", name) and not environment.acts_on_shell(name):
        return
    walker.unclear(
        f"env.{name.lower()}", span, f"The variable {name} in a command's environment may change what it does.", scene
    )


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
    _self_names(walker, words, scene)
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
    _danger_args(walker, words, scene)
    _secrets(walker, words[1:], scene)
    return scene.stdin.plus(UNKNOWN)


# --- rules --------------------------------------------------------------------------------------


def apply(walker: Walker, name: str, program: Program, words: list[Word], scene: Scene) -> Flow:
    """Apply a program's rules."""
    args = words[1:]
    if (
        args
        and args[-1].known in _HELP
        and all(word.literal and re.fullmatch(r"[a-z][\w-]*", word.text) for word in args[:-1])
        and _asks_for_help(program, tuple(word.text for word in args[:-1]))
    ):
        _note(walker, f"{name}.help", words, f"{name} only prints its help or version.", scene)
        return EMPTY
    rule, line, sub, trouble = resolve(walker, name, program, words, scene)
    if trouble:
        return scene.stdin.plus(UNKNOWN)
    this = Call(walker, name, words, program, rule, line, scene, sub)
    flow = _apply_rule(this)
    emits = rule.emits if line.args or rule.names_only or rule.risk is not Risk.READ_ONLY else rule.emits - {Tag.FILE}
    if emits:
        flow = flow.plus(emits)
    return flow


def _asks_for_help(program: Program, subs: tuple[str, ...]) -> bool:
    """Whether `PROGRAM SUBS… --help` can only be a call for help."""
    if not subs:
        return True
    whole = next((subs[:n] for n in range(len(subs), 0, -1) if subs[:n] in program.subs), ())
    if whole and len(whole) < len(subs):
        # More words: an inner command would get the option (`docker run alpine reboot --help`).
        return all(rule.wraps is None and rule.handler != "dockerrun" for rule in program.subs[whole])
    return any(key[0] == subs[0] for key in program.subs)


def resolve(
    walker: Walker, name: str, program: Program, words: list[Word], scene: Scene
) -> tuple[Rule, options.Line, tuple[str, ...], bool]:
    """Choose the rule for an argument list and read its options."""
    base, args = program.base, words[1:]
    if program.subs:
        lead = options.read(args, base.options, base, stop_after=program.sub_at)
        found: tuple[str, ...] = ()
        rule: Rule | None = None
        rest = lead.rest
        # Take as many subcommand words as the table knows, options between them allowed.
        while True:
            table = program.between.get(found, base.options)
            more = options.read(rest, table, base, stop_after=1) if rest else options.Line()
            if not more.args:
                if more.used and rule is None:
                    lead.used.extend(more.used)
                    rest = []
                break
            word = more.args[0]
            chosen = _sub(program, found, word)
            if chosen is None:
                if rule is None:
                    if more.loose and not word.literal:
                        walker.unclear(
                            "sub.dynamic",
                            word.span,
                            f"The subcommand of {name} is only known when the shell runs.",
                            scene,
                        )
                        _danger_args(walker, words, scene)
                        return base, lead, found, True
                    if not found and (base.args is None or base.args or _mode(program, args)):
                        break  # a program that also takes plain arguments
                    shown = " ".join((name, *found, word.text.replace(HOLE, "…")))
                    walker.unclear(
                        f"sub.unknown.{name}.{'.'.join((*found, _clean(word.text)))}", word.span,
                        f"`{shown}` is not a command this classifier knows.", scene,
                    )  # fmt: skip
                    _danger_args(walker, words, scene)
                    _secrets(walker, args, scene)
                    return base, lead, found, True
                break
            found = chosen
            rules = program.subs.get(found)
            rule = rules[-1] if rules else rule
            lead.used.extend(more.used)
            rest = more.rest
            if not any(key[: len(found)] == found and len(key) > len(found) for key in program.subs):
                break
        if rule is not None:
            if found not in program.subs:  # `docker volume` alone: usage
                shorter = next((found[:n] for n in range(len(found), 0, -1) if found[:n] in program.subs), ())
                rule = program.subs[shorter][-1]
                found = shorter
            candidates = program.subs[found]
            lines = [_read(rest, one) for one in candidates]
            index = next(
                (
                    at
                    for at, one in enumerate(candidates)
                    if not one.needs or any(used.name in one.needs for used in (*lead.used, *lines[at].used))
                ),
                len(candidates) - 1,
            )
            rule, line = candidates[index], lines[index]
            line.used[:0] = lead.used
            line.args[:0] = lead.args
            line.loose[:0] = lead.loose
            return rule, line, found, False
        if found:
            return replace(base, name=f"{program.names[0]}.{'.'.join(found)}", risk=Risk.READ_ONLY), lead, found, False
    mode = _mode(program, args)
    if mode is not None:
        table = _tables(program)
        line = options.read(args, {**table, **mode.options}, mode, stop_after=mode.wraps)
        line.used[:] = [
            used if used.option is None or used.name in mode.options else replace(used, option=_foreign(used.option))
            for used in line.used
        ]
        return mode, line, (), False
    return base, _read(args, base), (), False


def _tables(program: Program) -> dict[str, Option]:
    """Options of the program and of all its modes; what the program itself says comes first."""
    table = dict(program.base.options)
    for _, mode in program.modes:
        for key, option in mode.options.items():
            table.setdefault(key, option)
    return table


def _mode(program: Program, args: list[Word]) -> Rule | None:
    """The mode that the options choose."""
    if not program.modes:
        return None
    line = options.read(args, _tables(program), program.base)
    names = {used.name for used in line.used}
    for when, mode in program.modes:
        if "none" in when and line.args:
            continue
        named = when - {"none"}
        if not named or any(set(one.split("+")) <= names for one in named):
            return mode
    return None


def _foreign(option: Option) -> Option | None:
    """An option of another mode: unknown here unless it raises."""
    return option if option.risk is not Risk.READ_ONLY else None


def _read(args: list[Word], rule: Rule) -> options.Line:
    if rule.hop not in (None, HopKind.SSH, HopKind.DOCKER) and any(word.known == "--" for word in args):
        # These take their own options up to the two dashes, wherever they stand.
        at = next(index for index, word in enumerate(args) if word.known == "--")
        line = options.read(args[:at], rule.options, replace(rule, permute=True))
        line.rest = args[at + 1 :]
        return line
    return options.read(args, rule.options, rule, stop_after=rule.wraps)


def _sub(program: Program, found: tuple[str, ...], word: Word) -> tuple[str, ...] | None:
    if not word.literal:
        return None
    at = len(found)
    longer = [key for key in program.subs if len(key) > at and key[:at] == found]
    if any(key[at] == word.text for key in longer):
        return (*found, word.text)
    if program.abbreviates:
        for key in longer:  # the tool itself takes the first that begins so
            if key[at].startswith(word.text) and word.text:
                return (*found, key[at])
    return None


def _clean(text: str) -> str:
    return re.sub(r"[^\w.+:-]", "_", text)[:40]


def _apply_rule(this: Call) -> Flow:
    walker, rule, line, scene = this.walker, this.rule, this.line, this.scene
    risk, why = rule.risk, rule.why
    dry = _is_dry(this)
    if rule.needs and not any(used.name in rule.needs for used in line.used):
        walker.unclear(
            f"{this.id}.needs",
            this.span,
            f"`{this.name}` is only known to look with {' or '.join(sorted(rule.needs))}.",
            scene,
        )
    if dry:
        risk, why = Risk.READ_ONLY, ""
    _options(this, strict=risk is Risk.READ_ONLY, dry=dry)
    if risk is Risk.READ_ONLY:
        _loose(this)
    named = _arguments(this, risk, dry)
    thing = named or next((word.text for word in line.args if word.literal), "")
    if risk is Risk.READ_ONLY:
        plain = f"{_title(this)} runs another command." if rule.wraps is not None else f"{_title(this)} only looks."
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
    if shows and _secrets(walker, _content_words(this), scene) | _devices(this):
        flow = flow.plus(frozenset((Tag.SECRET,)))
    if rule.sink:
        sink(this, flow.tags | (scene.stdin.tags & {Tag.SECRET}))
    return flow


def _title(this: Call) -> str:
    return " ".join((this.name, *this.sub))


def _note(walker: Walker, rule: str, words: list[Word], text: str, scene: Scene) -> None:
    walker.find(
        rule, Risk.READ_ONLY, span_of(words), text[:1].upper() + text[1:] if not text[:1].islower() else text, scene
    )


def _is_dry(this: Call) -> bool:
    """Whether every use of a dry-run option really asks for a dry run."""
    used = [used for used in this.line.used if used.name in this.rule.dry]
    return bool(used) and all(
        one.value is None or (one.value.literal and one.value.text.lower() not in _DRY_NO) for one in used
    )


def _options(this: Call, *, strict: bool, dry: bool) -> None:
    walker, rule, scene = this.walker, this.rule, this.scene
    first = this.name
    for used in this.line.used:
        option = used.option
        if option is None:
            if not rule.lenient or (strict and rule.risk is not Risk.READ_ONLY):
                walker.unclear(
                    f"opt.unknown.{first}.{_clean(used.name)}",
                    used.word.span,
                    f"The option {used.name} of {this.name} is not known.",
                    scene,
                )
            continue
        if option.takes is Takes.NOTHING and used.value is not None and strict:
            walker.unclear(
                f"opt.value.{first}.{_clean(used.name)}",
                used.word.span,
                f"The option {used.name} of {this.name} takes no value.",
                scene,
            )
        if option.risk is not Risk.READ_ONLY and not (option.risk is Risk.DESTRUCTIVE and dry):
            why = option.why or f"With {used.name}, {_title(this)} does more than look."
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
            value_kind(this, option.kind, used.value, f"{first}.{_clean(used.name.lstrip('-'))}", used.name)


def value_kind(this: Call, kind: str, word: Word, rule: str, what: str) -> None:
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
                unwrap.hidden(walker, text, scene, word.span, what)
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


def _arguments(this: Call, risk: Risk, dry: bool) -> str:
    """Judge the positional arguments; returns the first object named."""
    rule, line, walker, scene = this.rule, this.line, this.walker, this.scene
    if rule.args is None:
        return ""
    kinds = _kinds(this)
    first = ""
    for index, word in enumerate(line.args):
        arg = kinds[index] if index < len(kinds) else None
        if arg is None:
            if risk is Risk.READ_ONLY or not rule.lenient:
                why = rule.extra
                if why:
                    from oikos.policy.spec import _marked

                    effects, sentence = _marked(why)
                    walker.find(
                        f"{this.id}.argument", Risk.CONFIG_MUTATION, word.span, sentence, scene, effects, word.text
                    )
                else:
                    walker.unclear(
                        f"arg.extra.{this.id}",
                        word.span,
                        f"{_title(this)} does not take the argument {word.text.replace(HOLE, '…')}.",
                        scene,
                    )
            break
        value_kind(this, arg.kind, word, this.id, "argument")
        if arg.kind in OBJECTS and word.text:
            for name in word.values or (word.text,):
                shown = name.replace(HOLE, "")
                if HOLE not in name:
                    walker.report.name(arg.kind, shown, scene.place, Risk.READ_ONLY if dry else _worst(this), rule.verb)
                    first = first or shown
    if (
        risk is Risk.READ_ONLY
        and len(line.args) < sum(arg.required for arg in rule.args)
        and rule.wraps is None
        and not scene.inserted
    ):
        pass  # too few arguments: the program prints its usage
    return first


def _worst(this: Call) -> Risk:
    worst = this.rule.risk
    for used in this.line.used:
        if used.option is not None and used.option.risk > worst:
            worst = used.option.risk
    return worst


def _assign_kinds(args: Sequence[Arg], count: int) -> list[Arg]:
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


_SCRIPT_OPTIONS = (
    "-e", "-f", "-E", "--expression", "--regexp", "--file", "--from-file", "--source", "--exec", "--script", "--script-file",
)  # fmt: skip


def _kinds(this: Call) -> list[Arg]:
    """The declared kind of each argument given."""
    args = this.rule.args or ()
    scripted = any(used.name in _SCRIPT_OPTIONS and used.value is not None for used in this.line.used)
    if scripted and len(args) > 1 and args[0].kind in ("text", "sql") and args[1].kind == "read":
        args = args[1:]  # `grep -e PATTERN FILE`, `sed -f SCRIPT FILE`: every argument is a file
    return _assign_kinds(args, len(this.line.args))


def _content_words(this: Call) -> list[Word]:
    """Words whose files the program may read."""
    quiet = {"text", "int", "sub", "url"}
    words: list[Word] = []
    kinds = _kinds(this)
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


def _devices(this: Call) -> bool:
    """Judge raw disks whose contents the program shows."""
    kinds = _kinds(this)
    for word, arg in zip(this.line.args, kinds, strict=False):
        if arg.kind == "read" and any(paths.is_block_device(text) for text in word.spellings()):
            this.walker.change(
                "read.device",
                word.span,
                f"Shows what the disk {word.text.replace(HOLE, '…')} holds.",
                this.scene,
                EffectKind.SENSITIVE,
                thing=word.text,
            )
            return True
    return False


def _secrets(walker: Walker, words: Sequence[Word], scene: Scene) -> bool:
    """Judge words that name secret material."""
    hit = False
    for word in words:
        if Tag.SECRET in word.tags and not word.literal:
            walker.change(
                "read.secret", word.span, "Shows secret material found by another command.", scene, EffectKind.SENSITIVE
            )
            hit = True
            continue
        for text in word.spellings():
            if paths.is_consuming(text):
                walker.change(
                    "read.consumes", word.span, f"Reading {text} takes away what another reader waits for.", scene
                )
            if paths.is_secret(text, walker.cwd):
                walker.change(
                    "read.secret", word.span, f"Touches {text.replace(HOLE, '…')}, which is secret material.", scene,
                    EffectKind.SENSITIVE, thing=text,
                )  # fmt: skip
                hit = True
                break
    return hit


def _danger_args(walker: Walker, words: list[Word], scene: Scene) -> None:
    found = danger.in_arguments(words)
    if found:
        walker.destroy("danger.argument", span_of(words), f"{danger.NOTE}: {found}.", scene)
    carried.words(walker, words, scene, words[0].text)
    verb = danger.destroying_verb(words[1:])
    if verb:
        walker.destroy("danger.verb", span_of(words), f"`{verb}` says that something is lost for good.", scene)


def _self_names(walker: Walker, words: list[Word], scene: Scene) -> None:
    """SPEC R3.13: commands that name the controller itself."""
    if posixpath.basename(words[0].text) == "oikos":
        if len(words) > 1 and words[1].known in ("classify", "version", "--version", "--help"):
            return
        walker.destroy(
            "self.command", span_of(words), "This would steer Oikos itself.", scene, EffectKind.SELF, thing="oikos"
        )
        return
    for word in words[1:]:
        for text in word.spellings():
            name = names_self(text, walker.self_names)
            if name:
                walker.destroy(
                    "self.named", word.span, f"This names Oikos itself ({name}).", scene, EffectKind.SELF, thing=name
                )
                return


def names_self(text: str, names: frozenset[str]) -> str:
    """The name of the controller that stands in a word, or the empty string."""
    for name in names:
        if name.startswith(":"):  # the port of its faces, on this machine
            here = r"(?:^|\blocalhost|\b127(?:\.\d+){3}|\[::1\]|\b0\.0\.0\.0)"
            if re.search(here + re.escape(name) + r"(?!\d)", text):
                return name
        elif name.startswith(("/", "~")):
            path, where = paths.normal(text), paths.normal(name)
            if (
                path == where
                or path.startswith(where.rstrip("/") + "/")
                or re.search(re.escape(where) + r"(?![\w.-])", text)
            ):
                return name
        elif re.search(
            rf"(?:(?<![\w.-])|(?<=/)\.){re.escape(name)}(?:\.(?:service|socket|timer|toml|db))?(?![\w-])", text
        ):
            return name
    return ""


def sink(this: Call, tags: Tags) -> None:
    """Judge what flows out to another machine (policy design, secrets and egress)."""
    given = frozenset[Tag]().union(*(word.tags for word in this.words))
    host = next((hosts.host_of(word.text) for word in this.line.args if word.literal), "")
    if Tag.SECRET in tags | given:
        this.walker.destroy(
            "egress.secret", this.span, "Secret material flows to another machine; that cannot be taken back.", this.scene,
            EffectKind.EGRESS, EffectKind.SENSITIVE, thing=host,
        )  # fmt: skip
    elif given & {Tag.FILE, Tag.BULK, Tag.NETWORK, Tag.DECODED} and this.scene.inserted is None:
        this.walker.change(
            "egress.data",
            this.span,
            "Contents of files go into a request to another machine.",
            this.scene,
            EffectKind.EGRESS,
            thing=host,
        )


def declared(walker: Walker, node: Node, scene: Scene) -> Flow:
    """Judge declare, export, readonly, local, typeset."""
    variant = node["Variant"]["Value"]
    span = scene.source.span(node)
    flags, named = "", False
    for arg in node.get("Args", ()):
        if arg.get("Name"):
            named = True
            continue
        for word in walker.words(arg["Value"], scene):
            if not word.literal:
                walker.unclear(
                    "declare.dynamic", word.span, f"{variant} of a name only known when the shell runs.", scene
                )
            elif word.text.startswith("-"):
                flags += word.text[1:]
            else:
                named = True
                # Written in quotes, the shell still takes it for an assignment, subscript and all.
                walker.wake(word, scene)
                quoted, is_assignment, value = word.text.partition("=")
                if is_assignment:
                    exports = variant == "export" or "x" in flags
                    base = quoted.partition("[")[0].removesuffix("+")
                    judge_name(walker, base, value, "export" if exports else "plain", word.span, scene)
    for arg in node.get("Args", ()):
        if not arg.get("Name"):
            continue
        name = arg["Name"]["Value"]
        exported = variant == "export" or "x" in flags
        if arg.get("Naked") and not arg.get("Value"):
            if "p" in flags and environment.holds_secret(name):
                walker.change(
                    "declare.dump", span, "Prints a variable that holds a secret.", scene, EffectKind.SENSITIVE
                )
            if (
                exported
                and (environment.acts_on_shell(name) or name in walker.variables)
                and not re.fullmatch(r"[a-z][a-z0-9_]*", name)
            ):
                judge_name(walker, name, None, "export", span, scene)
            continue
        assignment(walker, arg, scene, "export" if exported else "plain")
    if ("n" in flags and variant != "export") or ("n" in flags and named and variant == "export"):
        walker.unclear("declare.reference", span, f"{variant} -n changes what a name stands for.", scene)
    if not named and variant in ("export", "declare", "typeset", "readonly") and not set(flags) & set("fF"):
        walker.change(
            "declare.dump",
            span,
            f"{variant} without names prints all variables, passwords among them.",
            scene,
            EffectKind.SENSITIVE,
        )
    return EMPTY


def hop_name(word: Word) -> str:
    """The machine a wrapper's argument names; empty when only the shell will know."""
    if word.literal:
        return word.text
    return word.values[0] if len(word.values) == 1 else ""


def shown(words: Sequence[Word]) -> str:
    """Words for display."""
    return " ".join(join(list(words)))


__all__ = ["Call", "Hop", "apply", "assignment", "call", "command", "declared", "sink", "span_of", "value_kind"]
