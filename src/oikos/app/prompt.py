"""The model's view of a session: events projected to messages, one at a time.

A projection only: whatever the model is shown can be rebuilt from the log (SPEC R1.9). Nothing an operator did
not type is shown as the operator's words; what Oikos itself has to say is marked as such.
"""

from __future__ import annotations

from pathlib import Path

from oikos.domain import events as ev
from oikos.domain.run import describe
from oikos.ports import Message

SYSTEM_NOTE = "[oikos] "
"""Begins every user-role message that is not the operator's own text."""


def soul() -> str:
    """SOUL.md, the system prompt in the package (SPEC R8.3)."""
    return Path(__file__).with_name("SOUL.md").read_text(encoding="utf-8")


class Prompt:
    """Messages of one session, grown event by event; each is made once and kept."""

    def __init__(self, system: str) -> None:
        self._system = Message(role="system", text=system)
        self.messages: list[Message] = [self._system]
        self._open: set[str] = set()
        self._held: list[Message] = []
        self._detached: set[str] = set()
        self.said = 0
        """How many messages of the operator it holds."""

    def clear(self) -> None:
        """Begin again."""
        self.messages = [self._system]
        self._open.clear()
        self._held.clear()
        self._detached.clear()
        self.said = 0

    @property
    def complete(self) -> bool:
        """No tool call is unanswered: the model may be asked (SPEC R1.12)."""
        return not self._open

    def add(self, record: ev.Recorded) -> None:
        """Take one event in."""
        event = record.event
        match event:
            case ev.AssistantSaid():
                self._release()
                self.messages.append(
                    Message(
                        role="assistant",
                        text=event.text,
                        calls=event.calls,
                        reasoning=event.reasoning,
                        opaque=event.opaque,
                    )
                )
                self._open = {call.id for call in event.calls}
            case ev.ToolAnswered():
                if event.call_id in self._open:
                    self._open.discard(event.call_id)
                    self.messages.append(Message(role="tool", text=event.text, call_id=event.call_id, name=event.name))
                    if not self._open:
                        self._release()
            case ev.OperatorSaid():
                if event.reading in ("comment", "clarify"):
                    self.said += 1
                    self._say(event.text)
            case ev.RunDetached():
                self._detached.add(event.run_id)
            case ev.RunFinished() if event.run_id in self._detached:
                self._say(
                    f"{SYSTEM_NOTE}Run {event.run_id} has finished: {describe(event.report.outcome)}. Use read_output."
                )
            case _:
                note = _note(event)
                if note:
                    self._say(SYSTEM_NOTE + note)

    def _say(self, text: str) -> None:
        """A user-role message; it waits until every call of the response before it is answered."""
        message = Message(role="user", text=text)
        if self._open:
            self._held.append(message)
        else:
            self.messages.append(message)

    def _release(self) -> None:
        self.messages.extend(self._held)
        self._held.clear()


def _note(event: ev.Event) -> str:
    match event:
        case ev.SessionReopened():
            return (
                f"The session was {event.after} and is reopened by a follow-up; "
                f"plan generation {event.generation} is history. "
                "Set a goal and propose a new plan for what the operator wants now."
            )
        case ev.PlanApproved():
            allowed = f" Destructive items allowed: {', '.join(map(str, event.items))}." if event.items else ""
            go = "its window is open. Carry it out to the verified end."
            return f"operator approved plan generation {event.generation}; {go}{allowed}"
        case ev.PlanRejected():
            wish = f" They said: {event.reason}" if event.reason else ""
            if event.changes_asked:
                return f"operator asked for changes to plan generation {event.generation}.{wish}"
            return f"operator rejected plan generation {event.generation}.{wish}"
        case ev.PlanClosed(status="expired"):
            return f"Nobody answered; plan generation {event.generation} has expired."
        case ev.WindowClosed(reason="expired" | "revoked" | "role" | "identity" | "clock"):
            closed = f"The window of plan generation {event.generation} is closed ({event.reason})"
            return f"{closed}; the next change asks the operator."
        case ev.WindowSuspended():
            return "The operator halted: the window is suspended."
        case ev.WindowRenewed():
            return "The operator renewed the window; go on."
        case ev.LimitWarned():
            return f"{event.used:g} of {event.of:g} {event.limit} are used: come to the end."
        case ev.LimitRaised():
            return "The operator raised the limits; go on."
        case ev.Nudged():
            return event.text
        case ev.RunDecided(decision="approved"):
            return "" if not event.comment else f"operator: {event.comment}"
        case _:
            return ""
