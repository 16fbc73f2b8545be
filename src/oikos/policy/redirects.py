"""Redirections: which of them write, read a secret, or open a connection (policy design, redirects)."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import danger, paths
from oikos.policy.parser import Node
from oikos.policy.scene import EMPTY, Flow, Scene
from oikos.policy.words import HOLE, NOTHING, Tag, Word, unescape

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))
_SCHEDULE = re.compile(r"/etc/(?:cron|anacron)|/var/spool/(?:ana)?cron")
_NET = re.compile(r"^/dev/(?:tcp|udp)/([^/]*)")
_STORED = re.compile(r"\{[A-Za-z_]\w*\[[^\n]*?\]\}[<>]")
"""`{x[…]}>FILE` stores a number; parsers read it in different ways."""
_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh", "ksh", "python3", "python", "perl", "exec"))
_COMPOSE = re.compile(r"(?:^|/)(?:docker-)?compose\.ya?ml$")


def apply(walker: Walker, stmt: Node, scene: Scene) -> tuple[Scene, bool, list[str]]:
    """Judge a statement's redirections; returns its scene, whether its output goes elsewhere, and network targets."""
    silent, nets = False, []
    made = producer(stmt.get("Cmd"))
    if made == "copies" and any(_plain_word(one) == "/dev/null" for one in stmt["Redirs"] if one["Op"] == "<"):
        made = "nothing"
    reads = literals(stmt.get("Cmd")) | scene.reads
    if _STORED.search(scene.source.text):
        why = "The subscript that a descriptor is stored under is evaluated."
        walker.unclear("arithmetic.value", scene.source.span(stmt), why, scene)
    for redirect in stmt["Redirs"]:
        op = redirect["Op"]
        number = redirect.get("N", {}).get("Value", "")
        if op in ("<<", "<<-"):
            scene = replace(scene, stdin=replace(here_document(walker, redirect, scene), here=True))
            continue
        for word in walker.words(redirect["Word"], scene):
            if op == "<<<":
                walker.wake(word, scene)
                if Tag.CREDENTIAL in word.tags:
                    walker.change(
                        "read.variable", word.span, "Hands a command a variable that holds a secret.", scene, EffectKind.SENSITIVE
                    )  # fmt: skip
                text = word.text if word.literal else None
                scene = replace(scene, stdin=Flow(word.tags, None if text is None else text + "\n", True, here=True))
            elif op in (">&", "<&") and re.fullmatch(r"\d+-?|-", word.text):
                # `2>&1` and `>&-` move or close descriptors.
                silent = silent or (op == ">&" and number in ("", "1") and word.text in ("2", "-"))
            elif op == "<&" and not word.literal:
                walker.unclear(
                    "redirect.dynamic", word.span, "The descriptor is only known when the shell runs.", scene
                )
            elif (
                (net := _NET.match(word.text)) and word.literal and _probes(walker, stmt, op, word, net.group(1), scene)
            ):
                continue
            elif op == "<":
                scene = replace(scene, stdin=read_from(walker, word, scene))
                reads |= {word.text}
            elif op in _WRITES or op == ">&":
                if number in ("", "1") or op in ("&>", "&>>"):
                    silent = silent or op != "<>"
                net = _NET.match(word.text)
                if net:
                    nets.append(net.group(1))
                unused = (
                    made == "descriptor"
                    and number not in ("", "1", "2")
                    and not re.search(rf">&\s*{number}\b", scene.source.text)
                )
                write_to(walker, word, op, scene, "nothing" if unused else made, reads)
            else:
                walker.unclear("redirect.unknown", word.span, f"The redirection {op} is not understood.", scene)
    return scene, silent, nets


def flow_to(walker: Walker, nets: list[str], flow: Flow, scene: Scene, stmt: Node) -> None:
    """Judge what a statement wrote to the network devices of bash."""
    if _head((stmt.get("Cmd") or {}).get("Args") or []).rsplit("/", 1)[-1] in _SHELLS:
        walker.destroy(
            "exec.reverse",
            scene.source.span(stmt),
            f"Hands a shell to {nets[0]}.",
            scene,
            EffectKind.REMOTE_CODE,
            EffectKind.EGRESS,
            thing=nets[0],
        )
    if flow.tags & {Tag.SECRET, Tag.BULK, Tag.FILE}:
        walker.destroy(
            "egress.device", scene.source.span(stmt), "Sends data to another machine; that cannot be taken back.", scene,
            EffectKind.EGRESS, thing=nets[0],
        )  # fmt: skip


