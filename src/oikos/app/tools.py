"""What each tool does: arguments in, an answer and staged events out (SPEC §2)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import orjson

from oikos.app.arguments import BadArguments, parse
from oikos.app.execute import Executor
from oikos.app.fleet import Fleet
from oikos.app.log import SessionLog
from oikos.app.told import Answer, refused
from oikos.app.toolbox import BY_NAME
from oikos.domain import creation, secret_files
from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.errors import Code, Refusal, SeqConflict, TargetChanged
from oikos.domain.gate import name_refusal
from oikos.domain.inventory import NAME, Entity, Fact, Inventory, Mode, UnknownName
from oikos.domain.plan import (
    GUARDED,
    AfterFailed,
    Always,
    Check,
    Condition,
    Creates,
    PlannedCommand,
    PlanStatus,
    PreAuthorisation,
    Scope,
    Step,
    StepStatus,
)  # fmt: skip
from oikos.domain.run import DEFAULT_TIMEOUT_S, RunRequest, Stream
from oikos.domain.scripts import Script, scripts_of
from oikos.domain.session import decide
from oikos.domain.snapshot import offers
from oikos.domain.verdict import EffectKind, Risk, Verdict
from oikos.domain.view import for_model
from oikos.policy.text import deceptive
from oikos.ports import Classify, Clock, Store

Args = Mapping[str, object]

PROTECTED = frozenset(
    {"address", "user", "port", "key", "via", "jump", "become", "access", "mode", "host_key", "host_keys", "password"}
)
"""Attributes that steer connections: only an operator writes them (SPEC R2.1)."""
FACT_KEY = re.compile(r"[a-z0-9][a-z0-9_.:-]{0,79}")
MAX_FACT_CHARS = 2000
MASKED = "[masked:"
TWO_WAYS = (
    "Pass {{secret:NAME}} in stdin to a command that reads it from standard input, or write {{secret_file:NAME}} in "
    "the command where it expects a file name."
)


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
        made = await Drafting(call, inventory, self._classify).draft()
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


def unusable(command: str, stdin: str) -> Refusal | None:
    """What would not be carried out as meant: a masked secret, or a secret's reference where it is not filled in."""
    if "\0" in command:
        return Refusal(code=Code.MALFORMED_CALL, text="A command cannot contain NUL.", directive="Leave it out.")
    unseen = deceptive(command, [(0, len(command))])
    if unseen is not None:  # an approver would read another command than the shell (THREATS T9)
        return Refusal(
            code=Code.MALFORMED_CALL, text=unseen[1],
            directive="Leave it out. A file name that has one is reached by a pattern, or by printf and its escapes.",
        )  # fmt: skip
    if MASKED in command or MASKED in stdin:
        return Refusal(
            code=Code.MALFORMED_CALL,
            text="The command holds what looks like a secret; it was masked, so it cannot run.",
            directive=f"Get it with ask_operator (kind secret). {TWO_WAYS}",
        )
    if "{{secret:" in command:
        return Refusal(
            code=Code.MALFORMED_CALL,
            text="A secret is put into standard input or a file, never on a command line.",
            directive=TWO_WAYS,
        )
    if secret_files.MARK in secret_files.REFERENCE.sub("", command) or secret_files.MARK in stdin:
        return Refusal(
            code=Code.MALFORMED_CALL,
            text="A secret file is named {{secret_file:NAME}}, in a command; NAME has letters, digits, _ and -.",
            directive=TWO_WAYS,
        )
    return None


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
    if key.split(".")[-1] in PROTECTED:
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


