"""What the agent's own intents may do, and what ends by the passing of time (SPEC §2, R3.8)."""

from __future__ import annotations

import json
from dataclasses import replace

from oikos.domain import events as ev
from oikos.domain import intents as it
from oikos.domain.consent import PARKED_RUN_S, PLAN_CARD_S
from oikos.domain.decision import Decided, Decision
from oikos.domain.errors import Code, Refusal
from oikos.domain.instant import Instant
from oikos.domain.plan import FINISHED_STEPS, AfterFailed, Plan, PlannedCommand, PlanStatus, Step, StepStatus, names
from oikos.domain.run import NeverStarted
from oikos.domain.snapshot import SNAPSHOT
from oikos.domain.state import TERMINAL, Phase, RunState, State
from oikos.domain.verdict import Risk

NO_PLAN_DIRECTIVE = (
    "No plan for this session. Call set_goal, then propose_plan, before run; even read-only work needs a one-step plan."
)
"""SPEC R2.8, verbatim."""
SUSPENDED = frozenset({Phase.AWAITING, Phase.WAITING, Phase.BLOCKED})
"""Phases in which a call is unanswered or only a person can go on: a late or hostile call moves nothing."""
OUTCOMES = frozenset({"done", "failed", "nothing_to_do"})
ACCESS_KEYS = frozenset(
    {"access", "address", "become", "become_password", "guest", "host_key", "host_keys", "jump", "key", "mode",
     "password", "port", "transport", "user", "via"}
)  # fmt: skip
"""Attributes that say how a machine is reached or what may happen on it: written by operators only (SPEC R2.1)."""


def steers_access(key: str) -> bool:
    """Whether an attribute says how a machine is reached, alone or as the last part of a name with dots or colons."""
    return key.strip().lower().replace(":", ".").rpartition(".")[2] in ACCESS_KEYS


def decide_agent(state: State, intent: it.AgentIntent, now: Instant) -> Decision:
    """Events, or a refusal with a directive for the model."""
    if state.phase in TERMINAL:
        return session_over(state, completing=isinstance(intent, it.Complete))
    if state.phase in SUSPENDED and not isinstance(intent, it.WriteFacts):
        return Refusal(
            code=Code.AWAITING_OPERATOR, text=f"The session is {state.phase}: {state.waits_for or 'it waits'}.",
            directive="Wait for the operator's decision or for the wait to end.",
        )  # fmt: skip
    match intent:
        case it.SetGoal():
            return _set_goal(state, intent)
        case it.Propose():
            return _propose(state, intent)
        case it.MarkStep():
            return _mark_step(state, intent)
        case it.WriteFacts():
            return _write_facts(state, intent)
        case it.Ask():
            asked = ev.QuestionAsked(
                call_id=intent.call_id, kind=intent.kind, text=intent.text, choices=intent.choices,
                secret_name=intent.secret_name,
            )  # fmt: skip
            return Decided((asked,))
        case it.Wait():
            return _wait(state, intent, now)
        case it.Complete():  # pragma: no branch: the union is closed, mypy proves it
            return _complete(state, intent)


def session_over(state: State, *, completing: bool = False) -> Refusal:
    """Nothing more happens in an ended session until the operator writes."""
    if completing and state.outcome not in ("", "stopped"):
        return Refusal(
            code=Code.COMPLETED_ALREADY, text="The task was completed already in this turn.",
            directive="Say nothing more; the operator's next message reopens the session.",
        )  # fmt: skip
    return Refusal(
        code=Code.SESSION_OVER, text=f"The session is {state.phase}.",
        directive="Do nothing more; the operator's next message reopens the session.",
    )  # fmt: skip


def plan_live(state: State) -> Refusal | None:
    """The approved plan in flight that may not be replaced without the operator (SPEC R2.9)."""
    if state.status is PlanStatus.APPROVED and not state.operator_since_plan:
        return Refusal(
            code=Code.PLAN_LIVE, text=f"Plan {state.generation} is approved and under way.",
            directive="Continue it with run and update_plan_step, or use ask_operator; after the operator's next "
            "message a fresh plan may be proposed.",
        )  # fmt: skip
    return None


