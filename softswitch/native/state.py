"""State of one pipeline instance in native memory: a `softswitch.state.State` to all others."""

from softswitch import ir
from softswitch.native.library import Held, Library, Memory, Packets, Process
from softswitch.native.statements import DIGEST, FAILED, NO_QUEUE
from softswitch.native.tables import NativeCell, NativeCells, Writer, native_table
from softswitch.queued import Departure, QueuedPacket
from softswitch.replication import Copies, Session, Watched
from softswitch.state import Cells, State
from softswitch.tables import Cell, RuntimeTable, Stored


class _Defaults(list[Stored]):
    """Default entries, each written to native memory too."""

    def __init__(self, writers: list[Writer]) -> None:
        super().__init__()
        self._writers = writers

    def append(self, value: Stored) -> None:
        super().append(value)
        self[len(self) - 1] = value

    def __setitem__(self, number: object, value: object) -> None:
        assert isinstance(number, int)
        assert isinstance(value, tuple)
        writer = self._writers[number]
        memory = writer.memory
        memory.library.default(memory.address, number, *writer.action(value))
        super().__setitem__(number, value)


class _ValueSets(list[frozenset[int]]):
    """Members of parser value sets, written to native memory too."""

    def __init__(self, memory: Memory, program: ir.Program) -> None:
        super().__init__(frozenset() for _ in program.value_sets)
        self._memory = memory
        self._limbs = [max(1, -(-s.width // 64)) for s in program.value_sets.values()]

    def __setitem__(self, number: object, members: object) -> None:
        assert isinstance(number, int)
        assert isinstance(members, frozenset)
        limbs, memory = self._limbs[number], self._memory
        data = b"".join(member.to_bytes(8 * limbs, "little") for member in members)
        memory.library.value_set(memory.address, number, data, len(members), limbs)
        super().__setitem__(number, members)


class NativeState(State):
    """Tables, registers and counters of one program in native memory.

    `process` runs one packet, `batch` many from one port; both return [(port, bytes), ...].
    """

    def __init__(
        self,
        library: Library,
        program: ir.Program,
        groups: Watched[Copies],
        sessions: Watched[Session],
        queues: int,
    ) -> None:
        self.library = library
        self.memory = Memory(library)
        self._writers = [
            Writer(self.memory, program, table, number)
            for number, table in enumerate(program.tables.values())
        ]
        self._time_of_packet = self.memory.words(library.now(self.memory.address), 1)
        self._events = self.memory.words(library.event_count(self.memory.address), 1)
        super().__init__(program, groups, sessions, queues)
        library.queues(self.memory.address, queues)
        self._process, self._batch = self.memory.process, self.memory.batch
        self.carry = self.memory.carry
        self._enqueue, self._dequeue = self.memory.enqueue, self.memory.dequeue
        groups.watch(self.write_group)
        sessions.watch(self.write_session)
        for group, copies in groups.items():
            self.write_group(group, copies)
        for number, session in sessions.items():
            self.write_session(number, session)
        source = library.source
        self.has_events = bool(source.tells or source.failures or source.templates)

    # --- packets --------------------------------------------------------------------------------

    @property
    def process(self) -> Process:
        """What runs one packet: process(port, data, now_us)."""
        return self._process_and_tell if self.has_events else self._process

    def _process_and_tell(self, port: int, data: bytes, now_us: int) -> Packets:
        out = self._process(port, data, now_us)
        if self._events[0]:
            self.tell()
        return out

    def batch(self, port: int, frames: list[bytes], now_us: int) -> Packets:
        """Run frames of one port in their order."""
        out = self._batch(port, frames, now_us)
        if self._events[0]:
            self.tell()
        return out

    def enqueue(self, port: int, data: bytes, now_us: int) -> list[QueuedPacket]:
        """Run ingress and replication; the copies in the order in which they are queued."""
        held = self._enqueue(port, data, now_us)
        if self._events[0]:
            self.tell()
        return [self._queued(found, now_us) for found in held]

    def _queued(self, held: Held, now_us: int) -> QueuedPacket:
        port, priority, length, came_by, passes, handle = held
        return QueuedPacket(
            port, priority, length, now_us, came_by, passes, _no_function, (handle,), self
        )

    def dequeue(
        self, packet: QueuedPacket, now_us: int, enq_qdepth: int, deq_qdepth: int
    ) -> Departure:
        """Run the egress of a packet that has waited."""
        waited = now_us, packet.enqueued_us, enq_qdepth, deq_qdepth
        held, frame = self._dequeue(packet.arguments[0], packet.passes, *waited)
        if self._events[0]:
            self.tell()
        return Departure(frame, tuple(self._queued(found, now_us) for found in held))

    def tell(self) -> None:
        """Hand over the digests, and log what the packets had to say."""
        for kind, number, words in self.memory.take_events():
            if kind == DIGEST:
                self.digest(number, self._members(number, words))
            elif kind == FAILED:
                self.failed(*self.library.source.failures[number])
            elif kind == NO_QUEUE:
                self.no_queue(words[0])
            else:
                self.log(self.library.source.templates[number], _arguments(words))

    def _members(self, number: int, words: list[int]) -> tuple[int, ...]:
        listed = self.program.learn_lists[number]
        found: list[int] = []
        at = 0
        for member, width in zip(listed.members, listed.widths, strict=True):
            if isinstance(member, ir.FieldRef):
                count = max(1, -(-width // 64))
                found.append(_joined(words[at : at + count]))
                at += count
        return tuple(found)

    # --- state ----------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """Time of the latest packet or call of `Device.age`, in us."""
        return self._time_of_packet[0]

    @now_us.setter
    def now_us(self, value: int) -> None:
        self._time_of_packet[0] = value

    def make_table(self, number: int, table: ir.Table) -> RuntimeTable:
        return native_table(table, self._writers[number])

    def make_cells(self, kind: str, number: int, size: int) -> Cells:
        library = self.library
        if kind == "register":
            width = list(self.program.registers.values())[number].width
            address = library.register(self.memory.address, number)
            return NativeCells(self.memory, address, size, max(1, -(-width // 64)))
        find = library.packets if kind == "packets" else library.bytes
        return NativeCells(self.memory, find(self.memory.address, number), size, 1)

    def make_defaults(self) -> list[Stored]:
        found = _Defaults(self._writers)
        for table in self.program.tables.values():
            found.append(self.initial_default(table))
        return found

    def make_value_sets(self) -> list[frozenset[int]]:
        return _ValueSets(self.memory, self.program)

    def adopt(self) -> None:
        """Run on the cells of `registers`, `packets` and `bytes`, also those of another state."""
        for kind, held in enumerate((self.registers, self.packets, self.bytes)):
            for number, cells in enumerate(held):
                assert isinstance(cells, NativeCells)
                if cells.owner is not self.memory:
                    self.library.adopt(self.memory.address, kind, number, cells.address)

    def new_cell(self, table: ir.Table) -> Cell | None:
        plain = super().new_cell(table)
        return None if plain is None else NativeCell(len(plain))

    def write_group(self, group: int, copies: Copies | None) -> None:
        """Give a multicast group other copies; None: it is gone."""
        self._write_copies(0, group, copies, 0)

    def write_session(self, number: int, session: Session | None) -> None:
        """Give a clone session other copies; None: it is gone."""
        copies, length = (None, 0) if session is None else session
        self._write_copies(1, number, copies, length)

    def _write_copies(self, which: int, number: int, copies: Copies | None, length: int) -> None:
        data = b"".join(
            port.to_bytes(4, "little") + instance.to_bytes(4, "little")
            for port, instance in copies or ()
        )
        count = -1 if copies is None else len(copies)
        self.library.copies(self.memory.address, which, number, data, count, length)


def _no_function(*arguments: object) -> None:
    """Egress of a held packet is no function of Python; its state's `dequeue` runs it."""
    raise TypeError("a packet that native code holds is run on by `dequeue` only")


def _joined(words: list[int]) -> int:
    return sum(word << (64 * i) for i, word in enumerate(words))


def _arguments(words: list[int]) -> tuple[int, ...]:
    """Arguments of a log message: each as its limbs' number, whether it has a sign, its limbs."""
    found: list[int] = []
    at = 0
    while at < len(words):
        count, signed = words[at], words[at + 1]
        value = _joined(words[at + 2 : at + 2 + count])
        if signed and value >> (64 * count - 1):
            value -= 1 << (64 * count)
        found.append(value)
        at += 2 + count
    return tuple(found)
