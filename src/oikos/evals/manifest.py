"""Eval manifests: what is asked, of which model, on which world, what the operator does, and what must be true then."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from oikos.adapters.model.document import Node, read
from oikos.adapters.model.scripted import load_script
from oikos.domain.errors import ConfigError
from oikos.domain.inventory import NAME, Mode
from oikos.evals.expect import BUDGETS, Assertion, read_assertion

_T = TypeVar("_T")

CARDS: Mapping[str, tuple[str, ...]] = {
    "plan": ("approve", "reject", "changes", "confirm", "answer", "stop", "leave"),
    "run": ("approve", "reject", "changes", "confirm", "answer", "stop", "leave"),
    "question": ("answer", "stop", "leave"),
    "limit": ("raise", "answer", "stop", "leave"),
    "nudge": ("answer", "stop", "leave"),
    "repetition": ("answer", "stop", "leave"),
    "halted": ("answer", "stop", "leave"),
}
"""What a session may wait for, and what the scripted operator may do then."""
UNASKED = ("say", "revoke", "stop")
"""What the operator may do after an event, while nothing waits for them."""
WORDED = frozenset({"changes", "answer", "confirm", "say"})
"""Decisions that are nothing without a text."""
LOCAL = "local"
"""The world that is a directory of this machine; all others are lab hosts."""
WORLDS = (LOCAL, "bare", "apt_lock", "backup", "big_log", "fresh_ct", "long_upgrade", "service_down")
VARIED = ("apt_lock", "backup", "service_down")
"""Worlds with more than one kind of trouble."""
MOMENTS = ("turn.started", "assistant.said", "plan.approved", "run.started", "run.finished", "tool.answered")
"""Events after which a crash or a fault may come; of runs those that are not read-only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRule:
    """What the scripted operator does for a card or after an event: the first that fits and is not used up."""

    when: str
    """A card, or the kind of an event."""
    do: str
    generation: int | None = None
    shows: str = ""
    """Occurs in what the card shows: its text, question, or commands."""
    text: str = ""
    phrases: tuple[str, ...] = ()
    """Typed beside an approval: the destructive items it allows."""
    snapshot: bool = False
    """Chosen with an approval: each guest that the plan offers to keep is kept first."""
    times: int = 1
    optional: bool = False
    """Whether a script may leave it unused; otherwise that fails the eval."""
    after_s: float = 0.0
    """Between the event and what is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the inventory knows beforehand: an entity without a way in, or more about one that the world made."""

    name: str
    kind: str = "host"
    parent: str = ""
    mode: Mode | None = None
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Followup:
    """The operator's next message; `fresh` opens another session in the same home for it."""

    text: str
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """Kill -9 the process that does the work, `after_s` seconds after an event of this kind."""

    at: str
    after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A fault of the lab put into one host (`oikos lab fault` lists them)."""

    fault: str
    host: str
    words: tuple[str, ...] = ()
    at: str = ""
    """Kind of the event it comes after; empty: before the first message."""
    after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One eval."""

    name: str
    file: Path
    prompt: str
    expect: tuple[Assertion, ...]
    about: str = ""
    followups: tuple[Followup, ...] = ()
    model: str = "runbook"
    """runbook, live, or scripted."""
    script: Path | None = None
    world: str = ""
    variant: str = ""
    """Which of the world's troubles; drawn by the seed when empty."""
    seed: int | None = None
    files: tuple[tuple[str, str], ...] = ()
    """Path and text, written into the world's first host beforehand."""
    faults: tuple[Injected, ...] = ()
    operator: tuple[OperatorRule, ...] = ()
    entities: tuple[Known, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    """Values that Oikos holds, by name, so that it must mask them."""
    limits: tuple[tuple[str, int], ...] = ()
    crash: tuple[Crash, ...] = ()
    look: bool = False
    timeout_s: int = 180
    pace: float = 1.0
    """Scales every duration of faults and of the world's troubles: 0.1 plays a lock of 90 s in 9 s."""


def load(path: Path) -> Manifest:
    """Read and check one manifest, and the script it names.

    Raises:
        ConfigError: file, line, what was expected.
    """
    top = read(path).fields(
        required=("name", "prompt", "expect"),
        optional=(
            "about",
            "followups",
            "followup",
            "model",
            "world",
            "variant",
            "seed",
            "files",
            "faults",
            "operator",
            "entities",
            "secrets",
            "limits",
            "crash",
            "look",
            "timeout_s",
            "pace",
        ),
    )
    if not NAME.fullmatch(top["name"].text()):
        top["name"].fail("lower-case letters, digits and hyphens")
    model, script = _model(top["model"], path) if "model" in top else ("runbook", None)
    expect = tuple(read_assertion(node) for node in top["expect"].items())
    if not expect:
        top["expect"].fail("at least one assertion")
    manifest = Manifest(
        name=top["name"].text(),
        file=path,
        prompt=top["prompt"].text(),
        about=_text(top, "about"),
        followups=_followups(top),
        model=model,
        script=script,
        world=top["world"].choice(*WORLDS) if "world" in top else "",
        variant=_text(top, "variant"),
        seed=top["seed"].integer() if "seed" in top else None,
        files=_pairs(top, "files"),
        faults=_each(top, "faults", _fault),
        operator=_each(top, "operator", _rule),
        entities=_each(top, "entities", _known),
        secrets=_pairs(top, "secrets"),
        limits=_limits(top["limits"]) if "limits" in top else (),
        crash=_each(top, "crash", _crash),
        look=top["look"].flag() if "look" in top else False,
        timeout_s=top["timeout_s"].integer(1, 3600) if "timeout_s" in top else 180,
        pace=_pace(top["pace"]) if "pace" in top else 1.0,
        expect=expect,
    )
    _fits_together(manifest, top)
    return manifest


def find(paths: tuple[Path, ...]) -> tuple[Manifest, ...]:
    """Every manifest of the given files and directories, by name.

    Raises:
        ConfigError: a path does not exist, holds none, or one of them is wrong.
    """
    found: list[Manifest] = []
    for path in paths:
        if path.is_dir():
            files = sorted(path.glob("*.yaml"))
            if not files:
                raise ConfigError(f"{path} holds no manifest (*.yaml)")
        elif path.is_file():
            files = [path]
        else:
            raise ConfigError(f"there is no manifest {path}: give a file or a directory of manifests")
        found += [load(file) for file in files]
    names = [manifest.name for manifest in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two manifests are called {name}: rename one")
    return tuple(found)


# ---- fields ---------------------------------------------------------------------------------------------------------


def _each(top: Mapping[str, Node], name: str, one: Callable[[Node], _T]) -> tuple[_T, ...]:
    return tuple(one(node) for node in top[name].items()) if name in top else ()


def _text(top: Mapping[str, Node], name: str) -> str:
    return top[name].text() if name in top else ""


def _pairs(top: Mapping[str, Node], name: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, value.verbatim()) for key, value in top[name].mapping().items()) if name in top else ()


def _fits_together(manifest: Manifest, top: Mapping[str, Node]) -> None:
    if manifest.variant and manifest.world not in VARIED:
        top["variant"].fail(f"a world that has variants: {', '.join(VARIED)}")
    if manifest.files and manifest.world not in (LOCAL, "bare"):
        top["files"].fail("the world local or bare: the others are furnished already")
    if "pace" in top and manifest.world in ("", LOCAL):
        top["pace"].fail("a world of lab hosts")
    if manifest.faults and manifest.world in ("", LOCAL):
        top["faults"].fail("a world of lab hosts")
    if manifest.crash and manifest.model == "live":
        top["crash"].fail("a runbook or scripted model: a live one would be asked again at cost")
    for assertion in manifest.expect:
        if assertion.kind == "target_state" and not manifest.world:
            raise ConfigError(f"{manifest.file}:{assertion.line}: target_state: expected a world to ask")
        if assertion.kind == "target_state" and assertion.texts and manifest.world == LOCAL:
            raise ConfigError(
                f"{manifest.file}:{assertion.line}: target_state: expected host and command; "
                f"this world has no {assertion.texts[0]}"
            )
        if assertion.kind == "reopens_session" and all(message.fresh for message in manifest.followups):
            raise ConfigError(
                f"{manifest.file}:{assertion.line}: reopens_session: expected followups in the same session"
            )


def _model(node: Node, path: Path) -> tuple[str, Path | None]:
    if node.is_text:
        return node.choice("runbook", "live"), None
    script = node.fields(required=("scripted",))["scripted"]
    file = path.parent / script.text()
    if not file.is_file():
        script.fail(f"a script beside the manifest; there is no {script.text()}")
    load_script(file)
    return "scripted", file


def _followups(top: Mapping[str, Node]) -> tuple[Followup, ...]:
    if "followup" in top and "followups" in top:
        top["followup"].fail("either followup or followups, not both")
    if "followup" in top:
        return (_followup(top["followup"]),)
    return _each(top, "followups", _followup)


def _followup(node: Node) -> Followup:
    if node.is_text:
        return Followup(text=node.text())
    return Followup(text=node.fields(required=("new_session",))["new_session"].text(), fresh=True)


def _rule(node: Node) -> OperatorRule:
    fields = node.fields(
        required=("when", "do"),
        optional=("generation", "shows", "text", "times", "optional", "phrases", "snapshot", "after_ms"),
    )
    when = fields["when"].choice(*CARDS, *MOMENTS)
    do = fields["do"].choice(*CARDS.get(when, UNASKED))
    if do in WORDED and "text" not in fields:
        node.fail(f"a text with do: {do}")
    if do not in WORDED | {"reject"} and "text" in fields:
        fields["text"].fail(f"no text with do: {do}, which says nothing")
    for name in ("phrases", "snapshot"):
        if do != "approve" and name in fields:
            fields[name].fail(f"{name} with do: approve only")
    if when in CARDS and "after_ms" in fields:
        fields["after_ms"].fail("an event as when: a card is decided when it is shown")
    if when not in CARDS and "shows" in fields:
        fields["shows"].fail("a card as when: an event shows nothing")
    return OperatorRule(
        when=when,
        do=do,
        generation=fields["generation"].integer(1) if "generation" in fields else None,
        shows=_text(fields, "shows"),
        text=_text(fields, "text"),
        phrases=tuple(fields["phrases"].texts()) if "phrases" in fields else (),
        snapshot="snapshot" in fields and fields["snapshot"].flag(),
        times=fields["times"].integer(1) if "times" in fields else 1,
        optional="optional" in fields and fields["optional"].flag(),
        after_s=_milliseconds(fields),
    )


def _known(node: Node) -> Known:
    fields = node.fields(required=("name",), optional=("kind", "parent", "mode", "facts"))
    return Known(
        name=fields["name"].text(),
        kind=_text(fields, "kind") or "host",
        parent=_text(fields, "parent"),
        facts=_pairs(fields, "facts"),
        mode=Mode(fields["mode"].choice(*Mode)) if "mode" in fields else None,
    )


def _fault(node: Node) -> Injected:
    fields = node.fields(required=("fault", "host"), optional=("words", "at", "after_ms"))
    if "after_ms" in fields and "at" not in fields:
        fields["after_ms"].fail("at beside it: after which event")
    return Injected(
        fault=fields["fault"].text(),
        host=fields["host"].text(),
        after_s=_milliseconds(fields),
        words=tuple(item.verbatim() for item in fields["words"].items()) if "words" in fields else (),
        at=fields["at"].choice(*MOMENTS) if "at" in fields else "",
    )


def _crash(node: Node) -> Crash:
    if node.is_text:
        return Crash(at=node.choice(*MOMENTS))
    fields = node.fields(required=("at",), optional=("after_ms",))
    return Crash(at=fields["at"].choice(*MOMENTS), after_s=_milliseconds(fields))


def _milliseconds(fields: Mapping[str, Node]) -> float:
    return fields["after_ms"].integer(0, 60_000) / 1000 if "after_ms" in fields else 0.0


def _pace(node: Node) -> float:
    """More than nothing, at most real time."""
    text = node.verbatim()
    if re.fullmatch(r"[01](\.\d+)?", text) is None or not 0 < float(text) <= 1:
        node.fail("a number above 0, at most 1")
    return float(text)


def _limits(node: Node) -> tuple[tuple[str, int], ...]:
    fields = node.fields(optional=(*BUDGETS, "wall_s"))
    return tuple((key, value.integer(1)) for key, value in fields.items())
