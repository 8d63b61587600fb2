"""The `bluetree` command: the only place that prints and sets exit codes.

Exit codes: 0 done, 1 the run's own check failed, 2 bad usage or input, 3 the environment lacks
something, 4 a switch or the controller failed. An error is a line on stderr; `--debug` adds the
traceback. With `--json`, stdout carries one JSON document and nothing else.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

import click

from controller.cli_options import DEBUG, OutputClosedError, debug_option
from controller.errors import BluetreeError, RunFailedError

COMMANDS = {
    "plan": ("cli_plan", "Choose the blue switches, and predict every link's load."),
    "run": (
        "cli_run",
        "Bring the network up, run every worker, check the sums and every link's counter.",
    ),
    "up": ("cli_up", "Bring up a network and its controller, until `bluetree down`."),
    "status": (
        "cli_jobs",
        "Show the switches, jobs and links of a testbed, predicted and measured.",
    ),
    "start": ("cli_jobs", "Start a job: admit it, make the switches ready, let its workers send."),
    "reallocate": (
        "cli_jobs",
        "Give a running job other blue switches, or another root, between two of its chunks.",
    ),
    "rejoin": (
        "cli_jobs",
        "Bring dead workers back into a job that goes on without them, under their ranks.",
    ),
    "counters": (
        "cli_jobs",
        "Show what became of packets at every switch, and the messages on every link.",
    ),
    "stop": (
        "cli_jobs",
        "Stop jobs, check their sums and links, and take them out of the switches.",
    ),
    "shell": (
        "cli_shell",
        "Open p4runtime-shell on a switch; it only reads, unless --write is given.",
    ),
    "fail": (
        "cli_parts",
        "Kill a switch or host of a testbed, or let a link lose every frame.",
    ),
    "restart": (
        "cli_parts",
        "Start what is dead in a testbed anew, or let a link carry all again.",
    ),
    "down": (
        "cli_up",
        "End the controllers, the jobs and the network of a testbed; nothing of it stays.",
    ),
    "launch": (
        "cli_launch",
        "Run a program once a worker, its arrays summed by the network: TOPOLOGY -- COMMAND...",
    ),
    "evaluate": (
        "cli_evaluate",
        "Repeat the papers' evaluation: FIGURE is fig1 to fig6, tensorexpress, or all of them.",
    ),
    "doctor": (
        "cli_doctor",
        "Say what is installed, what is missing, and which targets will work.",
    ),
}
"""Every command: the module that has it, and the first line of its help.

A module is loaded with its command only, as some take over a second.
"""

_EXIT_CODES = {
    "controller.placement.errors.PlacementError": 2,
    "topologies.errors.TopologyError": 2,
    "topologies.network.NetworkError": 2,
    "controller.compile.CompileError": 2,
    "controller.picture.PictureError": 2,
    "traffic.errors.ConfigError": 2,
    "p4src.artefacts.ArtefactError": 3,
    "controller.program.ProgramError": 4,
    "controller.p4rt.errors.SwitchError": 4,
    "softswitch.p4runtime.server.ServerError": 4,
    "topologies.fabric.errors.FabricError": 4,
}
"""What packages raise on purpose beside BluetreeError; anything else is a defect.

By name: an error is raised only where its module has been loaded, and here none shall be.
"""


class _Commands(click.Group):
    """The commands, each loaded when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            close = get_close_matches(cmd_name, COMMANDS, n=1)
            remedy = f"did you mean {close[0]!r}?" if close else "`bluetree --help` lists them"
            raise click.UsageError(f"no such command: {cmd_name!r}; {remedy}", ctx)
        module, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(f"controller.{module}"), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@debug_option
@click.version_option(package_name="bluetree")
def cli() -> None:
    """In-network aggregation: place it, run it, measure it.

    TOPOLOGY is fat-tree:k=4, binary-tree:levels=8, random-tree:n=200,seed=1, or a path to a tree
    file (.json, .yaml, .graphml).
    """


def _say(line: str) -> None:
    click.echo(f"bluetree: {line}", err=True)


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; prints errors, never raises them."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with cli.make_context("bluetree", words) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        _say(" ".join(error.format_message().split()))
        return 2
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return 130
    except OutputClosedError:
        # Whoever read the output has enough of it.
        return 0
    except Exception as error:
        code = _exit_code(error)
        for line in _lines(error) if code is not None else (_unforeseen(error),):
            _say(line)
        if context.meta.get(DEBUG):
            traceback.print_exc()
        return RunFailedError.exit_code if code is None else code
    return 0


def _unforeseen(error: Exception) -> str:
    """A line about an error that no part of the product raises on purpose."""
    return f"{type(error).__name__}: {error} (unforeseen; --debug shows where)"


def _lines(error: Exception) -> list[str]:
    """A line for each thing that is wrong."""
    problems = getattr(error, "problems", None)
    if problems is None:
        return [str(error)]
    return [f"{getattr(error, 'source', '')}: {problem}" for problem in problems]


def _exit_code(error: Exception) -> int | None:
    """The exit code of an error that is raised on purpose, None for any other."""
    if isinstance(error, BluetreeError):
        return error.exit_code
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((_EXIT_CODES[name] for name in names if name in _EXIT_CODES), None)


def main() -> NoReturn:
    """The console script."""
    sys.exit(invoke())


if __name__ == "__main__":
    main()
