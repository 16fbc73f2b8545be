"""`oikos approve`, `deny`, `answer`, `revoke`, `raise`, `stop`: also beside a process that waits for the decision."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import click

from oikos.app.service import Card, Done
from oikos.bootstrap import Oikos, local_principal, open_oikos
from oikos.cli.card import card_lines
from oikos.cli.live import Live
from oikos.cli.paint import Paint, safe
from oikos.cli.talk import EXIT_REFUSED, exit_code
from oikos.config import Config, load
from oikos.domain.consent import Principal
from oikos.domain.errors import ConfigError, OikosError, Refusal

SESSION = click.argument("session", default="-")
NO_FOLLOW = click.option("--no-follow", is_flag=True, help="Only decide; another process does the work.")
MINUTES = {"30": 1800.0, "60": 3600.0, "240": 14400.0}

Act = Callable[[Oikos, str, Card | None, Principal], Awaitable[Done | Refusal]]


def approver(config: Config) -> Principal:
    """The person at the terminal; without one, whoever holds the approver token (SPEC R3.13)."""
    by = local_principal(config)
    if by.attended:
        return by
    given, path = os.environ.get("OIKOS_APPROVER_TOKEN", ""), config.home / "approver-token"
    if not given:
        return by
    import hmac

    try:
        known = path.read_text(encoding="utf-8").strip()
    except OSError:
        raise ConfigError(
            f"there is no approver token in {path}: write a long random one there with mode 0600"
        ) from None
    if not known or not hmac.compare_digest(given.encode(), known.encode()):
        raise OikosError("the approver token is not the one of this home")
    return replace(by, attended=True)


def show_differences(lines: Sequence[str]) -> None:
    """What the plan does otherwise than the one that was shown."""
    paint = Paint.for_stream(sys.stderr)
    if lines:
        click.echo("what differs (- as it was shown, + as it is now):", err=True)
    for line in lines:
        click.echo("  " + paint(safe(line), "red" if line.startswith("-") else "green"), err=True)


def plan_way_back(session: str) -> None:
    """Ask for a plan that undoes what the session changed, and follow until it waits for its approval."""
    _decide(session, lambda oikos, session_id, _card, by: oikos.service.plan_way_back(session_id, by), follow=True)


def _decide(session: str, act: Act, *, follow: bool) -> None:
    sys.exit(asyncio.run(_decided(session, act, follow=follow)))


async def _decided(session: str, act: Act, *, follow: bool) -> int:
    config = load()
    by = approver(config)
    chosen = [""]
    async with open_oikos(config, work=follow, only=lambda: chosen[0] or "none") as oikos:
        session_id = await oikos.service.find(session)
        live = Live(oikos, session_id, cards=True)
        await live.skip()
        result = await act(oikos, session_id, await oikos.service.card(session_id), by)
        if isinstance(result, Refusal):
            click.echo(f"refused ({result.code}): {safe(result.text)}", err=True)
            show_differences(result.details)
            return EXIT_REFUSED
        if result.notice:
            click.echo(safe(result.notice))
        for run_id, known in result.stopped:
            click.echo(f"  run {run_id[:8]}: remote process {known}")
        if not follow:
            return 0
        chosen[0] = session_id
        state = await live.until_settled(after=result.seq)
        card = await oikos.service.card(session_id)
        if card is not None:
            click.echo("\n".join(card_lines(card, Paint.for_stream())))
        return exit_code(state)


@click.command()
@SESSION
@click.option("--phrase", multiple=True, help="Typed confirmation of a destructive item or run, such as 'destroy 131'.")
@click.option(
    "--minutes", type=click.Choice(list(MINUTES)), default="30", show_default=True, help="How long the window lasts."
)
@click.option("--reopen", is_flag=True, help="For a run whose window had ended: also open the window again.")
@click.option("--snapshot", is_flag=True, help="Keep each guest that the plan offers to keep before its first change.")
@click.option("--digest", default="", help="Only if the digest shown on the card begins so.")
@NO_FOLLOW
def approve(
    session: str, phrase: tuple[str, ...], minutes: str, reopen: bool, snapshot: bool, digest: str, no_follow: bool
) -> None:
    """Approve what SESSION waits for: its plan, or one run. Shows it first; then follows the work.

    Needs a terminal, or OIKOS_APPROVER_TOKEN.
    """

    async def act(oikos: Oikos, session_id: str, card: Card | None, by: Principal) -> Done | Refusal:
        if card is None or (card.plan is None and card.run is None):
            waits = f"it waits for: {card.text}" if card is not None else "it waits for nothing"
            raise OikosError(f"session {session_id[:8]} has nothing to approve: {waits}")
        click.echo("\n".join(card_lines(card, Paint.for_stream())))
        if digest and not card.digest.startswith(digest):
            show_differences(await oikos.service.differs(session_id, digest))
            raise OikosError(
                f"the digest is {card.digest[:12]}, not {digest[:12]}: look at the card again before you approve it"
            )
        if card.run is not None and snapshot:
            raise OikosError("a snapshot is chosen with a plan, not with one run; nothing was approved")
        if card.run is not None and card.run.phrase:
            if not phrase and by.attended and sys.stdin.isatty():
                typed = await asyncio.to_thread(
                    click.prompt, f"type `{card.run.phrase}` to confirm", default="", show_default=False
                )
                return await oikos.service.confirm(session_id, typed, by, shown=card)
            return await oikos.service.confirm(session_id, phrase[0] if phrase else "", by, shown=card)
        if card.run is not None and reopen:
            return await oikos.service.reopen_with(session_id, card, by, duration_s=MINUTES[minutes])
        items: tuple[int, ...] = ()
        if card.plan is not None:
            destructive = enumerate(card.plan.destructive_items(), start=1)
            items = tuple(
                n for n, (_, command) in destructive if command.preauthorise and command.preauthorise.phrase in phrase
            )
            unknown = set(phrase) - {c.preauthorise.phrase for _, c in card.plan.destructive_items() if c.preauthorise}
            if unknown:
                raise OikosError(
                    f"no destructive item of the plan has the phrase `{sorted(unknown)[0]}`; nothing was approved"
                )
        return await oikos.service.approve(
            session_id, card, by, items=items, phrases=phrase, duration_s=MINUTES[minutes], snapshot=snapshot
        )

    _decide(session, act, follow=not no_follow)


@click.command()
@SESSION
@click.option("--reason", default="", help="Goes to the record and to Nomos.")
@click.option("--changes", default="", help="Ask for changes instead: what should be different.")
@NO_FOLLOW
def deny(session: str, reason: str, changes: str, no_follow: bool) -> None:
    """Reject the plan, or decline the run, that SESSION waits for."""

    async def act(oikos: Oikos, session_id: str, card: Card | None, by: Principal) -> Done | Refusal:
        if changes:
            return await oikos.service.ask_for_changes(session_id, changes, by)
        return await oikos.service.reject(session_id, by, reason=reason)

    _decide(session, act, follow=not no_follow)


@click.command()
@SESSION
@click.argument("text", default="")
@NO_FOLLOW
def answer(session: str, text: str, no_follow: bool) -> None:
    """Answer the question SESSION asks. A secret is read from the terminal, or from standard input, and never shown."""

    async def act(oikos: Oikos, session_id: str, card: Card | None, by: Principal) -> Done | Refusal:
        if card is None or card.question is None:
            raise OikosError(f"session {session_id[:8]} asks nothing")
        if card.question.kind != "secret":
            if not text:
                raise OikosError(f"give the answer: oikos answer {session_id[:8]} TEXT")
            return await oikos.service.send(session_id, text, by)
        if text:
            raise OikosError("a secret is never given on the command line: leave it out, it is read from the terminal")
        name = card.question.secret_name
        value = await asyncio.to_thread(_read_secret, name)
        reference = oikos.secrets.keep(name, value)
        return await oikos.service.answer_secret(session_id, reference, by)

    _decide(session, act, follow=not no_follow)


def _read_secret(name: str) -> str:
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(f"{name}: ")
    return sys.stdin.readline().rstrip("\n")


@click.command()
@SESSION
def revoke(session: str) -> None:
    """Close SESSION's window. Running commands go on; the next change asks again."""
    _decide(session, lambda oikos, session_id, _card, by: oikos.service.revoke(session_id, by), follow=False)


@click.command(name="raise")
@SESSION
@NO_FOLLOW
def raise_limits(session: str, no_follow: bool) -> None:
    """Raise SESSION's limits by their default step and go on."""
    _decide(
        session, lambda oikos, session_id, _card, by: oikos.service.raise_limits(session_id, by), follow=not no_follow
    )


@click.command()
@SESSION
@click.option("--disown", is_flag=True, help="Let running commands go on; their outcome is still recorded.")
def stop(session: str, disown: bool) -> None:
    """End SESSION and kill its running commands; says for each whether the remote process is dead."""
    _decide(
        session, lambda oikos, session_id, _card, by: oikos.service.stop(session_id, by, kill=not disown), follow=False
    )
