"""What each operator action does in each state: the table of SPEC R1.11."""

from __future__ import annotations

import json
from dataclasses import replace

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.agent_rules import end_wait
from oikos.domain.assent import Answer, Pending, Reading, read
from oikos.domain.consent import (
    CHAT_ASSENT_S,
    PARKED_RUN_S,
    PLAN_CARD_S,
    SNAPSHOT_ITEM,
    SNAPSHOT_PHRASE,
    WINDOW_CHOICES_S,
    Channel,
    Consent,
    Grant,
    Principal,
    Role,
)  # fmt: skip
from oikos.domain.decision import Decided, Decision
from oikos.domain.errors import Code, Refusal
from oikos.domain.instant import Instant
from oikos.domain.plan import Plan
from oikos.domain.state import TERMINAL, Parked, Phase, State


def decide_operator(state: State, intent: it.OperatorIntent, now: Instant) -> Decision:
    """Events, or a refusal that names state, generation and who decided."""
    if intent.by.role.rank < Role.OPERATOR.rank:
        return Refusal(
            code=Code.NOT_APPROVER, text=f"{intent.by.id} is a viewer and cannot act on a session; ask an admin."
        )
    match intent:
        case it.Send():
            return _send(state, intent, now)
        case it.Approve():
            return _approve(state, intent, now)
        case it.ApproveRun():
            return _approve_run(state, intent, now)
        case it.Confirm():
            return _confirm(state, intent, now)
        case it.AskForChanges():
            return _ask_for_changes(state, intent)
        case it.Reject():
            return _reject(state, intent)
        case it.Revoke():
            return _revoke(state, intent)
        case it.Stop():
            return _stop(state, intent)
        case it.Raise():  # pragma: no branch: the union is closed, mypy proves it
            return _raise(state, intent)


def not_now(state: State, action: str) -> Refusal:
    """The 409 answer: state, generation, and who decided."""
    where = f"the session is {state.phase}"
    if state.generation:
        where += f", generation {state.generation}"
    if state.decided:
        where += f"; {state.decided}"
    code = Code.WRONG_STATE
    if state.phase in TERMINAL:
        code = Code.SESSION_OVER
    return Refusal(code=code, text=f"Cannot {action}: {where}. A message to the session goes on from here.")


# ---- messages --------------------------------------------------------------------------------------------------------


def _send(state: State, intent: it.Send, now: Instant) -> Decision:
    pending = Pending(
        generation=state.generation if state.awaiting_plan or state.awaiting_run else None,
        question=state.question is not None,
        targets=tuple(entry.slug for entry in state.plan.scope) if state.plan is not None else (),
    )
    answer = read(intent.text, pending)
    match answer.reading:
        case Reading.HALT:
            if answer.more and state.phase in TERMINAL:  # "stop, wrong host" is no bare refusal (SPEC R1.7)
                return _comment(state, intent)
            return _halt(state, intent)
        case Reading.REFUSAL:
            return _refusal(state, intent)
        case Reading.ASSENT:
            return _assent(state, intent, now)
        case Reading.CLARIFY:
            return _clarify(state, intent, answer)
        case Reading.COMMENT:  # pragma: no branch: the union is closed, mypy proves it
            return _comment(state, intent)


def _said(intent: it.Send, reading: Reading, *, wakes: bool) -> ev.OperatorSaid:
    return ev.OperatorSaid(
        text=intent.text, by=intent.by.id, channel=intent.by.channel, reading=reading.value, wakes=wakes
    )


def _comment(state: State, intent: it.Send, reading: Reading = Reading.COMMENT, notice: str = "") -> Decision:
    said = _said(intent, reading, wakes=True)
    if state.phase in TERMINAL:
        return Decided((*_reopen(state), said), notice)
    if state.awaiting_run:
        note = notice or f"Noted; Nomos sees it with your decision. Still waiting: {state.waits_for}"
        return Decided((replace(said, wakes=False),), note)
    if state.question is not None:
        return _answer(state, intent)
    if state.waiting is not None:  # its call is unanswered, whatever else came between
        return Decided((*end_wait(state.waiting, "message"), said), notice)
    if state.awaiting_plan and not notice:
        notice = f"Plan {state.generation} is still waiting for your decision."
    return Decided((said,), notice)


