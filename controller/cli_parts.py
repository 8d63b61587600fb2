"""`bluetree fail` and `restart`: parts of a testbed's network that go, and come back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from controller.cli_options import debug_option, folder_option, json_option, print_json
from controller.errors import BadInputError
from controller.service.folder import Folder
from topologies.rerooting import find_link, link_name

if TYPE_CHECKING:
    from controller.live.client import NetworkClient
    from topologies.network import Network

__all__ = ["fail_command", "restart_command"]


@click.command("fail")
@click.argument("part", metavar="SWITCH|A-B|HOST")
@click.option(
    "--one-way", is_flag=True, help="Of the link A-B lose only what A sends to B, not the way back."
)
@folder_option
@json_option
@debug_option
def fail_command(folder: Folder, part: str, one_way: bool, as_json: bool) -> None:
    """Kill a switch or host of a testbed, or let a link lose every frame.

    Hosts are workers and destinations; a link A-B is one between two switches. `bluetree restart`
    ends that; a worker that its job went on without comes back by `bluetree rejoin`. To the
    switches at its ends a link that has failed looks as before; the controller finds it once a job
    stands still for it.
    """
    with _network_with(folder, part) as network:
        link = _ends(network.network, part)
        if one_way and link is None:
            what = "switch" if part in network.network.topology.switches else "host"
            raise BadInputError(f"--one-way: {part} is a {what}; only a link A-B has two ways")
        network.fail(part, one_way=one_way)
    if as_json:
        print_json({"state": str(folder.path), "part": part, "one_way": one_way})
    else:
        click.echo(_failed(network.network, part, link, one_way))


@click.command("restart")
@click.argument("part", metavar="SWITCH|A-B|HOST")
@folder_option
@json_option
@debug_option
def restart_command(folder: Folder, part: str, as_json: bool) -> None:
    """Start what is dead in a testbed anew, or let a link carry all again.

    The controller makes a switch what it should be. A destination goes on with its jobs; a worker
    has none, see `bluetree rejoin`.
    """
    with _network_with(folder, part) as network:
        network.restart(part)
        is_switch = part in network.network.topology.switches
        is_link = _ends(network.network, part) is not None
        process = None if is_link else network.describe().pids.get(part)
    if as_json:
        kind = "switch" if is_switch else "link" if is_link else "host"
        known = {"part": part, kind: part} | ({} if is_link else {"process": process})
        print_json({"state": str(folder.path), **known})
    elif is_switch:
        click.echo(f"{part} is started anew; the controller gives it its program and entries")
    elif is_link:
        click.echo(f"{part} carries all again")
    else:
        click.echo(f"{part} is started anew")


@contextmanager
def _network_with(folder: Folder, part: str) -> Iterator[NetworkClient]:
    """The testbed's network; BadInputError where it has no such part."""
    folder.require_testbed()
    from controller.live.client import NetworkClient

    with NetworkClient(folder.path) as network:
        up = network.network
        names = {*up.topology.switches, *(host.name for host in up.hosts)}
        if part not in names and _ends(up, part) is None:
            raise BadInputError(
                f"{part}: no such switch, link A-B or host; `bluetree status` lists switches and "
                f"links, and the hosts are {up.worker_names} and "
                f"{', '.join(host.name for host in (up.destination, *up.spares))}"
            )
        yield network


def _ends(network: Network, part: str) -> tuple[str, str] | None:
    """The ends of a link in the order of its name; None where the name is not that of a link."""
    topology = network.topology
    ends = None if part in topology.switches else find_link(topology, part)
    return ends if ends is None or part == link_name(*ends) else ends[::-1]


def _failed(network: Network, part: str, link: tuple[str, str] | None, one_way: bool) -> str:
    """What has failed, and how it comes back."""
    if link is not None:
        said = f"nothing that {link[0]} sends to {link[1]} arrives any more"
        if not one_way:
            said = f"{part} carries nothing any more"
        return f"{said}; `bluetree restart {part}` ends that"
    if part in {host.name for host in network.workers}:
        return (
            f"{part} is dead; `bluetree rejoin {part}` brings it back into a job that goes on "
            f"without it, `bluetree restart {part}` for new ones"
        )
    return f"{part} is dead; `bluetree restart {part}` brings it back"
