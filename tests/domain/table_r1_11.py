"""The table of SPEC R1.11 as data: what each operator action does in each state.

A cell says the exact events and the phase that follows, or why it is refused and which words the answer must
hold (the state, the generation, who decided). Columns that the table names with a condition ("a limit: raises",
"only if the plan is still proposed") have one state for each side of the condition.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.domain.world import (
    ANNA,
    CHANGE,
    DESTROY,
    DESTROY_131,
    DESTROY_CMD,
    FIX,
    PVE1,
    READ,
    SESSION,
    Session,
    action,
    destroy_plan,
    effect,
    onward,
    verdict,
)

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.consent import Channel, Consent, Grant
from oikos.domain.errors import Code
from oikos.domain.plan import StepStatus
from oikos.domain.verdict import EffectKind

TEN_MINUTES_S = 600.0

# ---- states ----------------------------------------------------------------------------------------------------------


def idle() -> Session:
    return Session.opened()


def idle_with_window() -> Session:
    """A text-only reply ended a turn in which nothing was left to do, before its task was completed."""
    session = Session.opened().approved()
    return session.record(ev.TurnEnded(reason="idle"))


def executing() -> Session:
    """A turn under an approved plan with an open window."""
    return Session.opened().approved()


def executing_no_plan() -> Session:
    return Session.opened().begin()


def executing_proposed() -> Session:
    """A comment woke the model while its plan waits."""
    session = awaiting_plan()
    session.must(session.send("what about the disk?"))
    return session


def executing_window_ended() -> Session:
    session = executing().pass_s(2000.0)
    session.must(it.Tick())
    return session


def executing_run_approved() -> Session:
    """A parked run was approved and has not started yet."""
    session = awaiting_run()
    session.must(session.approve_run())
    return session


def awaiting_plan() -> Session:
    session = Session.opened().begin()
    session.must(destroy_plan())
    session.record(ev.TurnEnded(reason="approval"))
    return session


def awaiting_run() -> Session:
    """The window is open, but the run reaches a machine that is not in the plan."""
    session = executing().calls("c-run")
    said = verdict("ssh web2 uptime", CHANGE, actions=(action("touch /x", CHANGE, onward("web2")),))
    question = session.question("ssh web2 touch /x", said)
    session.park(question, session.ask("ssh web2 touch /x", said, order=question.order))
    return session


def awaiting_run_guarded() -> Session:
    session = executing().calls("c-run")
    said = verdict("useradd eve", CHANGE, effects=(effect(EffectKind.PRIVILEGE, "eve"),))
    question = session.question("useradd eve", said)
    session.park(question, session.ask("useradd eve", said, order=question.order))
    return session


def awaiting_run_destructive() -> Session:
    session = Session.opened().approved(destroy_plan()).calls("c-run")
    said = verdict(DESTROY_CMD, DESTROY, objects=(DESTROY_131,))
    question = session.question(DESTROY_CMD, said, target=PVE1)
    session.park(question, session.ask(DESTROY_CMD, said, target=PVE1, order=question.order))
    return session


def awaiting_run_reopen() -> Session:
    """Only the window had ended: the card offers to reopen it."""
    session = executing_window_ended().calls("c-run")
    said = verdict(FIX, CHANGE)
    question = session.question(FIX, said)
    session.park(question, session.ask(FIX, said, order=question.order))
    return session


def waiting() -> Session:
    """A background run and a `wait` for it."""
    session = executing()
    question = session.question(FIX, verdict(FIX, CHANGE), call_id="c-bg")
    session.start(question, session.ask(FIX, verdict(FIX, CHANGE), order=question.order, call_id="c-bg"))
    run_id = question.order.run_id
    session.calls("c-wait").must(it.Wait(call_id="c-wait", seconds=600.0, reason="the upgrade", run_id=run_id))
    return session


def waiting_window_ended() -> Session:
    return _after_expiry(waiting())


def _after_expiry(session: Session) -> Session:
    return session.record(ev.WindowClosed(generation=session.state.generation, reason="expired"))


def blocked() -> Session:
    """A question is open, under an approved plan."""
    session = executing().calls("c-ask")
    session.must(it.Ask(call_id="c-ask", kind="text", text="Which disk?"))
    return session


def blocked_choice() -> Session:
    session = executing().calls("c-ask")
    session.must(it.Ask(call_id="c-ask", kind="choice", text="Restart now?", choices=("yes", "no")))
    return session


def blocked_secret() -> Session:
    session = executing().calls("c-ask")
    session.must(it.Ask(call_id="c-ask", kind="secret", text="The password?", secret_name="db"))
    return session


def blocked_proposed() -> Session:
    """A question and a plan are both open."""
    session = executing_proposed().calls("c-ask")
    session.must(it.Ask(call_id="c-ask", kind="text", text="Which disk?"))
    return session


def blocked_limit() -> Session:
    return executing().record(ev.SessionBlocked(on="limit", reason="40 iterations are used"))


def blocked_nudge() -> Session:
    return executing().record(ev.SessionBlocked(on="nudge", reason="steps 1 are open"))


def blocked_no_window() -> Session:
    return executing_no_plan().record(ev.SessionBlocked(on="provider", reason="the model is down"))


def blocked_halted() -> Session:
    session = executing()
    session.must(session.send("stop"))
    return session


def done() -> Session:
    session = executing()
    run_id = session.run(FIX, verdict(FIX, CHANGE), step=1)
    session.mark(1, StepStatus.DONE)
    session.run("systemctl is-active demo", verdict("systemctl is-active demo", READ), check=0, passed=True)
    session.write_back(run_id)
    session.must(it.Complete(outcome="done", summary="it runs", evidence=(run_id,)))
    return session


def failed() -> Session:
    session = executing()
    session.mark(1, StepStatus.FAILED, "the unit is gone")
    session.must(it.Complete(outcome="failed", summary="tried nothing; web1 is as before"))
    return session


def stopped() -> Session:
    session = executing()
    session.must(it.Stop(by=ANNA))
    return session


STATES: dict[str, Callable[[], Session]] = {
    "idle": idle,
    "executing": executing,
    "awaiting-plan": awaiting_plan,
    "awaiting-run": awaiting_run,
    "waiting": waiting,
    "blocked": blocked,
    "done": done,
    "failed": failed,
    "stopped": stopped,
    # the other side of a cell's condition
    "idle-with-window": idle_with_window,
    "executing-no-plan": executing_no_plan,
    "executing-proposed": executing_proposed,
    "executing-window-ended": executing_window_ended,
    "executing-run-approved": executing_run_approved,
    "awaiting-run-guarded": awaiting_run_guarded,
    "awaiting-run-destructive": awaiting_run_destructive,
    "awaiting-run-reopen": awaiting_run_reopen,
    "waiting-window-ended": waiting_window_ended,
    "blocked-choice": blocked_choice,
    "blocked-secret": blocked_secret,
    "blocked-proposed": blocked_proposed,
    "blocked-limit": blocked_limit,
    "blocked-nudge": blocked_nudge,
    "blocked-no-window": blocked_no_window,
    "blocked-halted": blocked_halted,
}
COLUMNS = ("idle", "executing", "awaiting-plan", "awaiting-run", "waiting", "blocked", "done", "failed", "stopped")

# ---- actions ---------------------------------------------------------------------------------------------------------

NOW_S = TEN_MINUTES_S
"""Every action comes ten minutes after the state's last event."""

