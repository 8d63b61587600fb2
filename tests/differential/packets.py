"""Random packets that take a program's parser down its own paths.

A packet is made by walking the parser: a header is drawn field by field, and where a state selects
on a field, one of its cases is chosen and the field made to match. What cannot be steered that way
(metadata, computed lengths) is left to chance, or to the program's own `Fields` hook.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from softswitch import ir

MIN_FRAME = 14
"""Below the length of an Ethernet header, Linux interfaces refuse a frame."""

MAX_FRAME = 900
"""Above 1000 bytes are the sentinels."""

_SHORTEST_TAGGED = 20
"""The kernel wants two bytes behind the type that follows a tag."""

_VLAN = (b"\x81\x00", b"\x88\xa8")
_MAX_STATES = 12
_VARBIT_STEP = 32


def as_received(frame: bytes) -> bytes | None:
    """A frame as a raw socket of Linux sees it: without the outer VLAN tag; None: not at all."""
    if len(frame) < MIN_FRAME:
        return None
    if frame[12:14] not in _VLAN:
        return frame
    return frame[:12] + frame[16:] if len(frame) >= _SHORTEST_TAGGED else None


@dataclass(slots=True)
class Drawn:
    """One field that was drawn: its owner and name, value, width in bits."""

    header: str
    name: str
    value: int
    width: int


@dataclass(slots=True)
class Fields:
    """The drawn fields of one packet in order; `get` and `set` go by the first of that name."""

    drawn: list[Drawn] = field(default_factory=list)

    def find(self, header: str, name: str) -> Drawn | None:
        return next((d for d in self.drawn if (d.header, d.name) == (header, name)), None)

    def get(self, header: str, name: str) -> int | None:
        found = self.find(header, name)
        return None if found is None else found.value

    def set(self, header: str, name: str, value: int) -> None:
        found = self.find(header, name)
        if found is not None:
            found.value = value & ((1 << found.width) - 1)

    def bits(self) -> tuple[int, int]:
        """All fields joined, and their width."""
        value = width = 0
        for drawn in self.drawn:
            value = value << drawn.width | drawn.value
            width += drawn.width
        return value, width


Adjust = Callable[[Fields, random.Random], None]


class Domains:
    """Values that fields take, few enough that entries and packets meet; the same for both."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._known: dict[tuple[str, str], list[int]] = {}

    def draw(self, owner: str, name: str, width: int) -> int:
        """A value of a field: mostly one of a few, now and then any."""
        if width == 0:
            return 0
        rng, full = self._rng, (1 << width) - 1
        if rng.random() < 0.15:
            return rng.getrandbits(width)
        known = self._known.get((owner, name))
        if known is None:
            known = [0, 1, 2, 3, full, full >> 1, rng.getrandbits(width), rng.getrandbits(width)]
            self._known[owner, name] = known
        return rng.choice(known) & full


class PacketMaker:
    """Makes packets for one program; `anything` allows random bytes, which `adjust` cannot keep
    from what is excluded."""

    def __init__(
        self,
        program: ir.Program,
        rng: random.Random,
        domains: Domains,
        adjust: Adjust,
        anything: bool,
    ) -> None:
        self._program = program
        self._rng = rng
        self._domains = domains
        self._adjust = adjust
        self._anything = anything

    def make(self) -> bytes:
        """One frame of MIN_FRAME to MAX_FRAME bytes."""
        rng = self._rng
        if self._anything and rng.random() < 0.05:
            return rng.randbytes(rng.randint(MIN_FRAME, 80))
        walk = _Walk(self._program, rng, self._domains)
        walk.run()
        self._adjust(walk.fields, rng)
        data = walk.data() + rng.randbytes(rng.choice([0, 0, 1, 7, 20, 46]))
        if rng.random() < 0.1 and len(data) > MIN_FRAME:
            data = data[: rng.randint(MIN_FRAME, len(data))]
        data = data[:MAX_FRAME].ljust(MIN_FRAME, b"\0")
        return data if data[12:14] not in _VLAN else data[:12] + bytes(2) + data[14:]


class _Walk:
    """One way through the parser."""

    def __init__(self, program: ir.Program, rng: random.Random, domains: Domains) -> None:
        self.program = program
        self.rng = rng
        self.domains = domains
        self.fields = Fields()
        self._elements: dict[str, int] = {}
        self._last: dict[str, str] = {}
        self._forced: list[tuple[int, int, int]] = []

    def data(self) -> bytes:
        """The bytes so far, with what lookaheads were chosen to see."""
        value, width = self.fields.bits()
        for at, size, wanted in self._forced:
            if at + size <= width:
                shift = width - at - size
                value = value & ~(((1 << size) - 1) << shift) | wanted << shift
        spare = -width % 8
        return (value << spare).to_bytes((width + spare) // 8)

    def run(self) -> None:
        name = self.program.parser.init
        for _ in range(_MAX_STATES):
            if name is None:
                return
            state = self.program.parser.states[name]
            for op in state.ops:
                self._op(op)
            name = self._transition(state)

    def _op(self, op: ir.ParserOp) -> None:
        match op:
            case ir.Extract(header=header, varbit_bits=length):
                self._header(header, length is not None)
            case ir.ExtractNext(stack=stack, varbit_bits=length):
                declared = self.program.stacks[stack]
                at = self._elements.get(declared.index, 0)
                self._elements[declared.index] = at + 1
                element = declared.elements[min(at, len(declared.elements) - 1)]
                self._last[stack] = element
                self._header(element, length is not None)
            case ir.Advance(bits=ir.Const(value=bits)):
                self.fields.drawn.append(Drawn("", "", self.rng.getrandbits(bits), bits))
            case _:
                pass

    def _header(self, header: str, varbit: bool) -> None:
        for decl in self.program.headers[header].type.fields:
            width = decl.width
            if decl.varbit:
                steps = decl.width // _VARBIT_STEP + 1
                width = _VARBIT_STEP * self.rng.randint(0, steps) if varbit else 0
            value = self.domains.draw(header, decl.name, width)
            self.fields.drawn.append(Drawn(header, decl.name, value, width))

    def _transition(self, state: ir.State) -> str | None:
        choice = self.rng.randint(0, len(state.cases))
        if choice == len(state.cases):
            return state.default
        case = state.cases[choice]
        if isinstance(case, ir.Case):
            parts = zip(state.key, state.widths, case.values, case.masks, strict=True)
            for key, width, value, mask in parts:
                self._steer(key, width, value, mask)
        return case.next_state

    def _steer(self, key: ir.Expr, width: int, value: int, mask: int) -> None:
        wanted = value | self.rng.getrandbits(width) & ~mask
        match key:
            case ir.FieldRef(header=header, field=name):
                self._set_last(header, name, wanted)
            case ir.LastFieldRef(stack=stack, field=name):
                self._set_last(self._last.get(stack, ""), name, wanted)
            case ir.Lookahead(offset=offset):
                self._forced.append((self.fields.bits()[1] + offset, width, wanted))
            case _:
                pass

    def _set_last(self, header: str, name: str, value: int) -> None:
        for drawn in reversed(self.fields.drawn):
            if (drawn.header, drawn.name) == (header, name):
                drawn.value = value & ((1 << drawn.width) - 1)
                return
