"""`bluetree up` and `down`: a testbed's processes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from controller import targets
from controller.cli_options import (
    SEED,
    debug_option,
    folder_option,
    json_option,
    lanes_option,
    print_json,
)
from controller.errors import BadInputError, EnvironmentLacksError
from controller.live import state as live_state
from controller.placement import STRATEGIES
from controller.service.errors import NoControllerError
from controller.service.folder import Folder
from controller.service.launch import (
    end_controllers,
    end_page,
    start_controller,
    start_page,
    wait_until_gone,
)
from p4src.builds import NARROW
from topologies import RATE_LAWS

if TYPE_CHECKING:
    from controller.live.client import NetworkClient
    from controller.service.client import ControllerClient

__all__ = ["down_command", "up_command"]

_MIB = 1 << 20
_LAST_PORT = (1 << 16) - 1


def _checked_address(
    context: click.Context, option: click.Parameter, text: str | None
) -> str | None:
    """An address of the form HOST:PORT; BadInputError before anything is brought up."""
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and int(port) <= _LAST_PORT):
        raise BadInputError(f"{option.opts[0]} {text}: write HOST:PORT, such as 127.0.0.1:8080")
    return text


def _refuse_taken(option: str, text: str) -> None:
    """BadInputError where nobody can listen there."""
    host, _, port = text.rpartition(":")
    try:
        where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(where[0]) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where[4])
    except OSError as error:
        raise BadInputError(
            f"{option} {text}: {error.strerror or error}; name another address or port"
        ) from None


@click.command("up")
@click.argument("topology", required=False)
@click.option(
    "-k", "budget", type=click.IntRange(0), metavar="N", help="The budget of jobs that name none."
)
@click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    help="The strategy of jobs that name none. [default: smc]",
)
@click.option(
    "--workers",
    metavar="N|uniform|power-law|PATH",
    help="Workers at every leaf, a distribution, or a file; as for `bluetree run`.",
)
@click.option("--rates", type=click.Choice(list(RATE_LAWS)), help="As for `bluetree run`.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of all chance.")
@lanes_option
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="SWITCH",
    help="Attach a destination there too, for `bluetree reallocate --root`; may be repeated.",
)
@click.option(
    "--target",
    type=click.Choice([targets.AUTO, targets.FABRIC, targets.SOFTSWITCH, targets.BMV2]),
    default=targets.AUTO,
    show_default=True,
    envvar="BLUETREE_TARGET",
    show_envvar=True,
    help="Where the switches run; as for `bluetree run`.",
)
@click.option(
    "--backup", is_flag=True, help="Start a second controller, which takes over from the first."
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    callback=_checked_address,
    help="Serve the controller's API there too; it asks for no password.",
)
@click.option(
    "--host-seconds",
    type=click.FloatRange(0.1),
    metavar="S",
    help="How long a worker may take to do what it is told. [default: 10]",
)
@click.option("--web", is_flag=True, help="Serve a page of it, and metrics for Prometheus.")
@click.option(
    "--web-listen",
    metavar="HOST:PORT",
    callback=_checked_address,
    default="127.0.0.1:8080",
    show_default=True,
    help="Where; port 0 takes a free one. Whoever reaches it may reallocate.",
)
@click.option("--foreground", is_flag=True, help="Stay, and take all down when interrupted.")
@folder_option
@json_option
@debug_option
def up_command(
    folder: Folder,
    as_json: bool,
    topology: str | None,
    budget: int | None,
    strategy: str | None,
    workers: str | None,
    rates: str | None,
    seed: int,
    lanes: str,
    roots: tuple[str, ...],
    target: str,
    backup: bool,
    listen: str | None,
    host_seconds: float | None,
    web: bool,
    web_listen: str,
    foreground: bool,
) -> None:
    """Bring up a network and its controller, until `bluetree down`.

    Without TOPOLOGY, and with one up in the folder, only what is missing of its controllers is
    started: one that was killed, or with --backup another on standby.
    """
    began = time.monotonic()
    is_new = not live_state.is_locked(folder.path)
    if listen is not None and folder.serving() is None:
        _refuse_taken("--listen", listen)
    if web and web_listen is not None and folder.page() is None:
        _refuse_taken("--web-listen", web_listen)
    if is_new:
        options = {"--workers": workers, "--rates": rates, "--seed": str(seed), "--lanes": lanes}
        if host_seconds is not None:
            options["--host-seconds"] = str(host_seconds)
        given = [word for name, value in options.items() if value for word in (name, value)]
        given += [word for root in roots for word in ("--root", root)]
        if topology is not None and roots:
            _check_roots(topology, workers, roots)
        _bring_up(folder, topology, target, given)
    else:
        _refuse_another(folder, topology, roots)
    with _taken_down_on_failure(folder, is_new):
        _start_controllers(folder, listen, backup)
        try:
            _set_defaults(folder, strategy, budget)
        except NoControllerError:
            # It was there, but had just been killed.
            _start_controllers(folder, listen, backup=False)
            _set_defaults(folder, strategy, budget)
        if web and folder.page() is None:
            start_page(folder, web_listen)
        document = _describe(folder) | {"seconds": time.monotonic() - began}
    if as_json:
        print_json(document)
    else:
        click.echo(_shown(document))
    if foreground:
        _stay(folder)


@click.command("down")
@folder_option
@json_option
@debug_option
def down_command(folder: Folder, as_json: bool) -> None:
    """End the controllers, the jobs and the network of a testbed; nothing of it stays."""
    if not folder.path.is_dir():
        folder.require_testbed()
    was_up = live_state.is_locked(folder.path)
    is_left = was_up or folder.database.exists() or folder.serving() is not None
    if not is_left:
        folder.require_testbed()
    controllers = _take_down(folder)
    if as_json:
        print_json({"state": str(folder.path), "controllers": controllers, "network": was_up})
    else:
        click.echo(f"{folder.path}: all is down")


def _controller(folder: Folder) -> ControllerClient:
    """A client of the controller; its module is loaded by those who need one."""
    from controller.service.client import ControllerClient

    return ControllerClient(folder)


def _network(folder: Folder) -> NetworkClient:
    """A client of the network, likewise."""
    from controller.live.client import NetworkClient

    return NetworkClient(folder.path)


def _check_roots(topology: str, workers: str | None, roots: tuple[str, ...]) -> None:
    """Refuse a root that is not there before any process is started."""
    from topologies import WorkloadOptions, parse
    from topologies.network import check_roots

    check_roots(parse(topology, WorkloadOptions(workers=workers)), roots)


def _bring_up(folder: Folder, topology: str | None, target: str, options: list[str]) -> None:
    if topology is None:
        raise BadInputError(
            f"no network is up in {folder.path}: name a topology, such as fat-tree:k=4"
        )
    reason = None if target == targets.AUTO else targets.why_not(target)
    if reason is not None:
        raise EnvironmentLacksError(reason)
    _start_network(folder, topology, target, options)


def _refuse_another(folder: Folder, topology: str | None, roots: tuple[str, ...]) -> None:
    """A network that is up stays as it is."""
    if topology is not None:
        raise BadInputError(
            f"a testbed is up in {folder.path}: `bluetree down` first, or use another --state; "
            "without a topology `bluetree up` starts a missing controller"
        )
    if roots:
        raise BadInputError(
            f"--root {roots[0]}: destinations are attached to a network that is brought up, with "
            "its topology: `bluetree down` first"
        )
    context = click.get_current_context()
    for name in ("target", "workers", "rates", "seed", "lanes", "host_seconds"):
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise BadInputError(
                f"--{name.replace('_', '-')}: the network that is up stays as it is: "
                "`bluetree down` first, or leave it out"
            )


def _start_network(folder: Folder, topology: str, target: str, options: list[str]) -> None:
    # What an earlier testbed left whose network was killed.
    end_page(folder)
    end_controllers(folder)
    for path in (folder.database, folder.controller_socket, folder.controller_log):
        for stale in folder.path.glob(f"{path.name}*"):
            stale.unlink(missing_ok=True)
    from controller.live.client import launch

    try:
        launch(folder.path, topology, target=target, options=options).close()
    except BadInputError:
        # Its only line is that of the error.
        folder.network_log.unlink(missing_ok=True)
        raise


def _start_controllers(folder: Folder, listen: str | None, backup: bool) -> None:
    if folder.serving() is None and not folder.standbys():
        start_controller(folder, listen)
    if backup:
        start_controller(folder, None)


def _set_defaults(folder: Folder, strategy: str | None, budget: int | None) -> None:
    with _controller(folder) as controller:
        controller.set_defaults(strategy, budget)


@contextmanager
def _taken_down_on_failure(folder: Folder, is_new: bool) -> Iterator[None]:
    """A testbed that does not come up whole is taken down again."""
    try:
        yield
    except BaseException:
        if is_new:
            _take_down(folder)
        raise


def _describe(folder: Folder) -> dict[str, Any]:
    with _network(folder) as network:
        description = network.describe()
    topology = description.network.topology
    serving, page = folder.serving(), folder.page()
    return {
        "state": str(folder.path),
        "topology": topology.name,
        "target": description.target,
        "switches": len(topology.switches),
        "workers": len(description.network.workers),
        "roots": [
            host.switch for host in (description.network.destination, *description.network.spares)
        ],
        "controller": None if serving is None else serving.pid,
        "standbys": [process.pid for process in folder.standbys()],
        "page": None if page is None else page.url,
        "lanes": description.network.build.lanes,
        "network_seconds": description.start_seconds,
        "memory": description.memory,
        "processes": dict(description.pids),
    }


def _shown(document: dict[str, Any]) -> str:
    waiting = len(document["standbys"])
    standby = f", {waiting} controller on standby" if waiting else ""
    lanes = "" if document["lanes"] == NARROW.lanes else f", {document['lanes']} lanes"
    return (
        f"{document['topology']} is up on {document['target']}: {document['switches']} switches, "
        f"{document['workers']} workers{lanes}{standby}\n"
        f"after {document['seconds']:.1f} s ({document['network_seconds']:.1f} s of it for the "
        f"network), {document['memory'] / _MIB:.0f} MiB; "
        f"controller {document['controller']}; state in {document['state']}"
        + (f"\npage: {document['page']}" if document["page"] else "")
    )


def _stay(folder: Folder) -> None:
    """Wait until interrupted, or until the testbed is taken down by another command."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        while live_state.is_locked(folder.path):
            time.sleep(0.2)
    _take_down(folder)


def _end_network(folder: Folder) -> None:
    """End the network's process, be it up or still on its way, and wait until it is gone."""
    owner = live_state.owner(folder.path)
    if folder.network_socket.exists():
        with _network(folder) as network:
            network.down()
    elif owner.isdigit():
        # The command that started it was killed; nobody can ask it yet.
        with suppress(ProcessLookupError):
            os.kill(int(owner), signal.SIGTERM)
    if owner.isdigit():
        wait_until_gone(int(owner))


def _take_down(folder: Folder) -> list[int]:
    end_page(folder)
    controllers = end_controllers(folder)
    if live_state.is_locked(folder.path):
        _end_network(folder)
    if folder.database.exists() or folder.network_log.exists():
        # Only what is the testbed's own: the folder may be anybody's.
        for name in ("state.db*", "controller.*", "standby-*", "web.*", "network.*"):
            for path in folder.path.glob(name):
                path.unlink(missing_ok=True)
        shutil.rmtree(live_state.journals_path(folder.path), ignore_errors=True)
        with suppress(OSError):
            folder.path.rmdir()
    return controllers