def _set_goal(state: State, intent: it.SetGoal) -> Decision:
    if not intent.goal.strip():
        return Refusal(code=Code.MALFORMED_CALL, text="The goal is empty.", directive="State the goal in one sentence.")
    events: list[ev.Event] = []
    if state.live_plan is not None:
        if not state.operator_since_plan:
            return Refusal(
                code=Code.GOAL_LIVE, text=f"Plan {state.generation} is live for the goal: {state.goal}",
                directive="Go on with that plan. A new goal needs a new message of the operator, or complete_task "
                "first.",
            )  # fmt: skip
        events.append(ev.PlanClosed(generation=state.generation, status="closed", reason="new goal"))
        if state.window is not None:
            events.append(ev.WindowClosed(generation=state.generation, reason="superseded"))
    events.append(ev.GoalSet(goal=intent.goal.strip()))
    return Decided(tuple(events))


def _propose(state: State, intent: it.Propose) -> Decision:
    refusal = _may_propose(state, intent)
    if refusal is not None:
        return refusal
    generation = state.generation + 1
    offset = state.next_step - 1
    steps = tuple(_renumber(step, number, offset) for number, step in enumerate(intent.steps, start=1))
    plan = Plan(
        generation=generation,
        goal=state.goal,
        steps=steps,
        checks=intent.checks,
        creates=intent.creates,
        scope=intent.scope,
        snapshots=intent.snapshots,
    )
    if plan.needs_approval and state.mode == "look":
        return Refusal(
            code=Code.LOOK_ONLY_SESSION, text="This session may only look: no plan above read-only is accepted.",
            directive="Propose read-only steps, or complete_task saying what would have to change.",
        )  # fmt: skip
    events: list[ev.Event] = []
    if state.live_plan is not None:
        events.append(ev.PlanClosed(generation=state.generation, status="superseded", reason=f"plan {generation}"))
        if state.window is not None:
            events.append(ev.WindowClosed(generation=state.generation, reason="superseded"))
    events.append(ev.PlanProposed(plan=plan, digest=plan.digest(), call_id=intent.call_id))
    if not plan.needs_approval:
        events.append(ev.PlanAccepted(generation=generation))
    return Decided(tuple(events))


def _may_propose(state: State, intent: it.Propose) -> Refusal | None:
    if not state.goal:
        return Refusal(
            code=Code.NO_GOAL,
            text="There is no goal yet.",
            directive="Call set_goal with one sentence, then propose_plan.",
        )
    if not intent.steps:
        return Refusal(
            code=Code.EMPTY_PLAN,
            text="The plan has no steps.",
            directive="Propose at least one step with its target and commands.",
        )
    live = plan_live(state)
    if live is not None:
        return live
    if state.hold_proposals:
        return Refusal(
            code=Code.AWAITING_OPERATOR, text=f"Plan {state.generation} was rejected.",
            directive="Wait for the operator's next message before you propose again.",
        )  # fmt: skip
    if state.awaiting_plan and not state.operator_since_plan:
        return Refusal(
            code=Code.AWAITING_OPERATOR, text=f"Plan {state.generation} waits for the operator's decision.",
            directive="Wait for it.",
        )  # fmt: skip
    if state.batch.mutated:
        return propose_and_run()
    return None


def propose_and_run() -> Refusal:
    """SPEC R1.2: one model response may not both propose a plan and run anything that is not read-only."""
    return Refusal(
        code=Code.PROPOSE_AND_RUN,
        text="One response may not both propose a plan and run something that is not read-only.",
        directive="Propose the plan alone; run its steps in later responses.",
    )  # fmt: skip


def _renumber(step: Step, number: int, offset: int) -> Step:
    """Step numbers continue across generations (SPEC R2.10), by position, so that no two are ever equal.

    Conditions that name a step move along.
    """

    def moved(command: PlannedCommand) -> PlannedCommand:
        pre = command.preauthorise
        if pre is None or not isinstance(pre.condition, AfterFailed):
            return command
        return replace(command, preauthorise=replace(pre, condition=AfterFailed(step=pre.condition.step + offset)))

    return replace(step, seq=number + offset, commands=tuple(moved(command) for command in step.commands))


