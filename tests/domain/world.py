"""A small fleet, a few people and a driver for sessions: what the tests of the domain are written with.

The driver keeps the records of one session, folds them, and asks `decide` and `admit` the way the application
does: the events of a decision are appended together, at one moment, and a run starts only with an Admission.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.admission import Admission
from oikos.domain.consent import Channel, Consent, Principal, Role
from oikos.domain.creation import made_by
from oikos.domain.errors import Refusal
from oikos.domain.gate import NeedsApproval, NeedsTypedConfirmation, Outcome, Question, admit
from oikos.domain.instant import Instant
from oikos.domain.inventory import AccessPath, Entity, Fact, Inventory, Mode, Transport
from oikos.domain.plan import Check, PlannedCommand, PreAuthorisation, Scope, Step, StepStatus
from oikos.domain.run import Exited, RunOrder, RunOutcome, RunReport, RunRequest
from oikos.domain.session import Decided, Decision, State, decide, evolve
from oikos.domain.verdict import Action, Effect, EffectKind, Hop, HopKind, NamedObject, Reason, Risk, Verdict

WALL_S = 1_800_000_000.0
BOOT = "boot-1"
SESSION = "s1"

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


def at(seconds: float, *, boot: str = BOOT, boot_s: float | None = None) -> Instant:
    """The moment `seconds` after the story begins; both clocks agree unless `boot_s` says otherwise."""
    return Instant(wall_s=WALL_S + seconds, boot_s=1000.0 + (seconds if boot_s is None else boot_s), boot_id=boot)


# ---- people ----------------------------------------------------------------------------------------------------------

ANNA = Principal(id="anna", role=Role.APPROVER, channel=Channel.WEB)
BEN = Principal(id="ben", role=Role.APPROVER, channel=Channel.CLI)
OTTO = Principal(id="otto", role=Role.OPERATOR, channel=Channel.WEB)
VERA = Principal(id="vera", role=Role.VIEWER, channel=Channel.WEB)
PIPE = Principal(id="pipe", role=Role.APPROVER, channel=Channel.CLI, attended=False)
SCRIPT = Principal(id="script", role=Role.APPROVER, channel=Channel.SCRIPT)

# ---- the fleet -------------------------------------------------------------------------------------------------------


def ssh(address: str, **more: object) -> AccessPath:
    """An ssh way in with an enrolled key."""
    return replace(AccessPath(transport=Transport.SSH, address=address, host_keys=(f"ssh-ed25519 {address}",)), **more)


def guest(number: str) -> AccessPath:
    """The way into a container of pve1."""
    return AccessPath(transport=Transport.PCT, via="pve1", guest=number)


WEB1 = Entity(id="e-web1", kind="host", slug="web1", name="web1", aliases=("www",), access=ssh("10.0.0.1"))
WEB2 = Entity(id="e-web2", kind="host", slug="web2", name="web2", access=ssh("10.0.0.2"))
PVE1 = Entity(id="e-pve1", kind="node", slug="pve1", name="pve1", access=ssh("10.0.0.9"))
CT131 = Entity(id="e-ct131", kind="lxc", slug="paperless", name="paperless", parent="e-pve1", access=guest("131"))
CT140 = Entity(
    id="e-ct140", kind="lxc", slug="vault", name="vault", parent="e-pve1", mode=Mode.LOCKED, access=guest("140")
)
NAS = Entity(id="e-nas", kind="host", slug="nas", name="nas", mode=Mode.LOOK, access=ssh("10.0.0.7"))
SELF = Entity(id="e-self", kind="host", slug="self", name="self", mode=Mode.LOCKED, access=ssh("10.0.0.99"))
FLEET = Inventory(entities={entity.id: entity for entity in (WEB1, WEB2, PVE1, CT131, CT140, NAS)})


def with_entities(*entities: Entity, of: Inventory = FLEET) -> Inventory:
    """The fleet with entities added or replaced."""
    return replace(of, entities={**of.entities, **{entity.id: entity for entity in entities}})


# ---- verdicts --------------------------------------------------------------------------------------------------------

READ, CHANGE, DESTROY = Risk.READ_ONLY, Risk.CONFIG_MUTATION, Risk.DESTRUCTIVE


def verdict(
    command: str,
    risk: Risk,
    *,
    effects: Iterable[Effect] = (),
    objects: Iterable[NamedObject] = (),
    actions: Iterable[Action] | None = None,
    canonical: str | None = None,
    advice: str = "",
) -> Verdict:
    """What the classifier would say; `actions` default to one command on the target itself."""
    found = (action(command, risk),) if actions is None else tuple(actions)
    reasons = () if risk is READ else (Reason(rule="test", risk=risk, span=(0, 1), text=f"It is {risk.value}."),)
    return Verdict(
        risk=risk,
        effects=tuple(effects),
        reasons=reasons,
        actions=found,
        objects=tuple(objects),
        advice=advice,
        canonical=command if canonical is None else canonical,
    )


def action(command: str, risk: Risk, *place: Hop) -> Action:
    """One simple command and where it runs."""
    return Action(argv=tuple(command.split()), place=place, risk=risk, span=(0, len(command)))


def pct(name: str) -> Hop:
    """Into a container of the node."""
    return Hop(kind=HopKind.PCT, name=name)


def onward(name: str) -> Hop:
    """By ssh to another machine."""
    return Hop(kind=HopKind.SSH, name=name)


def effect(kind: EffectKind, thing: str = "") -> Effect:
    """One effect and its object."""
    return Effect(kind=kind, object=thing)


DESTROY_131 = NamedObject(kind="guest", name="131", risk=DESTROY, verb="destroy")

# ---- plans -----------------------------------------------------------------------------------------------------------

LOOK = "cat /etc/demo.conf"
FIX = "systemctl restart demo"
CHECK = "systemctl is-active demo"
DESTROY_CMD = "pct destroy 131"


def planned(text: str, risk: Risk, **more: object) -> PlannedCommand:
    """A command of a step, classified."""
    return replace(PlannedCommand(text=text, risk=risk, canonical=text), **more)


def step(target: Entity, *commands: PlannedCommand, title: str = "Step", undo: str = "", seq: int = 1) -> Step:
    """One step on one target."""
    return Step(seq=seq, title=title, target=target.slug, target_id=target.id, commands=commands, undo=undo)


def scope(*entities: Entity) -> tuple[Scope, ...]:
    """The machines with the host keys they have."""
    return tuple(
        Scope(target_id=e.id, slug=e.slug, host_keys=e.access.host_keys if e.access is not None else ())
        for e in entities
    )


def check(target: Entity = WEB1, command: str = CHECK) -> Check:
    """A check that wants exit 0 and the word active."""
    return Check(target=target.slug, target_id=target.id, command=command, expect_text="active")


def propose(
    *steps: Step, checks: tuple[Check, ...] = (), on: tuple[Entity, ...] = (WEB1,), call_id: str = "c-plan"
) -> it.Propose:
    """A `propose_plan` call after resolution and classification; steps are numbered from 1."""
    numbered = tuple(replace(one, seq=number) for number, one in enumerate(steps, start=1))
    return it.Propose(call_id=call_id, steps=numbered, checks=checks, scope=scope(*on))


def look_plan(call_id: str = "c-look") -> it.Propose:
    """Reads only: accepted at once."""
    return propose(step(WEB1, planned(LOOK, READ), title="Look"), call_id=call_id)


def fix_plan(call_id: str = "c-fix") -> it.Propose:
    """A change with a check: needs approval."""
    return propose(step(WEB1, planned(FIX, CHANGE), title="Fix"), checks=(check(),), call_id=call_id)


def destroy_plan(call_id: str = "c-destroy", **pre: object) -> it.Propose:
    """A change and a destructive command that it wants allowed beforehand."""
    wanted = replace(PreAuthorisation(object=DESTROY_131), **pre)
    destroy = planned(DESTROY_CMD, DESTROY, objects=(DESTROY_131,), preauthorise=wanted)
    steps = (step(PVE1, planned(FIX, CHANGE), title="Fix"), step(PVE1, destroy, title="Destroy"))
    return propose(*steps, checks=(check(PVE1),), on=(PVE1,), call_id=call_id)


# ---- a session -------------------------------------------------------------------------------------------------------


@dataclass
class Session:
    """The records of one session and the clock beside it."""

    now_s: float = 0.0
    state: State = field(default_factory=State)
    records: list[ev.Recorded] = field(default_factory=list)
    inventory: Inventory = FLEET
    ids: int = 0
    fixed: Instant | None = None
    """A reading of the clocks that stands for `now_s`, where a test moves them apart."""

    @classmethod
    def opened(cls, *, mode: str = "ask", lab: bool = False) -> Session:
        """A new conversation."""
        session = cls()
        session.record(ev.SessionOpened(mode=mode, model="scripted", by="anna", lab=lab))
        return session

    def confirm(self, phrase: str, *, by: Principal = ANNA, consent_id: str = "a") -> it.Confirm:
        """The phrase, typed under what is shown now."""
        parked = self.state.parked if self.state.awaiting_run else None
        digest = parked.event.order.asked() if parked is not None else self.state.digest
        return it.Confirm(phrase=phrase, digest=digest, by=by, consent_id=consent_id)

    @property
    def now(self) -> Instant:
        """What the clocks say."""
        return self.fixed or at(self.now_s)

    @property
    def phase(self) -> str:
        return self.state.phase.value

    @property
    def plan_generation(self) -> int:
        assert self.state.plan is not None
        return self.state.plan.generation

    def pass_s(self, seconds: float) -> Session:
        """Let time pass."""
        self.now_s += seconds
        return self

    def new_id(self, kind: str) -> str:
        self.ids += 1
        return f"{kind}{self.ids}"

    def record(self, *events: ev.Event, now: Instant | None = None) -> Session:
        """Append events at one moment."""
        for event in events:
            record = ev.Recorded(session_id=SESSION, seq=self.state.seq + 1, at=now or self.now, event=event)
            self.records.append(record)
            self.state = evolve(self.state, record)
        return self

    def do(self, intent: it.Intent, now: Instant | None = None) -> Decision:
        """Decide an intent and append what it decides."""
        decision = decide(self.state, intent, now or self.now)
        if isinstance(decision, Decided):
            self.record(*decision.events, now=now)
        return decision

    def must(self, intent: it.Intent, now: Instant | None = None) -> tuple[ev.Event, ...]:
        """Decide an intent that has to succeed; its events."""
        decision = self.do(intent, now)
        assert isinstance(decision, Decided), decision
        return decision.events

    def refuse(self, intent: it.Intent, now: Instant | None = None) -> Refusal:
        """Decide an intent that has to be refused, and change nothing."""
        before = self.state
        decision = self.do(intent, now)
        assert isinstance(decision, Refusal), decision
        assert self.state == before
        return decision

    # ---- what operators do

    def send(self, text: str, by: Principal = ANNA, **more: object) -> it.Send:
        """A message from a screen that shows what is pending right now."""
        parked = self.state.parked if self.state.awaiting_run else None
        shown = {"shown_generation": self.state.generation, "shown_digest": self.state.digest}
        if parked is not None:
            shown["shown_digest"] = parked.event.order.asked()
        fields: dict[str, object] = {"text": text, "by": by, "consent_id": self.new_id("k"), **shown, **more}
        return it.Send(**fields)

    def approve(self, by: Principal = ANNA, **more: object) -> it.Approve:
        """Approve what is on the screen."""
        shown = {"generation": self.state.generation, "digest": self.state.digest, "consent_id": self.new_id("k")}
        return it.Approve(by=by, **{**shown, **more})

    def approve_run(self, by: Principal = ANNA, **more: object) -> it.ApproveRun:
        """Approve the parked run on the screen."""
        parked = self.state.parked
        order = parked.event.order if parked is not None else None
        shown = {
            "run_id": order.run_id if order is not None else "none",
            "digest": order.asked() if order is not None else "none",
            "consent_id": self.new_id("k"),
        }
        return it.ApproveRun(by=by, **{**shown, **more})

    # ---- what the agent and the loop do

    def begin(self, text: str = "please fix the demo service", goal: str = "the demo service runs") -> Session:
        """A message, a turn and a goal."""
        self.must(self.send(text))
        self.record(ev.TurnStarted(wake="message"))
        self.must(it.SetGoal(goal=goal))
        return self

    def approved(self, plan: it.Propose | None = None, **more: object) -> Session:
        """A session whose plan is approved, at the model's next response."""
        self.begin()
        self.must(plan or fix_plan())
        self.must(self.approve(**more))
        return self.calls()

    def calls(self, *ids: str) -> Session:
        """One model response with calls."""
        return self.record(
            ev.AssistantSaid(text="", calls=tuple(ev.ToolCall(id=i, name="run", arguments="{}") for i in ids))
        )

    def question(
        self,
        command: str,
        said: Verdict,
        *,
        target: Entity = WEB1,
        step: int | None = None,
        approval: Consent | None = None,
        order: RunOrder | None = None,
        now: Instant | None = None,
        stdin: str | None = None,
        rerun: str = "",
        call_id: str = "c-run",
        identified: frozenset[str] = frozenset(),
    ) -> Question:
        """What the application asks the gate."""
        wanted = order or RunOrder(
            run_id=self.new_id("r"),
            session_id=SESSION,
            generation=self.state.generation,
            target_id=target.id,
            command=command,
            stdin=stdin,
        )
        request = RunRequest(call_id=call_id, target=target.slug, command=command, step=step, stdin=stdin, rerun=rerun)
        return Question(
            state=self.state,
            request=request,
            order=wanted,
            target=self.inventory.resolve(target.slug),
            verdict=said,
            inventory=self.inventory,
            now=now or self.now,
            approval=approval,
            identified=identified,
        )

    def ask(self, command: str, said: Verdict, **more: object) -> Outcome:
        """Ask the gate."""
        return admit(self.question(command, said, **more))

    def start(self, question: Question, outcome: Outcome, *, check: int | None = None) -> ev.RunStarted:
        """Journal the start of an admitted run."""
        assert isinstance(outcome, Admission), outcome
        order = question.order
        outcome.spend(kind="run", digest=order.digest())
        started = ev.RunStarted(
            order=order,
            call_id=question.request.call_id,
            target=question.request.target,
            step=question.request.step,
            risk=question.verdict.risk,
            effects=question.verdict.effects,
            canonical=question.verdict.canonical,
            authority=outcome.authority,
            admitted=outcome.digest,
            check=check,
            rerun=question.request.rerun,
            creates=made_by(question.verdict),
        )
        self.record(started)
        return started

    def park(self, question: Question, outcome: Outcome) -> ev.RunParked:
        """Journal a run that waits for a decision."""
        assert isinstance(outcome, NeedsApproval | NeedsTypedConfirmation), outcome
        typed = isinstance(outcome, NeedsTypedConfirmation)
        parked = ev.RunParked(
            order=question.order,
            call_id=question.request.call_id,
            target=question.request.target,
            step=question.request.step,
            risk=question.verdict.risk,
            effects=outcome.effects,
            objects=question.verdict.objects,
            canonical=question.verdict.canonical,
            why=outcome.why,
            phrase=outcome.phrase if typed else "",
            offers_reopen=False if typed else outcome.offers_reopen,
            rerun=question.request.rerun,
            scripts=question.scripts,
        )
        self.record(parked)
        return parked

    def run(
        self, command: str, said: Verdict, *, outcome: RunOutcome | None = None, check: int | None = None,
        passed: bool | None = None, **more: object,
    ) -> str:  # fmt: skip
        """Admit, start and finish a run; its id."""
        question = self.question(command, said, **more)
        started = self.start(question, admit(question), check=check)
        self.finish(started.order.run_id, outcome or Exited(code=0), passed=passed)
        return started.order.run_id

    def finish(self, run_id: str, outcome: RunOutcome, *, passed: bool | None = None) -> Session:
        """The outcome of a run."""
        return self.record(ev.RunFinished(run_id=run_id, report=RunReport(outcome=outcome), passed=passed))

    def mark(self, seq: int, status: StepStatus, note: str = "") -> Session:
        """`update_plan_step`."""
        self.must(it.MarkStep(seq=seq, status=status, note=note))
        return self

    def write_back(self, run_id: str) -> Session:
        """`update_entity_attributes`, citing a run."""
        self.must(it.WriteFacts(entity_id=WEB1.id, facts=(fact(run_id),), run_id=run_id))
        return self


def fact(run_id: str, key: str = "demo.state", value: str = '"active"') -> Fact:
    """One observed value."""
    return Fact(entity_id=WEB1.id, key=key, value=value, source=f"run:{run_id}", observed_s=WALL_S)