def _probes(walker: Walker, stmt: Node, op: str, word: Word, host: str, scene: Scene) -> bool:
    """Judge a bare connection test: `</dev/tcp/HOST/PORT` with nothing that reads or writes."""
    command = stmt.get("Cmd")
    from_nothing = any(_plain_word(one) == "/dev/null" for one in stmt["Redirs"] if one["Op"] == "<")
    silent = (
        command is None
        or (op != "<" and producer(command) == "nothing")
        or (
            from_nothing
            and command.get("Type") == "CallExpr"
            and _head(command.get("Args", [])) == "cat"
            and len(command["Args"]) == 1
        )
    )
    if not silent or op not in ("<", ">", ">>"):
        return False
    walker.find(
        "redirect.probe",
        Risk.READ_ONLY,
        word.span,
        f"Only tries to connect to {host}.",
        scene,
        (EffectKind.EGRESS,),
        host,
    )
    return True


def _plain_word(redirect: Node) -> str:
    return "".join(part.get("Value", "") for part in redirect.get("Word", {}).get("Parts", ()))


def read_from(walker: Walker, word: Word, scene: Scene) -> Flow:
    """Judge `< word`."""
    if word.values == ("/dev/fd/63",):  # what a command in `<(…)` prints
        return Flow(word.tags, None, True)
    tags = word.tags | {Tag.FILE}
    for text in word.spellings():
        if _NET.match(text):
            host = _NET.match(text).group(1)  # type: ignore[union-attr]  # just matched
            walker.change(
                "redirect.network", word.span, f"Opens a connection to {host}.", scene, EffectKind.EGRESS, thing=host
            )
            return Flow(frozenset((Tag.NETWORK,)), None, True)
        if paths.is_secret(text, walker.cwd) or paths.is_block_device(text):
            walker.change(
                "read.secret", word.span, f"Shows the contents of {text.replace(HOLE, '…')}, which is secret material.", scene,
                EffectKind.SENSITIVE, thing=text,
            )  # fmt: skip
            tags |= {Tag.SECRET}
            break
    return EMPTY if word.text == "/dev/null" else Flow(tags, None, True, file=True)


def write_to(walker: Walker, word: Word, op: str, scene: Scene, producer: str, reads: frozenset[str]) -> None:
    """Judge a redirection that writes."""
    if word.literal and paths.is_sink(word.text):
        return
    if word.values == ("/dev/fd/63",):  # a process substitution; its commands are judged by themselves
        return
    for text in word.spellings():
        net = _NET.match(text)
        if net:
            if op == "<>":
                walker.destroy(
                    "redirect.channel", word.span, f"Opens a two-way channel to {net.group(1)}.", scene,
                    EffectKind.EGRESS, thing=net.group(1),
                )  # fmt: skip
            else:
                walker.change(
                    "redirect.network",
                    word.span,
                    f"Sends data to {net.group(1)}.",
                    scene,
                    EffectKind.EGRESS,
                    thing=net.group(1),
                )
            return
        path = paths.normal(text, walker.cwd)
        if paths.is_critical(path) and not (
            op in (">>", "&>>") and path.endswith(("authorized_keys", "authorized_keys2"))
        ):
            walker.destroy(
                "redirect.critical", word.span,
                f"Writes to {path.replace(HOLE, '…')}: a mistake there locks people out, loses a disk or stops the host.", scene,
                *paths.write_effects(path), thing=path,
            )  # fmt: skip
            return
    path = paths.normal(word.text, walker.cwd)
    shown = word.text.replace(HOLE, "…")
    if _SCHEDULE.match(path) and (found := danger.scheduled(scene.source.text)):
        walker.destroy("danger.scheduled", word.span, f"{danger.NOTE}: {found}.", scene, thing=shown)
    truncates = op in (">", ">|", "&>", ">&")
    if truncates and producer == "nothing":
        walker.destroy("redirect.truncate", word.span, f"Empties {shown}; what it held is lost.", scene, thing=shown)
    elif truncates and producer != "words" and word.literal and _reads_itself(path, reads, walker.cwd, producer):
        walker.destroy(
            "redirect.itself", word.span, f"{shown} is emptied before the command reads it.", scene, thing=shown
        )
    elif not word.literal:
        walker.unclear(
            "redirect.dynamic", word.span, "Writes to a file whose name is only known when the shell runs.", scene
        )
    else:
        verb = "Appends to" if ">>" in op else "Writes"
        walker.find(
            "redirect.write",
            Risk.CONFIG_MUTATION,
            word.span,
            f"{verb} {shown}.",
            scene,
            paths.write_effects(path),
            path,
        )
        walker.report.name("file", shown, scene.place, Risk.CONFIG_MUTATION, "write")