def _mark_step(state: State, intent: it.MarkStep) -> Decision:
    refusal = step_open(state, intent.seq)
    if refusal is not None:
        return refusal
    if intent.status is StepStatus.REPLACED:
        return Refusal(
            code=Code.MALFORMED_CALL, text="A step becomes `replaced` only when its plan is.",
            directive="Use done, failed or skipped.",
        )  # fmt: skip
    if state.status is PlanStatus.PROPOSED:
        return Refusal(
            code=Code.AWAITING_OPERATOR,
            text=f"Plan {state.generation} waits for the operator's decision.",
            directive="Wait for it.",
        )
    return Decided((ev.StepMarked(seq=intent.seq, status=intent.status, note=intent.note),))


def step_open(state: State, seq: int) -> Refusal | None:
    """Whether a step may be worked on: of the live plan, not of a closed generation (SPEC R2.5)."""
    if state.live_plan is None:
        return Refusal(code=Code.NO_PLAN, text="There is no live plan.", directive=NO_PLAN_DIRECTIVE)
    if seq in state.steps:
        return None
    known = ", ".join(str(number) for number in sorted(state.steps))
    code = Code.STEP_CLOSED if 0 < seq < state.next_step else Code.UNKNOWN_STEP
    what = "belongs to a closed generation" if code is Code.STEP_CLOSED else "does not exist"
    return Refusal(code=code, text=f"Step {seq} {what}.", directive=f"The live plan's steps are {known}.")


def _write_facts(state: State, intent: it.WriteFacts) -> Decision:
    run = state.runs.get(intent.run_id)
    forbidden = sorted({fact.key for fact in intent.facts if steers_access(fact.key)})
    if forbidden:
        return Refusal(
            code=Code.NEEDS_OPERATOR,
            text=f"{', '.join(forbidden)}: how a machine is reached is written by operators only.",
            directive="Tell the operator what you found, with ask_operator or in the summary; do not write it.",
        )  # fmt: skip
    shows = run is not None and not isinstance(run.outcome, NeverStarted)
    if run is None or not shows or run.generation != state.generation or state.plan is None:
        return Refusal(
            code=Code.UNKNOWN_RUN,
            text="A write-back cites the run that showed it; this id is no run of the current plan.",
            directive="Pass `run` with the id of a run of this plan whose output shows the value.",
        )  # fmt: skip
    if run.running:
        return Refusal(
            code=Code.RUN_STILL_RUNNING,
            text=f"Run {intent.run_id[:8]} has not finished.",
            directive="Wait for it, then write back.",
        )
    return Decided((ev.FactsWritten(entity_id=intent.entity_id, facts=intent.facts, run_id=intent.run_id),))


def _wait(state: State, intent: it.Wait, now: Instant) -> Decision:
    if intent.run_id:
        run = state.runs.get(intent.run_id)
        if run is None:
            return Refusal(
                code=Code.UNKNOWN_RUN,
                text=f"There is no run {intent.run_id[:8]}.",
                directive="Name a run of this session.",
            )
        if not run.running:
            return Refusal(
                code=Code.UNKNOWN_RUN,
                text=f"Run {intent.run_id[:8]} has finished already.",
                directive="Read it with read_output.",
            )
    seconds = min(max(0.0, intent.seconds), 3600.0)  # in this order a NaN becomes 0
    until = Instant(wall_s=now.wall_s + seconds, boot_s=now.boot_s + seconds, boot_id=now.boot_id)
    begun = ev.WaitBegun(
        call_id=intent.call_id, until=until, seconds=seconds, reason=intent.reason, run_id=intent.run_id
    )
    return Decided((begun,))


# ---- completion (SPEC R2.6) ------------------------------------------------------------------------------------------


def _complete(state: State, intent: it.Complete) -> Decision:
    if intent.outcome not in OUTCOMES:
        return Refusal(
            code=Code.MALFORMED_CALL,
            text=f"{intent.outcome!r} is no outcome.",
            directive="Use done, failed or nothing_to_do.",
        )
    if not state.goal:
        return Refusal(code=Code.NO_GOAL, text="There is no goal to complete.", directive="Call set_goal first.")
    refusal = _complete_always(state, intent)
    if refusal is None and (intent.outcome == "done" or (intent.outcome == "nothing_to_do" and _mutations(state))):
        refusal = _complete_done(state)
    if refusal is None and intent.outcome == "failed":
        refusal = _complete_failed(state, intent)
    if refusal is not None:
        return refusal
    events: list[ev.Event] = []
    if state.live_plan is not None:
        events.append(ev.PlanClosed(generation=state.generation, status="closed", reason="completed"))
    if state.window is not None:
        events.append(ev.WindowClosed(generation=state.generation, reason="completed"))
    events.append(ev.SessionCompleted(outcome=intent.outcome, summary=intent.summary, evidence=intent.evidence))
    return Decided(tuple(events))