class Drafting:
    """Turns the arguments of `propose_plan` into a proposal: names resolved, commands classified (SPEC R2.3)."""

    def __init__(self, call: Call, inventory: Inventory, classify: Classify) -> None:
        self._args = call.args
        self._call_id = call.id
        self._inventory = inventory
        self._classify = classify
        self._scope: dict[str, Scope] = {}
        self._creates: dict[str, Creates] = {}

    async def draft(self) -> it.Propose | Refusal:
        """The proposal, or the first thing wrong with it."""
        for made in cast("Sequence[Mapping[str, str]]", self._args.get("creates", ())):
            on = self._machine(made["on"])
            if isinstance(on, Refusal):
                return on
            wrong = self._uncreatable(made["name"], made["kind"])
            if wrong is not None:
                return wrong
            self._creates[made["name"]] = Creates(name=made["name"], kind=made["kind"], on_target_id=on.id)
        steps: list[Step] = []
        for number, raw in enumerate(cast("Sequence[Args]", self._args["steps"]), start=1):
            step = await self._step(number, raw)
            if isinstance(step, Refusal):
                return step
            steps.append(step)
        checks: list[Check] = []
        for raw in cast("Sequence[Args]", self._args.get("checks", ())):
            check = await self._check(raw)
            if isinstance(check, Refusal):
                return check
            checks.append(check)
        return it.Propose(
            call_id=self._call_id, steps=tuple(steps), checks=tuple(checks), creates=tuple(self._creates.values()),
            scope=tuple(self._scope.values()), snapshots=offers(steps, self._inventory),
        )  # fmt: skip

    def _uncreatable(self, name: str, kind: str) -> Refusal | None:
        """Why the plan cannot create something under this name."""
        if kind != creation.KIND:
            return Refusal(
                code=Code.MALFORMED_CALL, text=f"{name} is of kind {kind}: only a container (lxc) is created.",
                directive="Reach anything else by commands on the machine it runs on.",
            )  # fmt: skip
        if not NAME.fullmatch(name):
            return Refusal(
                code=Code.MALFORMED_CALL, text=f"{name[:80]!r} is no name: lower-case letters, digits and . _ -",
                directive="Use the host name that the new container will have.",
            )  # fmt: skip
        if name in self._creates or not isinstance(self._inventory.resolve(name), UnknownName):
            return Refusal(
                code=Code.MALFORMED_CALL, text=f"The name {name} is taken.",
                directive="Use the host name that the new container will have; what exists is a target as it is.",
            )  # fmt: skip
        return None

    def _machine(self, name: str) -> Entity | Refusal:
        found = self._inventory.resolve(name)
        if not isinstance(found, Entity):
            return name_refusal(found)
        if self._inventory.route(found) is None:
            return Refusal(
                code=Code.NO_ACCESS,
                text=f"{found.slug} has no way in.",
                directive="Ask the operator to add it: `oikos fleet add`.",
            )
        keys = found.access.host_keys if found.access is not None else ()
        self._scope[found.id] = Scope(target_id=found.id, slug=found.slug, host_keys=keys)
        return found

    async def _step(self, number: int, raw: Args) -> Step | Refusal:
        name = cast("str", raw["target"])
        target_id, slug, mode = "", name, Mode.ASK
        if name not in self._creates:
            found = self._machine(name)
            if isinstance(found, Refusal):
                return found
            target_id, slug, mode = found.id, found.slug, found.mode
        commands: list[PlannedCommand] = []
        for item in cast("Sequence[str | Args]", raw.get("commands", ())):
            command = await self._command(item, slug, mode, target_id)
            if isinstance(command, Refusal):
                return command
            commands.append(command)
        if mode is Mode.LOCKED:
            return Refusal(
                code=Code.TARGET_LOCKED,
                text=f"{slug} is locked.",
                directive="Leave it alone; only an admin can change that.",
            )
        return Step(
            seq=number, title=cast("str", raw["title"]), target=slug, target_id=target_id, commands=tuple(commands),
            undo=cast("str", raw.get("undo", "")),
        )  # fmt: skip

    async def _command(self, item: str | Args, slug: str, mode: Mode, target_id: str) -> PlannedCommand | Refusal:
        raw: Args = {"command": item} if isinstance(item, str) else item
        text = cast("str", raw["command"])
        wrong = unusable(text, cast("str", raw.get("stdin", "")))
        if wrong is not None:
            return wrong
        stdin = cast("str | None", raw.get("stdin"))
        verdict = secret_files.given_to(await self._classify(text, target_id), text, stdin)
        if verdict.has(EffectKind.INTERACTIVE):
            return Refusal(
                code=Code.INTERACTIVE, text=f"`{text[:120]}` is interactive; nobody sits at its terminal.",
                directive=verdict.advice or "Use a non-interactive form of it.",
            )  # fmt: skip
        if mode is Mode.LOOK and verdict.risk is not Risk.READ_ONLY:
            return Refusal(
                code=Code.TARGET_LOOK_ONLY, text=f"{slug} is in mode look and `{text[:120]}` is {verdict.risk}.",
                directive="Plan only read-only commands there.",
            )  # fmt: skip
        pre = self._preauthorise(cast("Args | None", raw.get("preauthorise")), verdict, text)
        if isinstance(pre, Refusal):
            return pre
        return PlannedCommand(
            text=text,
            stdin=stdin,
            risk=verdict.risk,
            effects=verdict.effects,
            objects=verdict.objects,
            canonical=verdict.canonical,
            why=verdict.reasons[0].text if verdict.reasons else "",
            preauthorise=pre,
            scripts=tuple(Script(path=path) for path in scripts_of(text, verdict)),
        )

    def _preauthorise(self, raw: Args | None, verdict: Verdict, text: str) -> PreAuthorisation | Refusal | None:
        if raw is None:
            return None
        if verdict.risk is not Risk.DESTRUCTIVE:
            return None  # nothing to pre-authorise: the window covers it
        if verdict.has(EffectKind.SELF):
            return Refusal(
                code=Code.NEEDS_OPERATOR,
                text="What touches Oikos itself is never pre-authorised.",
                directive="Leave it out of the plan.",
            )
        wanted = cast("str", raw["object"])
        created = wanted if wanted in self._creates else ""
        guests = [named for named in verdict.objects if named.kind == "guest" and named.risk is Risk.DESTRUCTIVE]
        for named in verdict.objects:
            meant = [named] == guests if created else wanted in (named.name, named.name.rsplit("/", 1)[-1])
            if meant:
                condition: Condition = Always()
                given = raw.get("condition", "always")
                if isinstance(given, Mapping):
                    condition = AfterFailed(step=cast("int", given["after_failed"]))
                return PreAuthorisation(
                    object=named, max_uses=cast("int", raw.get("max_uses", 1)), condition=condition, created=created
                )
        names = ", ".join(sorted({named.name for named in verdict.objects if named.name})) or "none that it names"
        return Refusal(
            code=Code.MALFORMED_CALL, text=f"`{text[:120]}` does not act on {wanted}; its objects are: {names}.",
            directive="Name the object exactly, one command for one object.",
        )  # fmt: skip

    async def _check(self, raw: Args) -> Check | Refusal:
        name = cast("str", raw["target"])
        slug, target_id = name, ""
        if name not in self._creates:
            found = self._machine(name)
            if isinstance(found, Refusal):
                return found
            slug, target_id = found.slug, found.id
        text = cast("str", raw["command"])
        wrong = unusable(text, "")
        if wrong is not None:
            return wrong
        verdict = secret_files.given_to(await self._classify(text, target_id), text, None)
        guarded = sorted({effect.kind.value for effect in verdict.effects if effect.kind in GUARDED})
        if verdict.risk is not Risk.READ_ONLY or guarded:
            why = verdict.reasons[0].text if verdict.reasons else f"it is {verdict.risk}"
            why = f"it is {', '.join(guarded)}" if verdict.risk is Risk.READ_ONLY else why
            return Refusal(
                code=Code.MALFORMED_CALL, text=f"The check `{text[:120]}` must be read-only: {why}",
                directive="Use a command that only looks.",
            )  # fmt: skip
        return Check(
            target=slug,
            target_id=target_id,
            command=text,
            expect_exit=cast("int | None", raw.get("expect_exit", 0)),
            expect_text=cast("str", raw.get("expect_text", "")),
        )
