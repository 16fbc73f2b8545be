"""One command for everything a rule file refuses, so that no refusal can go without a test that fails.

`python -m tests.policy.refused` writes `refused.tsv` anew after rules were added; read its difference before you
commit it: a line that goes, or whose class sinks, is a refusal that was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from oikos.domain.verdict import Risk
from oikos.policy import default_classifier
from oikos.policy.classify import Classifier
from oikos.policy.knowledge import Knowledge, load
from oikos.policy.spec import Option, Program, Rule, Takes

TABLE = Path(__file__).parent / "refused.tsv"
_PATH = "/srv/x"
_VALUES = {"int": "7", "url": "http://nas.lan/x", "path": _PATH, "read": _PATH, "out": _PATH, "sql": "select 1"}


def refusals(program: Program) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(what, commands, the option in them) of every refused option and every changing subcommand of a program.

    The commands are tries: the best one only looks without the option.
    """
    name = program.names[0]
    looks = [text.replace("{}", name) for text in program.examples.get(Risk.READ_ONLY, ())]
    yield from _options(name, looks, program.base)
    for words, rules in program.subs.items():
        for rule in rules:
            needs = " ".join(sorted(rule.needs)[:1])
            head = " ".join((name, *words, needs)).strip()
            if rule.risk is not Risk.READ_ONLY:
                yield rule.name, (f"{head} x",), ""
            yield from _options(head, looks, rule, above=program.base)
    for when, rule in program.modes:
        first = next(iter(sorted(when - {"none"})), "")
        head = " ".join((name, *first.split("+"))).strip()
        if rule.risk is not Risk.READ_ONLY:
            yield rule.name, (head,), ""
        yield from _options(head, looks, rule, above=program.base)


def _options(
    head: str, looks: list[str], rule: Rule, above: Rule | None = None
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for option in rule.options.values():
        if option.risk is Risk.READ_ONLY or (above is not None and above.options.get(option.name) == option):
            continue
        spelled = _spelled(option)
        tries = [f"{head} {spelled}{more}" for more in ("", " x", " x y")]
        tries += [f"{head} {spelled}{look[len(head) :]}" for look in looks if look.startswith(head + " ")]
        yield f"{rule.name} {option.name}", tuple(tries), f" {spelled}"


def _spelled(option: Option) -> str:
    value = _VALUES.get(option.kind, option.kind.split("|")[0] if "|" in option.kind else "x")
    match option.takes:
        case Takes.NOTHING:
            return option.name
        case Takes.VALUE if option.name.startswith("--"):
            return f"{option.name}={value}"
        case Takes.VALUE:
            return f"{option.name} {value}"
        case _:
            return option.name


def rows(classifier: Classifier, knowledge: Knowledge) -> list[tuple[str, str, Risk]]:
    """Every refusal that is above a look when it stands alone: (what, command, class)."""
    found: dict[str, tuple[str, str, Risk]] = {}

    def risk(command: str) -> Risk:
        return classifier.classify(command).risk

    for program in knowledge.check():
        for what, tries, option in refusals(program):
            above = [command for command in tries if risk(command) is not Risk.READ_ONLY]
            alone = (command for command in above if option and risk(command.replace(option, "", 1)) is Risk.READ_ONLY)
            chosen = next(alone, above[0] if above else None)
            if chosen is not None:
                found.setdefault(chosen, (what, chosen, risk(chosen)))
    return sorted(found.values())


def read() -> list[tuple[str, str, Risk]]:
    """The committed table."""
    lines = TABLE.read_text("utf-8").splitlines()[1:]
    return [(what, command, Risk(risk)) for what, command, risk in (line.split("\t") for line in lines)]


if __name__ == "__main__":
    made = rows(default_classifier(), load())
    body = "".join(f"{what}\t{command}\t{risk.value}\n" for what, command, risk in made)
    TABLE.write_text("what\tcommand\tclass\n" + body, encoding="utf-8")
