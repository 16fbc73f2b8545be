"""The command group `lab`: build, up, down, list, ssh, fault."""

from __future__ import annotations

import functools
import os
import random
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import click

from oikos.lab import build as builder
from oikos.lab import layers, network, worlds
from oikos.lab.errors import LabError
from oikos.lab.faults import catalogue
from oikos.lab.host import Host, HostState
from oikos.lab.lab import Lab
from oikos.lab.layers import Kind
from oikos.lab.places import Places

P = ParamSpec("P")
R = TypeVar("R")

lab_name = click.option("--name", default="lab", show_default=True, help="Which lab, when there are several.")


def _one_line(command: Callable[P, R]) -> Callable[P, R]:
    """A LabError becomes one line on standard error and exit status 1."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except LabError as exc:
            raise click.ClickException(str(exc)) from None

    return wrapped


def _log(line: str) -> None:
    click.echo(line, err=True)


@click.group()
def lab() -> None:
    """Real test hosts on this machine (needs root)."""


@lab.command()
@click.argument("kinds", nargs=-1, type=click.Choice(layers.KINDS))
@_one_line
def build(kinds: tuple[Kind, ...]) -> None:
    """Build the root filesystems now, by default for host and pve; installs what is missing with apt-get."""
    places = Places.from_environment()
    builder.prepare(kinds or ("host", "pve"), places, _log)
    click.echo(f"the lab is ready to start: root filesystems in {places.cache}")


@lab.command()
@click.argument("hosts", nargs=-1, metavar="NAME[:KIND]...")
@lab_name
@click.option("--memory", help="Memory limit of each host, e.g. 512M.")
@click.option("--disk", help="A disk of its own for each host, e.g. 1G.")
@click.option("--world", type=click.Choice(sorted(worlds.WORLDS)), help="Also build the hosts of a scenario.")
@click.option("--seed", type=int, help="What the world's names and faults are drawn from.")
@_one_line
def up(
    hosts: tuple[str, ...], name: str, memory: str | None, disk: str | None, world: str | None, seed: int | None
) -> None:
    """Start a lab with hosts of kind host, pve, docker or machine."""
    if not hosts and world is None:
        raise LabError("name at least one host, e.g. `oikos lab up web1 pve1:pve`, or a --world")
    by_kind: dict[Kind, list[str]] = {}
    for text in hosts:
        host, _, kind = text.partition(":")
        by_kind.setdefault(layers.parse_kind(kind or "host"), []).append(host)
    kinds: list[Kind] = ["host", *by_kind] if world is not None else [*by_kind]
    builder.prepare(kinds, Places.from_environment(), _log)
    begun = time.monotonic()
    made = Lab(name, log=_log).up()
    try:
        for known, names in by_kind.items():
            made.add(*names, kind=known, memory=memory, disk=disk)
        if world is not None:
            drawn = random.SystemRandom().randrange(10_000) if seed is None else seed
            click.echo(f"world {world}, seed {drawn}: {worlds.build(world, made, seed=drawn).prompt}")
    except BaseException:  # a half-made lab is nobody's: also after Ctrl-C
        made.down()
        raise
    _table([(made.name, host, state) for host, state in _states(made)])
    first = next(iter(made.hosts))
    click.echo(f"up in {time.monotonic() - begun:.1f} s; ssh -F {made.ssh_config} {first}")


@lab.command()
@lab_name
@click.option("--all", "everything", is_flag=True, help="Every lab, crashed ones included.")
@click.option("--guards", is_flag=True, help="Also drop the routes that keep lab addresses on this machine.")
@_one_line
def down(name: str, everything: bool, guards: bool) -> None:
    """Take a lab away, whatever became of it."""
    if everything:
        names = Lab.down_all()
        click.echo(f"down: {' '.join(names)}" if names else "no lab was up")
    else:
        Lab(name).down()
        click.echo(f"down: {name}")
    if guards:
        network.remove_guards()


@lab.command(name="list")
@click.option("--name", help="Only this lab.")
@_one_line
def list_(name: str | None) -> None:
    """Show the hosts of every lab: state, address, kind."""
    names = Lab.names() if name is None else [name]
    if not names:
        click.echo("no lab is up")
        return
    _table([(label, host, state) for label in names for host, state in _states(Lab.attach(label))])


@lab.command(context_settings={"ignore_unknown_options": True})
@lab_name
@click.argument("host")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@_one_line
def ssh(name: str, host: str, command: tuple[str, ...]) -> None:
    """Log in to a host, or run a command there."""
    known = _host(name, host)
    os.execvp("ssh", ["ssh", "-F", str(known.lab.ssh_config), host, *command])


@lab.command(context_settings={"ignore_unknown_options": True})
@lab_name
@click.argument("host", required=False)
@click.argument("fault", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@_one_line
def fault(name: str, host: str | None, fault: str | None, arguments: tuple[str, ...]) -> None:
    """Break something on a host; without FAULT, list what can be broken."""
    if host is None or fault is None:
        click.echo("\n".join(catalogue.describe()))
        return
    click.echo(catalogue.apply(_host(name, host), fault, list(arguments)))


def _host(name: str, host: str) -> Host:
    known = Lab.attach(name).hosts
    if host not in known:
        raise LabError(f"no host {host!r} in lab {name!r}: it has {', '.join(known) or 'none'}")
    return known[host]


def _states(made: Lab) -> list[tuple[Host, str]]:
    try:
        states = made.states()
    except LabError:  # its supervisor was killed: the hosts are lost, `down` clears them
        return [(host, "lost (run `oikos lab down`)") for host in made.hosts.values()]
    return [(host, _word(states.get(host.name, HostState()))) for host in made.hosts.values()]


def _word(state: HostState) -> str:
    return f"{state.state} ({state.last})" if state.last and state.state != "running" else state.state


def _table(rows: list[tuple[str, Host, str]]) -> None:
    lines = [("LAB", "HOST", "KIND", "ADDRESS", "STATE")]
    lines += [(label, host.name, host.kind, host.address, state) for label, host, state in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        click.echo("  ".join([*cells, line[4]]).rstrip())
