"""`oikos fleet`: add hosts, trust their keys, list what is known (SPEC R6.0, R5.11)."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from oikos.bootstrap import make_enroller, new_id, open_store, sync_targets
from oikos.cli.paint import Paint, safe
from oikos.config import Config, load
from oikos.domain.errors import ConfigError, OikosError, TargetError
from oikos.domain.inventory import NAME, AccessPath, Entity, Inventory, Mode, Route, Support, Transport
from oikos.ports import Enroller, Store


@click.group()
def fleet() -> None:
    """Hosts: add, trust, list, set their mode."""


@fleet.command(name="list")
def list_() -> None:
    """Every known entity: kind, mode, how it is reached, what it supports."""
    asyncio.run(_list())


async def _list() -> None:
    config = load()
    async with open_store(config) as store:
        await sync_targets(store, config)
        inventory = await store.inventory()
    if not inventory.entities:
        click.echo(f"No hosts yet: oikos fleet add HOST, or [targets.NAME] in {config.path}")
    for entity in sorted(inventory.entities.values(), key=lambda e: (e.parent, e.slug)):
        route = inventory.route(entity)
        access = entity.access
        trust = ""
        if access is not None and access.transport is Transport.SSH and not access.host_keys:
            trust = f"  no host key yet: oikos fleet trust {entity.slug}"
        support = f" · {access.support}" if access is not None else ""
        how = str(route) if route is not None else "no way in"
        facts = len(inventory.facts.get(entity.id, {}))
        gone = "  gone" if entity.gone else ""
        click.echo(
            f"{safe(entity.slug):<20} {entity.kind:<10} {entity.mode:<7} {how}{support} · {facts} facts{gone}{trust}"
        )


@fleet.command()
@click.argument("host")
@click.option("--name", default="", help="What Oikos calls it; the host's own name otherwise.")
@click.option("--user", default="", help="Login user.")
@click.option("--port", type=int, default=0)
@click.option("--key", type=click.Path(path_type=Path), default=None, help="Private key file.")
@click.option("--via", default="", help="Jump host, by its name in Oikos.")
@click.option("--trust", "yes", is_flag=True, help="Trust the offered host keys without asking. Compare them first.")
def add(host: str, name: str, user: str, port: int, key: Path | None, via: str, yes: bool) -> None:
    """Add HOST ([user@]address[:port], or the name of a [targets] table): keys, connection, what it supports."""
    asyncio.run(_add(host, name, user, port, key, via, yes=yes))


async def _add(host: str, name: str, user: str, port: int, key: Path | None, via: str, *, yes: bool) -> None:
    config = load()
    async with open_store(config) as store, make_enroller() as enroller:
        await sync_targets(store, config)
        inventory = await store.inventory()
        known = next((e for e in inventory.entities.values() if host == e.slug), None)
        entity = known or _new(host, name, user, port, key, via, inventory)
        if not await asyncio.to_thread(_has_key, entity):
            raise TargetError(
                f"{entity.slug}: there is no key file {_key_of(entity)}: correct the path, or make one with ssh-keygen"
            )
        entity = await _trusted(entity, inventory, enroller, yes=yes)
        entity = await _tested(entity, inventory, enroller)
        await store.put_entity(entity)


def _key_of(entity: Entity) -> str:
    return entity.access.key if entity.access is not None else ""


def _has_key(entity: Entity) -> bool:
    """Whether the named key file is there; no name means the agent or the default keys."""
    key = _key_of(entity)
    return not key or Path(key).expanduser().is_file()


def _new(host: str, name: str, user: str, port: int, key: Path | None, via: str, inventory: Inventory) -> Entity:
    match = re.fullmatch(
        r"(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<address>\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?", host
    )
    if match is None or match["address"].startswith("-") or (match["user"] or "").startswith("-"):
        raise ConfigError(f"{host!r} is no host: write [user@]address[:port]")
    address = match["address"].strip("[]")
    slug = name or address.lower()
    if not NAME.fullmatch(slug):
        raise ConfigError(f"{slug!r} is no name: lower-case letters, digits, '.', '_' and '-'; give one with --name")
    if any(e.slug == slug for e in inventory.entities.values()):
        raise ConfigError(f"there is a {slug} already: choose another --name, or `oikos fleet list`")
    access = AccessPath(
        transport=Transport.SSH, address=address, port=port or int(match["port"] or 22),
        user=user or match["user"] or "root", key=str(key.expanduser().absolute()) if key is not None else "", via=via,
    )  # fmt: skip
    return Entity(id=new_id(), kind="host", slug=slug, access=access)


async def _trusted(entity: Entity, inventory: Inventory, enroller: Enroller, *, yes: bool) -> Entity:
    """Show the fingerprints the host offers, and enrol them on one answer."""
    access = entity.access
    if access is None or access.transport is not Transport.SSH or access.host_keys:
        return entity
    offered = await enroller.offered_keys(_route(inventory, entity))
    click.echo(f"{safe(entity.slug)} at {safe(access.address)}:{access.port} shows:")
    for key in offered:
        click.echo(f"  {key.fingerprint}  {key.public.partition(' ')[0]}")
    if not yes:
        if not sys.stdin.isatty():
            raise TargetError(
                f"{entity.slug}: its host keys are not trusted yet: compare them on its console, repeat with --trust"
            )
        if not click.confirm("Do these belong to your machine?", default=False):
            raise OikosError(f"{entity.slug} was not trusted; nothing was changed")
    return replace(entity, access=replace(access, host_keys=tuple(key.public for key in offered)))


def _route(inventory: Inventory, entity: Entity) -> Route:
    """The way to an entity that may not be in the inventory yet."""
    route = replace(inventory, entities={**inventory.entities, entity.id: entity}).route(entity)
    if route is None:
        via = entity.access.via if entity.access is not None else ""
        raise ConfigError(
            f"{entity.slug}: the way to it leads over {via or 'nothing'}, which Oikos does not know: add that first"
        )
    return route


async def _tested(entity: Entity, inventory: Inventory, enroller: Enroller) -> Entity:
    """Connect, see who it is, and what durable runs it supports."""
    found = await enroller.check(_route(inventory, entity))
    assert entity.access is not None, "only entities with an access path are tested"
    who = f" as {safe(found.identity.hostname)}" if found.identity is not None else ""
    why = f": {safe(found.reason)}" if found.reason else ""
    mark = "✓" if found.support is Support.FULL else "!"
    click.echo(f"{mark} {safe(entity.slug)} answers{who}; support {found.support}{why}")
    return replace(entity, identity=found.identity, access=replace(entity.access, support=found.support))


@fleet.command()
@click.argument("names", nargs=-1)
@click.option("--yes", is_flag=True, help="Trust without asking. Compare the fingerprints first.")
@click.option(
    "--changed", is_flag=True, help="Also replace keys that are enrolled: the machine was rebuilt, and you know it."
)
def trust(names: tuple[str, ...], yes: bool, changed: bool) -> None:
    """Show the new fingerprints of all hosts (or NAMES) at once, and trust them with one answer."""
    asyncio.run(_trust(names, yes=yes, changed=changed))


async def _trust(names: Sequence[str], *, yes: bool, changed: bool) -> None:
    config = load()
    paint = Paint.for_stream()
    async with open_store(config) as store, make_enroller() as enroller:
        await sync_targets(store, config)
        inventory = await store.inventory()
        chosen = _choose(inventory, names, changed=changed)
        if not chosen:
            click.echo("Every host has its keys enrolled.")
            return
        found: list[tuple[Entity, tuple[str, ...]]] = []
        failed = False
        for entity in chosen:
            try:
                offered = await enroller.offered_keys(_route(inventory, entity))
            except TargetError as error:
                failed = True
                click.echo(paint(f"✕ {safe(str(error))}", "red"), err=True)
                continue
            click.echo(f"{safe(entity.slug)}:")
            for key in offered:
                known = "" if not key.enrolled else "  (enrolled)"
                click.echo(f"  {key.fingerprint}  {key.public.partition(' ')[0]}{known}")
            found.append((entity, tuple(key.public for key in offered)))
        if not found:
            raise TargetError("no host answered; nothing was changed")
        if not yes:
            if not sys.stdin.isatty():
                raise TargetError("compare the fingerprints on the hosts' consoles, then repeat with --yes")
            if not click.confirm(f"Trust these {len(found)} host(s)?", default=False):
                raise OikosError("nothing was trusted; nothing was changed")
        for entity, keys in found:
            assert entity.access is not None
            trusted = replace(entity, access=replace(entity.access, host_keys=keys))
            try:
                trusted = await _tested(trusted, inventory, enroller)
            except TargetError as error:
                failed = True
                click.echo(paint(f"  keys kept, but: {safe(str(error))}", "yellow"), err=True)
            await store.put_entity(trusted)
    if failed:
        sys.exit(1)


def _choose(inventory: Inventory, names: Sequence[str], *, changed: bool) -> list[Entity]:
    ssh = [
        e
        for e in inventory.entities.values()
        if e.access is not None and e.access.transport is Transport.SSH and not e.gone
    ]
    for name in names:
        if not any(entity.slug == name for entity in ssh):
            known = ", ".join(sorted(entity.slug for entity in ssh)) or "none"
            raise ConfigError(f"there is no host {name} reached by ssh; known are: {known}")
    wanted = [entity for entity in ssh if not names or entity.slug in names]
    return [entity for entity in wanted if changed or entity.access is None or not entity.access.host_keys]


@fleet.command()
@click.argument("name")
@click.argument("mode", type=click.Choice([mode.value for mode in Mode]))
def mode(name: str, mode: str) -> None:
    """Set what may happen on NAME: locked (nothing), look (reads), ask (changes by an approved plan)."""
    asyncio.run(_mode(name, Mode(mode)))


async def _mode(name: str, mode: Mode) -> None:
    config: Config = load()
    if config.text("operator.role") != "admin":
        raise OikosError("only an admin sets a target's mode")
    if name in config.targets:
        raise ConfigError(f'{name} is configured in {config.path}: set mode = "{mode}" in [targets.{name}] there')
    async with open_store(config) as store:
        entity = await _entity(store, name)
        await store.put_entity(replace(entity, mode=mode))
    click.echo(f"{name} is in mode {mode}")


async def _entity(store: Store, name: str) -> Entity:
    found = (await store.inventory()).resolve(name)
    if not isinstance(found, Entity):
        raise ConfigError(f"there is no entity {name}: `oikos fleet list`")
    return found
