"""The `bluetree` command: the only place that prints and sets exit codes.

Exit codes: 0 done, 1 the run's own check failed, 2 bad usage or input, 3 the environment lacks
something, 4 a switch or the controller failed. An error is a line on stderr; `--debug` adds the
traceback. With `--json`, stdout carries one JSON document and nothing else.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console

from controller import doctor as doctor_module
from controller import render, report, run, targets
from controller.cli_evaluate import evaluate_command
from controller.compile import CompileError
from controller.errors import BadInputError, BluetreeError, CheckFailedError
from controller.p4rt import SwitchError
from controller.picture import PictureError
from controller.placement import STRATEGIES, PlacementError
from controller.planning import Plan, plan, plan_given
from controller.program import ProgramError
from controller.running import Failure, RunOptions
from p4src.artefacts import ArtefactError
from softswitch.p4runtime import ServerError
from topologies import Topology, TopologyError, WorkloadOptions, parse
from topologies.fabric import FabricError
from topologies.network import NetworkError
from traffic.errors import ConfigError

_EXIT_CODES: dict[type[Exception], int] = {
    BluetreeError: BluetreeError.exit_code,
    PlacementError: 2,
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
"""What every package raises on purpose; anything else is a defect and shows its traceback."""

_BUDGET_FREE = ("all-red", "all-blue")


class _State:
    """What the options before the command said."""

    debug = False


@dataclass(frozen=True, slots=True)
class _Request:
    """What the options say that `plan` and `run` share."""

    topology: str
    budget: int | None
    strategy: str
    workers: str | None
    rates: str | None
    seed: int
    picture: Path | None
    as_json: bool

    def parsed(self) -> Topology:
        options = WorkloadOptions(workers=self.workers, rates=self.rates, seed=self.seed)
        return parse(self.topology, options)


def _topology_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `_Request`; the command takes one as its first argument."""
    shared = [field.name for field in fields(_Request)]

    @functools.wraps(command)
    def packed(**given: Any) -> None:
        command(_Request(**{name: given.pop(name) for name in shared}), **given)

    for option in reversed(
        (
            click.argument("topology"),
            click.option("-k", "budget", type=int, metavar="N", help="How many blue switches."),
            click.option(
                "--strategy",
                type=click.Choice(list(STRATEGIES)),
                default="smc",
                show_default=True,
                help="How to choose them; smc is optimal.",
            ),
            click.option(
                "--workers",
                metavar="N|uniform|power-law|PATH",
                help="Workers at every leaf, a distribution (both of mean 5), or a file that maps "
                "switches to workers.",
            ),
            click.option(
                "--rates",
                type=click.Choice(["constant", "linear", "exponential"]),
                help="Rates of the links, rising from the leaves to the root.",
            ),
            click.option("--seed", type=int, default=0, show_default=True, help="Of all chance."),
            click.option(
                "--picture",
                type=click.Path(dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Draw the tree into a .svg or .png file.",
            ),
            click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
        )
    ):
        packed = option(packed)
    return packed


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="bluetree")
def cli(debug: bool) -> None:
    """In-network aggregation: place it, run it, measure it.

    TOPOLOGY is fat-tree:k=4, binary-tree:levels=8, random-tree:n=200,seed=1, or a path to a tree
    file (.json, .yaml, .graphml).
    """
    _State.debug = debug


@cli.command("plan")
@_topology_options
def plan_command(request: _Request) -> None:
    """Choose the blue switches, and predict every link's load."""
    start = time.perf_counter()
    planned = _plan(request, None)
    seconds = time.perf_counter() - start
    if request.picture is not None:
        run.draw_plan(planned, request.picture)
    if request.as_json:
        _print_json(report.plan_document(planned, seconds))
    else:
        render.show_plan(_stdout(), planned)