K = "k-act"
"""Id of a consent that the action would give."""

ACTIONS: dict[str, Callable[[Session], it.OperatorIntent]] = {
    "comment": lambda s: s.send("look at the disk as well", consent_id=K),
    "assent": lambda s: s.send("go", consent_id=K),
    "refusal": lambda s: s.send("no", consent_id=K),
    "halt": lambda s: s.send("stop", consent_id=K),
    "approve": lambda s: s.approve(consent_id=K),
    "ask-for-changes": lambda _: it.AskForChanges(text="take web2 instead", by=ANNA),
    "reject": lambda _: it.Reject(by=ANNA, reason="not today"),
    "confirm": lambda s: s.confirm("destroy 131", by=ANNA, consent_id=K),
    "revoke": lambda _: it.Revoke(by=ANNA),
    "stop": lambda _: it.Stop(by=ANNA, kill=False),
    "raise": lambda _: it.Raise(by=ANNA),
    "approve-run": lambda s: s.approve_run(consent_id=K),
    "approve-run-and-reopen": lambda s: s.approve_run(consent_id=K, reopen_s=1800.0),
    "clarify": lambda s: s.send("yes, but only step 1", consent_id=K),
    "halt-with-more": lambda s: s.send("stop, wrong host", consent_id=K),
}
ROWS = (
    "comment", "assent", "refusal", "halt", "approve", "ask-for-changes", "reject", "confirm", "revoke",
    "stop", "raise",
)  # fmt: skip

