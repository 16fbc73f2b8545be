"""Playing one runbook for one request of the operator: look, say what was seen, and put right what is wrong."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from oikos.adapters.model.book import Act, Ask, Clause, Repair, Runbook, Symptom
from oikos.adapters.model.learned import Learned
from oikos.adapters.model.render import brief, matching, rows_of, sentence, step_of, wanted
from oikos.adapters.model.talk import GaveUp, Ran, Talk, Turn
from oikos.adapters.model.template import HOLE, Hole, command, fill, fill_known
from oikos.adapters.model.transcript import Exchange

HOSTS_AT_ONCE: Final = 8
INVENTORY: Final = "inventory"
"""Origin of a value that the inventory gave."""

Procedure = Generator[Turn, Exchange, None]


@dataclass(slots=True)
class Case:
    """One thing that is wrong: what is known of it, and the symptom it shows, if that is known."""

    learned: Learned
    symptom: Symptom | None = None
    reason: str = ""
    """Why no remedy applies."""


@dataclass(slots=True)
class Memory:
    """What a session knows after a request, for its follow-ups."""

    book: Runbook
    learned: Learned
    cases: dict[str, Case]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An act that did not do what it should."""

    text: str
    ran: Ran | None = None


@dataclass(slots=True)
class Play:
    """One request."""

    book: Runbook
    talk: Talk
    learned: Learned
    said: str
    repairing: bool = False
    """Whether the operator wants something changed; a question is never answered with a question."""
    cases: dict[str, Case] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)
    """Commands that ran to change something, for the note of a failure."""

    @property
    def host(self) -> str:
        """The machine in question; empty until it is found."""
        return self.learned.slots.get("host", "")

    def memory(self) -> Memory:
        """What follow-ups may use."""
        return Memory(book=self.book, learned=self.learned, cases=self.cases)

    # ---- the requests ----------------------------------------------------------------------

    def look(self) -> Procedure:
        """Answer a question by looking."""
        yield from self._goal(self.book.goal)
        yield from self._look_around()
        for step in tuple(self.talk.open_steps):
            self.talk.mark(step, "done", "read")
        self.write_back(self.book.facts)
        yield from self.complete("done", self.answer(self.book.answer, self.cases.values()))

    def enumerate(self) -> Procedure:
        """Answer from the inventory alone."""
        assert self.book.listing is not None
        kinds = self.book.listing.kinds
        word = self.learned.slots.get("kind", "").lower()
        wanted = kinds.get(word, kinds.get(word.removesuffix("s")))
        if wanted is None:
            yield from self.talk.turn(Turn(text=f"I do not know what {word!r} are. I can list: {', '.join(kinds)}."))
            return
        yield from self._goal(self.book.goal)
        rows = [row for row in self.learned.tables.get("entities", []) if not wanted or row.get("kind") in wanted]
        self.learned.tables["entities"] = rows
        self.learned.put("count", str(len(rows)), INVENTORY)
        yield from self.complete("done", self.answer(self.book.answer))

    def find(self, repair: Repair, memory: Memory | None) -> Generator[Turn, Exchange, Case | None]:
        """What is to be put right, known already or looked for; None when nothing is wrong, which it then says."""
        case = self._remembered(repair, memory)
        yield from self._goal(self.fill_or(repair.goal, self.book.goal))
        if case is None:
            yield from self._look_around()
            for step in tuple(self.talk.open_steps):
                self.talk.mark(step, "done", "read")
            self.write_back(self.book.facts)
            case = yield from self._choose(repair)
            if case is None:
                yield from self.complete("nothing_to_do", self.answer(repair.well or self.book.answer))
                return None
        self.learned = case.learned
        # What is being put right is no longer what was seen: a later request looks anew.
        self.cases = {key: other for key, other in self.cases.items() if other is not case}
        return case

    def give_up(self, reason: str) -> Procedure:
        """End the task as failed, with what was tried and the state of what was touched."""
        for step in tuple(self.talk.open_steps):
            self.talk.mark(step, "skipped", reason)
        summary = f"Not done: {reason}"
        if self.done:
            summary += f"\nOn {self.host} these commands had run: " + "; ".join(f"`{done}`" for done in self.done) + "."
        elif self.host:
            summary += f"\nNothing was changed on {self.host}."
        yield from self.complete("failed", summary)

    # ---- goal and context ----------------------------------------------------------------------

    def _goal(self, goal: str) -> Procedure:
        """State the goal and read the inventory, in one response."""
        self.talk.queue.append(("set_goal", {"goal": self.fill_or(goal, self.book.title)}))
        if self.book.facts:
            query = fill_known(next(iter(self.book.facts)), self.learned.slots).partition("…")[0]
            self.talk.queue.append(("search_facts", {"query": query}))
        listed = yield from self.talk.call("list_entities")
        for answer in self.talk.exchange.answers:
            if answer.call.name == "search_facts":
                self.learned.tables["facts"] = rows_of(answer.body.get("facts"))
        if "set_goal" in self.talk.dropped:
            raise GaveUp(f"the goal was refused: {self.talk.dropped['set_goal']}")
        self.learned.tables["entities"] = rows_of(listed.body.get("entities"))
        self.learned.table_origin["entities"] = INVENTORY

    def _candidates(self) -> list[list[str]]:
        """Machines to look at, in rounds: named ones only; else those with known facts first, then the others."""
        machines = [row["name"] for row in self.learned.tables["entities"] if row.get("reachable") == "true"]
        said = set(re.findall(r"[\w.-]*\w", self.said.lower()))
        if named := [name for name in machines if name in said]:
            return [named]
        facts = {row.get("entity", "") for row in self.learned.tables.get("facts", [])}
        known = [name for name in machines if name in facts]
        others = [name for name in machines if name not in facts]
        rounds = [others[start : start + HOSTS_AT_ONCE] for start in range(0, len(others), HOSTS_AT_ONCE)]
        return ([known[:HOSTS_AT_ONCE]] if known else []) + rounds

    # ---- looking ----------------------------------------------------------------------

    def _look_around(self) -> Procedure:
        """Find the machine, read what the runbook reads, and examine what is wrong."""
        rounds = self._candidates()
        if not rounds:
            raise GaveUp("the inventory has no machine that can be reached")
        for hosts in rounds:
            if (step := (yield from self._locate(hosts))) is not None:
                break
        else:
            raise GaveUp("nothing of the kind was found on " + ", ".join(host for hosts in rounds for host in hosts))
        yield from self.acts(self.book.look, self.learned, step)
        repair = self.book.repair
        if repair is None:
            return
        if not repair.rows:
            self.learned.take(repair.healthy, "", "")
            if "healthy" not in self.learned.slots:
                self.cases[""] = yield from self.examine(repair, self.learned, step)
            return
        for row in self.learned.tables.get(repair.rows, [])[:HOSTS_AT_ONCE]:
            learned = self.learned.copy()
            for column, value in row.items():
                learned.put(column, value, learned.table_origin.get(repair.rows, ""))
            self.cases[row.get(repair.key, "")] = yield from self.examine(repair, learned, step)

    def _locate(self, hosts: Sequence[str]) -> Generator[Turn, Exchange, int | None]:
        """Look for the thing on some machines; the step under which it was found."""
        locate = self.book.locate
        assert locate is not None
        plan = []
        for host in hosts:
            learned = self.learned.copy()
            learned.put("host", host)
            plan.append(step_of(locate, learned))
        steps = yield from self.talk.propose(plan, [])
        for host, step in zip(hosts, steps, strict=True):
            learned = self.learned.copy()
            learned.put("host", host)
            failure = yield from self.acts(locate.acts, learned, step)
            if self.book.found in learned.slots:
                self.learned = learned
                for other in steps:
                    if other != step:
                        self.talk.mark(other, "skipped", f"found on {host}")
                return step
            self.talk.mark(
                step, "failed" if failure else "done", failure.text if failure else "nothing of the kind here"
            )
        return None

    def acts(
        self, acts: Sequence[Act], learned: Learned, step: int, *, strict: bool = False, rerun: str = ""
    ) -> Generator[Turn, Exchange, Failure | None]:
        """Carry out acts one after another. A look that finds nothing is no failure; with `strict`, everything is."""
        for act in acts:
            if not all(name in learned.slots for name in act.needs) or any(
                name in learned.slots for name in act.unless
            ):
                continue
            try:
                line = command(act.run, learned.slots)
            except Hole as hole:
                if strict or act.must:
                    return Failure(text=f"{hole} is not known")
                continue
            host = learned.slots["host"]
            ran = yield from self.talk.run(host, line, step, timeout_s=act.timeout_s, rerun=rerun)
            if ran.refused:
                return Failure(text=ran.exit, ran=ran)
            if strict:
                self.done.append(line)
            learned.forget([name for rule in act.take for name in rule.slots])
            learned.take(act.take, ran.stdout, ran.run)
            if act.keep:
                learned.put(act.keep, ran.output, ran.run)
            if act.ask is not None and act.ask.slot not in learned.slots:
                if not self.repairing:
                    return Failure(text=f"looking alone does not show {act.ask.slot}", ran=ran)
                yield from self.ask_for(act.ask, learned)
            if act.must is not None and not _holds(act, ran, learned):
                return Failure(text=self.fill_or(act.must.otherwise, "it is not as it should be", learned), ran=ran)
            if strict and ran.code != 0:
                return Failure(text=f"`{line}` ended with {ran.exit}", ran=ran)
        return None

    def ask_for(self, ask: Ask, learned: Learned) -> Procedure:
        """Let the operator fill a slot."""
        choices = [row[ask.column] for row in learned.tables.get(ask.table, []) if row.get(ask.column)]
        answer = yield from self.talk.ask(self.fill_or(ask.question, ask.slot, learned), choices)
        if not (value := wanted(ask, answer, learned)):
            raise GaveUp(f"{self.fill_or(ask.question, ask.slot, learned)} The answer was: {answer or 'none'}")
        learned.put(ask.slot, value)

    def examine(self, repair: Repair, learned: Learned, step: int, more: str = "") -> Generator[Turn, Exchange, Case]:
        """Which known symptom shows, and whether its remedy applies; the newest text is looked at first."""
        texts = []
        for template in repair.evidence:
            try:
                texts.append(fill(template, learned.slots))
            except Hole:
                continue
        evidence = "\n".join([*texts, more])
        reasons = []
        for symptom, found in matching(repair.symptoms, evidence, learned):
            if self.tried.get(symptom.name, 0) >= symptom.tries:
                reasons.append(f"{symptom.name} was repaired already and shows again")
                continue
            mine = learned.copy()
            for name, value in found.items():
                mine.put(name, value, self.talk.runs[-1] if self.talk.runs else "")
            failure = yield from self.acts(symptom.look, mine, step)
            if failure is None:
                return Case(learned=mine, symptom=symptom)
            reasons.append(failure.text)
        return Case(learned=learned, reason="; ".join(reasons) or f"nothing known fits: {brief(evidence)}")

    # ---- choosing ----------------------------------------------------------------------

    def _remembered(self, repair: Repair, memory: Memory | None) -> Case | None:
        """The case the operator means, if this session knows it and what to do about it."""
        if memory is None or memory.book.name != self.book.name:
            return None
        named = self.learned.slots.get(repair.key, "") if repair.key else ""
        keys = [named] if named else list(memory.cases)
        if len(keys) != 1 or keys[0] not in memory.cases:
            return None
        case = memory.cases[keys[0]]
        if case.symptom is None:
            return None
        for name, value in self.learned.slots.items():
            case.learned.slots.setdefault(name, value)
        self.learned.slots.update(case.learned.slots)
        self.cases = dict(memory.cases)
        return case

    def _choose(self, repair: Repair) -> Generator[Turn, Exchange, Case | None]:
        """The case to put right; None when nothing is wrong."""
        named = self.learned.slots.get(repair.key, "") if repair.key else ""
        if named and named in self.cases:
            return self.cases[named]
        if named or not self.cases:
            return None
        if len(self.cases) == 1:
            return next(iter(self.cases.values()))
        answer = yield from self.talk.ask(f"Which {repair.key} shall I repair?", list(self.cases))
        if answer not in self.cases:
            raise GaveUp(f"it is not clear which {repair.key} is meant: {answer or 'no answer'}")
        return self.cases[answer]

    # ---- endings ----------------------------------------------------------------------

    def complete(self, outcome: str, summary: str) -> Procedure:
        yield from self.talk.complete(outcome, summary, host=self.host, book=self.book.name)

    def write_back(self, facts: Mapping[str, str]) -> None:
        """Queue what was learned, each value under the run of this plan that showed it (SPEC R6.2)."""
        by_run: dict[str, dict[str, object]] = {}
        for key, template in facts.items():
            try:
                name, value = fill(key, self.learned.slots), fill(template, self.learned.slots)
            except Hole:
                continue
            runs = [self.learned.origin.get(found[1], "") for found in HOLE.finditer(template)]
            run = next((run for run in reversed(runs) if run in self.talk.runs), "")
            if run and value and re.fullmatch(r"[a-z0-9][a-z0-9_.:-]{0,79}", name):
                by_run.setdefault(run, {})[name] = value[:2000]
        for run, attributes in by_run.items():
            args: dict[str, object] = {"entity": self.host, "attributes": attributes, "run": run}
            if self.book.ttl_s is not None:
                args["ttl_s"] = self.book.ttl_s
            self.talk.queue.append(("update_entity_attributes", args))

    def answer(self, clauses: Sequence[Clause], cases: Iterable[Case] = ()) -> str:
        """The clauses whose values are all known and that say something a run (or the inventory) showed."""
        lines = []
        for clause in clauses:
            if clause.each:
                origin = self.learned.table_origin.get(clause.each, "")
                for row in self.learned.tables.get(clause.each, []):
                    lines += sentence(clause.say, {**self.learned.slots, **row}, dict.fromkeys(row, origin))
            else:
                lines += sentence(clause.say, self.learned.slots, self.learned.origin)
        for case in cases:
            if case.symptom is not None and case.symptom.say:
                lines += sentence(case.symptom.say, case.learned.slots, case.learned.origin)
        return "\n".join(dict.fromkeys(lines)) or f"{self.book.title}: nothing that was read says it."

    def fill_or(self, template: str, otherwise: str, learned: Learned | None = None) -> str:
        try:
            return fill(template, (learned or self.learned).slots)
        except Hole:
            return fill_known(otherwise, (learned or self.learned).slots)


def _holds(act: Act, ran: Ran, learned: Learned) -> bool:
    must = act.must
    if must is None:
        return True
    return ran.code == must.exit if must.exit is not None else must.slot in learned.slots