def _current_runs(state: State) -> tuple[RunState, ...]:
    if state.plan is None:
        return ()
    return tuple(run for run in state.runs.values() if run.generation == state.generation and run.authority != "probe")


def _mutations(state: State) -> tuple[RunState, ...]:
    return tuple(run for run in _current_runs(state) if run.mutated)


def _complete_always(state: State, intent: it.Complete) -> Refusal | None:
    running = [run for run in _current_runs(state) if run.running]
    if running:
        ids = ", ".join(run.order.run_id[:8] for run in running)
        return Refusal(
            code=Code.RUN_STILL_RUNNING,
            text=f"Still running: {ids}.",
            directive="Use wait, read the result, then complete.",
        )
    if state.awaiting_plan and not state.operator_since_plan:
        return Refusal(
            code=Code.AWAITING_OPERATOR,
            text=f"Plan {state.generation} waits for the operator's decision.",
            directive="Wait for it.",
        )
    own = {run.order.run_id for run in _current_runs(state)}
    unknown = [run_id for run_id in intent.evidence if run_id not in own]
    if unknown:
        return Refusal(
            code=Code.UNKNOWN_RUN, text=f"Evidence names no run of this plan: {', '.join(unknown)}.",
            directive="Give the ids of runs of this plan, or none.",
        )  # fmt: skip
    if state.live_plan is not None:
        refusal = _steps_closed(state)
        if refusal is not None:
            return refusal
    runs = _current_runs(state)
    reached = [run for run in runs if not isinstance(run.outcome, NeverStarted)]
    if reached and not any(run.order.run_id in state.cited for run in runs):
        return Refusal(
            code=Code.NO_WRITE_BACK, text="Nothing of what was learned is in the inventory yet.",
            directive="Call update_entity_attributes citing a run of this plan, then complete_task.",
        )  # fmt: skip
    return None


def _steps_closed(state: State) -> Refusal | None:
    open_steps = [seq for seq, step in sorted(state.steps.items()) if step.status not in FINISHED_STEPS]
    if state.awaiting_plan:
        open_steps = []  # never approved: nothing of it was begun
    if open_steps:
        return Refusal(
            code=Code.STEPS_OPEN, text=f"Open steps: {', '.join(map(str, open_steps))}.",
            directive="Do them, or mark each done, failed or skipped with update_plan_step and a note.",
        )  # fmt: skip
    unsaid = (StepStatus.SKIPPED, StepStatus.FAILED)
    bare = [seq for seq, step in sorted(state.steps.items()) if step.status in unsaid and not step.note.strip()]
    if bare:
        return Refusal(
            code=Code.NO_NOTE, text=f"Steps {', '.join(map(str, bare))} were skipped or failed without a note.",
            directive="Say why with update_plan_step and a note.",
        )  # fmt: skip
    return None


def _complete_done(state: State) -> Refusal | None:
    plan = state.plan
    if plan is None:
        return None
    mutations = _mutations(state)
    changes = plan.risk is not Risk.READ_ONLY or bool(mutations)
    if changes and not plan.checks:
        return Refusal(
            code=Code.NO_CHECK, text="The plan changes something and has no check.",
            directive="Nothing proves the goal: complete as failed, or ask the operator for leave to propose a plan "
            "with checks.",
        )  # fmt: skip
    # of any generation: a change that an earlier plan left running also makes an older check worthless
    running = [run.order.run_id[:8] for run in state.runs.values() if run.mutated and run.goes_on]
    if running:
        return Refusal(
            code=Code.RUN_STILL_RUNNING, text=f"A change still runs, or was not proven dead: {', '.join(running)}.",
            directive="Use wait with a run that goes on, run the checks again, then complete. One that outlived its "
            "time limit stays unproven: complete as failed, or ask the operator.",
        )  # fmt: skip
    last_end = max((run.ended_seq or 0 for run in state.runs.values() if run.mutated), default=0)
    runs = _current_runs(state)
    for number, check in enumerate(plan.checks):
        if not any(run.check == number and run.passed and run.started_seq > last_end for run in runs):
            return Refusal(
                code=Code.CHECK_NOT_PASSED,
                text=f"Check {number + 1} has not passed since the last change: `{check.command}` on {check.target}.",
                directive="Run exactly that command on that target; if it does not show what is expected, go on "
                "repairing.",
            )  # fmt: skip
    for seq, step in sorted(state.steps.items()):
        tried = [run for run in runs if run.step == seq]
        failed = [run.started_seq for run in tried if not run.ok]
        good = bool(failed) and any(run.ok and run.started_seq > max(failed) for run in tried)
        if step.status is StepStatus.FAILED and not good:  # also where the model calls a run failed that exited 0
            return Refusal(
                code=Code.STEP_FAILED, text=f"Step {seq} failed and no later run of it succeeded.",
                directive="Make it succeed, or complete as failed.",
            )  # fmt: skip
    return None