def _answer(state: State, intent: it.Send) -> Decision:
    question = state.question
    assert question is not None, "only called while a question is open"
    if question.kind == "secret" and not intent.answer_is_stored:
        return Refusal(
            code=Code.NEEDS_OPERATOR,
            text=f"The question asks for the secret {question.secret_name}: give it with `oikos answer`, so that it is "
            "stored and never becomes part of the conversation.",
        )
    answered = ev.QuestionAnswered(call_id=question.call_id, text=intent.text, by=intent.by.id)
    text = json.dumps({"answer": intent.text}, ensure_ascii=False)
    told = ev.ToolAnswered(call_id=question.call_id, name="ask_operator", text=text)
    return Decided((answered, told))


def _reopen(state: State) -> tuple[ev.Event, ...]:
    """R1.7: plan and window close, the old generation stays readable."""
    closing: list[ev.Event] = []
    if state.live_plan is not None:
        closing.append(ev.PlanClosed(generation=state.generation, status="closed", reason="reopened"))
    if state.window is not None:
        closing.append(ev.WindowClosed(generation=state.generation, reason="reopened"))
    return (*closing, ev.SessionReopened(after=state.phase.value, generation=state.generation))


def _assent(state: State, intent: it.Send, now: Instant) -> Decision:
    if state.phase is Phase.STOPPED:
        return Refusal(
            code=Code.NOTHING_PENDING, text="Nothing is pending: the session was stopped. Say what you want done."
        )
    if state.phase in TERMINAL or state.phase is Phase.IDLE:
        return _comment(state, intent)
    if state.awaiting_run or (state.awaiting_plan and state.phase is Phase.AWAITING):
        return _chat_consent(state, intent, now)
    if state.question is not None:
        return _answer(state, intent)
    if state.blocked is not None and state.blocked.on == "limit":
        return Decided(
            (_said(intent, Reading.ASSENT, wakes=False), ev.LimitRaised(by=intent.by.id)), "Limits raised; going on."
        )
    window = state.window
    if window is not None and state.plan is not None and window.remaining_s(now) > 0 and not state.clock_set_back(now):
        refusal = _may_consent(state, intent.by)
        if refusal is not None:
            return _comment(state, intent, notice=refusal.text)
        return _renew(state, intent, now)
    return _comment(state, intent)


def _renew(state: State, intent: it.Send, now: Instant) -> Decision:
    window, plan = state.window, state.plan
    assert window is not None, "only called with a window"
    assert plan is not None, "a window has its plan"
    consent = _consent(
        state, plan, Grant.RENEW, intent.by, intent.consent_id, now, duration_s=window.duration_s, text=intent.text,
        machines=window.machines,  # not one that was closed since, for another identity
    )  # fmt: skip
    # "Go" to a halted or stuck session is also its Resume; a destructive item keeps the time it was ticked for.
    wakes = state.phase is Phase.BLOCKED
    events: list[ev.Event] = [*end_wait(state.waiting, "message")] if wakes and state.waiting is not None else []
    events += [_said(intent, Reading.ASSENT, wakes=wakes), ev.ConsentGranted(consent=consent)]
    events.append(ev.WindowRenewed(consent_id=consent.id))
    return Decided(tuple(events), f"Window renewed for {window.duration_s / 60:.0f} min.")


def _chat_consent(state: State, intent: it.Send, now: Instant) -> Decision:
    """An assenting message where something waits; every doubt leaves it a comment and says what is pending."""
    refusal = _may_consent(state, intent.by)
    if refusal is not None:
        return _pending_comment(state, intent, refusal.text)
    parked = state.parked if state.awaiting_run else None
    shown_at = parked.at if parked is not None else state.proposed_at
    if shown_at is None or not 0 <= now.elapsed_since(shown_at) <= CHAT_ASSENT_S:
        return _pending_comment(
            state, intent, "It was shown more than 30 minutes ago: look again and approve it on its card."
        )
    if parked is not None:
        event = parked.event
        if event.phrase:
            return _pending_comment(
                state, intent, f"A destructive run is never approved in chat: type `{event.phrase}`."
            )
        if event.effects:
            return _pending_comment(state, intent, "Its effects go beyond the plan: approve it on its card.")
        if intent.shown_digest != event.order.asked():
            return _pending_comment(state, intent, "The run that waits is not the one that was shown: look again.")
        return _grant_run(
            state,
            parked,
            intent.by,
            intent.consent_id,
            now,
            text=intent.text,
            extra=(_said(intent, Reading.ASSENT, wakes=False),),
        )
    plan = state.plan
    assert plan is not None, "a plan is pending"
    if (intent.shown_generation, intent.shown_digest) != (plan.generation, state.digest):
        return _pending_comment(state, intent, "The plan that waits is not the one that was shown: look again.")
    granted = _grant_plan(
        state, plan, intent.by, intent.consent_id, now, items=(), duration_s=WINDOW_CHOICES_S[0], text=intent.text,
        extra=(_said(intent, Reading.ASSENT, wakes=False),),
    )  # fmt: skip
    if state.ticked - {SNAPSHOT_ITEM}:
        more = "A message covers no destructive item: what was ticked will ask for its phrase again."
        return replace(granted, notice=f"{granted.notice} {more}")
    return granted


