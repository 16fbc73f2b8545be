"""The gate: one pure function that decides every run (SPEC §3).

    admit(question) -> Admission | NeedsApproval | NeedsTypedConfirmation | Refusal

The order of its questions is the order of SPEC R3.1: session live, goal, plan, target, mode, classification,
duplicate, effects, window. Nothing else in Oikos makes an Admission, and a Runner takes nothing else.
"""

from __future__ import annotations

from oikos.domain.admission import Admission, seal
from oikos.domain.agent_rules import NO_PLAN_DIRECTIVE, propose_and_run, session_over, step_open
from oikos.domain.consent import RUN_APPROVAL_S, Consent, Grant
from oikos.domain.creation import made_here, plans_to_make
from oikos.domain.errors import Code, Refusal
from oikos.domain.instant import Instant
from oikos.domain.inventory import AmbiguousName, Entity, Inventory, Mode, UnknownName
from oikos.domain.plan import (
    GUARDED,
    AfterFailed,
    Condition,
    Plan,
    PlannedCommand,
    PlanStatus,
    PreAuthorisation,
    Snapshot,
    StepStatus,
    phrase_of,
)
from oikos.domain.reach import Reach
from oikos.domain.run import Exited, NeverStarted, RunOrder, RunRequest, Signalled, TimedOut, Unknown
from oikos.domain.scripts import Script, drift, names, reading, runs_a_file, scripts_of
from oikos.domain.snapshot import SNAPSHOT, offers
from oikos.domain.state import TERMINAL, RunState, State, run_key
from oikos.domain.teaching import taught_by
from oikos.domain.value import dataclass
from oikos.domain.verdict import Effect, EffectKind, NamedObject, Risk, Verdict

