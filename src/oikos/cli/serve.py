"""`oikos serve`: the HTTP API of a home, and the tokens that may call it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from oikos.adapters.clock import SystemClock
from oikos.bootstrap import Oikos, open_oikos, prepare_home
from oikos.cli.decide import approver
from oikos.cli.records import when
from oikos.config import Config, load
from oikos.domain.consent import Principal, Role
from oikos.domain.errors import OikosError, Refusal
from oikos.web.tokens import Tokens


@click.group(invoke_without_command=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0: any free one.")
@click.option("--name", "names", multiple=True, help="Another host name that clients may use.")
@click.option("--tls-cert", type=click.Path(path_type=Path), default=None, help="Certificate chain, PEM.")
@click.option("--tls-key", type=click.Path(path_type=Path), default=None, help="Its key, PEM.")
@click.option("--without-tls", is_flag=True, help="Listen beyond this machine in the clear: behind a proxy with TLS.")
@click.pass_context
def serve(
    ctx: click.Context,
    host: str,
    port: int,
    names: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    without_tls: bool,
) -> None:
    """Serve the API under /api/v1 and work on every session, until SIGTERM or Ctrl-C."""
    if ctx.invoked_subcommand is not None:
        return
    from oikos.web.server import Binding

    binding = Binding(
        host=host, port=port, names=names, certificate=tls_cert, key=tls_key, without_tls=without_tls
    )  # fmt: skip
    asyncio.run(_serve(load(), binding))


async def _serve(config: Config, binding: object) -> None:
    from oikos.web.api import Backend
    from oikos.web.server import Binding, listen, serve

    assert isinstance(binding, Binding)
    prepare_home(config.home)
    tokens = Tokens(config.home)
    count = len(tokens.rows())
    with listen(binding) as listener:
        async with open_oikos(config) as oikos:
            backend = Backend(
                service=oikos.service, store=oikos.store, feed=oikos.feed, clock=oikos.clock,
                inventory=oikos.store.inventory, keep_secret=oikos.secrets.keep, model=oikos.model.name,
                open_session=lambda by, mode: oikos.open_session(by, mode=mode),
            )  # fmt: skip

            def ready(address: str) -> None:
                click.echo(f"Oikos listens on {address} · model {oikos.model.name} · tokens: {count}")
                if not count:
                    click.echo("  nobody can call it yet: oikos serve token add NAME --role approver")

            await serve(backend, tokens, binding, listener, ready=ready)


@serve.group()
def token() -> None:
    """Who may call the API."""


@token.command(name="add")
@click.argument("name")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True, help="What it may do.")
def add(name: str, role: str) -> None:
    """Make a token for NAME and print it, this once. One that may approve needs a terminal or OIKOS_APPROVER_TOKEN."""
    config, wanted = load(), Role(role)
    by = approver(config)
    if by.role.rank < wanted.rank:
        raise OikosError(f"{by.id} is {by.role} and cannot make a token for an {wanted}")
    if wanted.rank >= Role.APPROVER.rank and not by.attended:
        raise OikosError("a token that may approve is made at a terminal, or with OIKOS_APPROVER_TOKEN set")
    prepare_home(config.home)
    click.echo(Tokens(config.home).add(name, wanted, now_s=SystemClock().now().wall_s))


@token.command(name="list")
def show() -> None:
    """The names and roles; never the tokens."""
    rows = Tokens(load().home).rows()
    if not rows:
        click.echo("No tokens: oikos serve token add NAME --role operator")
    for row in rows:
        click.echo(f"{row.name:<24} {row.role:<10} {when(row.created_s)}")


@token.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Forget NAME's token, and close the windows that it opened."""
    asyncio.run(_revoke(load(), name))


async def _revoke(config: Config, name: str) -> None:
    tokens = Tokens(config.home)
    holder = next((row.principal.id for row in tokens.rows() if row.name == name), "")
    tokens.revoke(name)
    click.echo(f"{name} can call the API no longer")
    async with open_oikos(config, work=False) as oikos:
        for row in await oikos.service.sessions(limit=1000):
            await _close_window(oikos, row.session_id, holder, approver(config))


async def _close_window(oikos: Oikos, session_id: str, holder: str, by: Principal) -> None:
    """Without its approver's role no window stands (SPEC R3.6)."""
    window = (await oikos.service.state(session_id)).window
    if window is not None and window.by == holder:
        result = await oikos.service.revoke(session_id, replace(by, attended=True))
        said = result.text if isinstance(result, Refusal) else f"window of session {session_id[:8]} closed"
        click.echo(f"  {said}")
