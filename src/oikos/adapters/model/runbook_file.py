"""Reading runbooks: YAML with every mistake named by file, line and what was expected.

runbooks/README.md describes the format for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from oikos.adapters.model.book import (
    Act,
    Ask,
    Clause,
    Intent,
    Listing,
    Must,
    PlanCheck,
    Repair,
    Runbook,
    Stage,
    Symptom,
)  # fmt: skip
from oikos.adapters.model.document import Node, read
from oikos.adapters.model.learned import Take
from oikos.adapters.model.template import HOLE, holes, intent, unknown_filter, words
from oikos.domain.errors import ConfigError

GIVEN: Final = frozenset({"host", "target_host"})
"""Slots that the brain itself fills."""
NAME: Final = re.compile(r"[a-z][a-z0-9_]*")


def load_runbooks(directory: Path) -> tuple[Runbook, ...]:
    """All runbooks of a directory (`*.yaml`), by name.

    Raises:
        ConfigError: a file cannot be used; file, line and what was expected. Or two have one name.
    """
    if not directory.is_dir():
        raise ConfigError(f"{directory} is no directory: expected one that holds runbooks (*.yaml)")
    made: dict[str, Runbook] = {}
    for path in sorted(directory.glob("*.yaml")):
        node = read(path)
        runbook = runbook_from(node)
        if runbook.name in made:
            node.fail(f"a name of its own; {runbook.name!r} is taken")
        made[runbook.name] = runbook
    return tuple(made.values())


def runbook_from(node: Node) -> Runbook:
    """A runbook from a document; raises as `load_runbooks` does."""
    fields = node.fields(
        required=("runbook", "title", "intents", "goal", "answer"),
        optional=("locate", "found", "look", "facts", "ttl_s", "repair", "inventory", "takes"),
    )
    reader = _Reader(fields.get("takes"))
    runbook = Runbook(
        name=fields["runbook"].text(),
        title=fields["title"].text(),
        intents=tuple(made for item in fields["intents"].items() for made in _intents(item)),
        goal=reader.template(fields["goal"]),
        answer=reader.clauses(fields["answer"]),
        locate=reader.stage(fields["locate"]) if "locate" in fields else None,
        found=fields["found"].text() if "found" in fields else "",
        look=reader.acts(fields.get("look")),
        facts=reader.templates(fields.get("facts")),
        ttl_s=fields["ttl_s"].integer(1) if "ttl_s" in fields else None,
        repair=reader.repair(fields["repair"]) if "repair" in fields else None,
        listing=_listing(fields["inventory"]) if "inventory" in fields else None,
    )
    if (runbook.locate is None) == (runbook.listing is None):
        node.fail("either locate (and look) or inventory")
    if runbook.locate is not None and not runbook.found:
        node.fail("the field found: the slot that shows that the right machine was found")
    for made in runbook.intents:
        reader.known.update(made.pattern.groupindex)
        if made.repair and runbook.repair is None:
            fields["intents"].fail("no intent with do: repair without a repair section")
    if runbook.listing is not None:
        reader.known.update({"count", "kind"})
    reader.check_holes()
    return runbook


def _intents(node: Node) -> Iterator[Intent]:
    fields = node.fields(required=("say",), optional=("do", "follow_up"))
    repair = fields["do"].choice("look", "repair") == "repair" if "do" in fields else False
    follow_up = fields["follow_up"].flag() if "follow_up" in fields else False
    says = [fields["say"]] if fields["say"].is_text else fields["say"].items()
    for said in says:
        try:
            pattern = intent(said.text())
        except ValueError as error:
            said.fail(f"balanced brackets ({error})")
        yield Intent(pattern=pattern, said=said.text(), repair=repair, follow_up=follow_up)


def _listing(node: Node) -> Listing:
    fields = node.fields(required=("kinds",))
    return Listing(
        kinds={
            word: tuple(kinds.texts()) if not _empty(kinds) else () for word, kinds in fields["kinds"].mapping().items()
        }
    )


def _empty(node: Node) -> bool:
    return node.is_list and not node.items()


class _Reader:
    """Reads the parts of one runbook, and remembers which slots it can ever know."""

    def __init__(self, takes: Node | None) -> None:
        self.known = set(GIVEN)
        self._used: list[tuple[Node, str]] = []
        self._takes: dict[str, tuple[Take, ...]] = {}
        if takes is not None:
            for name, node in takes.mapping().items():
                self._takes[name] = self.take(node)

    def check_holes(self) -> None:
        """Every slot that a template needs can be known; a misspelt one would silently never be filled."""
        for node, name in self._used:
            if name not in self.known:
                node.fail(f"slots that something fills; {{{name}}} is filled by nothing")

    # ---- texts --------------------------------------------------------------------------------

    def template(self, node: Node, *, own: bool = True) -> str:
        text = node.text()
        if wrong := unknown_filter(text):
            node.fail(f"a known filter, not {wrong}")
        if own:
            self._used += [(node, name) for name in holes(text)]
        return text

    def templates(self, node: Node | None) -> Mapping[str, str]:
        if node is None:
            return {}
        found = node.mapping()
        for key, value in found.items():
            self._used += [(value, name) for name in holes(key)]
        return {key: self.template(value) for key, value in found.items()}

    def pattern(self, node: Node) -> str:
        text = node.text()
        self._used += [(node, name) for name in holes(text)]
        try:
            compiled = re.compile(HOLE.sub("x", text), re.MULTILINE)
        except re.error as error:
            node.fail(f"a regular expression ({error})")
        self.known.update(compiled.groupindex)
        return text

    def clauses(self, node: Node) -> tuple[Clause, ...]:
        return tuple(self.clause(item) for item in node.items())

    def clause(self, node: Node) -> Clause:
        if node.is_text:
            clause = Clause(say=self.template(node))
        else:
            fields = node.fields(required=("say", "each"))
            clause = Clause(say=self.template(fields["say"], own=False), each=fields["each"].text())
        if not holes(clause.say):
            node.fail("at least one {slot}: an answer says what was seen, not what the runbook says")
        return clause

    # ---- acts --------------------------------------------------------------------------------

    def stage(self, node: Node) -> Stage:
        fields = node.fields(required=("title", "acts"))
        acts = self.acts(fields["acts"])
        if not acts:
            fields["acts"].fail("at least one act")
        return Stage(title=self.template(fields["title"]), acts=acts)

    def acts(self, node: Node | None) -> tuple[Act, ...]:
        return tuple(self.act(item) for item in node.items()) if node is not None else ()

    def act(self, node: Node) -> Act:
        fields = node.fields(
            required=("run",), optional=("needs", "unless", "keep", "take", "must", "ask", "timeout_s")
        )
        keep = fields["keep"].text() if "keep" in fields else ""
        if keep:
            self.known.add(keep)
        return Act(
            line=node.line,
            run=self.command(fields["run"]),
            needs=tuple(fields["needs"].texts()) if "needs" in fields else (),
            unless=tuple(fields["unless"].texts()) if "unless" in fields else (),
            keep=keep,
            take=self.take(fields["take"]) if "take" in fields else (),
            must=self.must(fields["must"]) if "must" in fields else None,
            ask=self.ask(fields["ask"]) if "ask" in fields else None,
            timeout_s=fields["timeout_s"].integer(1, 600) if "timeout_s" in fields else 0,
        )

    def command(self, node: Node) -> tuple[str, ...]:
        text = self.template(node)
        try:
            return words(text)
        except ValueError as error:
            node.fail(f"a command line ({error})")

    def must(self, node: Node) -> Must:
        fields = node.fields(required=("otherwise",), optional=("exit", "slot"))
        if ("exit" in fields) == ("slot" in fields):
            node.fail("exit or slot")
        return Must(
            exit=fields["exit"].integer(0, 255) if "exit" in fields else None,
            slot=fields["slot"].text() if "slot" in fields else "",
            otherwise=self.template(fields["otherwise"]),
        )

    def ask(self, node: Node) -> Ask:
        fields = node.fields(required=("slot", "question"), optional=("choices", "form"))
        table, _, column = fields["choices"].text().partition(".") if "choices" in fields else ("", "", "")
        self.known.add(fields["slot"].text())
        return Ask(
            slot=fields["slot"].text(),
            question=self.template(fields["question"]),
            table=table,
            column=column,
            form=self.pattern(fields["form"]) if "form" in fields else r".+",
        )

    # ---- takes --------------------------------------------------------------------------------

    def take(self, node: Node) -> tuple[Take, ...]:
        if node.is_text:
            name = node.text()
            if name not in self._takes:
                node.fail(f"a list of rules, or a name from takes ({', '.join(self._takes) or 'there are none'})")
            return self._takes[name]
        return tuple(rule for item in node.items() for rule in self._rules(item))

    def _rules(self, node: Node) -> tuple[Take, ...]:
        if node.is_text:
            return self.take(node)
        fields = node.fields(
            optional=("rows", "slot", "slots", "match", "in", "json", "columns", "of", "where", "not", "prefer",
                      "last_by", "join", "on", "pick", "column"),
        )  # fmt: skip
        if sum(key in fields for key in ("match", "json", "of")) != 1:
            node.fail("exactly one source: match, json or of")
        if sum(key in fields for key in ("rows", "slot", "slots")) > 1:
            node.fail("one goal: rows, slot or slots")
        match = self.pattern(fields["match"]) if "match" in fields else ""
        slots = self._goals(node, fields, match)
        self.known.update(slots)
        return (
            Take(
                rows=fields["rows"].text() if "rows" in fields else "",
                slots=slots,
                match=match,
                inside=fields["in"].text() if "in" in fields else "",
                json=fields["json"].choice("list", "lines") if "json" in fields else "",
                columns=self._lists(fields.get("columns")),
                of=fields["of"].text() if "of" in fields else "",
                where=self._patterns(fields.get("where")),
                without=self._patterns(fields.get("not")),
                prefer=tuple(self.template(item) for item in fields["prefer"].items()) if "prefer" in fields else (),
                last_by=fields["last_by"].text() if "last_by" in fields else "",
                join=fields["join"].text() if "join" in fields else "",
                on=fields["on"].text() if "on" in fields else "",
                pick=self._pick(fields.get("pick")),
            ),
        )

    def _goals(self, node: Node, fields: Mapping[str, Node], match: str) -> Mapping[str, str]:
        if "rows" in fields:
            return {}
        if "slots" in fields:
            return {name: value.text() for name, value in fields["slots"].mapping().items()}
        if "slot" in fields:
            name = fields["slot"].text()
            if not NAME.fullmatch(name):
                fields["slot"].fail("a name of small letters, digits and _")
            return {name: fields["column"].text() if "column" in fields else "_"}
        groups = re.compile(HOLE.sub("x", match)).groupindex if match else {}
        if not groups:
            node.fail("a goal: rows, slot, slots, or a match with named groups")
        return {name: name for name in groups}

    def _patterns(self, node: Node | None) -> Mapping[str, str]:
        return {name: self.pattern(value) for name, value in node.mapping().items()} if node is not None else {}

    def _lists(self, node: Node | None) -> Mapping[str, tuple[str, ...]]:
        return {name: tuple(value.texts()) for name, value in node.mapping().items()} if node is not None else {}

    def _pick(self, node: Node | None) -> str:
        if node is None:
            return "first"
        word = node.text()
        if word.partition(":")[0] not in ("first", "last", "only", "min", "max", "all", "count"):
            node.fail("first, last, only, min:COLUMN, max:COLUMN, all or count")
        return word

    # ---- repair --------------------------------------------------------------------------------

    def repair(self, node: Node) -> Repair:
        fields = node.fields(
            required=("goal", "evidence", "apply", "checks", "answer", "symptoms"),
            optional=("facts", "rows", "key", "healthy", "well", "diagnose", "more"),
        )
        if "key" in fields:
            self.known.add(fields["key"].text())
        checks = self.checks(fields["checks"])
        if not checks:
            fields["checks"].fail("at least one check: nothing else proves that the repair worked")
        return Repair(
            goal=self.template(fields["goal"]),
            evidence=tuple(self.template(item) for item in fields["evidence"].items()),
            apply=self.stage(fields["apply"]),
            checks=checks,
            answer=self.clauses(fields["answer"]),
            facts=self.templates(fields.get("facts")),
            rows=fields["rows"].text() if "rows" in fields else "",
            key=fields["key"].text() if "key" in fields else "",
            healthy=self.take(fields["healthy"]) if "healthy" in fields else (),
            well=self.clauses(fields["well"]) if "well" in fields else (),
            diagnose=self.acts(fields.get("diagnose")),
            more=self.acts(fields.get("more")),
            symptoms=tuple(self.symptom(item) for item in fields["symptoms"].items()),
        )

    def symptom(self, node: Node) -> Symptom:
        fields = node.fields(
            required=("name", "text", "title"),
            optional=("look", "fix", "undo", "operator", "tries", "say", "repaired", "checks", "facts"),
        )
        if ("fix" in fields) == ("operator" in fields):
            node.fail("fix (what repairs it) or operator (what only they can do)")
        return Symptom(
            name=fields["name"].text(),
            text=self.pattern(fields["text"]),
            title=self.template(fields["title"]),
            look=self.acts(fields.get("look")),
            fix=self.acts(fields.get("fix")),
            undo=self.command(fields["undo"]) if "undo" in fields else (),
            operator=self.template(fields["operator"]) if "operator" in fields else "",
            tries=fields["tries"].integer(1, 5) if "tries" in fields else 1,
            say=self.clause(fields["say"]).say if "say" in fields else "",
            repaired=self.clause(fields["repaired"]).say if "repaired" in fields else "",
            checks=self.checks(fields["checks"]) if "checks" in fields else (),
            facts=self.templates(fields.get("facts")),
        )

    def checks(self, node: Node) -> tuple[PlanCheck, ...]:
        return tuple(self.check(item) for item in node.items())

    def check(self, node: Node) -> PlanCheck:
        fields = node.fields(required=("run",), optional=("text", "exit", "take"))
        return PlanCheck(
            run=self.command(fields["run"]),
            text=self.template(fields["text"]) if "text" in fields else "",
            exit=fields["exit"].integer(0, 255) if "exit" in fields else 0,
            take=self.take(fields["take"]) if "take" in fields else (),
        )
