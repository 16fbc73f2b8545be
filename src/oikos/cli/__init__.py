"""The command line: `oikos COMMAND`. Commands are imported when they are called, so that `--help` costs nothing."""

from __future__ import annotations

import gc
import importlib
import os
import sys

import click

COMMANDS: dict[str, tuple[str, str]] = {
    "ask": ("oikos.cli.talk:ask", "Ask for one thing and follow it to its end."),
    "chat": ("oikos.cli.talk:chat", "Talk to Nomos, message by message."),
    "approve": ("oikos.cli.decide:approve", "Approve what a session waits for."),
    "deny": ("oikos.cli.decide:deny", "Reject the plan or decline the run a session waits for."),
    "answer": ("oikos.cli.decide:answer", "Answer a question, secrets included."),
    "revoke": ("oikos.cli.decide:revoke", "Close a session's window; the next change asks again."),
    "raise": ("oikos.cli.decide:raise_limits", "Raise a session's limits and go on."),
    "stop": ("oikos.cli.decide:stop", "End a session and its running commands."),
    "watch": ("oikos.cli.talk:watch", "Follow a session as it happens."),
    "sessions": ("oikos.cli.records:sessions", "List sessions; show one whole."),
    "runs": ("oikos.cli.records:runs", "List runs; show one with its output."),
    "changes": ("oikos.cli.records:changes", "List what a session changed, with each undo."),
    "fleet": ("oikos.cli.fleet:fleet", "Hosts: add, trust, list."),
    "classify": ("oikos.cli.rules:classify", "Say how risky a command is, and why."),
    "assent": ("oikos.cli.rules:assent", "Say whether a message would approve a plan, and why."),
    "audit": ("oikos.cli.records:audit", "Verify the record."),
    "config": ("oikos.cli.configure:config", "Show the settings and where each came from."),
    "serve": ("oikos.cli.serve:serve", "The HTTP API, and the tokens that may call it."),
    "eval": ("oikos.cli.evaluate:evaluate", "Run evals."),
    "demo": ("oikos.cli.demo:demo", "See Nomos at work on real machines of its own."),
    "lab": ("oikos.lab.cli:lab", "Real test hosts on this machine."),
}


class Commands(click.Group):
    """Finds a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of daily use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list with one line each, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oikos", prog_name="oikos")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Runs the household of a small fleet: approve once; what the plan needs then happens; nothing else does.

    Without a command at a terminal: a conversation.
    """
    if ctx.invoked_subcommand is None:
        if sys.stdin.isatty() and sys.stdout.isatty():
            from oikos.cli.talk import chat

            ctx.invoke(chat)
        else:
            click.echo(ctx.get_help())


def main() -> None:
    """Entry point: errors of the product are one line and exit code 1."""
    from oikos.domain.errors import OikosError

    gc.set_threshold(20_000, 20, 20)  # what is imported stays: to look through it again and again only takes time
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        click.echo("oikos: aborted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (OikosError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # the reader has gone: nothing to say and nobody to say it to
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)
        click.echo(f"oikos: {error}", err=True)
        sys.exit(1)
    except Exception as error:
        if type(error).__module__ != "oikos.lab.errors":  # the lab is no part of the product: known by name only
            raise
        click.echo(f"oikos: {error}", err=True)
        sys.exit(1)
