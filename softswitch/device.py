"""One P4 device: a pipeline, its state, and everything a control plane may do to it.

Threads: any number of threads may call the methods other than `process`, one at a time (one
writer), while one other thread runs `process`. Every write replaces one value in one step under
the interpreter lock, so a packet sees an entry, a group or a session either before or after a
write, never between. A packet runs on one pipeline from end to end, also across a load.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from softswitch.cell_control import CellControl
from softswitch.codegen import Compiled, Packets, compile_program, find_compiled
from softswitch.control import TableControl
from softswitch.entries import (
    ActionCall,
    CounterData,
    Digest,
    Match,
    MeterConfig,
    TableEntry,
)
from softswitch.errors import FailedPrecondition
from softswitch.ir import DROP_PORT, Program
from softswitch.loader import digest_of, load_program
from softswitch.native import NativeState, chosen, compile_native
from softswitch.parameters import Parameters
from softswitch.profile_control import ProfileControl
from softswitch.queued import Departure, QueuedPacket, dequeue, enqueue, run
from softswitch.replication import ReplicationEngine
from softswitch.state import State
from softswitch.succession import succeed


@dataclass(frozen=True, slots=True)
class _Pipeline:
    """A program in force: code, state, and the control plane's view of its tables."""

    compiled: Compiled
    state: State
    tables: TableControl
    native: NativeState | None
    process: Callable[[int, bytes, int], Packets]
    enqueue: Callable[[int, bytes, int], list[QueuedPacket]]


def compile_json(json_bytes: bytes, drop_port: int = DROP_PORT) -> Compiled:
    """Load and compile a pipeline, or find the code made for the same bytes before."""
    known = find_compiled(digest_of(json_bytes, drop_port))
    return known if known is not None else compile_program(load_program(json_bytes, drop_port))


