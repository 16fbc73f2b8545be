"""Shell built-ins: the commands that act on the shell itself."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import danger, environment, paths
from oikos.policy.findings import Span
from oikos.policy.scene import EMPTY, Flow, Scene, Variable
from oikos.policy.words import HOLE, NOTHING, Tag, Word, WordKind

if TYPE_CHECKING:
    from oikos.policy.walk import Walker

Handler = Callable[["Walker", list[Word], Scene], "Flow | None"]

ALSO_PROGRAMS = frozenset(("echo", "printf", "test", "[", "true", "false"))
"""Built-ins that exist as programs too and do the same there."""


def _span(words: list[Word]) -> Span:
    return words[0].span[0], words[-1].span[1]


def _quiet(walker: Walker, words: list[Word], scene: Scene, text: str = "") -> Flow:
    """Record that a built-in only looks."""
    name = words[0].text
    walker.find(
        f"shell.{name}", Risk.READ_ONLY, _span(words), text or f"{name} changes nothing outside this shell.", scene
    )
    return Flow(frozenset[Tag]().union(*(word.tags for word in words)), None, True)


def _wake_all(walker: Walker, words: list[Word], scene: Scene) -> None:
    for word in words[1:]:
        walker.wake(word, scene)


def _cd(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    target = next((word for word in words[1:] if not word.text.startswith("-")), None)
    if target is not None and any(paths.is_secret(f"{one}/x", walker.cwd) for one in target.spellings()):
        walker.change("read.secret", target.span, "Moves to where secrets lie.", scene, EffectKind.SENSITIVE)
    walker.cwd = "" if target is None or not target.literal else paths.normal(target.text, walker.cwd)
    return _quiet(walker, words, scene)


def _echo(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    flow = _quiet(walker, words, scene, f"{words[0].text} only prints its words.")
    rest = words[1:]
    newline = "\n"
    while rest and re.fullmatch(r"-[neE]+", rest[0].text):
        newline = "" if "n" in rest[0].text else newline
        rest = rest[1:]
    _show_variables(walker, rest, scene)
    if all(word.literal for word in rest):
        text = " ".join(word.text for word in rest)
        return replace(flow, text=text + newline)
    return flow


def _show_variables(walker: Walker, words: list[Word], scene: Scene) -> None:
    """Printing a variable whose value came out of secret material prints the secret."""
    for word in words:
        if Tag.SECRET in word.tags:
            walker.change("read.secret", word.span, "Prints secret material.", scene, EffectKind.SENSITIVE)
            return
        if Tag.CREDENTIAL in word.tags:
            walker.change(
                "read.variable", word.span, "Prints a variable that holds a secret.", scene, EffectKind.SENSITIVE
            )
            return


_ESCAPED = re.compile(r"\\x[0-9a-fA-F]|\\0?[0-7]{3}")
"""Letters written as numbers."""


def _printf(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    if len(words) > 1 and _may_be(words[1], "-v"):
        name = words[2] if words[1].text == "-v" and len(words) > 2 else words[1]
        _assign_name(walker, name, scene)
        _wake_all(walker, words, scene)
        return _quiet(walker, words, scene)
    if len(words) > 1 and _opens(words[1]) and (words[1].splits or (len(words) > 2 and words[1].text.endswith(HOLE))):
        why = "What is printed may begin with -v, and then it is stored, and a subscript is evaluated."
        walker.unclear("shell.printf.v", words[1].span, why, scene)
    flow = _quiet(walker, words, scene, "printf only prints its words.")
    rest = words[2:] if len(words) > 1 and words[1].text == "--" else words[1:]
    _show_variables(walker, rest, scene)
    if rest and all(word.literal for word in rest):
        from oikos.policy.words import ansi_c

        form = ansi_c(rest[0].text)
        values = [word.text for word in rest[1:]]
        if any(_ESCAPED.search(word.text) for word in rest):
            flow = flow.plus(frozenset((Tag.DECODED,)))
        if re.search(r"%(?![sbdq%])", form):
            return flow
        out, left = "", list(values)
        for _ in range(max(1, len(values))):
            out += re.sub(
                r"%([sbdq%])", lambda found: "%" if found.group(1) == "%" else (left.pop(0) if left else ""), form
            )
            if not left:
                break
        return replace(flow, text=out)
    return flow


def _opens(word: Word) -> bool:
    """Whether a word that only the shell will know may turn into an option, or several words."""
    if word.kind is WordKind.GLOB:
        return fnmatchcase("-v", word.text)
    unknown = word.kind is WordKind.DYNAMIC and not word.values and not word.number
    return unknown and (word.splits or word.text[:1] in (HOLE, "-"))


def _may_be(word: Word, option: str) -> bool:
    return any(text.startswith(option) for text in word.spellings())


def _assign_name(walker: Walker, word: Word, scene: Scene) -> None:
    """A name some built-in assigns to."""
    if not word.literal or not re.fullmatch(r"[A-Za-z_]\w*", word.text):
        walker.unclear(
            "assign.name",
            word.span,
            f"{word.text.replace(HOLE, '…')} as the name of a variable can do more than store.",
            scene,
        )
        walker.wake(word, scene)
    elif environment.acts_on_shell(word.text):
        walker.unclear(
            f"env.{word.text.lower()}", word.span, f"The variable {word.text} changes how later commands run.", scene
        )


def _read(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    takes = "adinNptu"
    for word in words[1:]:
        if word.splits and _opens(word):  # one of its words would be the name of a variable
            _assign_name(walker, word, scene)
    at = 1
    names: list[Word] = []
    while at < len(words):
        text = words[at].text
        if text.startswith("-") and len(text) > 1 and not names:
            found = next((index for index, letter in enumerate(text[1:], 1) if letter in takes), None)
            if found is not None and text[found] == "a":
                names.append(
                    words[at + 1]
                    if found == len(text) - 1 and at + 1 < len(words)
                    else Word(text[found + 1 :], span=words[at].span)
                )
            at += 1 + (found is not None and found == len(text) - 1)
            continue
        names.append(words[at])
        at += 1
    for word in names:
        _assign_name(walker, word, scene)
        variable = walker.variables.setdefault(word.text, Variable(complete=False))
        variable.complete = False
        variable.tags |= scene.stdin.tags
        if scene.stdin.text:
            variable.hints.append(scene.stdin.text.strip())
            walker.wake(Word(scene.stdin.text, span=_span(words)), scene)
    return _quiet(walker, words, scene)


def _mapfile(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    for index, word in enumerate(words):
        if index and _opens(word):
            walker.unclear("shell.mapfile.callback", word.span, "This may turn into -C, which runs a command.", scene)
        if _may_be(word, "-C"):
            walker.unclear("shell.mapfile.callback", word.span, "mapfile -C runs a command for every few lines.", scene)
            code = (
                words[index + 1]
                if word.text == "-C" and index + 1 < len(words)
                else Word(word.text[2:], span=word.span)
            )
            walker.script(code.text.replace(HOLE, "x"), scene.inside("mapfile"), word.span, None)
    name = words[-1]
    if len(words) > 1 and not name.text.startswith("-"):
        _assign_name(walker, name, scene)
        variable = walker.variables.setdefault(name.text, Variable(complete=False))
        variable.tags |= scene.stdin.tags
    return _quiet(walker, words, scene)


def _set(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    rest = words[1:]
    if not rest:
        walker.change(
            "shell.set.dump",
            _span(words),
            "set alone prints all variables, passwords among them.",
            scene,
            EffectKind.SENSITIVE,
        )
        return EMPTY
    at = 0
    while at < len(rest):
        text = rest[at].text
        if text == "pipefail":
            walker.pipefail = True
        if text == "--":
            found = danger.in_arguments(rest[at + 1 :])
            if found:
                walker.destroy("danger.argument", _span(words), f"{danger.NOTE}: {found}.", scene)
            for name in ("@", "*"):
                walker.variables.setdefault(f"${name}", Variable()).hints.append(
                    " ".join(word.text for word in rest[at + 1 :])
                )
            break
        if not re.fullmatch(
            r"[-+](?:[euxfC]+o?|o)|pipefail|errexit|nounset|noglob|errtrace|xtrace|noclobber|posix", text
        ):
            walker.unclear(
                "shell.set", rest[at].span, f"set {text.replace(HOLE, '…')} changes how later commands run.", scene
            )
        at += 1
    return _quiet(walker, words, scene)


def code(walker: Walker, words: list[Word], scene: Scene, label: str) -> Flow:
    """Judge words that are joined and run as shell text."""
    from oikos.policy import unwrap

    return unwrap.script(walker, words, scene.inside(label))


def _eval(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    walker.unclear("shell.eval", _span(words), "eval runs text as a command.", scene)
    tags = frozenset[Tag]().union(*(word.tags for word in words))
    if tags & {Tag.NETWORK, Tag.DECODED}:
        walker.destroy(
            "exec.fetched",
            _span(words),
            "Runs text that was fetched or decoded; nobody can review it.",
            scene,
            EffectKind.REMOTE_CODE,
        )
    return code(walker, words[1:], scene, "eval") if len(words) > 1 else EMPTY


def _source(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    tags = frozenset[Tag]().union(*(word.tags for word in words))
    if len(words) > 1 and words[1].text in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        tags |= scene.stdin.tags
    if len(words) > 1:
        from oikos.policy import unwrap

        unwrap.written(walker, words[1], scene)
    if tags & {Tag.NETWORK, Tag.DECODED}:
        walker.destroy(
            "exec.fetched",
            _span(words),
            "Runs text that was fetched or decoded; nobody can review it.",
            scene,
            EffectKind.REMOTE_CODE,
        )
    else:
        walker.unclear("shell.source", _span(words), "Runs the commands of a file that is not shown here.", scene)
    return EMPTY


def _exec(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    rest = words[1:]
    while rest and re.fullmatch(r"-[cl]*a?[cl]*", rest[0].text):
        rest = rest[2:] if "a" in rest[0].text else rest[1:]
    if not rest:
        return _quiet(walker, words, scene)
    walker.change("shell.exec", _span(words), "exec replaces the shell; what follows never runs.", scene)
    return walker.command(rest, scene.inside("exec"))


def _command(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    rest = words[1:]
    while rest and re.fullmatch(r"-[pvV]+|--", rest[0].text):
        if re.search("[vV]", rest[0].text):
            return _quiet(walker, words, scene, "Only shows what a command name stands for.")
        rest = rest[1:]
    if not rest:
        return _quiet(walker, words, scene)
    return walker.command(rest, scene.inside(words[0].text))


_TRAPPED = frozenset("EXIT 0 INT TERM HUP QUIT SIGINT SIGTERM SIGHUP SIGQUIT ERR PIPE".split())


def _trap(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    rest = [word for word in words[1:] if word.text != "--"]
    if not rest or rest[0].text in ("-p", "-l", "-P"):
        return _quiet(walker, words, scene)
    walker.unclear("shell.trap", _span(words), "trap sets a command that runs later.", scene)
    if rest[0].text not in ("-", ""):
        code(walker, rest[:1], scene, "trap")
    return EMPTY


def _alias(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    for word in words[1:]:
        if "=" in word.text or not word.literal:
            walker.unclear("define.alias", word.span, "An alias changes what a command name stands for.", scene)
            code(walker, [Word(word.text.partition("=")[2], span=word.span)], scene, "alias")
    return _quiet(walker, words, scene)


def _listing(*harmless: str) -> Handler:
    """A built-in that only looks when all its words match one of the expressions."""
    pattern = re.compile("|".join(harmless) or r"(?!)")

    def judge(walker: Walker, words: list[Word], scene: Scene) -> Flow:
        for word in words[1:]:
            if not word.literal or not pattern.fullmatch(word.text):
                walker.unclear(
                    f"shell.{words[0].text}",
                    word.span,
                    f"{words[0].text} {word.text.replace(HOLE, '…')} changes how later commands run.",
                    scene,
                )
                break
        return _quiet(walker, words, scene)

    return judge


def _compgen(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    for index, word in enumerate(words[1:], 1):
        if _opens(word) or any(re.match(r"-[CFW]", text) for text in word.spellings()):
            walker.unclear("shell.compgen", word.span, f"{words[0].text} {word.text[:2]} runs code.", scene)
            code(walker, words[index + 1 : index + 2] or [Word(word.text[2:], span=word.span)], scene, words[0].text)
    return _quiet(walker, words, scene)


def _unset(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    for word in words[1:]:
        if not word.text.startswith("-"):
            _assign_name(walker, word, scene)
    return _quiet(walker, words, scene)


def _test(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    _wake_all(walker, words, scene)
    for index, word in enumerate(words[:-1]):
        after = words[index + 1]
        named = {"-v", "-R"} & set(word.spellings()) and not re.fullmatch(r"[A-Za-z_]\w*(?:\[\d*\])?", after.text)
        # `[ $a ]` and `[ "$a" "$b" ]`: the first may turn into -v.
        if named or (after.splits and _opens(after)) or (index and _opens(word) and _opens(after)):
            why = "test -v evaluates what stands in a subscript."
            if not named:
                why = f"This may turn into -v, and {why} In double quotes, beside a comparison, it cannot."
            walker.unclear("shell.test.v", after.span, why, scene)
    _quiet(walker, words, scene, "test only compares.")
    return Flow(NOTHING, "", True)


def _plain(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    _quiet(walker, words, scene)
    return Flow(NOTHING, "", True)


def _wait(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    for word in words[1:]:
        if _may_be(word, "-p") or _opens(word):
            walker.unclear(
                "shell.wait", word.span, "wait -p stores a number under a name, whose subscript is run.", scene
            )
    return _plain(walker, words, scene)


def _umask(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    if any(not word.text.startswith("-") for word in words[1:]):
        walker.change("shell.umask", _span(words), "Sets the permissions of files created later.", scene)
    return _quiet(walker, words, scene)


def _history(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    if len(words) > 1 and not re.fullmatch(r"\d+", words[1].text):
        walker.unclear("shell.history", _span(words), "Changes or writes the command history.", scene)
    else:
        walker.change(
            "shell.history.show", _span(words), "The command history may hold passwords.", scene, EffectKind.SENSITIVE
        )
    return EMPTY


def _fc(walker: Walker, words: list[Word], scene: Scene) -> Flow:
    walker.unclear("shell.fc", _span(words), "fc edits and runs earlier commands.", scene)
    return EMPTY


HANDLERS: dict[str, Handler] = {
    "cd": _cd, "pushd": _cd, "popd": _plain, "echo": _echo, "printf": _printf, "read": _read, "mapfile": _mapfile,
    "readarray": _mapfile, "set": _set, "eval": _eval, "source": _source, ".": _source, "exec": _exec, "command": _command,
    "builtin": _command, "trap": _trap, "alias": _alias, "unalias": _listing(), "type": _listing(r"-[afptP]+", r"[\w./:+@\[-]+"),
    "hash": _listing(r"-[lt]+", r"-r", r"\w[\w.+-]*"), "compgen": _compgen, "complete": _compgen, "unset": _unset, "test": _test,
    "[": _test, ":": _plain, "true": _plain, "false": _plain, "exit": _plain, "return": _plain, "break": _plain,
    "continue": _plain, "shift": _plain, "wait": _wait, "jobs": _listing(r"-[lnprs]+", r"%?\w+"), "times": _plain, "getopts": _plain,
    "caller": _plain, "dirs": _listing(r"-[lpv]+", r"[+-]\d+"), "help": _listing(r"-[dms]+", r".+"), "history": _history, "fc": _fc,
    "shopt": _listing(r"-[pqo]+", r"[a-z_]+"), "enable": _listing(r"-[aps]+"), "bind": _listing(r"-[lpPsSvV]+"), "umask": _umask,
    "ulimit": _listing(r"-[aHScdefilmnpqrstuvxPRT]+"), "disown": _plain, "fg": _plain, "bg": _plain, "suspend": _listing(),
    "logout": _plain, "compopt": _plain,
}  # fmt: skip
