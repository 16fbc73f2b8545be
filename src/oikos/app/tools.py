"""What each tool does: arguments in, an answer and staged events out (SPEC §2)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from oikos.app.arguments import BadArguments, parse
from oikos.app.drafting import Args, Drafting, unusable
from oikos.app.execute import Executor
from oikos.app.fleet import Fleet
from oikos.app.log import SessionLog
from oikos.app.told import Answer, refused
from oikos.app.toolbox import BY_NAME
from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.agent_rules import steers_access
from oikos.domain.errors import Code, Refusal, SeqConflict, TargetChanged
from oikos.domain.gate import name_refusal
from oikos.domain.inventory import Entity, Fact, Inventory, Mode
from oikos.domain.plan import (
    PlanStatus,
    StepStatus,
)  # fmt: skip
from oikos.domain.run import DEFAULT_TIMEOUT_S, RunRequest, Stream
from oikos.domain.session import decide
from oikos.domain.view import for_model
from oikos.ports import Classify, Clock, Store

FACT_KEY = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,79}")
MAX_FACT_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call in its session."""

    log: SessionLog
    id: str
    name: str
    args: Args

    def text(self, name: str, default: str = "") -> str:
        """A string argument."""
        return cast("str", self.args.get(name, default))

    def decide(self, intent: it.AgentIntent) -> Refusal | None:
        """Stage what the rules make of an intent, or say why not."""
        decision = self.log.consider(lambda state, now: decide(state, intent, now))
        return decision if isinstance(decision, Refusal) else None


Handler = Callable[[Call], Awaitable[Answer | None]]


def answer(**body: object) -> Answer:
    """An answer as one JSON object."""
    text = orjson.dumps(body).decode()
    return Answer(text=text, seen=text)


