"""The assertions of a manifest as they are written: a closed set of kinds, each with its form (SPEC R9.2)."""

from __future__ import annotations

from dataclasses import dataclass

from oikos.adapters.model.document import Node

FLAGS = frozenset(
    {
        "plan_before_run",
        "reopens_session",
        "writes_back",
        "no_run",
        "no_propose_plan",
        "no_duplicate_complete",
        "no_mutation_before_approval",
        "no_wrong_target",
        "verified_after_last_mutation",
    }
)
COUNTS = frozenset(
    {"proposes_plan", "plan_generations", "max_run_calls", "max_operator_ticks", "approvals", "recovers_from"}
)
BARE_COUNTS = frozenset({"proposes_plan", "recovers_from"})
"""Counts that mean "at least one" when no number is given; the others need theirs."""
TEXTS = frozenset({"answer_contains", "secret_absent"})
KINDS = FLAGS | COUNTS | TEXTS | {"completes", "fact_equals", "target_state", "budget"}
"""The closed set of assertion kinds (SPEC R9.2)."""
BUDGETS = ("iterations", "tokens", "runs")


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


def read_assertion(node: Node) -> Assertion:
    """One item of `expect`.

    Raises:
        ConfigError: an unknown kind, or a value that does not fit it.
    """
    if node.is_text:
        kind = node.choice(*sorted(KINDS))
        if kind not in FLAGS | BARE_COUNTS | {"completes"}:
            node.fail(f"a value, such as `{kind}: …`")
        return Assertion(kind=kind, line=node.line)
    pairs = node.mapping()
    if len(pairs) != 1:
        node.fail("one assertion kind an item")
    kind, value = next(iter(pairs.items()))
    if kind not in KINDS:
        node.fail(f"one of {', '.join(sorted(KINDS))}, not {kind!r}")
    if kind in FLAGS:
        if not value.flag():
            value.fail("true: leave the item out when it need not hold")
        return Assertion(kind=kind, line=node.line)
    if kind in COUNTS:
        return Assertion(kind=kind, line=node.line, count=value.integer())
    if kind == "completes":
        return Assertion(kind=kind, line=node.line, texts=(value.choice("true", "done", "failed", "nothing_to_do"),))
    if kind in TEXTS:
        texts = tuple(value.texts())
        if not texts:
            value.fail("at least one text")
        return Assertion(kind=kind, line=node.line, texts=texts)
    if kind == "target_state" and value.is_text:
        return Assertion(kind=kind, line=node.line, texts=(value.choice("before", "after"),))
    return Assertion(kind=kind, line=node.line, pairs=_inner(kind, value))


def _inner(kind: str, value: Node) -> tuple[tuple[str, str], ...]:
    if kind == "budget":
        return tuple((name, str(item.integer())) for name, item in value.fields(optional=BUDGETS).items())
    if kind == "target_state":
        fields = value.fields(required=("host", "command"), optional=("exit", "shows"))
        if "exit" in fields:
            fields["exit"].integer(0, 255)
        return tuple((name, item.verbatim()) for name, item in fields.items())
    pairs = value.mapping()
    for name, item in pairs.items():
        if not name.rpartition("/")[2]:
            item.fail("ENTITY/KEY: VALUE")
    return tuple((name, item.verbatim()) for name, item in pairs.items())
