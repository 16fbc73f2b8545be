"""Putting one thing right: plan, approval, remedy, proof, and recovery from what is met on the way."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from oikos.adapters.model.book import PlanCheck, Repair, Stage, Symptom
from oikos.adapters.model.learned import Learned
from oikos.adapters.model.play import Case, Failure, Play, Procedure
from oikos.adapters.model.render import brief, check_of, line_of, sentence, step_of, wanted
from oikos.adapters.model.talk import ChangesAsked, GaveUp, Turn
from oikos.adapters.model.transcript import Exchange

ROUNDS: Final = 8
"""Of repair, check and recovery; each symptom is bounded by itself."""
AGAIN: Final = "Try again"
STOP: Final = "Stop here"


class Mending:
    """The repair of one case: plan, approval, fix, apply, recover, check."""

    def __init__(self, play: Play, repair: Repair) -> None:
        self._play = play
        self._talk = play.talk
        self._repair = repair
        self._checks: list[PlanCheck] = []
        self._repaired: list[str] = []
        """What the answer says of every remedy that was carried out, in order."""

    def mend(self, case: Case) -> Procedure:
        """From the plan to the verified end."""
        play = self._play
        if case.symptom is not None and case.symptom.operator:
            yield from self._operator_does(case.symptom, case.learned)
            case = Case(learned=case.learned)
        elif case.symptom is None:
            yield from self._unknown(case)
        fix, apply = yield from self._agree(case)
        self._talk.say("Approved. I go through the steps one by one.")
        symptom = case.symptom
        if symptom is not None and fix is not None:
            self._count(symptom)
            failure = yield from play.acts(symptom.fix, play.learned, fix, strict=True)
            if failure is not None:
                yield from self._recover(failure, fix)
            self._remember(symptom, play.learned)
            self._talk.mark(fix, "done", f"{symptom.name}: repaired")
        yield from self._apply(apply)
        self._talk.mark(apply, "done", "verified by the checks")
        play.write_back({**self._repair.facts, **(symptom.facts if symptom is not None else {})})
        yield from play.complete("done", "\n".join([play.answer(self._repair.answer), *self._repaired]))

    def _agree(self, case: Case) -> Generator[Turn, Exchange, tuple[int | None, int]]:
        """Propose until the operator agrees."""
        play = self._play
        while True:
            steps = []
            if case.symptom is not None:
                self._talk.say(f"What is wrong: {case.symptom.name}.")
                stage = Stage(title=case.symptom.title, acts=case.symptom.fix)
                undo = line_of(case.symptom.undo, play.learned) if case.symptom.undo else ""
                steps.append({**step_of(stage, play.learned), **({"undo": undo} if undo else {})})
            steps.append(step_of(self._repair.apply, play.learned))
            self._checks = [*self._repair.checks, *(case.symptom.checks if case.symptom is not None else ())]
            checks = [made for check in self._checks if (made := check_of(check, play.learned)) is not None]
            try:
                numbers = yield from self._talk.propose(steps, checks)
            except ChangesAsked as asked:
                yield from self._change(case, str(asked))
                continue
            return (numbers[0] if len(numbers) > 1 else None, numbers[-1])

    def _change(self, case: Case, said: str) -> Procedure:
        """Another value for a slot that the operator may fill; else it says that it cannot."""
        asks = [act.ask for act in case.symptom.look if act.ask is not None] if case.symptom is not None else []
        for ask in asks:
            if value := wanted(ask, said, self._play.learned, within=True):
                self._play.learned.put(ask.slot, value)
                return
        if not asks:
            raise GaveUp(f"this runbook has one way only and cannot change it as asked: {said}")
        yield from self._play.ask_for(asks[0], self._play.learned)

    def _apply(self, step: int) -> Procedure:
        """Carry it out and check it, repairing what is met on the way."""
        rerun = ""
        for _ in range(ROUNDS):
            failure = yield from self._play.acts(
                self._repair.apply.acts, self._play.learned, step, strict=True, rerun=rerun
            )
            if failure is None:
                failure = yield from self._check_all(step)
            if failure is None:
                return
            rerun = yield from self._recover(failure, step)
        raise GaveUp(f"it does not come to an end after {ROUNDS} rounds")

    def _check_all(self, step: int) -> Generator[Turn, Exchange, Failure | None]:
        play = self._play
        for check in self._checks:
            made = check_of(check, play.learned)
            if made is None:
                continue
            ran = yield from self._talk.run(play.host, str(made["command"]), step)
            play.learned.forget([name for rule in check.take for name in rule.slots])
            play.learned.take(check.take, ran.stdout, ran.run)
            expected = str(made.get("expect_text", ""))
            passed = ran.passed if ran.passed is not None else ran.code == check.exit and expected in ran.stdout
            if not passed:
                return Failure(text=f"the check `{ran.command}` does not show what it should ({ran.exit})", ran=ran)
        return None

    def _recover(self, failure: Failure, step: int) -> Generator[Turn, Exchange, str]:
        """Find out why something failed and repair that; the reason for repeating it.

        Raises:
            GaveUp: nothing known fits and the operator does not want another try, or the remedy failed too.
        """
        play = self._play
        printed = failure.ran.output if failure.ran is not None else ""
        self._talk.say(f"{failure.text[0].upper()}{failure.text[1:]}. I look for the reason.")
        yield from play.acts(self._repair.diagnose, play.learned, step)
        case = yield from play.examine(self._repair, play.learned, step, printed)
        if case.symptom is None:
            kept = len(self._talk.runs)
            yield from play.acts(self._repair.more, play.learned, step)
            if len(self._talk.runs) > kept:
                case = yield from play.examine(self._repair, play.learned, step, printed)
        if case.symptom is None:
            return (yield from self._no_remedy(f"{failure.text}. {case.reason}"))
        if case.symptom.operator:
            yield from self._operator_does(case.symptom, case.learned)
            return f"the operator has dealt with: {case.symptom.name}"
        self._count(case.symptom)
        play.learned = case.learned
        self._talk.say(f"This is known: {case.symptom.name}. {play.fill_or(case.symptom.title, '')}.")
        again = yield from play.acts(case.symptom.fix, case.learned, step, strict=True)
        if again is not None:
            return (yield from self._no_remedy(f"{failure.text}; the remedy failed too: {again.text}"))
        self._remember(case.symptom, case.learned)
        return f"{case.symptom.name}: repaired"

    def _remember(self, symptom: Symptom, learned: Learned) -> None:
        self._repaired += sentence(symptom.repaired, learned.slots, learned.origin) if symptom.repaired else []

    def _unknown(self, case: Case) -> Procedure:
        """No known symptom before anything was tried: one more read, then the operator decides."""
        step = next(iter(self._talk.open_steps), None) or self._laststep_of()
        if step is not None:
            yield from self._play.acts(self._repair.more, self._play.learned, step)
            found = yield from self._play.examine(self._repair, self._play.learned, step)
            if found.symptom is not None:
                case.symptom, case.learned = found.symptom, found.learned
                self._play.learned = found.learned
                return
            case.reason = found.reason
        yield from self._no_remedy(case.reason)

    def _laststep_of(self) -> int | None:
        marked = [args["seq"] for name, args in self._talk.queue if name == "update_plan_step"]
        return marked[-1] if marked and isinstance(marked[-1], int) else None

    def _no_remedy(self, evidence: str) -> Generator[Turn, Exchange, str]:
        """Ask the operator, with the evidence."""
        answer = yield from self._talk.ask(
            f"I have no remedy for this on {self._play.host}: {brief(evidence)} "
            f"Put it right and choose {AGAIN!r}, or choose {STOP!r}.",
            (AGAIN, STOP),
        )
        if answer.strip("'\". ").lower() not in (AGAIN.lower(), "again", "retry", "1"):
            raise GaveUp(f"{brief(evidence)} The operator said: {answer or 'nothing'}")
        return "the operator asked for another try"

    def _operator_does(self, symptom: Symptom, learned: Learned) -> Procedure:
        """Something only the operator can do: say exactly what, and wait for it."""
        self._count(symptom)
        what = self._play.fill_or(symptom.operator, symptom.title, learned)
        answer = yield from self._talk.ask(f"{what} Choose {AGAIN!r} when it is done, or {STOP!r}.", (AGAIN, STOP))
        if answer.strip("'\". ").lower() not in (AGAIN.lower(), "again", "retry", "done", "1"):
            raise GaveUp(f"{what} The operator said: {answer or 'nothing'}")

    def _count(self, symptom: Symptom) -> None:
        self._play.tried[symptom.name] = self._play.tried.get(symptom.name, 0) + 1