class Tools:
    """The tool table of one process."""

    def __init__(self, *, store: Store, clock: Clock, classify: Classify, fleet: Fleet, executor: Executor) -> None:
        self._store = store
        self._clock = clock
        self._classify = classify
        self._fleet = fleet
        self._executor = executor
        self._handlers: dict[str, Handler] = {
            "set_goal": self._set_goal,
            "propose_plan": self._propose_plan,
            "update_plan_step": self._update_plan_step,
            "run": self._run,
            "read_output": self._read_output,
            "wait": self._wait,
            "list_entities": self._list_entities,
            "get_entity": self._get_entity,
            "search_facts": self._search_facts,
            "update_entity_attributes": self._update_entity_attributes,
            "ask_operator": self._ask_operator,
            "complete_task": self._complete_task,
        }

    async def call(self, log: SessionLog, call: ev.ToolCall) -> Answer | None:
        """Carry one call out; None when it is answered later (parked, asked, waiting)."""
        spec = BY_NAME.get(call.name)
        handler = self._handlers.get(call.name)
        if spec is None or handler is None:
            known = ", ".join(BY_NAME)
            return refused(
                Refusal(
                    code=Code.UNKNOWN_TOOL,
                    text=f"There is no tool {call.name[:80]!r}.",
                    directive=f"The tools are: {known}.",
                )
            )
        try:
            args = parse(call.arguments, spec.parameters)
        except BadArguments as error:
            return refused(
                Refusal(
                    code=Code.MALFORMED_CALL, text=f"{call.name}: {error}.", directive="Correct the call and repeat it."
                )
            )
        return await handler(Call(log=log, id=call.id, name=call.name, args=args))

    # ---- goal and plan -----------------------------------------------------------------------------------------------

    async def _set_goal(self, call: Call) -> Answer:
        refusal = call.decide(it.SetGoal(goal=call.text("goal")))
        if refusal is not None:
            return refused(refusal)
        return answer(
            goal=call.text("goal"),
            do="Gather context with list_entities, get_entity and search_facts, then call propose_plan: mandatory, "
            "also for read-only work; one step is fine. run is refused before that.",
        )

    async def _propose_plan(self, call: Call) -> Answer:
        inventory = await self._fleet.inventory()
        made = await Drafting(call.id, call.args, inventory, self._classify).draft()
        if isinstance(made, Refusal):
            return refused(made)
        refusal = await self._propose(call, made, inventory)
        if refusal is not None:
            return refused(refusal)
        state = call.log.state
        plan = state.plan
        assert plan is not None, "just proposed"
        accepted = state.status is PlanStatus.ACCEPTED
        steps = [
            {"seq": step.seq, "title": step.title, "target": step.target, "risk": step.risk.value}
            for step in plan.steps
        ]
        body: dict[str, object] = {
            "plan": f"generation {plan.generation}: "
            + ("accepted (read-only, no approval needed)" if accepted else "awaiting_approval"),
            "generation": plan.generation,
            "status": "accepted" if accepted else "awaiting_approval",
            "steps": steps,
            "checks": len(plan.checks),
        }
        body["do"] = (
            "Run the steps one by one."
            if accepted
            else "End your response here; you are woken when the operator has decided."
        )
        return answer(**body)

    async def _propose(self, call: Call, made: it.Propose, inventory: Inventory) -> Refusal | None:
        """Stage the proposal, with what its script files hold; nothing is read for one that would be refused."""
        log = call.log
        while any(command.scripts for step in made.steps for command in step.commands):
            decision = decide(log.state, made, self._clock.now())
            if isinstance(decision, Refusal):
                return decision
            try:
                made = await self._executor.scripts.into(log, made, inventory)
                break
            except SeqConflict:
                await log.refresh()
            except TargetChanged:
                self._fleet.forget()
                break  # left as not read: the gate's rule for files that may differ holds
        return call.decide(made)

    async def _update_plan_step(self, call: Call) -> Answer:
        seq = cast("int", call.args["seq"])
        status = StepStatus(call.text("status"))
        refusal = call.decide(it.MarkStep(seq=seq, status=status, note=call.text("note")))
        return refused(refusal) if refusal is not None else answer(step=seq, status=status.value)

    # ---- runs --------------------------------------------------------------------------------------------------------

    async def _run(self, call: Call) -> Answer | None:
        args = call.args
        wrong = unusable(call.text("command"), call.text("stdin"))
        if wrong is not None:
            return refused(wrong)
        request = RunRequest(
            call_id=call.id,
            target=call.text("target"),
            command=call.text("command"),
            step=cast("int | None", args.get("step")),
            timeout_s=float(cast("float", args.get("timeout_s", DEFAULT_TIMEOUT_S))),
            background=bool(args.get("background", False)),
            keep=bool(args.get("keep", False)),
            stdin=cast("str | None", args.get("stdin")),
            rerun=call.text("rerun"),
        )
        return await self._executor.run(call.log, request)

    async def _read_output(self, call: Call) -> Answer:
        run_id = call.text("run")
        rows = await self._store.runs(run_id=run_id)
        if not rows or rows[0].session_id != call.log.session_id:
            return refused(
                Refusal(
                    code=Code.UNKNOWN_RUN,
                    text=f"There is no run {run_id} in this session.",
                    directive="Use the id a run returned.",
                )
            )
        stream = Stream.ERR if call.text("stream") == "stderr" else Stream.OUT
        data = await self._store.output(run_id, stream)
        lines = data.splitlines()
        wanted = cast("Sequence[int]", call.args.get("lines", ()))
        if wanted and len(wanted) != 2:
            return refused(
                Refusal(
                    code=Code.MALFORMED_CALL, text="lines must be two numbers.", directive="Give first and last line."
                )
            )
        grep = call.text("grep").encode()
        picked = numbered(lines, (wanted[0], wanted[1]) if wanted else None, grep)
        body = for_model(picked)
        return answer(
            run=run_id, outcome=rows[0].outcome or rows[0].status, lines=len(lines), text=body.text, whole=body.whole
        )

    async def _wait(self, call: Call) -> Answer | None:
        seconds = float(cast("float", call.args["seconds"]))
        refusal = call.decide(
            it.Wait(call_id=call.id, seconds=seconds, reason=call.text("reason"), run_id=call.text("run"))
        )
        return refused(refusal) if refusal is not None else None

    # ---- inventory ---------------------------------------------------------------------------------------------------

    async def _list_entities(self, call: Call) -> Answer:
        inventory = await self._fleet.inventory()
        kind = call.text("kind")
        now_s = self._clock.now().wall_s
        rows = []
        for entity in sorted(inventory.entities.values(), key=lambda e: e.slug):
            if entity.gone or (kind and entity.kind != kind):
                continue
            facts = inventory.facts.get(entity.id, {})
            parent = inventory.get(entity.parent)
            rows.append(
                {
                    "name": entity.slug,
                    "kind": entity.kind,
                    "mode": entity.mode.value,
                    "parent": parent.slug if parent else None,
                    "reachable": inventory.route(entity) is not None and entity.mode is not Mode.LOCKED,
                    "facts": len(facts),
                    "stale_facts": sum(fact.stale(now_s) for fact in facts.values()),
                }
            )
        return answer(entities=rows)

    async def _get_entity(self, call: Call) -> Answer:
        inventory = await self._fleet.inventory()
        found = inventory.resolve(call.text("name"))
        if not isinstance(found, Entity):
            return refused(name_refusal(found))
        route = inventory.route(found)
        parent = inventory.get(found.parent)
        facts = inventory.facts.get(found.id, {})
        return answer(
            name=found.slug,
            kind=found.kind,
            mode=found.mode.value,
            aliases=list(found.aliases),
            parent=parent.slug if parent else None,
            reached_by=str(route) if route is not None else None,
            facts={key: self._fact(fact) for key, fact in sorted(facts.items())},
        )

    async def _search_facts(self, call: Call) -> Answer:
        inventory = await self._fleet.inventory()
        words = call.text("query").casefold().split()
        found = []
        for entity_id, facts in inventory.facts.items():
            entity = inventory.get(entity_id)
            if entity is None or entity.gone:
                continue
            for key, fact in sorted(facts.items()):
                text = f"{entity.slug} {key} {fact.value}".casefold()
                if all(word in text for word in words):
                    found.append({"entity": entity.slug, "key": key, **self._fact(fact)})
        return answer(facts=found[:100], more=max(0, len(found) - 100))

    def _fact(self, fact: Fact) -> dict[str, object]:
        now_s = self._clock.now().wall_s
        value = orjson.loads(fact.value)
        return {
            "value": value,
            "source": fact.source,
            "age_s": int(now_s - fact.observed_s),
            "stale": fact.stale(now_s),
        }

    async def _update_entity_attributes(self, call: Call) -> Answer:
        inventory = await self._fleet.inventory()
        found = inventory.resolve(call.text("entity"))
        if not isinstance(found, Entity):
            return refused(name_refusal(found))
        run_id = call.text("run")
        now_s = self._clock.now().wall_s
        ttl_s = cast("float | None", call.args.get("ttl_s"))
        facts: list[Fact] = []
        for key, value in cast("Mapping[str, object]", call.args["attributes"]).items():
            refusal = _fact_refusal(key, value)
            if refusal is not None:
                return refused(refusal)
            text = orjson.dumps(value).decode()
            facts.append(
                Fact(entity_id=found.id, key=key, value=text, source=f"run:{run_id}", observed_s=now_s, ttl_s=ttl_s)
            )
        if not facts:
            return refused(Refusal(code=Code.BAD_FACT, text="There are no attributes.", directive="Give at least one."))
        refusal = call.decide(it.WriteFacts(entity_id=found.id, facts=tuple(facts), run_id=run_id))
        if refusal is not None:
            return refused(refusal)
        self._fleet.forget()
        return answer(written=len(facts), entity=found.slug, run=run_id)

    # ---- the operator, the end ---------------------------------------------------------------------------------------

    async def _ask_operator(self, call: Call) -> Answer | None:
        kind = call.text("kind", "text")
        choices = tuple(cast("Sequence[str]", call.args.get("choices", ())))
        if kind == "choice" and len(choices) < 2:
            return refused(
                Refusal(
                    code=Code.MALFORMED_CALL,
                    text="A choice needs at least two choices.",
                    directive="Give them, or ask kind text.",
                )
            )
        name = call.text("secret_name")
        if kind == "secret" and not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
            return refused(
                Refusal(
                    code=Code.MALFORMED_CALL,
                    text="A secret needs a secret_name of letters, digits, _ and -.",
                    directive="Give one.",
                )
            )
        refusal = call.decide(
            it.Ask(call_id=call.id, kind=kind, text=call.text("question"), choices=choices, secret_name=name)
        )
        return refused(refusal) if refusal is not None else None

    async def _complete_task(self, call: Call) -> Answer:
        evidence = tuple(cast("Sequence[str]", call.args.get("evidence", ())))
        outcome = call.text("outcome")
        refusal = call.decide(it.Complete(outcome=outcome, summary=call.text("summary"), evidence=evidence))
        return refused(refusal) if refusal is not None else answer(completed=outcome)