def _complete_failed(state: State, intent: it.Complete) -> Refusal | None:
    touched = sorted({run.target for run in _mutations(state) if not run.authority.startswith(SNAPSHOT)})
    missing = [slug for slug in touched if not names(intent.summary, slug)]
    if not intent.summary.strip() or missing:
        about = f" and the state of {', '.join(missing)}" if missing else ""
        return Refusal(
            code=Code.NO_NOTE, text=f"A failure needs a note: what was tried{about}.",
            directive="Say in the summary what was tried and in which state each touched target is.",
        )  # fmt: skip
    return None


# ---- time ------------------------------------------------------------------------------------------------------------


def decide_tick(state: State, now: Instant) -> Decided:
    """End what has run out: plan cards, parked runs, windows, waits (SPEC R3.8)."""
    events: list[ev.Event] = []
    window = state.window
    if window is not None:
        if state.clock_set_back(now):
            events.append(ev.WindowClosed(generation=window.generation, reason="clock"))
        elif window.remaining_s(now) <= 0:
            events.append(ev.WindowClosed(generation=window.generation, reason="expired"))
    if state.awaiting_plan and state.proposed_at is not None and now.elapsed_since(state.proposed_at) > PLAN_CARD_S:
        events.append(ev.ApprovalUnanswered(generation=state.generation))
        events.append(ev.PlanClosed(generation=state.generation, status="expired", reason="nobody answered"))
    parked = state.parked
    if parked is not None and state.awaiting_run and now.elapsed_since(parked.at) > PARKED_RUN_S:
        events += _unanswered(state, parked.event)
    waiting = state.waiting
    if waiting is not None and (now.elapsed_since(waiting.until) >= 0 or _waited_run_is_over(state, waiting)):
        by = "run" if _waited_run_is_over(state, waiting) else "timer"
        events += end_wait(waiting, by)
    return Decided(tuple(events))


def _waited_run_is_over(state: State, waiting: ev.WaitBegun) -> bool:
    if waiting.run_id:
        run = state.runs.get(waiting.run_id)
        return run is None or not run.running
    return not waiting.call_id and not state.running


def end_wait(waiting: ev.WaitBegun, by: str) -> tuple[ev.Event, ...]:
    """The end of a wait, and the answer to the call that asked for it, if one did."""
    ended = ev.WaitEnded(call_id=waiting.call_id, by=by)
    if not waiting.call_id:
        return (ended,)
    told = json.dumps({"waited": True, "ended_by": by})
    return (ended, ev.ToolAnswered(call_id=waiting.call_id, name="wait", text=told))


def _unanswered(state: State, parked: ev.RunParked) -> tuple[ev.Event, ...]:
    run_id = parked.order.run_id
    told = {
        "refused": Code.DECLINED.value,
        "text": "Nobody answered within 24 hours.",
        "do": "Complete as failed, or ask.",
    }
    return (
        ev.ApprovalUnanswered(generation=state.generation, run_id=run_id),
        ev.RunDecided(run_id=run_id, decision="unanswered"),
        ev.ToolAnswered(call_id=parked.call_id, name="run", text=json.dumps(told), refusal=Code.DECLINED.value),
    )


def open_steps(state: State) -> tuple[int, ...]:
    """Steps of the live plan that are not finished, for the nudge (SPEC R1.3)."""
    if state.live_plan is None or state.awaiting_plan:
        return ()
    return tuple(seq for seq, step in sorted(state.steps.items()) if step.status not in FINISHED_STEPS)
