"""Which machines and things of the inventory a command reaches, found by unwrapping it (SPEC R3.5)."""

from __future__ import annotations

from collections.abc import Iterator

from oikos.domain.inventory import Entity, Inventory, Mode
from oikos.domain.plan import Plan
from oikos.domain.value import dataclass
from oikos.domain.verdict import Action, Hop, HopKind, NamedObject, Risk, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What a verdict says of one command on one target, seen in the inventory."""

    inventory: Inventory
    verdict: Verdict
    target: Entity

    def machines(self) -> Iterator[Entity]:
        """Every machine that any hop of the command may lead to."""
        for place in self._places():
            outers: tuple[Entity, ...] = (self.target,)
            for hop in place:
                outers = self._reached(outers, hop)
                yield from outers

    def objects(self) -> Iterator[Entity]:
        """Guests, containers, services, datasets and hosts the command acts on that the inventory knows."""
        for named in self.verdict.objects:
            yield from self.named(named)

    def all(self) -> tuple[Entity, ...]:
        """The target, and whatever of the inventory the command reaches besides, each once."""
        return tuple(dict.fromkeys((self.target, *self.machines(), *self.objects())))

    def named(self, named: NamedObject) -> tuple[Entity, ...]:
        """What the inventory knows an object of the command as."""
        outers: tuple[Entity, ...] = (self.target,)
        for hop in named.place:
            outers = self._reached(outers, hop)
        if named.kind == "host":
            return self._reached(outers, Hop(kind=HopKind.SSH, name=named.name))
        # inside the machine that it is named on: every kind but ssh is looked for there
        return self._reached(outers, Hop(kind=HopKind.MACHINE, name=named.name.removesuffix(".service")))

    def locked_behind_a_blind_hop(self) -> Entity | None:
        """A locked machine that a hop known only to the shell could lead to."""
        living = (entity for entity in self.inventory.entities.values() if not entity.gone)
        locked = [entity for entity in living if entity.mode is Mode.LOCKED]
        for place in self._places():
            outers: tuple[Entity, ...] = (self.target,)
            for hop in place:
                if not hop.resolved:
                    for entity in locked:
                        if hop.kind is HopKind.SSH or any(self._inside(entity, outer) for outer in outers):
                            return entity
                outers = self._reached(outers, hop)
        return None

    def outside(self, plan: Plan) -> str:
        """The first machine that is not in the plan's scope, in words; empty when all are.

        A guest belongs to the scope of the node it is named on: operators keep one out by its mode. A machine
        reached by ssh is in scope only as a machine of the plan.
        """
        machines = frozenset(plan.machines())
        if self.target.id not in machines:
            return f"{self.target.slug} is not a machine of plan {plan.generation}"
        for action in self.verdict.actions:
            words = self._outside_place(plan, action)
            if words:
                return words
        for entity in self.objects():
            if entity.id not in machines and not any(
                self._inside(entity, inner) for inner in (self.target, *self.machines())
            ):
                return f"{entity.slug} is not a machine of plan {plan.generation}"
        return ""

    def _outside_place(self, plan: Plan, action: Action) -> str:
        where: list[str] = []
        outers: tuple[Entity, ...] = (self.target,)
        for hop in action.place:
            where.append(hop.name or "a machine only the shell will know")
            outers = self._reached(outers, hop)
            words = " > ".join(where)
            if len(outers) > 1 and (hop.kind is HopKind.SSH or action.risk is not Risk.READ_ONLY):
                return f"{words} could be {' or '.join(sorted(entity.slug for entity in outers))}"
            if hop.kind is HopKind.SSH:
                if not outers:
                    return f"{words} is not a machine that the inventory knows"
                if outers[0].id not in plan.machines():
                    return f"{outers[0].slug} is not a machine of plan {plan.generation}"
            elif not outers and action.risk is not Risk.READ_ONLY:
                return f"it changes {words}, which the inventory does not know"
        return ""

    def _places(self) -> Iterator[tuple[Hop, ...]]:
        """Where the command runs something or names something, the target itself included."""
        actions, objects = self.verdict.actions, self.verdict.objects
        yield from dict.fromkeys((*(action.place for action in actions), *(named.place for named in objects)))

    def _reached(self, outers: tuple[Entity, ...], hop: Hop) -> tuple[Entity, ...]:
        """Every entity the hop can mean, seen from any of `outers`: names and addresses need not be unique."""
        if not hop.resolved:
            return ()
        living = (entity for entity in self.inventory.entities.values() if not entity.gone)
        return tuple(entity for entity in living if any(_leads_to(entity, outer, hop) for outer in outers))

    def _inside(self, entity: Entity, outer: Entity) -> bool:
        """Whether `entity` runs on `outer`, however deep."""
        seen: set[str] = set()
        current: Entity | None = entity
        while current is not None and current.id not in seen:
            seen.add(current.id)
            if current.parent == outer.id:
                return True
            current = self.inventory.get(current.parent)
        return False


def _leads_to(entity: Entity, outer: Entity, hop: Hop) -> bool:
    if hop.kind is HopKind.SSH:
        host = hop.name.rpartition("@")[2].rstrip(".").casefold()
        access = entity.access
        return host in _names(entity) or (access is not None and not access.guest and access.address.casefold() == host)
    name = hop.name.casefold()
    guest = entity.access.guest.casefold() if entity.access is not None else ""
    external = {each.value.rpartition("/")[2].casefold() for each in entity.external}
    return entity.parent == outer.id and (name == guest or name in external or name in _names(entity))


def _names(entity: Entity) -> frozenset[str]:
    return frozenset(name.casefold() for name in (entity.slug, entity.name, *entity.aliases) if name)