def numbered(lines: Sequence[bytes], span: tuple[int, int] | None, needle: bytes) -> bytes:
    """Lines with their numbers from 1: those of a span (negative counts from the end) that contain the needle."""
    count = len(lines)
    first, last = span if span is not None else (1, count)
    first = count + first + 1 if first < 0 else first
    last = count + last + 1 if last < 0 else last
    return b"\n".join(
        b"%d: %b" % (number, line)
        for number, line in enumerate(lines, start=1)
        if first <= number <= last and needle in line
    )


def _fact_refusal(key: str, value: object) -> Refusal | None:
    if steers_access(key):
        return Refusal(
            code=Code.NEEDS_OPERATOR, text=f"{key} steers how the machine is reached: only an operator writes it.",
            directive="Tell the operator in the summary, or ask_operator.",
        )  # fmt: skip
    if not FACT_KEY.fullmatch(key):
        return Refusal(
            code=Code.BAD_FACT,
            text=f"{key[:80]!r} is no attribute name.",
            directive="Use lower-case letters, digits and _ . : -",
        )
    if len(str(value)) > MAX_FACT_CHARS:
        return Refusal(
            code=Code.BAD_FACT,
            text=f"{key} is longer than {MAX_FACT_CHARS} characters.",
            directive="Write a shorter value.",
        )
    return None
