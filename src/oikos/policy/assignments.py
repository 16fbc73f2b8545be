"""Assignments: the variables a text sets, and what their names do to later commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy import arithmetic, danger, environment, hosts, paths, unwrap
from oikos.policy.findings import Span
from oikos.policy.parser import Node
from oikos.policy.scene import EMPTY, Flow, Scene, Variable
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

_PATH_WORD = re.compile(r"[/~.]")


def assigned(walker: Walker, node: Node, scene: Scene, kind: str) -> None:
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
                keyed = walker.numbers.is_keyed(name, scene)
                (walker.expressions if keyed else walker.reckon)(element["Index"], scene)
            for word in walker.words(element.get("Value", {}), scene):
                walker.wake(word, scene)
                variable.tags |= word.tags
                variable.hints.extend(one for one in word.spellings() if one != HOLE)
    arithmetic.assigned(walker, name, node, scene)
    judge_name(walker, name, value.known if value else "" if not node.get("Value") else None, kind, span, scene)


def judge_name(walker: Walker, name: str, value: str | None, kind: str, span: Span, scene: Scene) -> None:
    """Judge the name of an assignment."""
    if (
        value
        and " " in value
        and (kind != "plain" or environment.acts_on_shell(name))
        and not environment.free_for_commands(name, value)
    ):
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
        assigned(walker, arg, scene, "export" if exported else "plain")
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
