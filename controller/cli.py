"""The `bluetree` command: the only place that prints and sets exit codes.

Exit codes: 0 done, 1 the run's own check failed, 2 bad usage or input, 3 the environment lacks
something, 4 a switch or the controller failed. An error is a line on stderr; `--debug` adds the
traceback. With `--json`, stdout carries one JSON document and nothing else.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from controller import doctor as doctor_module
from controller import render, report, run
from controller.cli_evaluate import evaluate_command
from controller.cli_jobs import (
    counters_command,
    reallocate_command,
    start_command,
    status_command,
    stop_command,
)
from controller.cli_launch import launch_command
from controller.cli_options import (
    DEBUG,
    OutputClosedError,
    Request,
    debug_option,
    json_option,
    print_json,
    printing,
    stdout,
    topology_options,
)
from controller.cli_run import run_command
from controller.cli_up import down_command, shell_command, up_command
from controller.compile import CompileError
from controller.errors import BluetreeError, RunFailedError
from controller.p4rt import SwitchError
from controller.picture import PictureError
from controller.placement import PlacementError
from controller.program import ProgramError
from p4src.artefacts import ArtefactError
from softswitch.p4runtime import ServerError
from topologies import TopologyError
from topologies.fabric import FabricError
from topologies.network import NetworkError
from traffic.errors import ConfigError

_EXIT_CODES: dict[type[Exception], int] = {
    BluetreeError: BluetreeError.exit_code,
    PlacementError: 2,
    TopologyError: 2,
    NetworkError: 2,
    CompileError: 2,
    PictureError: 2,
    ConfigError: 2,
    ArtefactError: 3,
    ProgramError: 4,
    SwitchError: 4,
    ServerError: 4,
    FabricError: 4,
}
"""What every package raises on purpose; anything else is a defect."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@debug_option
@click.version_option(package_name="bluetree")
def cli() -> None:
    """In-network aggregation: place it, run it, measure it.

    TOPOLOGY is fat-tree:k=4, binary-tree:levels=8, random-tree:n=200,seed=1, or a path to a tree
    file (.json, .yaml, .graphml).
    """


@cli.command("plan")
@topology_options
def plan_command(request: Request) -> None:
    """Choose the blue switches, and predict every link's load."""
    start = time.perf_counter()
    planned = request.planned()
    seconds = time.perf_counter() - start
    if request.picture is not None:
        run.draw_plan(planned, request.picture)
    if request.as_json:
        print_json(report.plan_document(planned, seconds))
    else:
        with printing():
            render.show_plan(stdout(), planned)


@cli.command("doctor")
@json_option
@debug_option
def doctor_command(as_json: bool) -> None:
    """Say what is installed, what is missing, and which targets will work."""
    diagnosis = doctor_module.diagnose()
    if as_json:
        print_json(report.doctor_document(diagnosis))
    else:
        with printing():
            render.show_doctor(stdout(), diagnosis)


cli.add_command(run_command)
cli.add_command(launch_command)
cli.add_command(evaluate_command)
for _command in (
    up_command,
    status_command,
    start_command,
    reallocate_command,
    counters_command,
    stop_command,
    shell_command,
    down_command,
):
    cli.add_command(_command)


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
        # Whoever read the output has enough of it; nothing more can be flushed to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        known = isinstance(error, tuple(_EXIT_CODES))
        for line in _lines(error) if known else (_unforeseen(error),):
            _say(line)
        if context.meta.get(DEBUG):
            traceback.print_exc()
        return _exit_code(error) if known else RunFailedError.exit_code
    return 0


def _unforeseen(error: Exception) -> str:
    """A line about an error that no part of the product raises on purpose."""
    return f"{type(error).__name__}: {error} (unforeseen; --debug shows where)"


def _lines(error: Exception) -> list[str]:
    """A line for each thing that is wrong."""
    if isinstance(error, TopologyError):
        return [f"{error.source}: {problem}" for problem in error.problems]
    return [str(error)]


def _exit_code(error: Exception) -> int:
    if isinstance(error, BluetreeError):
        return error.exit_code
    return next(code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))


def main() -> NoReturn:
    """The console script."""
    sys.exit(invoke())


if __name__ == "__main__":
    main()
