"""`oikos config show`: every setting, its value and where it came from."""

from __future__ import annotations

import click

from oikos.config import SECRET_KEYS, Target, load


@click.group()
def config() -> None:
    """The configuration."""


@config.command()
def show() -> None:
    """Print every setting with its value and origin; secrets as references."""
    loaded = load()
    click.echo(f"home    {loaded.home}")
    click.echo(f"file    {loaded.path}{'' if loaded.path.exists() else ' (does not exist)'}")
    for key, value in loaded.values.items():
        shown = value.value
        if key in SECRET_KEYS and shown and not str(shown).startswith(("env:", "file:")):
            shown = "(hidden: write a reference, env:NAME or file:PATH)"
        click.echo(f"{key:<20} {shown!s:<40} {value.origin}")
    for name, target in loaded.targets.items():
        click.echo(f"targets.{name:<12} {_way(target)} mode {target.mode}")
    for name, reference in loaded.secrets.items():
        click.echo(f"secrets.{name:<12} {reference}")


def _way(target: Target) -> str:
    """How a target is reached, in words."""
    match target.transport:
        case "local":
            return "local"
        case "ssh":
            jump = f" via {target.via}" if target.via else ""
            return f"ssh {target.user}@{target.address}:{target.port}{jump}"
        case _:
            return f"{target.transport} {target.guest} on {target.via}"
