"""The walk: visits every statement, word, redirection and assignment of a syntax tree.

Only node types on a list are understood; anything else is a finding. Words are visited wherever they stand
in the tree, never field by field, so that no substitution stays unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import arithmetic, assignments, danger, judge, paths, redirects
from oikos.policy.expand import WordMaker, is_bare, keeps_blanks, plain_text
from oikos.policy.findings import Finding, Report, Span, effects_of
from oikos.policy.knowledge import Knowledge
from oikos.policy.parser import Node, Parser
from oikos.policy.scene import EMPTY, MAX_DEPTH, UNKNOWN, Flow, Scene, Source, TooMuch, Variable
from oikos.policy.text import deceptive
from oikos.policy.words import HOLE, NOTHING, Tag, Tags, Word, WordKind, expand_braces, has_glob

# A subscript that runs a command when the shell evaluates it: `a[$(id)]`, `` a[`id`] ``.
_SLEEPING = re.compile(r"\b[A-Za-z_]\w*\[[^\]\s]*(?:\$\((?P<dollar>.*)\)|`(?P<tick>[^`]*)`)", re.DOTALL)


class Walker:
    """Walks one command text and all texts inside it, and collects what the rules say."""

    def __init__(self, parser: Parser, knowledge: Knowledge, self_names: frozenset[str], dialect: str) -> None:
        self.parser = parser
        self.knowledge = knowledge
        self.self_names = self_names
        self.dialect = dialect
        self.report = Report()
        self.functions: set[str] = set()
        self.variables: dict[str, Variable] = {}
        self.numbers = arithmetic.Numbers()
        self.written: dict[str, str] = {}
        """Files that this text wrote, with what; empty when it came from elsewhere."""
        self.cwd = ""
        self.count = 0
        self.pipefail = False
        self.heads: set[str] = set()
        """Literal command words of the outermost text, for the second opinion."""

    # --- findings -------------------------------------------------------------------------------

    def find(
        self,
        rule: str,
        risk: Risk,
        span: Span,
        text: str,
        scene: Scene,
        effects: Iterable[EffectKind] = (),
        thing: str = "",
    ) -> None:
        """Record a finding."""
        known = effects_of(effects, thing.replace(HOLE, "…"))
        self.report.findings.append(Finding(rule=rule, risk=risk, span=span, text=text, via=scene.via, effects=known))

    def change(self, rule: str, span: Span, text: str, scene: Scene, *effects: EffectKind, thing: str = "") -> None:
        """Record a config_mutation."""
        self.find(rule, Risk.CONFIG_MUTATION, span, text, scene, effects, thing)

    def destroy(self, rule: str, span: Span, text: str, scene: Scene, *effects: EffectKind, thing: str = "") -> None:
        """Record something destructive."""
        self.find(rule, Risk.DESTRUCTIVE, span, text, scene, effects or (EffectKind.IRREVERSIBLE,), thing)

    def unclear(self, rule: str, span: Span, text: str, scene: Scene) -> None:
        """Record that a part cannot be understood."""
        self.find(rule, Risk.CONFIG_MUTATION, span, text, scene, (EffectKind.UNCLASSIFIED,))

    # --- texts ----------------------------------------------------------------------------------

    def script(self, text: str, scene: Scene, span: Span, shift: int | None, dialect: str | None = None) -> Flow:
        """Walk a text; `span` and `shift` say where it stands in the classified text."""
        if scene.depth > MAX_DEPTH:
            raise TooMuch(f"commands are nested deeper than {MAX_DEPTH}")
        source = Source(text, shift, span)
        scene = replace(scene, source=source)
        if shift is None:
            # The outermost text was looked at by the classifier, with its quoting known.
            odd = deceptive(text)
            if odd:
                self.unclear("text.control", span, odd[1], scene)
        parsed = self.parser.parse(text, dialect or self.dialect)
        if parsed.tree is None:
            self.unclear("parse.failed", span, f"The shell text cannot be parsed: {parsed.error}.", scene)
            danger.scan_text(self, text, scene, span)
            return EMPTY.plus(UNKNOWN)
        return self.tree(parsed.tree, scene)

    def tree(self, tree: Node, scene: Scene) -> Flow:
        """Walk a whole tree."""
        self.prepare(tree)
        flow = self.statements(tree.get("Stmts", ()), scene)
        return flow

    def prepare(self, tree: Node) -> None:
        """Collect what the script defines and assigns, before anything is judged."""
        self.numbers.collect(tree)
        todo: list[Any] = [tree]
        while todo:
            node = todo.pop()
            if isinstance(node, list):
                todo.extend(node)
                continue
            if not isinstance(node, dict):
                continue
            match node.get("Type"):
                case "FuncDecl":
                    self.functions.add(node["Name"]["Value"])
                case "ForClause":
                    loop = node["Loop"]
                    if "Name" in loop:
                        variable = self.variables.setdefault(loop["Name"]["Value"], Variable())
                        variable.one_word = True
                        for item in loop.get("Items", ()):
                            variable.blanks |= keeps_blanks(item)
                            self._assigned(variable, item)
                        if "Items" not in loop:
                            variable.complete = False
                case "CallExpr" if node.get("Args"):
                    words = [plain_text(word) for word in node["Args"]]
                    if words[0] in (
                        "read",
                        "mapfile",
                        "readarray",
                        "getopts",
                        "printf",
                        "unset",
                        "declare",
                        "let",
                        "eval",
                        "source",
                        ".",
                    ):
                        for word in words[1:]:
                            if word is not None:
                                self.variables.setdefault(word, Variable()).complete = False
                        if words[0] in ("eval", "source", "."):
                            self._forget()
                    for assign in node.get("Assigns", ()):
                        self.variables.setdefault(assign["Name"]["Value"], Variable()).complete = False
                case "BinaryArithm" | "UnaryArithm" | "LetClause":
                    self._taint_names(node)
                case _:
                    pass
            if (
                "Name" in node
                and isinstance(node["Name"], dict)
                and ("Value" in node or "Array" in node or "Append" in node)
            ):
                variable = self.variables.setdefault(node["Name"]["Value"], Variable())
                if "Array" in node:
                    for element in node["Array"].get("Elems", ()):
                        variable.blanks |= keeps_blanks(element.get("Value", {}))
                        self._assigned(variable, element.get("Value", {}))
                    variable.one_word = True
                elif node.get("Append") or node.get("Index"):
                    variable.complete = False
                else:
                    self._assigned(variable, node.get("Value", {}))
            todo.extend(node.values())

    def _assigned(self, variable: Variable, word: Node) -> None:
        value = plain_text(word) if word else ""
        expanded = expand_braces(value) if value and is_bare(word) else [value]
        if value and value.startswith("/") and expanded is not None and is_bare(word) and has_glob(value):
            variable.rooted = True
            variable.hints.append(value)
            return
        if value is None or expanded is None or (is_bare(word) and has_glob(value or "")):
            variable.complete = False
            if value:
                variable.hints.append(value)
            return
        variable.values.extend(one for one in expanded if one is not None and one not in variable.values)

    def _forget(self) -> None:
        for variable in self.variables.values():
            variable.complete = False

    def _taint_names(self, node: Node) -> None:
        for side in ("X", "Y"):
            word = node.get(side)
            name = plain_text(word) if isinstance(word, dict) and "Parts" in word else None
            if name and re.fullmatch(r"[A-Za-z_]\w*", name):
                self.variables.setdefault(name, Variable()).complete = False

    # --- statements -----------------------------------------------------------------------------

    def statements(self, nodes: Iterable[Node], scene: Scene) -> Flow:
        """Walk statements one after the other; their outputs run together."""
        tags: Tags = NOTHING
        flows = [self.statement(node, scene) for node in nodes]
        for flow in flows:
            tags |= flow.tags
        return Flow(tags, flows[0].text if len(flows) == 1 else None, True)

    def statement(self, node: Node, scene: Scene) -> Flow:
        """Walk one statement with its redirections."""
        command = node.get("Cmd")
        if not node.get("Redirs"):
            return self.command_node(command, scene) if command else EMPTY
        scene, silent, to = redirects.apply(self, node, scene)
        if command is None:
            return scene.stdin if scene.stdin.piped else EMPTY
        flow = self.command_node(command, scene)
        if silent:
            self._wrote(node, scene, scene.stdin if _only_copies(command) else flow)
        if to:
            redirects.flow_to(self, to, flow, scene, node)
        return Flow(NOTHING, "", True) if silent else flow

    def _wrote(self, node: Node, scene: Scene, flow: Flow) -> None:
        """Remember what a command wrote where: a later one may run it."""
        if not flow.text and Tag.NETWORK not in flow.tags:
            return
        for redirect in node["Redirs"]:
            if redirect["Op"] in (">", ">|", ">>", "&>"):
                for word in self.words(redirect["Word"], scene):
                    if word.literal:
                        self.remember(word, flow)

    def remember(self, word: Word, flow: Flow) -> None:
        """A file that was written: with its text, or with the empty one when it came from elsewhere."""
        path = paths.normal(word.text, self.cwd)
        self.written[path] = "" if Tag.NETWORK in flow.tags else self.written.get(path, "") + (flow.text or "")

    def command_node(self, node: Node, scene: Scene) -> Flow:
        """Walk a command of any type."""
        match node.get("Type"):
            case "CallExpr":
                return self.call(node, scene)
            case "BinaryCmd" if node["Op"] in ("|", "|&"):
                return self.pipeline(node, scene)
            case "BinaryCmd":
                first, second = self.statement(node["X"], scene), self.statement(node["Y"], scene)
                return Flow(first.tags | second.tags, None, True)
            case "Block":
                return self.statements(node.get("Stmts", ()), scene)
            case "Subshell":
                cwd = self.cwd
                flow = self.statements(node.get("Stmts", ()), scene)
                self.cwd = cwd
                return flow
            case "IfClause":
                return self._if(node, scene)
            case "WhileClause":
                flow = self.statements(node.get("Cond", ()), scene)
                body = self.statements(node.get("Do", ()), scene)
                if not node.get("Until") and _spins(node):
                    self.change(
                        "loop.busy",
                        scene.source.span(node),
                        "An endless loop without a pause loads the machine.",
                        scene,
                    )
                return Flow(flow.tags | body.tags, None, True)
            case "ForClause":
                return self._for(node, scene)
            case "CaseClause":
                tags: Tags = NOTHING
                for word in self.words(node["Word"], scene):
                    tags |= word.tags
                for item in node.get("Items", ()):
                    for pattern in item.get("Patterns", ()):
                        self.words(pattern, scene)
                    tags |= self.statements(item.get("Stmts", ()), scene).tags
                return Flow(tags, None, True)
            case "TestClause":
                self.expressions(node.get("X"), scene)
                arithmetic.compared(self, node.get("X"), scene)
                return Flow(NOTHING, "", True)
            case "ArithmCmd":
                self.reckon(node.get("X"), scene)
                return Flow(NOTHING, "", True)
            case "TimeClause":
                return self.statement(node["Stmt"], scene) if node.get("Stmt") else EMPTY
            case "FuncDecl":
                return self._function(node, scene)
            case "DeclClause":
                return assignments.declared(self, node, scene)
            case unknown:
                self.unclear(
                    "syntax.unsupported",
                    scene.source.span(node),
                    f"The shell construct {unknown} is not understood.",
                    scene,
                )
                self.visit(node, scene)
                return EMPTY.plus(UNKNOWN)

    def _if(self, node: Node, scene: Scene) -> Flow:
        tags: Tags = NOTHING
        branch: Node | None = node
        while branch:
            for key in ("Cond", "Then"):
                tags |= self.statements(branch.get(key, ()), scene).tags
            branch = branch.get("Else")
        return Flow(tags, None, True)

    def _for(self, node: Node, scene: Scene) -> Flow:
        loop = node["Loop"]
        if node.get("Select"):
            self.unclear(
                "syntax.select", scene.source.span(node), "A select loop asks for input; it is not understood.", scene
            )
        if loop["Type"] == "WordIter":
            variable = self.variables.setdefault(loop["Name"]["Value"], Variable())
            for item in loop.get("Items", ()):
                for word in self.words(item, scene):
                    self.wake(word, scene)
                    variable.tags |= word.tags | (NOTHING if word.kind is not WordKind.GLOB else frozenset((Tag.FILE,)))
                    variable.hints.extend(one for one in word.spellings() if one != HOLE)
            if "Items" not in loop:
                variable.tags |= UNKNOWN
        else:
            self.reckon(loop, scene)
        return self.statements(node.get("Do", ()), scene)

    def _function(self, node: Node, scene: Scene) -> Flow:
        name = node["Name"]["Value"]
        span = scene.source.span(node)
        if name in self.knowledge or name == "command_not_found_handle":
            self.unclear(
                "define.shadow", span, f"A function called {name} would run instead of the program of that name.", scene
            )
        if _calls_itself(node["Body"], name):
            self.destroy(
                "define.recursive",
                span,
                f"The function {name} starts itself again and again.",
                scene,
                EffectKind.OUTAGE,
            )
        flow = self.statement(node["Body"], scene)
        self.variables.setdefault("()", Variable()).tags |= flow.tags
        return EMPTY

    def pipeline(self, node: Node, scene: Scene) -> Flow:
        """Walk the stages of a pipeline; each reads what the one before it wrote."""
        stages: list[Node] = []
        todo = [node]
        while todo:
            one = todo.pop()
            binary = one.get("Cmd", one)
            plain = "Cmd" not in one or not one.get("Redirs")
            if plain and binary.get("Type") == "BinaryCmd" and binary["Op"] in ("|", "|&"):
                todo.extend((binary["Y"], binary["X"]))
            else:
                stages.append(one)
        self.report.hides_failure = self.report.hides_failure or not self.pipefail
        flow = scene.stdin
        cwd = self.cwd
        named = [redirects.literals(stage.get("Cmd")) for stage in stages]
        for at, stage in enumerate(stages):
            reads = scene.reads.union(*named[:at], *named[at + 1 :])
            flow = self.statement(stage, replace(scene, stdin=flow, reads=reads))
            empty = not stage.get("Redirs") and redirects.producer(stage.get("Cmd")) == "nothing"
            flow = replace(flow, piped=True, text="" if empty else flow.text)
        self.cwd = cwd
        return flow

    def call(self, node: Node, scene: Scene) -> Flow:
        """Walk a simple command."""
        return judge.call(self, node, scene)

    def command(self, words: list[Word], scene: Scene) -> Flow:
        """Judge an argument list, as a wrapper hands it on."""
        return judge.command(self, words, scene)

    # --- words ----------------------------------------------------------------------------------

    def visit(self, node: Any, scene: Scene) -> None:
        """Visit everything below a node that has no rule of its own."""
        if isinstance(node, list):
            for one in node:
                self.visit(one, scene)
        elif isinstance(node, dict):
            if "Parts" in node:
                for word in self.words(node, scene):
                    self.wake(word, scene)
            elif "Cmd" in node:
                self.statement(node, scene)
            else:
                for value in node.values():
                    self.visit(value, scene)

    expressions = visit

    def reckon(self, node: Any, scene: Scene) -> None:
        """Visit what the shell reckons out, and judge that it can."""
        self.visit(node, scene)
        arithmetic.judge(self, node, scene)

    def wake(self, word: Word, scene: Scene) -> None:
        """Judge commands sleeping in a literal subscript, which the shell would run when it evaluates it."""
        for text in word.spellings():
            found = _SLEEPING.search(text)
            if found:
                self.unclear(
                    "expand.subscript",
                    word.span,
                    "A subscript in this text runs a command when the shell evaluates it.",
                    scene,
                )
                inner = found.group("dollar") or found.group("tick") or ""
                self.script(inner, scene.inside("subscript"), word.span, None)

    def words(self, node: Node, scene: Scene) -> list[Word]:
        """Evaluate one word node; several words when it holds braces."""
        parts = node.get("Parts", ())
        if len(parts) == 1 and parts[0].get("Type") == "Lit":  # the common case
            raw = parts[0]["Value"]
            if "\\" not in raw and "{" not in raw:
                kind = WordKind.GLOB if ("*" in raw or "?" in raw or ("[" in raw and "]" in raw)) else WordKind.LITERAL
                start = node["Pos"]["Offset"]
                return [Word(raw, kind, scene.source.span(node), kind is WordKind.GLOB, body=scene.source.body(start))]
        return WordMaker(self, node, scene).make()


def heads_of(nodes: Any) -> set[str]:
    """Literal command words anywhere below a node."""
    found: set[str] = set()
    todo = [nodes]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            if node.get("Type") == "CallExpr" and node.get("Args"):
                head = plain_text(node["Args"][0])
                if head:
                    found.add(head)
            elif node.get("Type") == "DeclClause":
                found.add(node["Variant"]["Value"])
            todo.extend(node.values())
    return found


def _calls_itself(body: Node, name: str) -> bool:
    return name in heads_of(body)


def _spins(loop: Node) -> bool:
    """`while :` around nothing that waits, reads or leaves."""
    condition = heads_of(loop.get("Cond", ()))
    return (
        condition <= {":", "true"}
        and bool(condition)
        and heads_of(loop.get("Do", ())) <= {":", "true", "echo", "printf"}
    )


def _only_copies(command: Node) -> bool:
    """Whether it writes what it reads on standard input: `cat > FILE <<E`."""
    return [plain_text(word) for word in command.get("Args", ())] == ["cat"]