# ---- what a cell says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Does:
    """The action is carried out: these events, this phase; `notice` is part of what the operator is told."""

    phase: str
    events: tuple[ev.Event, ...]
    notice: str = ""


@dataclass(frozen=True)
class Says409:
    """The action is refused; the answer holds these words."""

    words: tuple[str, ...]
    code: Code = Code.WRONG_STATE


Cell = Does | Says409

COMMENT, ASSENT, REFUSAL, HALT = "look at the disk as well", "go", "no", "stop"


def said(text: str, reading: str = "comment", *, wakes: bool = True) -> ev.OperatorSaid:
    return ev.OperatorSaid(text=text, by="anna", channel="web", reading=reading, wakes=wakes)


def answered(text: str, call_id: str = "c-ask") -> tuple[ev.Event, ...]:
    """The operator's answer, and the answer to the call that asked."""
    told = json.dumps({"answer": text})
    return (
        ev.QuestionAnswered(call_id=call_id, text=text, by="anna"),
        ev.ToolAnswered(call_id=call_id, name="ask_operator", text=told),
    )


def wait_ended(by: str) -> tuple[ev.Event, ...]:
    told = json.dumps({"waited": True, "ended_by": by})
    return ev.WaitEnded(call_id="c-wait", by=by), ev.ToolAnswered(call_id="c-wait", name="wait", text=told)


def reopened(after: str) -> ev.SessionReopened:
    return ev.SessionReopened(after=after, generation=1)


def declined(session: Session, comment: str = "", decision: str = "declined") -> tuple[ev.Event, ...]:
    """The parked run is decided, and its call answered."""
    parked = session.state.parked
    assert parked is not None
    told = {
        "refused": "declined",
        "text": f"The operator {decision} this command.",
        "comment": comment,
        "do": "Do not ask for the same command again in this plan: take another way, or complete as failed.",
    }
    return (
        ev.RunDecided(run_id=parked.event.order.run_id, decision=decision, by="anna", comment=comment),
        ev.ToolAnswered(call_id="c-run", name="run", text=json.dumps(told), refusal="declined"),
    )


def rejected(reason: str, *, changes_asked: bool = False) -> ev.PlanRejected:
    return ev.PlanRejected(generation=1, by="anna", reason=reason, changes_asked=changes_asked)


def consent(
    session: Session, grant: Grant, *, text: str = "", duration_s: float = 1800.0, run: bool = False
) -> Consent:
    """The ledger's row for the action."""
    plan = session.state.plan
    assert plan is not None
    parked = session.state.parked
    order = parked.event.order if run and parked is not None else None
    return Consent(
        id=K,
        grant=grant,
        session_id=SESSION,
        generation=1,
        digest=order.asked() if order is not None else session.state.digest,
        machines=plan.machines(),
        duration_s=duration_s,
        at=session.now,
        by="anna",
        channel=Channel.WEB,
        run_id=order.run_id if order is not None else "",
        text=text,
    )


def plan_approved(session: Session, text: str = "") -> tuple[ev.Event, ...]:
    granted = consent(session, Grant.PLAN, text=text)
    return (
        ev.ConsentGranted(consent=granted),
        ev.PlanApproved(generation=1, digest=session.state.digest, consent_id=K, items=()),
    )


def run_approved(
    session: Session, grant: Grant = Grant.RUN, text: str = "", duration_s: float = 0.0
) -> tuple[ev.Event, ...]:
    granted = consent(session, grant, text=text, duration_s=duration_s, run=True)
    decided = ev.RunDecided(run_id=granted.run_id, decision="approved", by="anna", consent_id=K)
    return ev.ConsentGranted(consent=granted), decided


def renewed(session: Session, *, wakes: bool = False) -> tuple[ev.Event, ...]:
    granted = consent(session, Grant.RENEW, text=ASSENT)
    return said(ASSENT, "assent", wakes=wakes), ev.ConsentGranted(consent=granted), ev.WindowRenewed(consent_id=K)


