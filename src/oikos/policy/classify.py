"""The classifier: parse, walk, fold; the same text always gives the same verdict."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable

from oikos.domain.secret_files import IN_STDIN
from oikos.domain.verdict import Effect, EffectKind, Reason, Risk, Verdict
from oikos.policy import danger
from oikos.policy.canonical import canonical
from oikos.policy.findings import Finding
from oikos.policy.knowledge import Knowledge
from oikos.policy.parser import MAX_TEXT_BYTES, Node, Parser, plain_throughout
from oikos.policy.scene import EMPTY, UNKNOWN, Flow, Scene, Source, TooMuch
from oikos.policy.text import deceptive
from oikos.policy.walk import Walker, heads_of

_CACHE_SIZE = 4096
_SHORT_CHARS = 200
DEFAULT_SELF_NAMES = frozenset(("oikos",))


def own_names(*, home: str, socket: str = "", port: int | None = None) -> frozenset[str]:
    """What names the controller in a command (SPEC R3.13): itself, its folder, its socket, its port on this machine."""
    return DEFAULT_SELF_NAMES | {one for one in (home, socket, f":{port}" if port else "") if one}


class Classifier:
    """Says how risky a command text is (SPEC §4). Holds a cache; otherwise without state."""

    def __init__(self, parser: Parser, knowledge: Knowledge, self_names: Iterable[str] = DEFAULT_SELF_NAMES) -> None:
        """`self_names`: words and paths that name the controller itself (SPEC R3.13)."""
        self._parser = parser
        self._knowledge = knowledge
        self._self_names = frozenset(self_names)
        self._cache: OrderedDict[tuple[str, str | None, str], Verdict] = OrderedDict()

    def classify(self, text: str, stdin: str | None = None, *, dialect: str = "bash") -> Verdict:
        """The verdict on `text`, as the shell `dialect` would read it. Never raises.

        `stdin`: what it is given on standard input, judged as a here-document is; None: nothing.
        """
        key = (text, stdin, dialect)
        cached = self._cache.get(key)
        if cached is not None:
            self._cache.move_to_end(key)
            return cached
        try:
            verdict = self._judge(text, stdin, dialect)
        except Exception as problem:  # a crash of the analyser must never let a command through (SPEC R4.1)
            verdict = _crashed(text, problem, self._knowledge.digest)
        self._cache[key] = verdict
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return verdict

    def quick(self, text: str, stdin: str | None = None, *, dialect: str = "bash") -> Verdict | None:
        """The verdict where it costs no process and well below a millisecond, else None; equal to `classify`'s."""
        short = stdin is None and len(text) <= _SHORT_CHARS and plain_throughout(text)
        if short or (text, stdin, dialect) in self._cache:
            return self.classify(text, stdin, dialect=dialect)
        return None

    def _judge(self, text: str, stdin: str | None, dialect: str) -> Verdict:
        walker = Walker(self._parser, self._knowledge, self._self_names, dialect)
        everything = (0, len(text))
        scene = Scene(Source(text, 0, everything), stdin=_given(stdin))
        if len(text.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
            walker.unclear("limit.bytes", everything, f"The text is longer than {MAX_TEXT_BYTES} bytes.", scene)
            danger.scan_text(walker, text, scene, everything)
            return _fold(walker, "none", self._knowledge.digest, text)
        parsed = self._parser.parse(text, dialect)
        quoted = [] if parsed.tree is None or text.isascii() else _quoted(parsed.tree, scene.source)
        odd = deceptive(text, quoted)
        if odd:
            walker.unclear("text.control", (odd[0], odd[0] + 1), odd[1], scene)
        if re.search(r"(?:^|\s)#[^\n'\"]*\\\n", text):
            # A backslash does not continue a comment; parsers and readers differ here.
            walker.unclear(
                "text.comment", everything, "A comment ends in a backslash: the next line is not part of it.", scene
            )
            danger.scan_text(walker, text, scene, everything)
        if parsed.tree is None:
            walker.unclear("parse.failed", everything, f"The shell text cannot be parsed: {parsed.error}.", scene)
            danger.scan_text(walker, text, scene, everything)
            return _fold(walker, parsed.parser, self._knowledge.digest, text)
        try:
            walker.tree(parsed.tree, scene)
        except (TooMuch, RecursionError) as limit:
            walker.unclear("limit.size", everything, f"The text is too large to look at: {limit}.", scene)
            danger.scan_text(walker, text, scene, everything)
        if parsed.parser != "plain words" and _worst(walker.report.findings) is Risk.READ_ONLY:
            self._second_opinion(walker, text, parsed.tree, scene)
        return _fold(walker, parsed.parser, self._knowledge.digest, text, parsed.tree)

    def _second_opinion(self, walker: Walker, text: str, tree: Node, scene: Scene) -> None:
        """A literal command another parser sees and ours did not means that one of them is wrong."""
        seen = self._parser.heads(text)
        if seen is None:
            return
        extra = seen - heads_of(tree) - {"time"}  # tree-sitter knows no time keyword
        if extra:
            danger.scan_text(walker, text, scene, (0, len(text)))
            name = sorted(extra)[0]
            walker.unclear("parser.disagree", (0, len(text)), f"Two parsers disagree about the command {name}.", scene)


def _given(stdin: str | None) -> Flow:
    """What a text is given on standard input: a here-document, in which a secret stands as one word."""
    if stdin is None:
        return EMPTY
    if len(stdin.encode("utf-8", "surrogatepass")) > MAX_TEXT_BYTES:
        return EMPTY.plus(UNKNOWN)
    return Flow(text=IN_STDIN.sub("oikos-secret", stdin), piped=True, here=True)


def _quoted(tree: Node, source: Source) -> list[tuple[int, int]]:
    """Character ranges of quoted data and here-documents."""
    found: list[tuple[int, int]] = []
    todo: list[object] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            if node.get("Type") in ("SglQuoted", "DblQuoted"):
                found.append(source.span(node))
            if isinstance(node.get("Hdoc"), dict):
                found.append(source.span(node["Hdoc"]))
            todo.extend(node.values())
    return found


def _worst(findings: Iterable[Finding]) -> Risk:
    return max((finding.risk for finding in findings), key=lambda risk: risk.rank, default=Risk.READ_ONLY)


def _fold(walker: Walker, parser: str, digest: str, text: str, tree: Node | None = None) -> Verdict:
    """The worst finding wins; effects are joined; nothing lowers anything."""
    findings = walker.report.findings
    effects: set[tuple[str, str]] = set()
    for finding in findings:
        effects.update((effect.kind.value, effect.object) for effect in finding.effects)
    reasons: dict[Reason, None] = {}
    for finding in sorted(findings, key=lambda one: -one.risk.rank):
        reason = Reason(rule=finding.rule, risk=finding.risk, span=finding.span, text=finding.text, via=finding.via)
        reasons.setdefault(reason)
    return Verdict(
        risk=_worst(findings),
        effects=tuple(Effect(kind=EffectKind(kind), object=thing) for kind, thing in sorted(effects)),
        reasons=tuple(reasons),
        actions=tuple(walker.report.actions),
        objects=tuple(walker.report.objects),
        advice="; ".join(dict.fromkeys(walker.report.advice)),
        pipeline_hides_failure=walker.report.hides_failure,
        canonical=canonical(text, tree),
        parser=parser,
        knowledge=digest,
    )


def _crashed(text: str, problem: Exception, digest: str) -> Verdict:
    span = (0, len(text))
    reason = Reason(
        rule="analyser.crash",
        risk=Risk.DESTRUCTIVE,
        span=span,
        text=f"The analyser failed on this text ({type(problem).__name__}: {problem}); it is treated as destructive.",
    )
    return Verdict(
        risk=Risk.DESTRUCTIVE,
        effects=(Effect(kind=EffectKind.UNCLASSIFIED),),
        reasons=(reason,),
        canonical=" ".join(text.split()),
        knowledge=digest,
    )
