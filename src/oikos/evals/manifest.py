"""Eval manifests: what is asked, of which model, on which world, what the operator does, and what must be true then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from oikos.adapters.model.document import Node, read
from oikos.domain.errors import ConfigError

FLAGS = frozenset(
    {
        "plan_before_run", "reopens_session", "writes_back", "no_run", "no_propose_plan", "no_duplicate_complete",
        "no_mutation_before_approval", "no_wrong_target", "verified_after_last_mutation",
    }
)  # fmt: skip
COUNTS = frozenset({"proposes_plan", "plan_generations", "max_run_calls", "max_operator_ticks", "approvals", "recovers_from"})
TEXTS = frozenset({"answer_contains", "secret_absent"})
KINDS = FLAGS | COUNTS | TEXTS | {"completes", "fact_equals", "target_state", "budget"}
"""The closed set of assertion kinds (SPEC R9.2)."""
DECISIONS = ("approve", "reject", "changes", "answer", "confirm", "leave")
CARDS = ("plan", "run", "question", "limit")
WORLDS = ("backup", "service_down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One thing that must be true of a trial."""

    kind: str
    line: int
    count: int = 1
    texts: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        if self.kind in COUNTS:
            return f"{self.kind}: {self.count}"
        if self.texts:
            return f"{self.kind}: {', '.join(self.texts)}"
        if self.pairs:
            return f"{self.kind}: " + ", ".join(f"{key}={value}" for key, value in self.pairs)
        return self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRule:
    """What the scripted operator does when a session waits: the first rule that fits and is not used up."""

    when: str
    do: str
    generation: int | None = None
    text: str = ""
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """An entity that is in the inventory without a way in."""

    name: str
    kind: str
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One eval."""

    name: str
    file: Path
    prompt: str
    expect: tuple[Assertion, ...]
    about: str = ""
    followups: tuple[str, ...] = ()
    model: str = "runbook"
    """runbook, live, or scripted."""
    script: Path | None = None
    world: str = ""
    seed: int | None = None
    operator: tuple[OperatorRule, ...] = ()
    entities: tuple[Known, ...] = ()
    look: bool = False
    timeout_s: int = 180


def load(path: Path) -> Manifest:
    """Read and check one manifest.

    Raises:
        ConfigError: file, line, what was expected.
    """
    top = read(path).fields(
        required=("name", "prompt", "expect"),
        optional=("about", "followups", "followup", "model", "world", "seed", "operator", "entities", "look", "timeout_s"),
    )
    model, script = "runbook", None
    if "model" in top:
        model, script = _model(top["model"], path)
    return Manifest(
        name=top["name"].text(), file=path, prompt=top["prompt"].text(), about=top["about"].text() if "about" in top else "",
        followups=_followups(top), model=model, script=script, world=top["world"].choice(*WORLDS) if "world" in top else "",
        seed=top["seed"].integer() if "seed" in top else None,
        operator=tuple(_rule(node) for node in top["operator"].items()) if "operator" in top else (),
        entities=tuple(_known(node) for node in top["entities"].items()) if "entities" in top else (),
        look=top["look"].flag() if "look" in top else False,
        timeout_s=top["timeout_s"].integer(1, 3600) if "timeout_s" in top else 180,
        expect=tuple(_assertion(node) for node in top["expect"].items()),
    )  # fmt: skip


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


def _model(node: Node, path: Path) -> tuple[str, Path | None]:
    if node.is_text:
        return node.choice("runbook", "live"), None
    script = node.fields(required=("scripted",))["scripted"]
    file = path.parent / script.text()
    if not file.is_file():
        script.fail(f"a script beside the manifest; there is no {file.name}")
    return "scripted", file


def _followups(top: Mapping[str, Node]) -> tuple[str, ...]:
    if "followup" in top and "followups" in top:
        top["followup"].fail("either followup or followups, not both")
    if "followup" in top:
        return (top["followup"].text(),)
    return tuple(node.text() for node in top["followups"].items()) if "followups" in top else ()


def _rule(node: Node) -> OperatorRule:
    fields = node.fields(required=("when", "do"), optional=("generation", "text", "times"))
    do = fields["do"].choice(*DECISIONS)
    if do in ("changes", "answer", "confirm") and "text" not in fields:
        node.fail(f"a text with do: {do}")
    return OperatorRule(
        when=fields["when"].choice(*CARDS), do=do, generation=fields["generation"].integer(1) if "generation" in fields else None,
        text=fields["text"].text() if "text" in fields else "", times=fields["times"].integer(1) if "times" in fields else 1,
    )  # fmt: skip


def _known(node: Node) -> Known:
    fields = node.fields(required=("name", "kind"), optional=("parent",))
    parent = fields["parent"].text() if "parent" in fields else ""
    return Known(name=fields["name"].text(), kind=fields["kind"].text(), parent=parent)


def _assertion(node: Node) -> Assertion:
    if node.is_text:
        kind = node.choice(*sorted(KINDS))
        if kind in TEXTS or kind in ("fact_equals", "target_state", "budget", "max_run_calls", "max_operator_ticks"):
            node.fail(f"a value: {kind}: …")
        return Assertion(kind=kind, line=node.line)
    pairs = node.mapping()
    if len(pairs) != 1:
        node.fail("one assertion kind an item")
    key, value = next(iter(pairs.items()))
    if key not in KINDS:
        node.fail(f"one of {', '.join(sorted(KINDS))}, not {key!r}")
    if key in FLAGS:
        if not value.flag():
            value.fail("true: leave the item out when it need not hold")
        return Assertion(kind=key, line=node.line)
    if key in COUNTS:
        return Assertion(kind=key, line=node.line, count=value.integer())
    if key == "completes":
        return Assertion(kind=key, line=node.line, texts=(value.choice("true", "done", "failed", "nothing_to_do"),))
    if key in TEXTS:
        texts = tuple(value.texts())
        return Assertion(kind=key, line=node.line, texts=texts)
    if key == "target_state" and value.is_text:
        return Assertion(kind=key, line=node.line, texts=(value.choice("before", "after"),))
    inner = tuple((name, item.verbatim()) for name, item in value.mapping().items())
    if key == "budget":
        for name, item in value.mapping().items():
            if name not in ("iterations", "tokens", "runs"):
                item.fail("one of iterations, tokens, runs")
            item.integer()
    if key == "target_state" and not {"host", "command"} <= {name for name, _ in inner}:
        value.fail("host and command, and exit or shows")
    return Assertion(kind=key, line=node.line, pairs=inner)