def window_closed(reason: str) -> ev.WindowClosed:
    return ev.WindowClosed(generation=1, reason=reason)


def plan_closed(reason: str) -> ev.PlanClosed:
    return ev.PlanClosed(generation=1, status="closed", reason=reason)


def halted() -> ev.SessionBlocked:
    return ev.SessionBlocked(on="halted", reason="halted by the operator: Stop, or say go to resume")


SUSPENDED = ev.WindowSuspended(by="anna")
RAISED = ev.LimitRaised(by="anna")
STOPPED = ev.SessionStopped(by="anna", runs="disown")
TOLD_STOPPED = ev.ToolAnswered(call_id="c-ask", name="ask_operator", text=json.dumps({"answer": None, "stopped": True}))
BY_ANNA = "plan 1 was approved by anna"


def live(phase: str, *more: str) -> Says409:
    """409 while the session lives: state, generation and the last decision."""
    return Says409((f"the session is {phase}", *more))


def over(phase: str, *more: str) -> Says409:
    """409 in an ended session."""
    return Says409((f"the session is {phase}", *more), Code.SESSION_OVER)


RUNNING = live("executing", "generation 1", BY_ANNA)
PLAN_WAITS = live("awaiting_approval", "generation 1")
RUN_WAITS = live("awaiting_approval", "generation 1", BY_ANNA)
IS_WAITING = live("waiting", "generation 1", BY_ANNA)
IS_BLOCKED = live("blocked", "generation 1", BY_ANNA)
IS_DONE = over("done", "generation 1", BY_ANNA)
IS_FAILED = over("failed", "generation 1", BY_ANNA)
IS_STOPPED = over("stopped", "generation 1", "stopped by anna")

