"""A network in Mininet that is up: one switch process a switch, one process a host.

The network lives in a process of its own (`topologies.mininet_net`), which takes everything down
when this one ends. Switches are bmv2's simple_switch_grpc or softswitch, started alike. Nothing
here is a P4Runtime client: whoever controls the switches connects to `addresses`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from controller.errors import EnvironmentLacksError, RunFailedError
from controller.installed import SWITCH_PROGRAMS, program_path
from controller.p4rt import SwitchAddress, SwitchUnreachableError
from controller.peers import HostPeer, Hosts, Peer, connect, tail
from controller.queues import QueueError, QueueSettings, set_bmv2_queues
from topologies.marks import mark_folder, remove_leftovers, remove_unmarked
from topologies.mininet_plan import FOLDER_PREFIX, HostPlan, LinkPlan, StartTimes, SwitchPlan
from topologies.network import CPU_PORT, Host, Network
from topologies.rerooting import link_name

_MODULES = {"softswitch": ("softswitch.cli", "softswitch.process")}
"""What a switch that is a Python program consists of."""
FIRST_PORT = 9559
"""P4Runtime's own port; free ones from here up, below those that the kernel gives to clients."""
LAST_PORT = 32000
START_DEADLINE_S = 90.0
START_EACH_S = 0.5
"""For each switch and host beyond that."""
STOP_DEADLINE_S = 60.0
_POLL_S = 0.05


