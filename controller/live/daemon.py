"""The process that holds a network: `python -m controller.live.daemon --state DIR ... TOPOLOGY`.

It brings the network up, serves DIR/network.sock to any number of clients, and lives until one says
`Down`, or until SIGTERM or SIGINT. However it ends, nothing of the network stays. An error before
the network is up is one line on stderr, and the exit code is the error's.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from controller import targets
from controller.errors import BadInputError, BluetreeError, SilentHostsError
from controller.live import state
from controller.live.fabric import LiveFabric
from controller.live.mininet import LiveMininet
from controller.live.network import LiveNetwork, Roster, resident_bytes
from controller.live.progress import HOST_S
from controller.live.requests import (
    Describe,
    Down,
    Jobs,
    Kill,
    LookForFaults,
    NetworkDescription,
    Refused,
    Request,
    Restart,
    Silent,
    SurveyJob,
    Tell,
    TellJob,
)
from controller.p4rt import SwitchError
from controller.running import RunOptions
from p4src.builds import BUILDS, NARROW
from topologies import TopologyError, WorkloadOptions, parse
from topologies.fabric.build import Conditions
from topologies.network import Network, NetworkError, wire
from traffic.errors import TrafficError

_BACKLOG = 64
_LOOK_S = 0.2
"""Between two looks whether a destination has to be started anew."""


class Daemon:
    """Serves one network that is up."""

    def __init__(self, network: LiveNetwork, start_seconds: float) -> None:
        self._network = network
        self._roster = Roster(network)
        self._start_seconds = start_seconds
        self._ending = threading.Event()

    def serve(self, listener: socket.socket) -> None:
        """Serve until somebody says that it is over."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._ending.set())
        accepting = threading.Thread(target=self._accept, args=(listener,), daemon=True)
        accepting.start()
        said = ""
        while not self._ending.wait(_LOOK_S):
            try:
                self._roster.look_after()
            except (BluetreeError, TrafficError) as error:
                # Once, not at every look: it may stay so for days.
                if str(error) != said:
                    said = str(error)
                    print(said, file=sys.stderr, flush=True)
            else:
                said = ""

    def _accept(self, listener: socket.socket) -> None:
        while True:
            accepted, _ = listener.accept()
            client: Connection[Any, Any] = Connection(accepted.detach())
            threading.Thread(target=self._attend, args=(client,), daemon=True).start()

    def _attend(self, client: Connection[Any, Any]) -> None:
        try:
            while True:
                number, request = client.recv()
                try:
                    answer = self._answer(request)
                except SilentHostsError as error:
                    client.send((number, False, Silent(error.hosts, error.seconds)))
                    continue
                except (BluetreeError, SwitchError, TrafficError) as error:
                    is_wrong = isinstance(error, BadInputError) and isinstance(
                        request, Kill | Restart
                    )
                    client.send((number, False, Refused(str(error)) if is_wrong else str(error)))
                    continue
                except (EOFError, OSError) as error:
                    # Not the client's end: something of the network that is gone.
                    traceback.print_exc()
                    client.send((number, False, f"{type(error).__name__}: {error}"))
                    continue
                client.send((number, True, answer))
                if isinstance(request, Down):
                    self._ending.set()
        except (EOFError, OSError):
            client.close()

    def _answer(self, request: Request) -> object:
        match request:
            case Describe():
                return self._describe()
            case Jobs():
                return self._roster.jobs()
            case Tell(commands):
                return self._roster.tell(commands)
            case TellJob(command, part):
                return self._roster.tell_job(command, part)
            case SurveyJob(job):
                return self._roster.survey(job)
            case Kill(name, one_way, again):
                act = self._roster.kill if again else self._roster.fail
                act(name, one_way=one_way)
            case Restart(name):
                self._roster.restart(name)
            case LookForFaults():
                return self._roster.faults()
        return None

    def _describe(self) -> NetworkDescription:
        network = self._network
        pids = {"daemon": os.getpid(), **network.pids()}
        return NetworkDescription(
            target=network.target,
            network=network.network,
            addresses=network.addresses,
            pids=pids,
            start_seconds=self._start_seconds,
            memory=resident_bytes(list(pids.values())),
            rates=network.rates,
            patience=network.patience,
            down=self._roster.down,
            newest_epoch=self._roster.newest_epoch,
            host_seconds=network.host_seconds,
        )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="controller.live.daemon", description=__doc__)
    parser.add_argument("topology")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--target", default=targets.AUTO)
    parser.add_argument("--workers")
    parser.add_argument("--rates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, choices=list(BUILDS), default=NARROW.lanes)
    parser.add_argument("--link-rate", type=int)
    parser.add_argument("--host-seconds", type=float, default=HOST_S)
    parser.add_argument(
        "--root", action="append", default=[], help="a further switch with a destination"
    )
    for fault in ("loss", "duplicate", "reorder"):
        parser.add_argument(f"--{fault}", type=float, default=0.0)
    return parser.parse_args(arguments)


def _plan(options: argparse.Namespace) -> tuple[Network, str]:
    """The network that is asked for, and its target."""
    workload = WorkloadOptions(workers=options.workers, rates=options.rates, seed=options.seed)
    topology = parse(options.topology, workload)
    asked = RunOptions(
        loss=options.loss,
        duplicate=options.duplicate,
        reorder=options.reorder,
        link_rate=options.link_rate,
        seed=options.seed,
    )
    target = targets.choose(options.target, topology, asked)
    network = wire(topology, options.root, BUILDS[options.lanes])
    if not network.workers:
        raise BadInputError(f"{topology.name}: has no workers; give it some with --workers")
    return network, target


def _bring_up(
    network: Network, target: str, conditions: Conditions, journals: Path, host_seconds: float
) -> AbstractContextManager[LiveFabric | LiveMininet]:
    if target == targets.FABRIC:
        return LiveFabric(network, conditions, journals)
    return LiveMininet(network, target, conditions, journals, host_seconds)


def _run(options: argparse.Namespace, began: float) -> None:
    network, target = _plan(options)
    conditions = Conditions(
        options.loss, options.duplicate, options.reorder, options.seed, options.link_rate
    )
    with ExitStack() as stack:
        stack.enter_context(state.locked(options.state))
        journals = state.journals_path(options.state)
        # Those of a daemon that was killed are of no use: its hosts are gone too.
        shutil.rmtree(journals, ignore_errors=True)
        journals.mkdir()
        stack.callback(shutil.rmtree, journals, ignore_errors=True)
        up = stack.enter_context(
            _bring_up(network, target, conditions, journals, options.host_seconds)
        )
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        path = state.socket_path(options.state)
        # Under another name first: where there is a socket of the name, somebody listens.
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        listener.bind(str(new))
        listener.listen(_BACKLOG)
        new.rename(path)
        # All of it stays: the collector need not look at it again, for tenths of a second.
        gc.collect()
        gc.freeze()
        Daemon(up, time.monotonic() - began).serve(listener)
        path.unlink(missing_ok=True)


def main(arguments: Sequence[str]) -> int:
    """Hold a network; see the module's text."""
    began = time.monotonic()
    options = _parse(arguments)
    try:
        state.prepare(options.state)
        _run(options, began)
    except (TopologyError, NetworkError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BadInputError.exit_code
    except (BluetreeError, SwitchError) as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, BluetreeError) else BluetreeError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
