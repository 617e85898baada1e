"""The command line: one file per command, loaded when it is used.

Exit codes: 0 done; 1 a check, suite or tolerance failed; 2 something the user can fix, said in one
sentence; 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from rooflinekit import __version__
from rooflinekit.cli.examples import epilog
from rooflinekit.errors import CheckFailed, RooflineError, nearest

COMMANDS = {
    "predict": "How long a decode step, a verify or a prefill takes, and which roof binds.",
    "recommend": "Whether speculation pays, with which K, and what eats the gain.",
    "compare": "Drafters side by side: which to take, and its best K.",
    "schedule": "Best K over batch and context, and the schedule an engine takes.",
    "tree": "The best draft tree, its size and depth, beside the best chain.",
    "orders": "Orders of magnitude that are told about drafting, beside the computed ones.",
    "diagnose": "What measured numbers of speculation imply, and what eats the gain.",
    "levers": "Quantisation, a smaller model and speculation in one table.",
    "bench": "Measure this machine: bandwidth, compute, linear layers, attention, whole steps.",
    "calibrate": "Fit ceilings to measurements.",
    "validate": "Compare predictions with measurements that were not fitted.",
    "plot": "Draw a roofline, costs and gains of speculation, the best K by load, draft trees.",
    "hardware": "List, show and check hardware profiles.",
    "models": "List, show and check models.",
    "drafters": "List, show and check drafters.",
    "acceptance": "List, show and fit acceptance: published profiles and your own counts.",
    "demo": "Measure, calibrate, validate and answer, on this machine.",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"rooflinekit.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            return None
        command.epilog = epilog(cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when one is unknown."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"no command {args[0]!r}; {nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="rooflinekit")
def cli() -> None:
    """How long LLM decoding takes on given hardware, which roof binds, and whether speculation pays."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    try:
        result: Any = cli.main(arguments, prog_name="rooflinekit", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # The reader went away (`| head`); say nothing, and keep Python from saying it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (RooflineError, CheckFailed, click.exceptions.Abort, OSError) as error:
        code, text = _ending(error)
        click.echo(text, err=True)
        return code
    return result if isinstance(result, int) else 0


def _ending(error: Exception) -> tuple[int, str]:
    """Exit code and last words of an error."""
    if isinstance(error, RooflineError):
        return 2, f"error: {error}"
    if isinstance(error, CheckFailed):
        return 1, f"failed: {error}"
    if isinstance(error, OSError):
        return 2, f"error: the result could not be written ({error.strerror or error})"
    return 130, "interrupted"
