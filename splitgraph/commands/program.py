"""What the program adds to click's group of commands: names that are near, documents of wrong calls, closed pipes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from splitgraph.commands.parameters import GroupedCommand, has_json
from splitgraph.findings.exit_codes import BROKEN_PIPE


class Program(GroupedCommand, click.Group):
    """The group of all commands."""

    command_class = GroupedCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order in which a user needs them."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and the commands."""
        click.Group.format_options(self, ctx, formatter)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Do as click, and suggest a command of a similar name."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            self.fail_unknown(ctx, args[0])
        return super().resolve_command(ctx, args)

    def fail_unknown(self, ctx: click.Context, name: str) -> NoReturn:
        """Fail for a name that no command has."""
        from splitgraph.findings.near_names import meant

        near = meant(name, self.commands)
        ctx.fail(f"There is no command {name!r}{near or '; known are: ' + ', '.join(self.commands)}")

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a reader of our output through a pipe may stop at any time."""
        try:
            return self._invoke(ctx)
        except BrokenPipeError:
            # Python's buffer would fail again when it is flushed at exit.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (sys.stdout, sys.stderr):
                os.dup2(nowhere, stream.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None

    def _invoke(self, ctx: click.Context) -> Any:
        typed: Sequence[str] = ctx.obj
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            command = self.commands.get(ctx.invoked_subcommand or "")
            if command is not None and "--json" in typed and has_json(command):
                from splitgraph.commands.running import print_usage_failure

                print_usage_failure(str(command.name), usage_text(error))
            raise


def usage_text(error: click.UsageError) -> str:
    """Return the message of a wrong call; for an unknown option, with the option that has a similar name."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    from splitgraph.findings.near_names import nearest

    known = [spelled for param in error.ctx.command.params for spelled in (*param.opts, *param.secondary_opts)]
    close = nearest(error.option_name.lstrip("-"), [spelled[2:] for spelled in known if spelled.startswith("--")])
    near = f"; did you mean '--{close[0]}'?" if close else "."
    return f"There is no option {error.option_name!r}{near}"