def _pending_comment(state: State, intent: it.Send, why: str) -> Decision:
    """Recorded, decides nothing, wakes nobody: the operator is told what is still pending."""
    said = _said(intent, Reading.CLARIFY, wakes=False)
    return Decided((said,), f"{why} Still waiting: {state.waits_for}")


def _clarify(state: State, intent: it.Send, answer: Answer) -> Decision:
    notice = f"{answer.reason} Nothing was approved. Still waiting: {state.waits_for}"
    if state.question is not None and state.awaiting_plan:  # it could mean either, so it is neither (SPEC R3.7)
        return Decided((_said(intent, Reading.CLARIFY, wakes=False),), notice)
    return _comment(state, intent, Reading.CLARIFY, notice)


def _refusal(state: State, intent: it.Send) -> Decision:
    if state.awaiting_run or (state.awaiting_plan and state.phase is Phase.AWAITING):
        return _reject(
            state, it.Reject(by=intent.by, reason=intent.text), said=_said(intent, Reading.REFUSAL, wakes=False)
        )
    question = state.question
    if question is not None and intent.text.strip().casefold() in {choice.casefold() for choice in question.choices}:
        return _answer(state, intent)
    if state.phase in TERMINAL:
        return Decided((_said(intent, Reading.REFUSAL, wakes=False),), f"Noted; the session stays {state.phase}.")
    if state.phase is Phase.BLOCKED:
        return Decided((_said(intent, Reading.REFUSAL, wakes=False),), f"Noted; still blocked: {state.waits_for}")
    return _comment(state, intent)


def _halt(state: State, intent: it.Send) -> Decision:
    if state.awaiting_run or (state.awaiting_plan and state.phase is Phase.AWAITING):
        return _reject(
            state, it.Reject(by=intent.by, reason=intent.text), said=_said(intent, Reading.HALT, wakes=False)
        )
    if state.phase in TERMINAL:
        return Decided((_said(intent, Reading.HALT, wakes=False),), f"Noted; the session stays {state.phase}.")
    if state.phase is Phase.IDLE:
        return _comment(state, intent)
    said = _said(intent, Reading.HALT, wakes=False)
    suspend: tuple[ev.Event, ...] = ()
    if state.window is not None:
        suspend = (ev.WindowSuspended(by=intent.by.id),)
    if state.phase is Phase.BLOCKED:
        return Decided((*suspend, said), f"Suspended; still blocked: {state.waits_for}")
    blocked = ev.SessionBlocked(on="halted", reason="halted by the operator: Stop, or say go to resume")
    waiting: tuple[ev.Event, ...] = ()
    if state.waiting is not None:
        waiting = end_wait(state.waiting, "message")
    return Decided((*suspend, said, *waiting, blocked), "Suspended: nothing more starts. Stop it, or say go to resume.")


# ---- consent ---------------------------------------------------------------------------------------------------------


def _may_consent(state: State, by: Principal) -> Refusal | None:
    if not by.may_approve:
        return Refusal(code=Code.NOT_APPROVER, text=f"{by.id} does not hold the role approver; ask someone who does.")
    if by.channel is Channel.SCRIPT and not state.lab:
        return Refusal(code=Code.NOT_APPROVER, text="An operator script can decide only in a home made by the lab.")
    if by.channel in (Channel.CLI, Channel.CHAT) and not by.attended:
        text = "Consent needs a terminal: run `oikos approve` at one, or use an approver token."
        return Refusal(code=Code.NO_TERMINAL, text=text)
    return None