class RunningMininet:
    """A network in Mininet; a context manager. `hosts` and `addresses` are there once it is up."""

    def __init__(
        self,
        network: Network,
        target: str,
        links: LinkPlan,
        queues: QueueSettings | None,
        journals: Path | None = None,
        *,
        records: bool = False,
    ) -> None:
        """`journals`: the folder of what destinations record; with `records` one of its own, else
        they record nothing."""
        self._journals = journals
        self._records = records
        self.network = network
        self.hosts = Hosts({})
        self.addresses: tuple[SwitchAddress, ...] = ()
        self._target = target
        self._links = links
        self._queues = queues
        self._lock = threading.Lock()
        self._folder = Path()
        self.times = StartTimes(0.0, 0.0)
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Bring the network up and wait for every switch."""
        with ExitStack() as resources:
            folder = Path(
                resources.enter_context(
                    tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, ignore_cleanup_errors=True)
                )
            )
            mark_folder(folder)
            self._folder = folder
            ports = _free_ports(resources)
            self.addresses = tuple(
                SwitchAddress(name, f"127.0.0.1:{next(ports)}", device)
                for name, device in self.network.device_id.items()
            )
            self._start_network(resources, folder, self.addresses, ports)
            self._connect_hosts(resources)
            self._wait_for_switches(self.addresses, folder)
            self._set_queues()
            self._resources = resources.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.close()

    def pids(self) -> dict[str, int]:
        """The process ids of switches and hosts, by name."""
        with self._lock:
            self._mininet.send("pids")
            known: dict[str, int] = self._mininet.expect("pids")
            return known

    def namespaces(self) -> dict[str, int]:
        """For every host, by name, a process in its network namespace that stays."""
        with self._lock:
            self._mininet.send("namespaces")
            known: dict[str, int] = self._mininet.expect("namespaces")
            return known

    def kill(self, name: str) -> None:
        """Kill the process of a switch or a host where it stands."""
        with self._lock:
            self._mininet.send("kill", name)
            self._mininet.expect("kill")

    def set_link(self, one: str, other: str, *, up: bool, both: bool = True) -> None:
        """Let the link between two switches lose every frame, or none any more.

        Without `both` it is the way from the one to the other alone. Raises RunFailedError where
        an interface of it is gone.
        """
        with self._lock:
            self._mininet.send("link", one, other, up, both)
            refusal = self._mininet.expect("link")
        if refusal is not None:
            raise RunFailedError(f"link {link_name(one, other)}: {refusal}")

    def dark_links(self) -> frozenset[str]:
        """The links between switches of which an end is gone, down, or without a carrier."""
        with self._lock:
            self._mininet.send("dark")
            dark: Sequence[tuple[str, str]] = self._mininet.expect("dark")
        return frozenset(link_name(*ends) for ends in dark)

    def restart(self, name: str) -> None:
        """Start a switch or host anew that was killed or has ended, and wait for it: a switch has
        no program, a host no job."""
        host = next((one for one in self.network.hosts if one.name == name), None)
        if host is not None or name in self.ended_switches():
            # So that it counts as killed, however it has ended.
            self.kill(name)
        with self._lock:
            self._mininet.send("restart", name)
            if self._mininet.expect("restart") is None:
                raise RunFailedError(f"{name}: was not killed, so it is not restarted")
        if host is not None:
            self.hosts.replace(name, self._connect(host))
            return
        self._wait_for_switches([at for at in self.addresses if at.name == name], self._folder)
        self._set_queues(name)

    def check(self) -> None:
        """Raise RunFailedError where a process is gone that nobody ended, naming it."""
        for log in self._dead():
            what = log.stem
            if log.parent.name == "switches":
                what = f"switch {self._switch_of(log)}"
            elif log.parent.name == "hosts":
                what = f"host {log.stem}"
            raise RunFailedError(f"the process of {what} is gone: {tail(log)}")

    def ended_hosts(self) -> frozenset[str]:
        """Hosts whose processes are gone, though nobody ended them."""
        return frozenset(log.stem for log in self._dead() if log.parent.name == "hosts")

    def ended_switches(self) -> frozenset[str]:
        """Switches likewise."""
        return frozenset(
            self._switch_of(log) for log in self._dead() if log.parent.name == "switches"
        )

    def _switch_of(self, log: Path) -> str:
        names = {str(device): name for name, device in self.network.device_id.items()}
        return names[log.stem]

    def _dead(self) -> Sequence[Path]:
        """The logs of processes that are gone, though nobody ended them."""
        with self._lock:
            self._mininet.send("dead")
            logs: Sequence[Path] = self._mininet.expect("dead")
            return logs

    def cause(self, error: RunFailedError) -> RunFailedError:
        """What is behind an error: the end of Mininet's process, which takes all others along."""
        if self._process.poll() is None:
            return error
        return RunFailedError(f"Mininet's process was killed, and all switches and hosts ({error})")

    @property
    def _start_deadline(self) -> float:
        """Seconds within which all processes are there, on a machine that is busy."""
        network = self.network
        return START_DEADLINE_S + START_EACH_S * (
            len(network.topology.switches) + len(network.hosts)
        )

    def _start_network(
        self,
        resources: ExitStack,
        folder: Path,
        addresses: Sequence[SwitchAddress],
        ports: Iterator[int],
    ) -> None:
        control = folder / "mininet"
        log = resources.enter_context((folder / "network.log").open("wb"))
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "topologies.mininet_net"),
                *("--control", str(control), "--parent", str(os.getpid())),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        resources.callback(_end, process, folder)
        self._process = process
        connection = connect(control, lambda: process.poll() is not None, folder / "network.log")
        self._mininet = Peer("Mininet", connection, folder / "network.log")
        resources.enter_context(self._mininet.connection)
        for part in ("switches", "hosts"):
            (folder / part).mkdir()
        if self._records:
            self._journals = folder / "journals"
            self._journals.mkdir()
        program = program_path(SWITCH_PROGRAMS[self._target])
        if program is None:
            raise EnvironmentLacksError(f"{SWITCH_PROGRAMS[self._target]} is gone from PATH")
        self._thrift = {where.name: next(ports) for where in addresses if self._target == "bmv2"}
        switches = SwitchPlan(
            command=(program,),
            arguments={where.name: self._switch_arguments(where) for where in addresses},
            logs=folder / "switches",
            module=_MODULES.get(self._target),
        )
        hosts = HostPlan(
            module="traffic.process",
            controls=folder / "hosts",
            logs=folder / "hosts",
            journals=self._journals,
        )
        self._mininet.send("up", self.network, switches, hosts, self._links)
        answer, what = self._mininet.receive(self._start_deadline)
        if answer != "up":
            raise RunFailedError(f"Mininet did not bring the network up: {what}")
        self.times = what

    def _switch_arguments(self, where: SwitchAddress) -> tuple[str, ...]:
        words = ["--no-p4", "--device-id", str(where.device_id), "--log-console", "-L", "warn"]
        if where.name in self._thrift:
            words += ["--thrift-port", str(self._thrift[where.name])]
        words += ["--", "--grpc-server-addr", where.address, "--cpu-port", str(CPU_PORT)]
        if self._queues is not None:
            words += ["--priority-queues", str(self._queues.queues)]
            if where.name not in self._thrift:
                words += ["--queue-rate", str(self._queues.rate)]
                words += ["--queue-depth", str(self._queues.depth)]
        return tuple(words)

    def _set_queues(self, switch: str | None = None) -> None:
        """Give bmv2's queues, of one switch or all, what its command line does not take."""
        if self._queues is None:
            return
        for name, port in self._thrift.items():
            if switch not in (None, name):
                continue
            try:
                set_bmv2_queues(port, self._queues)
            except QueueError as error:
                raise RunFailedError(f"switch {name}: {error}") from None

    def _connect_hosts(self, resources: ExitStack) -> None:
        self.hosts = Hosts({host.name: self._connect(host) for host in self.network.hosts})
        resources.callback(self.hosts.close)

    def _connect(self, host: Host) -> HostPeer:
        control = self._folder / "hosts" / host.name
        log = control.with_suffix(".log")
        connection = connect(control, partial(self._has_ended, log), log)
        return HostPeer(f"host {host.name}", connection, log)

    def _wait_for_switches(self, addresses: Sequence[SwitchAddress], folder: Path) -> None:
        """Wait until every switch takes a connection; name one that does not, with its log."""
        deadline = time.monotonic() + self._start_deadline
        for where in addresses:
            while not _listens(where.address):
                log = folder / "switches" / f"{where.device_id}.log"
                if self._has_ended(log) or time.monotonic() > deadline:
                    raise SwitchUnreachableError(
                        where.name, f"does not listen at {where.address}: {tail(log)}"
                    )
                time.sleep(_POLL_S)

    def _has_ended(self, log: Path) -> bool:
        """Whether the process that writes a log is gone, though nobody ended it."""
        return log in self._dead()


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for Mininet's process to take everything down; if it cannot, do so in its place."""
    try:
        code = process.wait(STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code != 0:
        remove_leftovers()
        remove_unmarked(folder)


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def _free_ports(leases: ExitStack) -> Iterator[int]:
    """TCP ports that nobody listens on, each leased while `leases` is open.

    Switches bind their ports long after they are chosen, so a lease keeps other runs of this
    machine away: a name among the abstract Unix sockets, which goes when its owner does.
    """
    for port in range(FIRST_PORT, LAST_PORT):
        lease = socket.socket(socket.AF_UNIX)
        try:
            lease.bind(f"\0bluetree-port-{port}")
            with socket.socket() as probe:
                probe.bind(("0.0.0.0", port))
        except OSError:
            lease.close()
            continue
        leases.enter_context(lease)
        yield port