__all__ = [
    "Admission",
    "NeedsApproval",
    "NeedsTypedConfirmation",
    "Outcome",
    "Question",
    "admit",
    "admit_probe",
    "admit_reading",
    "admit_snapshot",
    "barred",
    "locked",
    "preauthorised_guests",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One run that wants to happen, and everything the gate may look at."""

    state: State
    request: RunRequest
    order: RunOrder
    target: Entity | UnknownName | AmbiguousName
    verdict: Verdict
    inventory: Inventory
    now: Instant
    approval: Consent | None = None
    """The consent that an operator gave to exactly this run, if it was parked before."""
    scripts: tuple[Script, ...] = ()
    """What the files that the command runs hold now; not read: empty."""
    identified: frozenset[str] = frozenset()
    """Entities besides the target that said in this generation that they are who was enrolled (SPEC R5.8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsApproval:
    """Park it: one approval admits exactly these bytes, once (SPEC R3.3)."""

    why: str
    effects: tuple[Effect, ...] = ()
    """The guarded effects that are asked about."""
    offers_reopen: bool = False
    """Only the window had ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsTypedConfirmation:
    """Park it: destructive, and no pre-authorisation covers it (SPEC R3.4)."""

    why: str
    phrase: str
    effects: tuple[Effect, ...] = ()


Outcome = Admission | NeedsApproval | NeedsTypedConfirmation | Refusal


def admit(question: Question) -> Outcome:
    """Decide one run."""
    q = question
    refusal = _session(q)
    if refusal is not None:
        return refusal
    target = q.target
    if not isinstance(target, Entity):
        made = q.state.plan.creates if q.state.plan is not None else ()
        if any(created.name == q.request.target for created in made):
            return not_created_yet(f"{q.request.target} does not exist yet.")
        return name_refusal(target)
    plan = q.state.plan
    assert plan is not None, "_session refuses without a plan"
    refusal = _order(q, target) or _mode(q, target) or _command(q, plan)
    if refusal is not None:
        return refusal
    return _judge(q, plan, target)


def admit_probe(state: State, target: Entity) -> Admission | Refusal:
    """Admit a built-in probe: constant bytes, read-only, named, refused on locked targets (SPEC §3)."""
    if target.mode is Mode.LOCKED:
        return locked(target)
    return seal(kind="probe", digest=target.id, target_id=target.id, authority="probe", seq=state.seq)


def admit_reading(state: State, target: Entity, order: RunOrder, paths: tuple[str, ...]) -> Admission | Refusal:
    """Admit the built-in read of script files: its bytes are made of the paths alone (THREATS T6)."""
    if state.phase in TERMINAL:
        return session_over(state)
    if target.mode is Mode.LOCKED:
        return locked(target)
    asked = (order.session_id, order.target_id, order.command, order.stdin, order.supervised)
    if asked != (state.session_id, target.id, reading(paths), None, False):
        return Refusal(code=Code.INTERNAL, text="The order is not the built-in read of files; nothing was started.")
    return seal(kind="run", digest=order.digest(), target_id=target.id, authority="probe", seq=state.seq)


def admit_snapshot(
    before: Question, change: Admission, order: RunOrder, offer: Snapshot, verdict: Verdict
) -> Admission | Refusal:
    """Admit a snapshot that the approver chose with the plan, right before the first change of its guest (SPEC R5.12).

    `before` is the question of that change and `change` its Admission: what is not admitted needs no snapshot. The
    order must be the offer's, byte for byte and no worse than it said, and the guest still be where it was offered.
    """
    state, inventory, target = before.state, before.inventory, before.target
    plan, consent = state.plan, plan_consent(state)
    if plan is None or consent is None or not consent.snapshot or offer not in plan.snapshots:
        return Refusal(code=Code.INTERNAL, text="No approver chose this snapshot; nothing was started.")
    asked = (order.session_id, order.generation, order.target_id, order.command, order.stdin)
    offered = (state.session_id, state.generation, offer.node_id, offer.command(state.session_id, state.generation))
    changed = _reach(before, target).all() if isinstance(target, Entity) else ()
    of_it = change.digest == before.order.digest() and any(entity.id == offer.target_id for entity in changed)
    if asked != (*offered, None) or order.run_id in state.runs or not of_it:
        return Refusal(code=Code.INTERNAL, text="The order is not the snapshot that was offered; nothing was started.")
    if verdict.risk is not Risk.CONFIG_MUTATION or any(effect.kind in GUARDED for effect in verdict.effects):
        return Refusal(code=Code.INTERNAL, text=f"`{order.command}` is not a plain snapshot; nothing was started.")
    guest, node = inventory.get(offer.target_id), inventory.get(offer.node_id)
    for entity in (node, guest):
        if entity is None or entity.gone:
            return Refusal(code=Code.UNKNOWN_TARGET, text=f"{offer.target} or its node {offer.node} is gone.")
        if entity.mode is not Mode.ASK:
            return locked(entity) if entity.mode is Mode.LOCKED else _look_only(entity)
    if offers((guest,) if guest is not None else (), inventory) != (offer,):
        return Refusal(
            code=Code.STALE_DIGEST, text=f"{offer.target} is not guest {offer.guest} of {offer.node} any more.",
            directive="Propose the plan anew: its offer is made from the inventory.",
        )  # fmt: skip
    return seal(
        kind="run", digest=order.digest(), target_id=offer.node_id, authority=f"{SNAPSHOT}{consent.id}", seq=state.seq
    )


def not_created_yet(why: str) -> Refusal:
    """The target is what the plan creates, and is not there (SPEC R2.3)."""
    return Refusal(
        code=Code.NOT_CREATED_YET, text=why,
        directive="Run the step that creates and starts it first, under this very host name; then repeat this.",
    )  # fmt: skip


# ---- refusals, in the order of R3.1 ----------------------------------------------------------------------------------


def _session(q: Question) -> Refusal | None:
    state = q.state
    if state.phase in TERMINAL:
        return session_over(state)
    if not state.goal:
        return Refusal(code=Code.NO_GOAL, text="There is no goal yet.", directive=NO_PLAN_DIRECTIVE)
    if state.live_plan is None:
        return Refusal(code=Code.NO_PLAN, text="There is no plan.", directive=NO_PLAN_DIRECTIVE)
    if q.order.generation != state.generation:
        return Refusal(
            code=Code.STALE_GENERATION,
            text=f"The command was asked under plan {q.order.generation}; plan {state.generation} is the newest now.",
            directive="Ask for it again if the new plan still needs it.",
        )  # fmt: skip
    if q.verdict.risk is not Risk.READ_ONLY:
        if state.status is PlanStatus.PROPOSED:
            return Refusal(
                code=Code.AWAITING_OPERATOR, text=f"Plan {state.generation} waits for the operator's decision.",
                directive="Only read-only commands run before that.",
            )  # fmt: skip
        if state.status is PlanStatus.ACCEPTED:
            return Refusal(
                code=Code.NO_PLAN, text=f"Plan {state.generation} is read-only and this command is {q.verdict.risk}.",
                directive="Propose a plan that contains the change; it may replace this one at once.",
            )  # fmt: skip
        if state.batch.proposed:
            return propose_and_run()
    if q.request.step is not None:
        return step_open(state, q.request.step)
    return None


def name_refusal(name: UnknownName | AmbiguousName) -> Refusal:
    """A target that is no entity, or more than one."""
    if isinstance(name, AmbiguousName):
        return Refusal(
            code=Code.AMBIGUOUS_TARGET, text=f"{name.name} could be {' or '.join(name.slugs)}.",
            directive="Use the full name, or ask the operator which one is meant.",
        )  # fmt: skip
    near = f" Known targets: {', '.join(name.near)}." if name.near else " No target is configured."
    return Refusal(
        code=Code.UNKNOWN_TARGET,
        text=f"There is no target {name.name}.{near}",
        directive="Use list_entities to see what there is.",
    )


def _order(q: Question, target: Entity) -> Refusal | None:
    """What would be started is what is asked, and was never started: anything else is a defect of the caller."""
    order, asked = q.order, q.request
    same = (order.session_id, order.target_id, order.command, order.stdin) == (
        q.state.session_id, target.id, asked.command, asked.stdin,
    )  # fmt: skip
    if same and order.run_id not in q.state.runs:
        return None
    return Refusal(
        code=Code.INTERNAL, text=f"The order of run {order.run_id[:8]} is not what was asked; nothing was started."
    )


def locked(entity: Entity) -> Refusal:
    """SPEC R3.9."""
    return Refusal(
        code=Code.TARGET_LOCKED, text=f"{entity.slug} is locked: nothing runs on it, not even inside another command.",
        directive="Leave it alone; only an admin can change its mode.",
    )  # fmt: skip


def _look_only(entity: Entity) -> Refusal:
    return Refusal(
        code=Code.TARGET_LOOK_ONLY, text=f"{entity.slug} is in mode look: only read-only commands run on it.",
        directive="Report what would have to change; only an admin can change its mode.",
    )  # fmt: skip


def barred(reach: Reach) -> Refusal | None:
    """Whether the mode of any machine or thing that a command reaches bars it, planned or run (SPEC R2.3, R3.9)."""
    for entity in reach.all():
        if entity.mode is Mode.LOCKED:
            return locked(entity)
        if entity.mode is Mode.LOOK and reach.verdict.risk is not Risk.READ_ONLY:
            return _look_only(entity)
    hidden = reach.locked_behind_a_blind_hop()
    if hidden is not None:
        return Refusal(
            code=Code.TARGET_LOCKED,
            text=f"The command reaches machines it does not name, and {hidden.slug}, which is locked, may be one.",
            directive="Name each machine literally.",
        )  # fmt: skip
    return None


def _mode(q: Question, target: Entity) -> Refusal | None:
    refusal = barred(_reach(q, target))
    if refusal is not None:
        return refusal
    if q.state.mode == "look" and q.verdict.risk is not Risk.READ_ONLY:
        return Refusal(
            code=Code.LOOK_ONLY_SESSION,
            text="This session may only look.",
            directive="Report what would have to change.",
        )
    if q.inventory.route(target) is None:
        return Refusal(
            code=Code.NO_ACCESS,
            text=f"{target.slug} has no way in.",
            directive="Ask the operator to add it: `oikos fleet add`.",
        )
    return None


def _command(q: Question, plan: Plan) -> Refusal | None:
    verdict = q.verdict
    if verdict.has(EffectKind.INTERACTIVE):
        return Refusal(
            code=Code.INTERACTIVE, text="The command is interactive; nobody sits at its terminal.",
            directive=verdict.advice or "Use a non-interactive form of it.",
        )  # fmt: skip
    key = run_key(q.order.target_id, verdict.canonical or q.order.command, q.order.stdin)
    if key in q.state.declined:
        return Refusal(
            code=Code.DECLINED, text="The operator declined this command in this plan.",
            directive="Take another way, or complete as failed.",
        )  # fmt: skip
    if verdict.risk is Risk.READ_ONLY or q.request.rerun.strip() or _approval(q) is not None:
        return None
    for run in q.state.runs.values():
        if run.key == key and run.generation == plan.generation and (run.ok or run.goes_on):
            how = "already succeeded" if run.ok else "is still running"
            return Refusal(
                code=Code.DUPLICATE, text=f"The same command {how} on {run.target}: run {run.order.run_id}.",
                directive="Read that run with read_output; to repeat it on purpose pass rerun with a reason.",
            )  # fmt: skip
    return None


def _reach(q: Question, target: Entity) -> Reach:
    return Reach(inventory=q.inventory, verdict=q.verdict, target=target)


def _outside(q: Question, plan: Plan, target: Entity) -> str:
    return _reach(q, target).outside(plan)


# ---- admission -------------------------------------------------------------------------------------------------------


def _judge(q: Question, plan: Plan, target: Entity) -> Outcome:
    verdict, state = q.verdict, q.state
    guarded = plan.guarded(verdict.effects)
    declared = state.status is PlanStatus.APPROVED and plan.declares(q.order.target_id, q.order.command, q.order.stdin)
    drifted = _drifted(q, plan)
    declared = declared and not drifted and not _file_may_differ(q, plan)
    beyond = () if declared else guarded
    approved = _approved(q, beyond)
    outside = "" if declared or approved is not None else _outside(q, plan, target)
    if outside:
        if state.status is not PlanStatus.APPROVED:
            return Refusal(
                code=Code.OUT_OF_SCOPE,
                text=f"Out of scope: {outside}.",
                directive="Propose a plan that names the machine as a target.",
            )
        if verdict.risk is not Risk.DESTRUCTIVE:
            return NeedsApproval(why=f"Out of scope: {outside}.", effects=guarded)
    if approved is not None:
        return approved
    if verdict.risk is Risk.READ_ONLY and not guarded:
        return _sealed(q, "read_only")
    if state.status is not PlanStatus.APPROVED:
        return Refusal(
            code=Code.OUT_OF_SCOPE,
            text=f"The command has effects the plan was not approved for: {_words(guarded)}.",
            directive="Propose a plan that contains exactly this command, so that the operator can approve it.",
        )  # fmt: skip
    if verdict.risk is Risk.DESTRUCTIVE:
        return _destructive(q, plan, guarded, beyond, f"Out of scope: {outside}." if outside else drifted)
    if drifted:
        return NeedsApproval(why=drifted, effects=guarded)
    return _mutation(q, beyond)


def _drifted(q: Question, plan: Plan) -> str:
    """The script that the plan holds this command with, and that is another one now, in words."""
    planned = plan.planned(q.order.target_id, q.order.command, q.order.stdin)
    held = [script for command in planned for script in command.scripts if not _rewritten(q, plan, script.path)]
    return drift(held, q.scripts)


def _rewritten(q: Question, plan: Plan, path: str) -> bool:
    """Whether a change that the plan holds has run since and names the file, other than by running it."""
    for run in q.state.runs.values():
        order = run.order
        if not run.mutated or run.generation != plan.generation or order.target_id != q.order.target_id:
            continue
        held = plan.planned(order.target_id, order.command, order.stdin)
        if held and path not in [script.path for one in held for script in one.scripts] and names(order.command, path):
            return True
    return False


def _file_may_differ(q: Question, plan: Plan) -> bool:
    """Whether a change that the plan does not hold came between the approval and a command that runs a file.

    The approval covered the command's bytes; what the file held then is no longer sure, so it is asked again
    (security/THREATS T6).
    """
    if not runs_a_file(q.verdict) and not scripts_of(q.order.command, q.verdict):
        return False
    return any(
        run.mutated and run.generation == plan.generation and run.order.target_id == q.order.target_id
        and not plan.declares(run.order.target_id, run.order.command, run.order.stdin)
        for run in q.state.runs.values()
    )  # fmt: skip


def _sealed(q: Question, authority: str) -> Admission:
    """Every run says which taught rules its verdict rests on."""
    taught = taught_by(q.verdict)
    authority = f"{authority} {taught}" if taught else authority
    return seal(kind="run", digest=q.order.digest(), target_id=q.order.target_id, authority=authority, seq=q.state.seq)


def _approval(q: Question) -> Consent | None:
    """The approval of exactly this run, if it is given, fresh and not used (SPEC R3.3)."""
    consent, parked = q.approval, q.state.parked
    if consent is None or parked is None or parked.consent != consent or q.state.halted:
        return None
    if (
        consent.run_id != q.order.run_id
        or consent.digest != q.order.asked()
        or parked.event.order.run_id != q.order.run_id
    ):
        return None
    if consent.session_id != q.state.session_id or consent.generation != q.state.generation:
        return None
    if q.state.clock_set_back(q.now) or not 0 <= q.now.elapsed_since(consent.at) <= RUN_APPROVAL_S:
        return None
    return consent


def _approved(q: Question, beyond: tuple[Effect, ...]) -> Admission | None:
    """Admitted by its approval, unless the command is judged worse now than when it was asked."""
    consent, parked = _approval(q), q.state.parked
    if consent is None or parked is None:
        return None
    if q.verdict.risk > parked.event.risk or not set(beyond) <= set(parked.event.effects):
        return None
    if q.scripts != parked.event.scripts:  # what it runs is not what it was when it was asked
        return None
    if q.verdict.risk is Risk.DESTRUCTIVE and consent.text.strip() != _phrase(q):
        return None
    return _sealed(q, f"approval:{consent.id}")


def _window_covers(q: Question) -> bool:
    window = q.state.window
    if window is None or window.generation != q.order.generation or q.order.target_id not in window.machines:
        return False
    return not q.state.clock_set_back(q.now) and window.open(q.now)


def _mutation(q: Question, beyond: tuple[Effect, ...]) -> Outcome:
    window = q.state.window
    if beyond:
        why = f"Not in the approved plan, and beyond what a window covers: {_words(beyond)}."
        return NeedsApproval(why=why, effects=beyond)
    if window is not None and _window_covers(q):
        return _sealed(q, f"window:{window.consent_id}")
    if window is not None and window.suspended:
        return NeedsApproval(why="The window is suspended.")
    return NeedsApproval(why="The window has ended.", offers_reopen=True)


def _destructive(
    q: Question, plan: Plan, guarded: tuple[Effect, ...], beyond: tuple[Effect, ...], besides: str
) -> Outcome:
    consent = _ticking_consent(q)
    item = _preauthorised(q, plan)
    besides = besides or (_another_object(q, plan, item) if item is not None else "")
    if consent is not None and item is not None and not beyond and not besides:
        return _sealed(q, f"preauthorised:{consent.id}:{item}")
    why = q.verdict.reasons[0].text if q.verdict.reasons else "The command is destructive."
    if besides:
        why = f"{besides} {why}"
    return NeedsTypedConfirmation(why=why, phrase=_phrase(q), effects=guarded)


def plan_consent(state: State) -> Consent | None:
    """The approval of the newest plan."""
    for consent in state.consents.values():
        if consent.grant is Grant.PLAN and consent.generation == state.generation:
            return consent
    return None


def _ticking_consent(q: Question) -> Consent | None:
    """The approval of the plan, while its own time runs: renewing a window does not lengthen what was typed for."""
    consent = plan_consent(q.state)
    return consent if consent is not None and 0 <= q.now.elapsed_since(consent.at) < consent.duration_s else None


def _phrase(q: Question) -> str:
    """What is typed for the run: its first object, and how many more it destroys."""
    doing = sum(action.risk is Risk.DESTRUCTIVE for action in q.verdict.actions)
    more = max(len(q.verdict.destroyed()), doing) - 1
    return phrase_of(_worst_object(q)) + (f" and {more} more" if more > 0 else "")


def _worst_object(q: Question) -> NamedObject:
    for named in q.verdict.objects:
        if named.risk is Risk.DESTRUCTIVE and named.name:
            return named
    slug = q.target.slug if isinstance(q.target, Entity) else q.order.target_id
    return NamedObject(kind="host", name=slug, verb="change", risk=Risk.DESTRUCTIVE)


def _preauthorised(q: Question, plan: Plan) -> int | None:
    """The ticked item that covers this command, with its condition and uses (SPEC R3.4)."""
    if not _window_covers(q) or q.verdict.has(EffectKind.SELF) or _outcome_unknown(q):
        return None
    for number, (step, planned) in enumerate(plan.destructive_items(), start=1):
        if number not in q.state.items or step.target_id != q.order.target_id:
            continue
        pre = planned.preauthorise
        assert pre is not None, "destructive_items are the marked commands"
        if not _same_command(planned, pre, q):
            continue
        if _condition_holds(q.state, plan, pre.condition) and _uses(q.state, planned, step.target_id) < pre.max_uses:
            return number
    return None


def _another_object(q: Question, plan: Plan, item: int) -> str:
    """Why what the command destroys may not be what the item allowed, in words; empty when it is (SPEC R3.4)."""
    pre = plan.destructive_items()[item - 1][1].preauthorise
    created = pre is not None and bool(pre.created)
    for named in q.verdict.objects:
        if named.risk is not Risk.DESTRUCTIVE:
            continue
        here = named.kind == "guest" and not named.place
        of_the_plan = here and (created or plans_to_make(plan, q.order.target_id, named.name))
        if of_the_plan and not made_here(q.state, q.order.target_id, named.name):
            return f"No run of this plan has created guest {named.name}: it may be another one."
        for entity in _guests(q, named):
            if entity.identity is not None and entity.id not in q.identified:
                return f"{entity.slug} could not be asked whether it is still the machine that was enrolled."
    return ""


def _guests(q: Question, named: NamedObject) -> tuple[Entity, ...]:
    """Guests of the inventory that an object of the command is."""
    return _reach(q, q.target).named(named) if named.kind == "guest" and isinstance(q.target, Entity) else ()


def preauthorised_guests(q: Question) -> tuple[Entity, ...]:
    """Guests that the command names and that the plan may destroy: asked who they are while they still run."""
    plan = q.state.plan
    allowed = {
        command.preauthorise.object.name
        for number, (step, command) in enumerate(plan.destructive_items() if plan is not None else (), start=1)
        if command.preauthorise is not None and number in q.state.items and step.target_id == q.order.target_id
    }
    found = (entity for named in q.verdict.objects if named.name in allowed for entity in _guests(q, named))
    return tuple(dict.fromkeys(entity for entity in found if entity.identity is not None))


def _same_command(planned: PlannedCommand, pre: PreAuthorisation, q: Question) -> bool:
    same_argv = bool(planned.canonical) and planned.canonical == q.verdict.canonical and planned.stdin == q.order.stdin
    return same_argv and q.verdict.destroys_only(pre.object.kind, pre.object.name)


def _condition_holds(state: State, plan: Plan, condition: Condition) -> bool:
    if not isinstance(condition, AfterFailed):
        return True
    step = state.steps.get(condition.step)
    return step is not None and step.status is StepStatus.FAILED and _really_failed(state, plan, condition.step)


def _really_failed(state: State, plan: Plan, seq: int) -> bool:
    """The model marks steps; that one failed is proven by the newest of its runs, and by one the approver had read."""
    keys = {
        run_key(step.target_id, planned.canonical or planned.text, planned.stdin)
        for step, planned in plan.commands()
        if step.seq == seq
    }
    tried = [run for run in state.runs.values() if run.step == seq and run.generation == plan.generation]
    newest = max(tried, key=lambda run: run.started_seq, default=None)
    return newest is not None and (not keys or newest.key in keys) and _failed(newest)


def _failed(run: RunState) -> bool:
    return isinstance(run.outcome, Exited | Signalled | TimedOut) and not run.ok


def _outcome_unknown(q: Question) -> bool:
    """Whether this command may have run already and nothing can tell: a person decides about a repeat (DESIGN §3)."""
    key = run_key(q.order.target_id, q.verdict.canonical or q.order.command, q.order.stdin)
    return any(run.key == key and isinstance(run.outcome, Unknown) for run in q.state.runs.values())


def _uses(state: State, planned: PlannedCommand, target_id: str) -> int:
    """Uses are counted at the start and refunded only for a proven never-started."""
    key = run_key(target_id, planned.canonical, planned.stdin)
    return sum(
        1 for run in state.runs.values() if run.key == key and not _refunded(run) and "preauthorised:" in run.authority
    )


def _refunded(run: RunState) -> bool:
    return isinstance(run.outcome, NeverStarted)


def _words(effects: tuple[Effect, ...]) -> str:
    return ", ".join(f"{effect.kind}" + (f" of {effect.object}" if effect.object else "") for effect in effects)