def here_document(walker: Walker, redirect: Node, scene: Scene) -> Flow:
    """What a here-document feeds to the command."""
    body = redirect.get("Hdoc", {})
    tags, out = NOTHING, []
    quoted = any(
        part.get("Type") != "Lit" or "\\" in part.get("Value", "") for part in redirect["Word"].get("Parts", ())
    )
    for part in body.get("Parts", ()):
        if part.get("Type") == "Lit":
            out.append(part["Value"] if quoted else unescape(part["Value"], quoted=True))
            continue
        if part.get("Backquotes"):
            # Readers take a here-document for data; a command in backquotes is easily overlooked there.
            walker.unclear(
                "redirect.backquote",
                scene.source.span(part),
                "A command in backquotes runs inside this here-document.",
                scene,
            )
        for word in walker.words({"Pos": part["Pos"], "End": part["End"], "Parts": [{**part}]}, scene):
            walker.wake(word, scene)
            tags |= word.tags
            out.append(word.text)
    text = "".join(out)
    return Flow(tags, text if HOLE not in text else None, True)


def literals(command: Node | None) -> frozenset[str]:
    """Literal words of a simple command, or of every simple command below a pipeline."""
    found: set[str] = set()
    todo = [command] if command else []
    while todo:
        node = todo.pop()
        if node.get("Type") == "BinaryCmd":
            todo.extend(side["Cmd"] for side in (node["X"], node["Y"]) if side.get("Cmd"))
            continue
        args = node.get("Args") or []
        if node.get("Type") == "CallExpr" and _head(args) not in ("echo", "printf"):
            found.update(
                part["Value"] for word in args[1:] for part in word.get("Parts", ()) if part.get("Type") == "Lit"
            )
            if found & {"config", "convert"} and _head(args) in ("docker", "docker-compose", "podman"):
                found.add("docker-compose.yml")
    return frozenset(found)


def _head(args: list[Node]) -> str:
    parts: list[Node] = args[0].get("Parts", []) if args else []
    value: str = parts[0].get("Value", "") if len(parts) == 1 else ""
    return value


def producer(command: Node | None) -> str:
    """`nothing` when the command writes nothing, `words` when it prints its own words, `copies` its input;

    `descriptor` when it only opens files for later commands, else `data`.
    """
    if command is None:
        return "nothing"
    if command.get("Type") != "CallExpr" or not command.get("Args"):
        return "nothing" if command.get("Type") == "CallExpr" else "data"
    words = []
    for word in command["Args"]:
        parts = word.get("Parts", ())
        words.append("".join(part.get("Value", "") for part in parts if part.get("Type") in ("Lit", "SglQuoted")) if all(
            part.get("Type") in ("Lit", "SglQuoted") or (part.get("Type") == "DblQuoted" and not part.get("Parts")) for part in parts
        ) else "\0")  # fmt: skip
    match words:
        case [":" | "true" | "false", *_] | ["cat", "/dev/null"]:
            return "nothing"
        case ["cat"] | ["cat", "-"]:
            return "copies"
        case ["exec"]:
            return "descriptor"
        case ["echo" | "printf", *rest] if all(word in ("", "-n", "-e", "-ne", "-en") for word in rest):
            return "nothing"
        case ["echo" | "printf", *_]:
            return "words"
        case _:
            return "data"


def _reads_itself(path: str, reads: frozenset[str], cwd: str, producer: str) -> bool:
    return any(paths.normal(one, cwd) == path for one in reads if one and not one.startswith("-")) or (
        "docker-compose.yml" in reads and _COMPOSE.search(path) is not None
    )