class Device(ReplicationEngine, Parameters, ProfileControl, CellControl):
    """A device; all errors are subclasses of `softswitch.errors.SoftswitchError`.

    `cpu_port`: the port of packet-ins and packet-outs. `queues`: priority queues a port; a
    priority outside them drops the packet, as on bmv2. `clock` gives the time in microseconds, on
    the same clock as `now_us` of `process`, to writes; without it they take the time of the latest
    packet or call of `age`. What leaves ingress or egress for `drop_port` is dropped. `backend`:
    ``auto`` (native code for what it can be made for, else Python), ``python`` or ``native``;
    None: what the environment says, else ``auto``.
    """

    def __init__(
        self,
        device_id: int = 0,
        cpu_port: int | None = None,
        queues: int = 1,
        clock: Callable[[], int] | None = None,
        drop_port: int = DROP_PORT,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        self.backend = chosen(backend)
        self.device_id = device_id
        self.cpu_port = cpu_port
        self.queues = queues
        self.clock = clock
        self.drop_port = drop_port
        self.on_idle: Callable[[tuple[TableEntry, ...]], None] | None = None
        """Called by `age` with the entries that it found idle, if there are any."""
        self._digest_sink: Callable[[Digest], None] | None = None
        self._live_ports: frozenset[int] | None = None
        self._pipeline: _Pipeline | None = None

    # --- pipeline -------------------------------------------------------------------------------

    @property
    def _now(self) -> _Pipeline:
        if self._pipeline is None:
            raise FailedPrecondition(f"device {self.device_id} has no pipeline; push one first")
        return self._pipeline

    @property
    def _state(self) -> State:
        return self._now.state

    @property
    def _tables(self) -> TableControl:
        return self._now.tables

    @property
    def program(self) -> Program:
        """The running program (names, widths, kinds); FailedPrecondition before a load."""
        return self._now.compiled.program

    @property
    def source(self) -> str:
        """The Python source that the running program was made into."""
        return self._now.compiled.source

    @property
    def native(self) -> NativeState | None:
        """The state that native code runs on; None if Python runs the program, or there is none."""
        return None if self._pipeline is None else self._pipeline.native

    @property
    def has_pipeline(self) -> bool:
        return self._pipeline is not None

    @property
    def on_digest(self) -> Callable[[Digest], None] | None:
        """Called with every digest message, in the thread that runs `process`."""
        return self._digest_sink

    @on_digest.setter
    def on_digest(self, sink: Callable[[Digest], None] | None) -> None:
        self._digest_sink = sink
        if self._pipeline is not None:
            self._pipeline.state.on_digest = sink

    def check_pipeline(self, json_bytes: bytes) -> Program:
        """Compile without installing; errors as `load_pipeline`."""
        program = compile_json(json_bytes, self.drop_port).program
        compile_native(program, self.backend)
        return program

    def load_pipeline(self, json_bytes: bytes) -> None:
        """Install a pipeline. Clears tables, counters and registers; keeps groups and sessions.

        InvalidPipeline, UnsupportedConstruct; NativeUnavailable if `backend` is ``native`` and
        there is no native code for it. On an error the old pipeline keeps running.
        """
        compiled = compile_json(json_bytes, self.drop_port)
        library = compile_native(compiled.program, self.backend)
        shared = compiled.program, self._groups, self._sessions, self.queues
        native = None if library is None else NativeState(library, *shared)
        state = State(*shared) if native is None else native
        state.on_digest = self._digest_sink
        state.time = self.clock
        for profile in state.profiles.values():
            profile.set_live_ports(self._live_ports)
        self._pipeline = _Pipeline(
            compiled,
            state,
            TableControl(state),
            native,
            native.process if native else partial(run, compiled.ingress, state),
            native.enqueue if native else partial(enqueue, compiled.queued_ingress, state),
        )

    def stage_pipeline(self, json_bytes: bytes) -> "Device":
        """A device with another pipeline, to be written to and then put in force by `succeed`.

        It has this one's groups and sessions. Errors as `load_pipeline`.
        """
        # native cells serve Python too, but not the other way round
        stays = self._pipeline is not None and self._pipeline.native is None
        backend = "python" if stays else self.backend
        staged = Device(
            self.device_id, self.cpu_port, self.queues, self.clock, self.drop_port, backend
        )
        staged._groups, staged._sessions = self._groups, self._sessions
        staged._live_ports = self._live_ports
        staged.load_pipeline(json_bytes)
        return staged

    def succeed(self, staged: "Device") -> None:
        """Run the pipeline of `staged` from the next packet on.

        Counters, meters, registers and the ages of entries go on where both programs declare them
        alike; of packets in between none is lost or counted twice.
        """
        state = staged._now.state
        state.on_digest = self._digest_sink
        if self._pipeline is not None:
            succeed(state, self._pipeline.state)
        if staged.native is not None:
            staged.native.adopt()
        self._pipeline = staged._pipeline

    # --- tables ---------------------------------------------------------------------------------

    def insert_entry(self, entry: TableEntry) -> None:
        """AlreadyExists, ResourceExhausted, InvalidArgument, NotFound, PermissionDenied."""
        self._now.tables.insert(entry)

    def modify_entry(self, entry: TableEntry) -> None:
        """NotFound, InvalidArgument, PermissionDenied; the direct counter goes on.

        The time since the last hit goes on too, unless `idle_timeout_ns` changes.
        """
        self._now.tables.modify(entry)

    def delete_entry(self, table: str, matches: tuple[Match, ...], priority: int = 0) -> None:
        """NotFound, InvalidArgument, PermissionDenied."""
        self._now.tables.delete(table, matches, priority)

    def read_entries(self, table: str) -> tuple[TableEntry, ...]:
        """All entries, const ones too, oldest first; not the default entry."""
        return self._now.tables.entries(table)

    def read_entry(self, table: str, matches: tuple[Match, ...], priority: int = 0) -> TableEntry:
        """One entry; NotFound."""
        return self._now.tables.entry(table, matches, priority)

    def default_action(self, table: str) -> ActionCall | None:
        """The default in force (None: the table has none, a miss does nothing)."""
        return self._now.tables.default(table)

    def set_default_action(self, table: str, action: ActionCall) -> None:
        """PermissionDenied where the program declares the default const."""
        self._now.tables.set_default(table, action)

    def reset_default_action(self, table: str) -> None:
        """Back to the default that the program declares."""
        self._now.tables.reset_default(table)

    def direct_counter(
        self, table: str, matches: tuple[Match, ...] | None, priority: int = 0
    ) -> CounterData:
        """Direct counter of an entry; `matches` None addresses the default entry."""
        return self._now.tables.counter(table, matches, priority)

    def set_direct_counter(
        self, table: str, matches: tuple[Match, ...] | None, priority: int, value: CounterData
    ) -> None:
        """Set the direct counter of an entry; `matches` None addresses the default entry."""
        self._now.tables.set_counter(table, matches, priority, value)

    def direct_meter(
        self, table: str, matches: tuple[Match, ...], priority: int = 0
    ) -> MeterConfig | None:
        """Configuration of an entry's direct meter; None: not configured, always green."""
        return self._now.tables.meter(table, matches, priority)

    def set_direct_meter(
        self, table: str, matches: tuple[Match, ...], priority: int, config: MeterConfig | None
    ) -> None:
        """Configure an entry's direct meter."""
        self._now.tables.set_meter(table, matches, priority, config)

    def set_live_ports(self, ports: frozenset[int] | None) -> None:
        """Tell which ports work; None, as at the start: all do.

        Members of groups and one-shot sets that watch another port are not chosen until it lives
        again. A write: see the rule for threads.
        """
        self._live_ports = ports
        if self._pipeline is not None:
            for profile in self._pipeline.state.profiles.values():
                profile.set_live_ports(ports)

    # --- idle timeouts --------------------------------------------------------------------------

    def idle_us(self, table: str, matches: tuple[Match, ...], priority: int = 0) -> int:
        """Microseconds since a packet last hit an entry (since its insertion if none did).

        InvalidArgument if the table does not support timeouts; NotFound.
        """
        return self._now.tables.idle_us(table, matches, priority)

    def age(self, now_us: int) -> tuple[TableEntry, ...]:
        """Entries without a hit for their `idle_timeout_ns`; also given to `on_idle`.

        The entries stay in force. Each is reported again after every further timeout without a
        hit. Call it regularly (bmv2 sweeps once a second), from the thread of `process`.
        """
        if self._pipeline is None:
            return ()
        self._pipeline.state.now_us = max(self._pipeline.state.now_us, now_us)
        found = self._pipeline.tables.expired(now_us)
        if found and self.on_idle is not None:
            self.on_idle(found)
        return found

    # --- packets --------------------------------------------------------------------------------

    def process(self, port: int, data: bytes, now_us: int = 0) -> list[tuple[int, bytes]]:
        """Run one packet; [(port, bytes), ...] in order of leaving; [] without a pipeline.

        A packet-out is ``process(cpu_port, header + payload)``; what comes out with port ==
        cpu_port is a packet-in, its controller header first. `now_us` is the switch's clock for
        timestamps and meters. A packet that is resubmitted, recirculated or cloned in egress more
        than `queued.MAX_PASSES` times in all is dropped.
        """
        pipeline = self._pipeline
        return [] if pipeline is None else pipeline.process(port, data, now_us)

    def process_batch(self, port: int, frames: Sequence[bytes], now_us: int = 0) -> Packets:
        """Run packets of one port in their order, each as `process` does."""
        pipeline = self._pipeline
        if pipeline is not None and pipeline.native is not None:
            return pipeline.native.batch(port, list(frames), now_us)
        process = self.process
        return [out for frame in frames for out in process(port, frame, now_us)]

    def enqueue(self, port: int, data: bytes, now_us: int = 0) -> list[QueuedPacket]:
        """The first of two steps: run ingress and replication; the copies, to be queued in order.

        Each tells its `port` and `priority`, the queue that it belongs to (0 up to `queues` - 1,
        the largest is served first). A program that sets no priority puts all into queue 0. Run
        them on with `dequeue`, in any order; do not mix with packets of `process` under way.
        """
        pipeline = self._pipeline
        return [] if pipeline is None else pipeline.enqueue(port, data, now_us)

    @staticmethod
    def dequeue(
        packet: QueuedPacket, now_us: int = 0, enq_qdepth: int = 0, deq_qdepth: int = 0
    ) -> Departure:
        """The second step: run egress; the frame that leaves, and copies that are to be queued.

        `now_us`: when the packet leaves its queue; `enq_qdepth`, `deq_qdepth`: packets in its
        queue (without itself) as it came and as it leaves, for the program's queue metadata. It
        runs on the pipeline that it was enqueued under.
        """
        run_on = packet.state.dequeue if isinstance(packet.state, NativeState) else dequeue
        return run_on(packet, now_us, enq_qdepth, deq_qdepth)
