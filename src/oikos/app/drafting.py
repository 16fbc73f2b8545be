"""Proposals from the arguments of `propose_plan`: names resolved, commands classified, offers made (SPEC R2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from oikos.domain import creation, secret_files
from oikos.domain import intents as it
from oikos.domain.errors import Code, Refusal
from oikos.domain.gate import barred, locked, name_refusal
from oikos.domain.inventory import NAME, Entity, Inventory, Mode, UnknownName
from oikos.domain.plan import (
    GUARDED,
    AfterFailed,
    Always,
    Check,
    Condition,
    Creates,
    PlannedCommand,
    PreAuthorisation,
    Scope,
    Step,
)  # fmt: skip
from oikos.domain.reach import Reach
from oikos.domain.scripts import Script, scripts_of
from oikos.domain.snapshot import offers
from oikos.domain.verdict import EffectKind, Risk, Verdict
from oikos.policy.text import deceptive
from oikos.ports import Classify

Args = Mapping[str, object]

MASKED = "[masked:"
TWO_WAYS = (
    "Pass {{secret:NAME}} in stdin to a command that reads it from standard input, or write {{secret_file:NAME}} in "
    "the command where it expects a file name."
)


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


class Drafting:
    """Turns the arguments of `propose_plan` into a proposal: names resolved, commands classified (SPEC R2.3)."""

    def __init__(self, call_id: str, args: Args, inventory: Inventory, classify: Classify) -> None:
        """`args` are those of the call, checked against its schema."""
        self._args = args
        self._call_id = call_id
        self._inventory = inventory
        self._classify = classify
        self._scope: dict[str, Scope] = {}
        self._creates: dict[str, Creates] = {}
        self._changed: dict[str, Entity] = {}
        """Whatever of the inventory a step may change, in order."""

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
            scope=tuple(self._scope.values()), snapshots=offers(self._changed.values(), self._inventory),
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
        if found.mode is Mode.LOCKED:
            return locked(found)
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
        target = self._target(name)
        if isinstance(target, Refusal):
            return target
        commands: list[PlannedCommand] = []
        for item in cast("Sequence[str | Args]", raw.get("commands", ())):
            command = await self._command(item, target)
            if isinstance(command, Refusal):
                return command
            commands.append(command)
        if target is not None and not commands:  # counts as a change (SPEC R2.4)
            self._changed[target.id] = target
        return Step(
            seq=number, title=cast("str", raw["title"]), target=name if target is None else target.slug,
            target_id="" if target is None else target.id, commands=tuple(commands),
            undo=cast("str", raw.get("undo", "")),
        )  # fmt: skip

    def _target(self, name: str) -> Entity | Refusal | None:
        """The machine that is meant; None for what the plan creates."""
        return None if name in self._creates else self._machine(name)

    async def _verdict(self, text: str, stdin: str | None, target: Entity | None) -> Verdict | Refusal:
        """What the command is, or why no plan may hold it."""
        wrong = unusable(text, stdin or "")
        if wrong is not None:
            return wrong
        said = await self._classify(text, target.id if target is not None else "", stdin)
        verdict = secret_files.given_to(said, text, stdin)
        if target is None:
            return verdict
        return barred(self._reach(verdict, target)) or verdict

    def _reach(self, verdict: Verdict, target: Entity) -> Reach:
        return Reach(inventory=self._inventory, verdict=verdict, target=target)

    async def _command(self, item: str | Args, target: Entity | None) -> PlannedCommand | Refusal:
        raw: Args = {"command": item} if isinstance(item, str) else item
        text = cast("str", raw["command"])
        stdin = cast("str | None", raw.get("stdin"))
        verdict = await self._verdict(text, stdin, target)
        if isinstance(verdict, Refusal):
            return verdict
        if verdict.has(EffectKind.INTERACTIVE):
            return Refusal(
                code=Code.INTERACTIVE, text=f"`{text[:120]}` is interactive; nobody sits at its terminal.",
                directive=verdict.advice or "Use a non-interactive form of it.",
            )  # fmt: skip
        if target is not None and verdict.risk is not Risk.READ_ONLY:
            self._changed |= {entity.id: entity for entity in self._reach(verdict, target).all()}
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
        destroyed = verdict.destroyed()
        for named in destroyed:
            meant = named.kind == "guest" if created else wanted in (named.name, named.name.rsplit("/", 1)[-1])
            if meant and verdict.destroys_only(named.kind, named.name):
                condition: Condition = Always()
                given = raw.get("condition", "always")
                if isinstance(given, Mapping):
                    condition = AfterFailed(step=cast("int", given["after_failed"]))
                return PreAuthorisation(
                    object=named, max_uses=cast("int", raw.get("max_uses", 1)), condition=condition, created=created
                )
        names = ", ".join(sorted({named.name for named in destroyed})) or "nothing that it names"
        return Refusal(
            code=Code.MALFORMED_CALL, text=f"`{text[:120]}` does not destroy {wanted} alone; it destroys: {names}.",
            directive="Name the object exactly: one command for one object, with every word of it written out.",
        )  # fmt: skip

    async def _check(self, raw: Args) -> Check | Refusal:
        name = cast("str", raw["target"])
        target = self._target(name)
        if isinstance(target, Refusal):
            return target
        text = cast("str", raw["command"])
        verdict = await self._verdict(text, None, target)
        if isinstance(verdict, Refusal):
            return verdict
        guarded = sorted({effect.kind.value for effect in verdict.effects if effect.kind in GUARDED})
        if verdict.risk is not Risk.READ_ONLY or guarded:
            why = verdict.reasons[0].text if verdict.reasons else f"it is {verdict.risk}"
            why = f"it is {', '.join(guarded)}" if verdict.risk is Risk.READ_ONLY else why
            return Refusal(
                code=Code.MALFORMED_CALL, text=f"The check `{text[:120]}` must be read-only: {why}",
                directive="Use a command that only looks.",
            )  # fmt: skip
        return Check(
            target=name if target is None else target.slug,
            target_id="" if target is None else target.id,
            command=text,
            expect_exit=cast("int | None", raw.get("expect_exit", 0)),
            expect_text=cast("str", raw.get("expect_text", "")),
        )