def _consent(
    state: State, plan: Plan, grant: Grant, by: Principal, consent_id: str, now: Instant, *, duration_s: float,
    items: tuple[int, ...] = (), text: str = "", run_id: str = "", digest: str = "", snapshot: bool = False,
    machines: tuple[str, ...] | None = None,
) -> Consent:  # fmt: skip
    return Consent(
        id=consent_id, grant=grant, session_id=state.session_id, generation=plan.generation,
        digest=digest or state.digest, machines=plan.machines() if machines is None else machines, items=items,
        duration_s=duration_s, at=now, by=by.id, channel=by.channel, run_id=run_id, text=text, snapshot=snapshot,
    )  # fmt: skip


def _grant_plan(
    state: State, plan: Plan, by: Principal, consent_id: str, now: Instant, *, items: tuple[int, ...],
    duration_s: float, text: str, snapshot: bool = False, extra: tuple[ev.Event, ...] = (),
) -> Decided:  # fmt: skip
    snapshot = snapshot or SNAPSHOT_ITEM in state.ticked
    consent = _consent(
        state, plan, Grant.PLAN, by, consent_id, now, duration_s=duration_s, items=items, text=text, snapshot=snapshot,
    )  # fmt: skip
    approved = ev.PlanApproved(generation=plan.generation, digest=state.digest, consent_id=consent.id, items=items)
    notice = f"Plan {plan.generation} approved; window {duration_s / 60:.0f} min on "
    notice += f"{', '.join(s.slug for s in plan.scope)}."
    if snapshot:
        notice += f" A snapshot of {', '.join(kept.target for kept in plan.snapshots)} comes before the first change."
    return Decided((*extra, ev.ConsentGranted(consent=consent), approved), notice)


def _grant_run(
    state: State, parked: Parked, by: Principal, consent_id: str, now: Instant, *, text: str = "",
    reopen_s: float = 0.0, extra: tuple[ev.Event, ...] = (),
) -> Decision:  # fmt: skip
    plan = state.plan
    assert plan is not None, "a run parks under an approved plan only"
    order = parked.event.order
    grant = Grant.REOPEN if reopen_s else Grant.RUN
    consent = _consent(
        state,
        plan,
        grant,
        by,
        consent_id,
        now,
        duration_s=reopen_s,
        text=text,
        run_id=order.run_id,
        digest=order.asked(),
    )
    decided = ev.RunDecided(run_id=order.run_id, decision="approved", by=by.id, consent_id=consent.id)
    return Decided((*extra, ev.ConsentGranted(consent=consent), decided), f"Run {order.run_id[:8]} approved, once.")


def _approve(state: State, intent: it.Approve, now: Instant) -> Decision:
    plan = state.plan
    if (
        not state.awaiting_plan
        or plan is None
        or state.phase in (Phase.IDLE, Phase.WAITING, *TERMINAL)
        or state.awaiting_run
    ):
        if plan is not None and intent.generation != plan.generation:
            return _stale(state, intent)
        return not_now(state, f"approve plan {intent.generation}")
    refusal = _may_consent(state, intent.by)
    if refusal is not None:
        return refusal
    if intent.generation != plan.generation:
        return _stale(state, intent)
    if intent.digest != state.digest:
        return _another_plan(plan.generation, intent.digest, state.digest)
    if state.proposed_at is None or not 0 <= now.elapsed_since(state.proposed_at) <= PLAN_CARD_S:
        return Refusal(
            code=Code.EXPIRED, text=f"Plan {plan.generation} was proposed more than 24 h ago: ask for a new one."
        )
    if intent.duration_s not in WINDOW_CHOICES_S:
        choices = ", ".join(f"{seconds / 60:.0f}" for seconds in WINDOW_CHOICES_S)
        return Refusal(code=Code.WRONG_STATE, text=f"A window lasts one of {choices} minutes.")
    if intent.snapshot and not plan.snapshots:
        return _no_snapshot(plan)
    destructive = plan.destructive_items()
    typed = [phrase.strip() for phrase in intent.phrases]
    for item in sorted(set(intent.items) - state.ticked):
        if not 1 <= item <= len(destructive):
            return Refusal(code=Code.WRONG_PHRASE, text=f"Plan {plan.generation} has no destructive item {item}.")
        command = destructive[item - 1][1]
        phrase = command.preauthorise.phrase if command.preauthorise is not None else ""
        if phrase not in typed:
            return Refusal(code=Code.WRONG_PHRASE, text=f"Item {item} is destructive: type `{phrase}` to allow it.")
        typed.remove(phrase)  # one typing ticks one item, also where two have the same phrase
    items = tuple(sorted({*intent.items, *state.ticked} - {SNAPSHOT_ITEM}))
    return _grant_plan(
        state, plan, intent.by, intent.consent_id, now, items=items, duration_s=intent.duration_s, text=intent.text,
        snapshot=intent.snapshot,
    )  # fmt: skip