CELLS: dict[str, Cell | Callable[[Session], Cell]] = {
    # comment
    "comment-while-idle": Does("executing", (said(COMMENT),)),
    "comment-while-executing": Does("executing", (said(COMMENT),)),
    "comment-while-executing-proposed": Does("executing", (said(COMMENT),), "still waiting"),
    "comment-while-awaiting-plan": Does("executing", (said(COMMENT),), "Plan 1 is still waiting for your decision."),
    "comment-while-awaiting-run": Does(
        "awaiting_approval", (said(COMMENT, wakes=False),), "with your decision. Still waiting: run r"
    ),
    "comment-while-waiting": Does("executing", (*wait_ended("message"), said(COMMENT))),
    "comment-while-blocked": Does("executing", answered(COMMENT)),
    "comment-while-blocked-choice": Does("executing", answered(COMMENT)),
    "comment-while-blocked-secret": Says409(("secret db", "oikos answer"), Code.NEEDS_OPERATOR),
    "comment-while-blocked-proposed": Does("executing", answered(COMMENT)),
    "comment-while-blocked-limit": Does("executing", (said(COMMENT),)),
    "comment-while-blocked-nudge": Does("executing", (said(COMMENT),)),
    "comment-while-blocked-no-window": Does("executing", (said(COMMENT),)),
    "comment-while-blocked-halted": Does("executing", (said(COMMENT),)),
    "comment-while-done": Does("executing", (reopened("done"), said(COMMENT))),
    "comment-while-failed": Does("executing", (reopened("failed"), said(COMMENT))),
    "comment-while-stopped": Does("executing", (reopened("stopped"), said(COMMENT))),
    # assent
    "assent-while-idle": Does("executing", (said(ASSENT),)),
    "assent-while-executing": lambda s: Does("executing", renewed(s), "Window renewed for 30 min."),
    "assent-while-executing-no-plan": Does("executing", (said(ASSENT),)),
    "assent-while-executing-proposed": Does("executing", (said(ASSENT),), "Plan 1 is still waiting"),
    "assent-while-executing-window-ended": Does("executing", (said(ASSENT),)),
    "assent-while-awaiting-plan": lambda s: Does(
        "executing",
        (said(ASSENT, "assent", wakes=False), *plan_approved(s, ASSENT)),
        "Plan 1 approved; window 30 min on pve1.",
    ),
    "assent-while-awaiting-run": lambda s: Does(
        "executing", (said(ASSENT, "assent", wakes=False), *run_approved(s, text=ASSENT)), "approved, once"
    ),
    "assent-while-awaiting-run-guarded": Does(
        "awaiting_approval", (said(ASSENT, "clarify", wakes=False),), "approve it on its card. Still waiting: run"
    ),
    "assent-while-awaiting-run-destructive": Does(
        "awaiting_approval", (said(ASSENT, "clarify", wakes=False),), "Still waiting: run"
    ),
    "assent-while-waiting": lambda s: Does("waiting", renewed(s)),
    "assent-while-waiting-window-ended": Does("executing", (*wait_ended("message"), said(ASSENT))),
    "assent-while-blocked": Does("executing", answered(ASSENT)),
    "assent-while-blocked-limit": Does("executing", (said(ASSENT, "assent", wakes=False), RAISED), "Limits raised"),
    "assent-while-blocked-proposed": Does(
        "blocked", (said(ASSENT, "clarify", wakes=False),), "Nothing was approved. Still waiting: plan 1"
    ),
    "assent-while-blocked-nudge": lambda s: Does("executing", renewed(s, wakes=True)),
    "assent-while-blocked-no-window": Does("executing", (said(ASSENT),)),
    "assent-while-blocked-halted": lambda s: Does("executing", renewed(s, wakes=True)),
    "assent-while-done": Does("executing", (reopened("done"), said(ASSENT))),
    "assent-while-failed": Does("executing", (reopened("failed"), said(ASSENT))),
    "assent-while-stopped": Says409(("Nothing is pending", "stopped"), Code.NOTHING_PENDING),
    # refusal
    "refusal-while-idle": Does("executing", (said(REFUSAL),)),
    "refusal-while-executing": Does("executing", (said(REFUSAL),)),
    "refusal-while-executing-proposed": Does("executing", (said(REFUSAL),)),
    "refusal-while-awaiting-plan": Does(
        "idle", (said(REFUSAL, "refusal", wakes=False), rejected(REFUSAL)), "Plan 1 rejected"
    ),
    "refusal-while-awaiting-run": lambda s: Does(
        "executing", (said(REFUSAL, "refusal", wakes=False), *declined(s, REFUSAL)), "Declined."
    ),
    "refusal-while-waiting": Does("executing", (*wait_ended("message"), said(REFUSAL))),
    "refusal-while-blocked": Does(
        "blocked", (said(REFUSAL, "refusal", wakes=False),), "still blocked: question: Which disk?"
    ),
    "refusal-while-blocked-choice": Does("executing", answered(REFUSAL)),
    "refusal-while-blocked-limit": Does(
        "blocked", (said(REFUSAL, "refusal", wakes=False),), "still blocked: 40 iterations are used"
    ),
    "refusal-while-blocked-halted": Does("blocked", (said(REFUSAL, "refusal", wakes=False),)),
    "refusal-while-done": Does("done", (said(REFUSAL, "refusal", wakes=False),), "the session stays done"),
    "refusal-while-failed": Does("failed", (said(REFUSAL, "refusal", wakes=False),), "the session stays failed"),
    "refusal-while-stopped": Does("stopped", (said(REFUSAL, "refusal", wakes=False),), "the session stays stopped"),
    # halt
    "halt-while-idle": Does("executing", (said(HALT),)),
    "halt-while-executing": Does(
        "blocked", (SUSPENDED, said(HALT, "halt", wakes=False), halted()), "Suspended: nothing more starts."
    ),
    "halt-while-executing-no-plan": Does("blocked", (said(HALT, "halt", wakes=False), halted())),
    "halt-while-executing-proposed": Does("blocked", (said(HALT, "halt", wakes=False), halted())),
    "halt-while-awaiting-plan": Does("idle", (said(HALT, "halt", wakes=False), rejected(HALT)), "Plan 1 rejected"),
    "halt-while-awaiting-run": lambda s: Does(
        "executing", (said(HALT, "halt", wakes=False), *declined(s, HALT)), "Declined."
    ),
    "halt-while-waiting": Does(
        "blocked", (SUSPENDED, said(HALT, "halt", wakes=False), *wait_ended("message"), halted())
    ),
    "halt-while-blocked": Does(
        "blocked", (SUSPENDED, said(HALT, "halt", wakes=False)), "still blocked: question: Which disk?"
    ),
    "halt-while-blocked-no-window": Does(
        "blocked", (said(HALT, "halt", wakes=False),), "still blocked: the model is down"
    ),
    "halt-while-done": Does("done", (said(HALT, "halt", wakes=False),), "the session stays done"),
    "halt-while-failed": Does("failed", (said(HALT, "halt", wakes=False),), "the session stays failed"),
    "halt-while-stopped": Does("stopped", (said(HALT, "halt", wakes=False),), "the session stays stopped"),
    # Approve(gen, digest, items)
    "approve-while-idle": live("idle"),
    "approve-while-idle-with-window": live("idle", "generation 1", BY_ANNA),
    "approve-while-executing": RUNNING,
    "approve-while-executing-proposed": lambda s: Does(
        "executing", plan_approved(s), "Plan 1 approved; window 30 min on pve1."
    ),
    "approve-while-awaiting-plan": lambda s: Does(
        "executing", plan_approved(s), "Plan 1 approved; window 30 min on pve1."
    ),
    "approve-while-awaiting-run": RUN_WAITS,
    "approve-while-waiting": IS_WAITING,
    "approve-while-blocked": IS_BLOCKED,
    "approve-while-blocked-proposed": lambda s: Does("blocked", plan_approved(s)),
    "approve-while-done": IS_DONE,
    "approve-while-failed": IS_FAILED,
    "approve-while-stopped": IS_STOPPED,
    # Ask for changes(text)
    "ask-for-changes-while-idle": live("idle"),
    "ask-for-changes-while-executing": RUNNING,
    "ask-for-changes-while-executing-proposed": live("executing", "generation 1"),
    "ask-for-changes-while-awaiting-plan": Does(
        "executing", (rejected("take web2 instead", changes_asked=True), said("take web2 instead"))
    ),
    "ask-for-changes-while-awaiting-run": lambda s: Does(
        "executing", (*declined(s, "take web2 instead"), said("take web2 instead"))
    ),
    "ask-for-changes-while-waiting": IS_WAITING,
    "ask-for-changes-while-blocked": IS_BLOCKED,
    "ask-for-changes-while-done": IS_DONE,
    "ask-for-changes-while-failed": IS_FAILED,
    "ask-for-changes-while-stopped": IS_STOPPED,
    # Reject(reason?)
    "reject-while-idle": live("idle"),
    "reject-while-executing": RUNNING,
    "reject-while-executing-proposed": live("executing", "generation 1"),
    "reject-while-awaiting-plan": Does("idle", (rejected("not today"),), "Plan 1 rejected; write to go on."),
    "reject-while-awaiting-run": lambda s: Does("executing", declined(s, "not today"), "Declined."),
    "reject-while-waiting": IS_WAITING,
    "reject-while-blocked": IS_BLOCKED,
    "reject-while-done": IS_DONE,
    "reject-while-failed": IS_FAILED,
    "reject-while-stopped": IS_STOPPED,
    # Confirm(phrase)
    "confirm-while-idle": live("idle"),
    "confirm-while-executing": RUNNING,
    "confirm-while-executing-proposed": live("executing", "generation 1"),
    "confirm-while-awaiting-plan": Does(
        "awaiting_approval", (ev.ItemTicked(generation=1, item=1, by="anna", text="destroy 131"),), "Item 1 ticked"
    ),
    "confirm-while-awaiting-run": Says409(("approve it without a phrase",), Code.WRONG_PHRASE),
    "confirm-while-awaiting-run-destructive": lambda s: Does(
        "executing", run_approved(s, text="destroy 131"), "approved, once"
    ),
    "confirm-while-waiting": IS_WAITING,
    "confirm-while-blocked": IS_BLOCKED,
    "confirm-while-done": IS_DONE,
    "confirm-while-failed": IS_FAILED,
    "confirm-while-stopped": IS_STOPPED,
    # Revoke
    "revoke-while-idle": live("idle", "no window is open"),
    "revoke-while-idle-with-window": Does("idle", (window_closed("revoked"),)),
    "revoke-while-executing": Does("executing", (window_closed("revoked"),), "the next change will ask"),
    "revoke-while-executing-window-ended": live("executing", "no window is open", BY_ANNA),
    "revoke-while-awaiting-plan": live("awaiting_approval", "no window is open"),
    "revoke-while-awaiting-run": Does("awaiting_approval", (window_closed("revoked"),)),
    "revoke-while-waiting": Does("waiting", (window_closed("revoked"),)),
    "revoke-while-blocked": Does("blocked", (window_closed("revoked"),)),
    "revoke-while-done": IS_DONE,
    "revoke-while-failed": IS_FAILED,
    "revoke-while-stopped": IS_STOPPED,
    # Stop(kill or disown)
    "stop-while-idle": Does("stopped", (STOPPED,)),
    "stop-while-executing": Does("stopped", (plan_closed("stopped"), window_closed("stopped"), STOPPED)),
    "stop-while-executing-no-plan": Does("stopped", (STOPPED,)),
    "stop-while-executing-run-approved": lambda s: Does(
        "stopped", (*declined(s, decision="stopped"), plan_closed("stopped"), window_closed("stopped"), STOPPED)
    ),
    "stop-while-awaiting-plan": Does("stopped", (plan_closed("stopped"), STOPPED)),
    "stop-while-awaiting-run": lambda s: Does(
        "stopped", (*declined(s, decision="stopped"), plan_closed("stopped"), window_closed("stopped"), STOPPED)
    ),
    "stop-while-waiting": Does(
        "stopped", (*wait_ended("stop"), plan_closed("stopped"), window_closed("stopped"), STOPPED)
    ),
    "stop-while-blocked": Does("stopped", (TOLD_STOPPED, plan_closed("stopped"), window_closed("stopped"), STOPPED)),
    "stop-while-done": IS_DONE,
    "stop-while-failed": IS_FAILED,
    "stop-while-stopped": IS_STOPPED,
    # Raise and continue
    "raise-while-idle": live("idle"),
    "raise-while-executing": Does("executing", (RAISED,)),
    "raise-while-awaiting-plan": PLAN_WAITS,
    "raise-while-awaiting-run": RUN_WAITS,
    "raise-while-waiting": Does("waiting", (RAISED,)),
    "raise-while-blocked": IS_BLOCKED,
    "raise-while-blocked-limit": Does("executing", (RAISED,), "Limits raised; going on."),
    "raise-while-done": IS_DONE,
    "raise-while-failed": IS_FAILED,
    "raise-while-stopped": IS_STOPPED,
    # the card of a parked run: approving it is no row of the table, but the column is its state
    "approve-run-while-idle": live("idle"),
    "approve-run-while-executing": RUNNING,
    "approve-run-while-executing-run-approved": live("executing", "generation 1", "was approved by anna"),
    "approve-run-while-awaiting-plan": PLAN_WAITS,
    "approve-run-while-awaiting-run": lambda s: Does("executing", run_approved(s), "approved, once"),
    "approve-run-while-awaiting-run-guarded": lambda s: Does("executing", run_approved(s), "approved, once"),
    "approve-run-while-awaiting-run-destructive": Says409(("type `destroy 131`",), Code.WRONG_PHRASE),
    "approve-run-while-waiting": IS_WAITING,
    "approve-run-while-blocked": IS_BLOCKED,
    "approve-run-while-done": IS_DONE,
    "approve-run-while-failed": IS_FAILED,
    "approve-run-while-stopped": IS_STOPPED,
    "approve-run-and-reopen-while-awaiting-run": Says409(("does not offer to reopen",)),
    "approve-run-and-reopen-while-awaiting-run-reopen": lambda s: Does(
        "executing", run_approved(s, Grant.REOPEN, duration_s=1800.0), "approved, once"
    ),
    # a halt with something behind it is a halt where something goes on, and a follow-up where nothing does (R1.7)
    "halt-with-more-while-executing": Does(
        "blocked", (SUSPENDED, said("stop, wrong host", "halt", wakes=False), halted())
    ),
    "halt-with-more-while-awaiting-plan": Does(
        "idle", (said("stop, wrong host", "halt", wakes=False), rejected("stop, wrong host"))
    ),
    "halt-with-more-while-done": Does("executing", (reopened("done"), said("stop, wrong host"))),
    "halt-with-more-while-stopped": Does("executing", (reopened("stopped"), said("stop, wrong host"))),
    # what the grammar cannot take for yes or no is delivered and decides nothing (R3.7)
    "clarify-while-awaiting-plan": Does(
        "executing", (said("yes, but only step 1", "clarify"),), "Nothing was approved."
    ),
    "clarify-while-awaiting-run": Does(
        "awaiting_approval", (said("yes, but only step 1", "clarify", wakes=False),), "Nothing was approved."
    ),
}
