"""A stage for the runbook brain: the tools of Nomos in their published forms, over machines that a test invents.

It keeps to what the application promises (numbers continue across generations, a completion is refused while steps
are open, nothing is written back, or a check has not passed) and knows nothing about runbooks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from oikos.adapters.model.runbook import RunbookBrain
from oikos.domain.events import ToolCall
from oikos.ports import Message, Reply

Machine = Callable[[str, str], tuple[int, str, str]]
"""Target and command to exit code, standard output and standard error."""
MUTATING = ("sed", "mv", "mount", "chgrp", "chmod", "chown", "mkdir", "systemctl start", "systemctl stop",
            "systemctl reset-failed", "systemctl daemon-reload", "pct set", "pct reboot", "pct snapshot")  # fmt: skip
PACKAGES = re.compile(r"(pct exec \d+ -- )?(env \S+ )?(apt-get .*(update|install|dist-upgrade)\b|dpkg --configure)")


@dataclass
class Stage:
    """One session."""

    brain: RunbookBrain
    machine: Machine
    entities: Sequence[dict[str, Any]]
    decisions: list[str] = field(default_factory=list)
    """What happens to each plan that waits: approve, reject, changes: TEXT, say: TEXT (a comment)."""
    answers: list[str] = field(default_factory=list)
    refusals: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Answers that a tool (or `run COMMAND-PREFIX`) gives before it works, oldest first."""
    known: list[dict[str, Any]] = field(default_factory=list)
    """Facts the inventory has from before."""

    messages: list[Message] = field(default_factory=lambda: [Message(role="system", text="You are Nomos.")])
    replies: list[Reply] = field(default_factory=list)
    plans: list[dict[str, Any]] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    outcome: str = ""
    summary: str = ""
    steps: dict[int, str] = field(default_factory=dict)
    """Of the live plan: state by number."""
    _cited: set[str] = field(default_factory=set)
    _next_step: int = 1

    # ---- the operator ----------------------------------------------------------------------------------------------

    def say(self, text: str) -> Stage:
        """The operator says something; the session runs until it ends or nothing more happens."""
        if self.outcome:
            self.note(f"The session was {self.outcome} and is reopened by a follow-up; it is history.")
            self.outcome, self.summary, self.steps = "", "", {}
        self.messages.append(Message(role="user", text=text))
        return self.go_on()

    def note(self, text: str) -> None:
        """Something Oikos itself says."""
        self.messages.append(Message(role="user", text="[oikos] " + text))

    def go_on(self) -> Stage:
        """Ask the brain until the turn ends."""
        for _ in range(150):
            reply = self.brain.reply(self.messages)
            again = RunbookBrain(self.brain._books).reply(list(self.messages))
            assert (again.text, again.calls) == (reply.text, reply.calls), "the same list gives the same reply"
            self.replies.append(reply)
            self.messages.append(Message(role="assistant", text=reply.text, calls=reply.calls))
            if not reply.calls:
                return self
            parked = self._batch(reply.calls)
            if self.outcome:
                return self
            if parked is not None and not self._decide(parked):
                return self
        raise AssertionError("the session does not end")

    def _decide(self, generation: int) -> bool:
        if not self.decisions:
            return False
        kind, _, text = self.decisions.pop(0).partition(": ")
        match kind:
            case "approve":
                self.note(f"operator approved plan generation {generation}; its window is open.")
            case "changes":
                self.steps = {}
                self.note(f"operator asked for changes to plan generation {generation}. They said: {text}")
            case "reject":
                self.steps = {}
                self.note(f"operator rejected plan generation {generation}. They said: {text}")
            case "say":
                self.messages.append(Message(role="user", text=text))
                reply = self.brain.reply(self.messages)
                self.replies.append(reply)
                self.messages.append(Message(role="assistant", text=reply.text, calls=reply.calls))
                assert not reply.calls, "while a plan waits there is nothing to call"
                return self._decide(generation)
        return True

    # ---- the tools -------------------------------------------------------------------------------------------------

    def _batch(self, calls: Iterable[ToolCall]) -> int | None:
        broken, parked = False, None
        for call in calls:
            args = json.loads(call.arguments)
            if broken or parked is not None:
                body: dict[str, Any] = _refused("batch_ended")
            else:
                planned = self.refusals.get(f"run {args.get('command', '')}") or self.refusals.get(call.name)
                body = planned.pop(0) if planned else getattr(self, "_" + call.name)(**args)
            if (
                planned is not None
                and call.name == "run"
                and "run" in body
                and body["run"] not in [r["run"] for r in self.runs]
            ):
                self.runs.append({"run": body["run"], "command": args["command"], "step": args["step"], "code": 0,
                                  "out": "", "generation": len(self.plans), "check": None})  # fmt: skip
            broken = broken or "refused" in body
            if body.get("status") == "awaiting_approval":
                parked = body["generation"]
            text = json.dumps(body)
            self.messages.append(Message(role="tool", text=text, call_id=call.id, name=call.name))
        return parked

    def _set_goal(self, goal: str) -> dict[str, Any]:
        return {"goal": goal, "do": "propose a plan"}

    def _list_entities(self) -> dict[str, Any]:
        return {"entities": list(self.entities)}

    def _search_facts(self, query: str) -> dict[str, Any]:
        return {"facts": [fact for fact in self.known if query in fact["key"]], "more": 0}

    def _propose_plan(self, steps: list[dict[str, Any]], checks: list[dict[str, Any]]) -> dict[str, Any]:
        assert all(step["title"] and step["target"] for step in steps)
        asks = any(mutates(line) for step in steps for line in step["commands"]) or not all(
            step["commands"] for step in steps
        )
        numbered = [{**step, "seq": self._next_step + number} for number, step in enumerate(steps)]
        self._next_step += len(steps)
        self.plans.append({"steps": numbered, "checks": checks, "asks": asks})
        self.steps = {step["seq"]: "pending" for step in numbered}
        shown = [{"seq": step["seq"], "title": step["title"]} for step in numbered]
        status = "awaiting_approval" if asks else "accepted"
        return {"plan": f"generation {len(self.plans)}: {status}", "generation": len(self.plans), "status": status,
                "steps": shown}  # fmt: skip

    def _update_plan_step(self, seq: int, status: str, note: str = "") -> dict[str, Any]:
        assert seq in self.steps, f"step {seq} is not of the live plan"
        self.steps[seq] = status
        return {"step": seq, "status": status}

    def _run(
        self, target: str, command: str, step: int, timeout_s: int = 120, keep: bool = False, rerun: str = ""
    ) -> dict[str, Any]:
        assert self.plans, "no run before a plan"
        assert step in self.steps, f"step {step} is not of the live plan"
        assert target in [entity["name"] for entity in self.entities]
        assert self.plans[-1]["asks"] or not mutates(command), f"`{command}` needs an approved plan"
        repeated = [run for run in self.runs if (run["command"], run["generation"]) == (command, len(self.plans))]
        if mutates(command) and any(run["code"] == 0 for run in repeated) and not rerun:
            return _refused("duplicate")
        code, out, err = self.machine(target, command)
        run_id = f"r{len(self.runs) + 1}"
        body = {"run": run_id, "target": target, "exit": f"exit {code}", "stdout": out, "stderr": err}
        for number, check in enumerate(self.plans[-1]["checks"], start=1):
            if (check["target"], check["command"]) == (target, command):
                passed = code == check["expect_exit"] and check.get("expect_text", "") in out
                body["check"] = {"n": number, "passed": passed}
        self.runs.append({"run": run_id, "target": target, "command": command, "step": step, "code": code, "out": out,
                          "generation": len(self.plans), "check": body.get("check")})  # fmt: skip
        return body

    def _wait(self, seconds: float, reason: str, run: str = "") -> dict[str, Any]:
        return {"waited": True, "ended_by": "timer"}

    def _read_output(self, run: str) -> dict[str, Any]:
        found = next(entry for entry in self.runs if entry["run"] == run)
        return {"run": run, "outcome": f"exit {found['code']}", "text": found["out"]}

    def _update_entity_attributes(
        self, entity: str, attributes: dict[str, Any], run: str, ttl_s: float = 0
    ) -> dict[str, Any]:
        assert run in [e["run"] for e in self.runs if e["generation"] == len(self.plans)], "cites a run of this plan"
        self._cited.add(run)
        self.facts.update(attributes)
        return {"written": len(attributes), "entity": entity, "run": run}

    def _ask_operator(self, kind: str, question: str, choices: Sequence[str] = ()) -> dict[str, Any]:
        self.questions.append(question)
        return {"answer": self.answers.pop(0) if self.answers else "Stop here"}

    def _complete_task(self, outcome: str, summary: str, evidence: Sequence[str]) -> dict[str, Any]:
        runs = [run for run in self.runs if run["generation"] == len(self.plans)]
        if any(state not in ("done", "failed", "skipped") for state in self.steps.values()):
            open_steps = [str(seq) for seq, state in self.steps.items() if state not in ("done", "failed", "skipped")]
            return {"refused": "steps_open", "text": f"Open steps: {', '.join(open_steps)}.", "do": "close them"}
        if runs and not self._cited & {run["run"] for run in runs}:
            return _refused("no_write_back")
        if outcome == "done" and self.plans and self.plans[-1]["asks"]:
            last = max((number for number, run in enumerate(runs) if mutates(run["command"])), default=-1)
            passed = {run["check"]["n"] for run in runs[last + 1 :] if run["check"] and run["check"]["passed"]}
            if passed != set(range(1, len(self.plans[-1]["checks"]) + 1)):
                return _refused("check_not_passed")
        assert set(evidence) <= {run["run"] for run in runs}
        self.outcome, self.summary = outcome, summary
        return {"completed": outcome}


def _refused(code: str) -> dict[str, Any]:
    return {"refused": code, "text": f"{code}.", "do": "look"}


def mutates(command: str) -> bool:
    """Whether a command changes something: what the rules of Oikos would say of those that runbooks use."""
    return command.startswith(MUTATING) or (PACKAGES.match(command) is not None and " -s " not in command)