def _no_snapshot(plan: Plan) -> Refusal:
    text = f"Plan {plan.generation} offers no snapshot: none of its targets is a guest of a node that can be reached."
    return Refusal(code=Code.WRONG_STATE, text=text)


def _stale(state: State, intent: it.Approve) -> Refusal:
    text = f"Plan {intent.generation} is not the plan that waits: the session is {state.phase}"
    text += f", generation {state.generation}"
    if state.decided:
        text += f"; {state.decided}"
    return Refusal(code=Code.STALE_GENERATION, text=f"{text}. Look again.")


def _approve_run(state: State, intent: it.ApproveRun, now: Instant) -> Decision:
    parked = state.parked
    if parked is None or not state.awaiting_run or parked.event.order.run_id != intent.run_id:
        return not_now(state, f"approve run {intent.run_id[:8]}")
    refusal = _may_consent(state, intent.by) or _parked_too_old(parked, now)
    if refusal is not None:
        return refusal
    if intent.digest != parked.event.order.asked():
        return _another_run()
    if parked.event.phrase:
        return Refusal(
            code=Code.WRONG_PHRASE, text=f"The run is destructive: type `{parked.event.phrase}` to confirm it."
        )
    if intent.reopen_s and (not parked.event.offers_reopen or intent.reopen_s not in WINDOW_CHOICES_S):
        return Refusal(
            code=Code.WRONG_STATE, text="This run does not offer to reopen the window: approve just the run."
        )
    return _grant_run(state, parked, intent.by, intent.consent_id, now, reopen_s=intent.reopen_s)


def _another_plan(generation: int, shown: str, now: str) -> Refusal:
    text = f"Plan {generation} is not the one that was shown (shown {shown[:8]}, now {now[:8]})"
    return Refusal(code=Code.STALE_DIGEST, text=f"{text}: look at the difference and decide again.")


def _another_run() -> Refusal:
    return Refusal(code=Code.STALE_DIGEST, text="The run that waits is not the one that was shown: look again.")


def _parked_too_old(parked: Parked, now: Instant) -> Refusal | None:
    if 0 <= now.elapsed_since(parked.at) <= PARKED_RUN_S:
        return None
    return Refusal(code=Code.EXPIRED, text="The run has waited for more than 24 h: decline it, Nomos will look again.")


def _confirm(state: State, intent: it.Confirm, now: Instant) -> Decision:
    parked = state.parked
    if state.awaiting_run and parked is not None:
        refusal = _may_consent(state, intent.by) or _parked_too_old(parked, now)
        if refusal is not None:
            return refusal
        if intent.digest != parked.event.order.asked():
            return _another_run()
        if not parked.event.phrase or intent.phrase.strip() != parked.event.phrase:
            wanted = f"type `{parked.event.phrase}`" if parked.event.phrase else "approve it without a phrase"
            return Refusal(code=Code.WRONG_PHRASE, text=f"That phrase does not confirm the waiting run: {wanted}.")
        return _grant_run(state, parked, intent.by, intent.consent_id, now, text=intent.phrase)
    plan = state.plan
    if not state.awaiting_plan or plan is None or state.phase is not Phase.AWAITING:
        return not_now(state, "confirm")
    refusal = _may_consent(state, intent.by)
    if refusal is not None:
        return refusal
    if intent.digest != state.digest:
        return _another_plan(plan.generation, intent.digest, state.digest)
    if intent.phrase.strip().casefold() == SNAPSHOT_PHRASE:
        if not plan.snapshots:
            return _no_snapshot(plan)
        ticked = ev.ItemTicked(generation=plan.generation, item=SNAPSHOT_ITEM, by=intent.by.id, text=intent.phrase)
        return Decided((ticked,), "A snapshot comes before the first change; approve the plan to go on.")
    for number, (_, command) in enumerate(plan.destructive_items(), start=1):
        pre = command.preauthorise
        if pre is not None and pre.phrase == intent.phrase.strip() and number not in state.ticked:
            ticked = ev.ItemTicked(generation=plan.generation, item=number, by=intent.by.id, text=intent.phrase)
            return Decided((ticked,), f"Item {number} ticked; approve the plan to allow it.")
    return Refusal(
        code=Code.WRONG_PHRASE, text=f"No destructive item of plan {plan.generation} has the phrase `{intent.phrase}`."
    )