@cli.command("run")
@_topology_options
@click.option("--blue", metavar="A,B", help="The blue switches by name, in place of a strategy.")
@click.option(
    "--target",
    type=click.Choice(["auto", "fabric", "softswitch", "bmv2"]),
    default="auto",
    show_default=True,
    envvar="BLUETREE_TARGET",
    show_envvar=True,
    help="Where the switches run: in this process on a virtual clock (fabric), or one process a "
    "switch over Mininet. auto takes bmv2 for a small network where it is installed and the user "
    "is root, else the fabric.",
)
@click.option(
    "--workload",
    type=click.Choice(["synthetic", "digits"]),
    default="synthetic",
    show_default=True,
    help="Random tensors, or the gradients of a training on scikit-learn's digits.",
)
@click.option(
    "--op",
    type=click.Choice(["reduce", "allreduce"]),
    help="Where the sum goes: to the destination, or on to every worker (the default of digits).",
)
@click.option("--chunks", type=click.IntRange(1), metavar="N", help="Messages of a worker.")
@click.option("--rounds", type=click.IntRange(1), metavar="N", help="Rounds of the training.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N")
@click.option(
    "--window", type=click.IntRange(1), metavar="N", help="Chunks in flight, a power of two."
)
@click.option("--loss", type=click.FloatRange(0, 0.9), default=0.0, metavar="P")
@click.option("--duplicate", type=click.FloatRange(0, 1), default=0.0, metavar="P")
@click.option("--reorder", type=click.FloatRange(0, 1), default=0.0, metavar="P")
@click.option("--fail", metavar="SWITCH@FRACTION", help="Let a switch die during the run.")
def run_command(
    request: _Request,
    blue: str | None,
    target: str,
    workload: str,
    op: str | None,
    chunks: int | None,
    rounds: int | None,
    jobs: int,
    window: int | None,
    loss: float,
    duplicate: float,
    reorder: float,
    fail: str | None,
) -> None:
    """Bring the network up, run every worker, check the sums and every link's counter."""
    if request.picture is not None:
        run.check_picture(request.picture)
    planned = _plan(request, blue)
    options = RunOptions(
        op=op or ("allreduce" if workload == "digits" else "reduce"),
        chunks=chunks or RunOptions().chunks,
        jobs=jobs,
        window=window,
        loss=loss,
        duplicate=duplicate,
        reorder=reorder,
        seed=request.seed,
        failure=_failure(fail),
    )
    where = targets.choose(target, planned.topology, options)
    if workload == "digits":
        if chunks is not None:
            raise BadInputError("--chunks: the digits workload has its own tensor; leave it out")
        result = run.run_digits(planned, options, rounds, Console(stderr=True), where)
    else:
        if rounds is not None:
            raise BadInputError("--rounds: only --workload digits trains in rounds; use --chunks")
        result = run.run_synthetic(planned, options, Console(stderr=True), where)
    if request.picture is not None:
        run.draw_run(result, request.picture)
    if request.as_json:
        _print_json(report.run_document(result))
    else:
        render.show_run(_stdout(), result)
    if not result.passed:
        raise CheckFailedError(run.verdict(result))


@cli.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def doctor_command(as_json: bool) -> None:
    """Say what is installed, what is missing, and which targets will work."""
    diagnosis = doctor_module.diagnose()
    if as_json:
        _print_json(report.doctor_document(diagnosis))
    else:
        render.show_doctor(_stdout(), diagnosis)


cli.add_command(evaluate_command)


def _plan(request: _Request, blue: str | None) -> Plan:
    topology, budget = request.parsed(), request.budget
    if blue is not None:
        names = [name.strip() for name in blue.split(",") if name.strip()]
        given = plan_given(topology, names)
        if budget is not None and len(given.blue) > budget:
            raise BadInputError(f"--blue names {len(given.blue)} switches and -k allows {budget}")
        return given
    if budget is None:
        if request.strategy not in _BUDGET_FREE:
            raise BadInputError(
                f"-k: say how many switches {request.strategy} may make blue, such as -k 4"
            )
        budget = topology.overlay.tree.n
    return plan(topology, budget, request.strategy)


def _failure(text: str | None) -> Failure | None:
    if text is None:
        return None
    switch, separator, share = text.rpartition("@")
    try:
        fraction = float(share)
    except ValueError:
        fraction = -1.0
    if not separator or not switch or not 0 <= fraction <= 1:
        raise BadInputError(f"--fail {text}: write SWITCH@FRACTION, such as agg0-0@0.5")
    return Failure(switch, fraction)


def _print_json(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _stdout() -> Console:
    console = Console()
    # Into a pipe or a file, tables keep their columns instead of folding at 80.
    return console if console.is_terminal else Console(width=140)


def _say(line: str) -> None:
    click.echo(f"bluetree: {line}", err=True)


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; prints errors, never raises them."""
    _State.debug = False
    try:
        cli.main(args=arguments, prog_name="bluetree", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        _say(error.format_message())
        return 2
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return 130
    except TopologyError as error:
        for problem in error.problems:
            _say(f"{error.source}: {problem}")
        return _debugged(2)
    except tuple(_EXIT_CODES) as error:
        _say(str(error))
        return _debugged(_exit_code(error))
    return 0


def _exit_code(error: Exception) -> int:
    if isinstance(error, BluetreeError):
        return error.exit_code
    return next(code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))


def _debugged(exit_code: int) -> int:
    if _State.debug:
        traceback.print_exc()
    return exit_code


def main() -> NoReturn:
    """The console script."""
    sys.exit(invoke())


if __name__ == "__main__":
    main()
