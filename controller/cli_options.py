"""What commands of the command line have in common: options, output, the plan they ask for."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from controller.errors import BadInputError, RunFailedError
from controller.placement import STRATEGIES
from controller.planning import Plan, plan, plan_given
from controller.service.folder import Folder, default_folder
from p4src.builds import BUILDS, NARROW
from topologies import RATE_LAWS, Topology, WorkloadOptions, parse

if TYPE_CHECKING:
    from rich.console import Console

DEBUG = "bluetree.debug"
"""Key in the context's `meta`: whether errors show their traceback."""

SEED = click.IntRange(0, 2**64 - 1)
_BUDGET_FREE = ("all-red", "all-blue")
_PIPE_WIDTH = 140


@dataclass(frozen=True, slots=True)
class Request:
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
        """The topology with its workload."""
        options = WorkloadOptions(workers=self.workers, rates=self.rates, seed=self.seed)
        return parse(self.topology, options)

    def check_picture(self) -> None:
        """Refuse a picture file before a long run rather than after it."""
        if self.picture is not None:
            from controller.drawing import check_path

            check_path(self.picture)

    def draw(self, planned: Plan) -> None:
        """Draw the plan, where a picture is asked for."""
        if self.picture is not None:
            # Takes longer to load than most plans to make.
            from controller.drawing import draw_plan

            draw_plan(planned, self.picture)

    def planned(self, blue: str | None = None) -> Plan:
        """The placement that was asked for: by strategy and budget, or by names."""
        topology, budget = self.parsed(), self.budget
        if blue is not None:
            source = click.get_current_context().get_parameter_source("strategy")
            if source is not click.core.ParameterSource.DEFAULT:
                raise BadInputError("--blue names the switches itself: leave out --strategy")
            names = [name.strip() for name in blue.split(",") if name.strip()]
            given = plan_given(topology, names)
            if budget is not None and len(given.blue) > budget:
                raise BadInputError(
                    f"--blue names {len(given.blue)} switches and -k allows {budget}"
                )
            return given
        if budget is None:
            if self.strategy not in _BUDGET_FREE:
                raise BadInputError(
                    f"-k: say how many switches {self.strategy} may make blue, such as -k 4"
                )
            budget = topology.overlay.tree.n
        return plan(topology, budget, self.strategy)


def json_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--json`, as the argument `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(
        command
    )


def folder_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--state`, as the argument `folder`."""

    @functools.wraps(command)
    def with_folder(state: Path | None, **given: Any) -> None:
        command(folder=Folder((state or default_folder()).absolute()), **given)

    return click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        envvar="BLUETREE_STATE",
        show_envvar=True,
        help="The testbed's folder; each is a testbed of its own. "
        "[default: $XDG_RUNTIME_DIR/bluetree, or bluetree-UID in $TMPDIR or /tmp]",
    )(with_folder)


def debug_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--debug`, before or after the command's name."""

    def remember(context: click.Context, _: click.Parameter, is_set: bool) -> None:
        context.meta[DEBUG] = is_set or context.meta.get(DEBUG, False)

    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show the traceback of an error.",
    )(command)


def topology_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `Request`; the command takes one as its first argument."""
    shared = [field.name for field in fields(Request)]

    @functools.wraps(command)
    def packed(**given: Any) -> None:
        command(Request(**{name: given.pop(name) for name in shared}), **given)

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
                type=click.Choice(list(RATE_LAWS)),
                help="Rates of the links, rising from the leaves to the root: 1, i, or 1.5^(i-1) "
                "with i = 1 at the leaves. In place of a file's own rates.",
            ),
            click.option("--seed", type=SEED, default=0, show_default=True, help="Of all chance."),
            click.option(
                "--picture",
                type=click.Path(dir_okay=False, path_type=Path),
                metavar="FILE",
                help="Draw the tree into a .svg or .png file.",
            ),
        )
    ):
        packed = option(packed)
    return json_option(debug_option(packed))


lanes_option = click.option(
    "--lanes",
    type=click.Choice([str(lanes) for lanes in sorted(BUILDS)]),
    default=str(NARROW.lanes),
    show_default=True,
    help="int32 values in a message, which is a build of the P4 program. More carry long tensors "
    "with fewer headers and packets.",
)


class OutputClosedError(Exception):
    """Nobody reads the output any more."""


@contextmanager
def printing() -> Iterator[None]:
    """Print inside; raises OutputClosedError when the reader has gone, RunFailedError otherwise."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _give_up_output()
        raise OutputClosedError from error
    except OSError as error:
        _give_up_output()
        raise RunFailedError(f"the output cannot be written: {error.strerror}") from None


def _give_up_output() -> None:
    """Let what is still in the buffer go nowhere: at its end Python would try to write it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(document: dict[str, Any]) -> None:
    """Print the one document of a command."""
    with printing():
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def stdout() -> Console:
    """Where tables go: into a pipe or a file they keep their columns, unless COLUMNS is set."""
    from rich.console import Console

    class Output(Console):
        """Ends as `printing` does when the reader has gone; rich's own way is exit code 1."""

        def on_broken_pipe(self) -> None:
            _give_up_output()
            raise OutputClosedError

    console = Output()
    fixed = console.is_terminal or "COLUMNS" in os.environ
    return console if fixed else Output(width=_PIPE_WIDTH)


def stderr() -> Console:
    """Where progress goes."""
    from rich.console import Console

    return Console(stderr=True)