# ---- the other decisions ---------------------------------------------------------------------------------------------


def _ask_for_changes(state: State, intent: it.AskForChanges) -> Decision:
    said = ev.OperatorSaid(text=intent.text, by=intent.by.id, channel=intent.by.channel, reading="comment", wakes=True)
    if state.awaiting_run and state.parked is not None:
        return Decided((*_declined(state.parked, intent.by, intent.text), said))
    if state.awaiting_plan and state.phase is Phase.AWAITING:
        rejected = ev.PlanRejected(generation=state.generation, by=intent.by.id, reason=intent.text, changes_asked=True)
        return Decided((rejected, said))
    return not_now(state, "ask for changes")


def _declined(parked: Parked, by: Principal, comment: str = "", decision: str = "declined") -> tuple[ev.Event, ...]:
    run_id = parked.event.order.run_id
    decided = ev.RunDecided(run_id=run_id, decision=decision, by=by.id, comment=comment)
    told = {"refused": Code.DECLINED.value, "text": f"The operator {decision} this command.", "comment": comment,
            "do": "Do not ask for the same command again in this plan: take another way, or complete as "
            "failed."}  # fmt: skip
    answer = ev.ToolAnswered(
        call_id=parked.event.call_id, name="run", text=json.dumps(told, ensure_ascii=False), refusal=Code.DECLINED.value
    )
    return decided, answer


def _reject(state: State, intent: it.Reject, said: ev.OperatorSaid | None = None) -> Decision:
    first: tuple[ev.Event, ...] = (said,) if said is not None else ()
    if state.awaiting_run and state.parked is not None:
        return Decided((*first, *_declined(state.parked, intent.by, intent.reason)), "Declined.")
    if state.awaiting_plan and state.phase is Phase.AWAITING:
        rejected = ev.PlanRejected(generation=state.generation, by=intent.by.id, reason=intent.reason)
        return Decided((*first, rejected), f"Plan {state.generation} rejected; write to go on.")
    return not_now(state, "reject")


def _revoke(state: State, intent: it.Revoke) -> Decision:
    if state.phase in TERMINAL or state.window is None:
        return not_now(state, "revoke: no window is open")
    closed = ev.WindowClosed(generation=state.generation, reason=intent.reason)
    return Decided((closed,), "Window closed; running commands go on, the next change will ask.")


def _stop(state: State, intent: it.Stop) -> Decision:
    if state.phase in TERMINAL:
        return not_now(state, "stop")
    events: list[ev.Event] = []
    if state.parked is not None:
        events += _declined(state.parked, intent.by, decision="stopped")
    if state.waiting is not None:
        events += end_wait(state.waiting, "stop")
    if state.question is not None:
        told = json.dumps({"answer": None, "stopped": True})
        events.append(ev.ToolAnswered(call_id=state.question.call_id, name="ask_operator", text=told))
    if state.live_plan is not None:
        events.append(ev.PlanClosed(generation=state.generation, status="closed", reason="stopped"))
    if state.window is not None:
        events.append(ev.WindowClosed(generation=state.generation, reason="stopped"))
    events.append(ev.SessionStopped(by=intent.by.id, runs="kill" if intent.kill else "disown"))
    return Decided(tuple(events), "Stopped.")


def _raise(state: State, intent: it.Raise) -> Decision:
    if state.phase in (Phase.EXECUTING, Phase.WAITING):
        return Decided((ev.LimitRaised(by=intent.by.id),), "Limits raised.")
    if state.phase is Phase.BLOCKED and state.blocked is not None and state.blocked.on == "limit":
        return Decided((ev.LimitRaised(by=intent.by.id),), "Limits raised; going on.")
    return not_now(state, "raise the limits")
