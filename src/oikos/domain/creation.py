"""Guests that a plan creates: which run made one, and the entity it is from then on (SPEC R2.3).

Only containers of a node can be created and then addressed: their way in follows from the node's. The name in the
plan is the host name the new container must say it has.
"""

from __future__ import annotations

import shlex

from oikos.domain.inventory import AccessPath, Entity, Transport
from oikos.domain.plan import Creates, Plan
from oikos.domain.run import Identity
from oikos.domain.state import RunState, State
from oikos.domain.verdict import NamedObject, Risk, Verdict

KIND = "lxc"
_CREATING = frozenset({"create", "restore"})
"""What the classifier calls making a guest that was not there."""


def made_by(verdict: Verdict) -> tuple[str, ...]:
    """Ids of the guests that are there for certain, and were not before, once the command has exited with 0.

    So the command is nothing but the making: not one of several, whose exit code is not its own (`… || true`, `! …`,
    `… &`), and none that may overwrite a guest (`--force`), which the classifier calls destructive.
    """
    if verdict.risk is not Risk.CONFIG_MUTATION or len(verdict.actions) != 1:
        return ()
    words = list(verdict.actions[0].argv)
    try:
        text = shlex.split(verdict.canonical)
    except ValueError:  # quoted in a way that is not plain
        return ()
    if text not in (words, ["sudo", *words]):
        return ()
    return tuple(named.name for named in verdict.objects if _creates(named))


def _creates(named: NamedObject) -> bool:
    return named.kind == "guest" and named.verb in _CREATING and not named.place


def plans_to_make(plan: Plan, target_id: str, guest: str) -> bool:
    """Whether a command of the plan makes this guest on the machine."""
    return any(
        step.target_id == target_id and any(_creates(named) and named.name == guest for named in command.objects)
        for step, command in plan.commands()
    )


def made_here(state: State, target_id: str, guest: str) -> bool:
    """Whether a run of this generation is proven to have made the guest."""
    return any(guest in run.creates for run in _makers(state, target_id))


def candidates(state: State, created: Creates) -> tuple[tuple[RunState, str], ...]:
    """Guests that runs of this generation made on the machine, newest first: one of them may be what is meant."""
    return tuple((run, guest) for run in _makers(state, created.on_target_id) for guest in run.creates)


def _makers(state: State, target_id: str) -> list[RunState]:
    found = [
        run
        for run in state.runs.values()
        if run.ok and run.creates and (run.generation, run.order.target_id) == (state.generation, target_id)
    ]
    return sorted(found, key=lambda run: -run.started_seq)


def entity_of(
    created: Creates, node: Entity, guest: str, *, entity_id: str, identity: Identity | None = None
) -> Entity:
    """The new container, reached through its node."""
    access = AccessPath(transport=Transport.PCT, via=node.slug, guest=guest)
    return Entity(
        id=entity_id, kind=created.kind, slug=created.name, name=created.name, parent=node.id, access=access,
        identity=identity, lab=node.lab,
    )  # fmt: skip


def is_named(identity: Identity, created: Creates) -> bool:
    """Whether a machine says it is what the plan creates."""
    return identity.hostname.partition(".")[0].casefold() == created.name.partition(".")[0].casefold()
