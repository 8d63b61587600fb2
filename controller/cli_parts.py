"""`bluetree fail` and `restart`: parts of a testbed's network that go, and come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from controller.cli_options import debug_option, folder_option, json_option, print_json
from controller.errors import BadInputError
from controller.service.folder import Folder
from topologies.rerooting import find_link

if TYPE_CHECKING:
    from controller.live.client import NetworkClient

__all__ = ["fail_command", "restart_command"]


@click.command("fail")
@click.argument("part", metavar="SWITCH|A-B")
@click.option(
    "--one-way", is_flag=True, help="Of the link A-B lose only what A sends to B, not the way back."
)
@folder_option
@json_option
@debug_option
def fail_command(folder: Folder, part: str, one_way: bool, as_json: bool) -> None:
    """Kill a switch of a testbed, or let the link between two lose every frame.

    `bluetree restart` ends that. To the switches at its ends a link that has failed looks as
    before; the controller finds it once a job stands still for it.
    """
    with _network_with(folder, part) as network:
        if one_way and part in network.network.topology.switches:
            raise BadInputError(f"--one-way: {part} is a switch; only a link A-B has two ways")
        network.kill(part, one_way=one_way)
    if as_json:
        print_json({"state": str(folder.path), "part": part, "one_way": one_way})
    else:
        click.echo(f"{part} has failed; `bluetree restart {part}` brings it back")


@click.command("restart")
@click.argument("part", metavar="SWITCH|A-B")
@folder_option
@json_option
@debug_option
def restart_command(folder: Folder, part: str, as_json: bool) -> None:
    """Start a dead switch of a testbed anew, or let a link carry all again that had failed.

    The controller makes a switch what it should be.
    """
    with _network_with(folder, part) as network:
        network.restart(part)
        is_switch = part in network.network.topology.switches
        process = network.describe().pids.get(part) if is_switch else None
    if as_json:
        known = {"switch": part, "process": process} if is_switch else {"link": part}
        print_json({"state": str(folder.path), **known})
    elif is_switch:
        click.echo(f"{part} is started anew; the controller gives it its program and entries")
    else:
        click.echo(f"{part} carries all again")


@contextmanager
def _network_with(folder: Folder, part: str) -> Iterator[NetworkClient]:
    """The testbed's network; BadInputError where it has no such switch or link."""
    folder.require_testbed()
    from controller.live.client import NetworkClient

    with NetworkClient(folder.path) as network:
        topology = network.network.topology
        if part not in topology.switches and find_link(topology, part) is None:
            raise BadInputError(
                f"{part}: no such switch, nor link A-B between two; `bluetree status` lists those "
                "that there are"
            )
        yield network
