"""The programs that are compared, and what of them is kept out of the comparison, and why."""

import random
from dataclasses import dataclass

from finsy.proto import p4i
from google.protobuf import text_format

from controller.program import TableEntry
from p4src.artefacts import Artefacts
from softswitch import ir
from softswitch.loader import load_program
from tests.differential.packets import Adjust, Fields
from tests.packet.targets import PORTS, Sentinel
from tests.packet.targets_sentinels import PROGRAMS

_SENTINELS = 1000


@dataclass(frozen=True, slots=True)
class Excluded:
    """Something that packets are kept from, by name, with the reason."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Case:
    """A program under test; `adjust` keeps its packets to what can be compared.

    Not `ordered`: packets pass more than once, and bmv2 runs others in between.
    """

    name: str
    adjust: Adjust
    ordered: bool = True
    excluded: tuple[Excluded, ...] = ()

    @property
    def artefacts(self) -> Artefacts:
        path = PROGRAMS / self.name
        return Artefacts(
            json=path.with_suffix(".json").read_bytes(),
            p4info=path.with_suffix(".p4info.txtpb").read_text(encoding="utf-8"),
        )

    @property
    def program(self) -> ir.Program:
        return load_program(self.artefacts.json)

    @property
    def p4info(self) -> p4i.P4Info:
        return text_format.Parse(self.artefacts.p4info, p4i.P4Info())


def sentinel() -> Sentinel:
    """How a frame gets through any of the programs: by its length."""
    return Sentinel(no_entries(), lambda port, tag: tag.rjust(_SENTINELS + port, b"\0"))


def no_entries() -> tuple[TableEntry, ...]:
    return ()


def _as_drawn(fields: Fields, rng: random.Random) -> None:
    """Nothing to keep out."""


def _copies(fields: Fields, rng: random.Random) -> None:
    # no packet comes from the CPU port, whose packets have a header in front
    fields.drawn = [d for d in fields.drawn if d.header == "order"]
    fields.set("order", "code", rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14]))
    fields.set("order", "argument", rng.choice(PORTS))
    fields.set("order", "kept", rng.choice([0, 0, 1]))


def _parsing(fields: Fields, rng: random.Random) -> None:
    options = fields.find("ipv4", "options")
    if options is not None and rng.random() < 0.8:
        fields.set("ipv4", "version", 4)
        fields.set("ipv4", "ihl", 5 + options.width // 32)
        total = 0
        for drawn in fields.drawn:
            if drawn.header == "ipv4" and drawn.name == "checksum":
                drawn.value = 0
        value, width = _join(fields, "ipv4")
        for at in range(0, width, 16):
            total += value >> (width - 16 - at) & 0xFFFF
        if rng.random() < 0.7:
            fields.set("ipv4", "checksum", 0xFFFF - (total % 0xFFFF or (0xFFFF if total else 0)))


def _join(fields: Fields, header: str) -> tuple[int, int]:
    part = Fields([d for d in fields.drawn if d.header == header])
    return part.bits()


def _queues(fields: Fields, rng: random.Random) -> None:
    fields.set("order", "code", rng.choice([0, 1, 2, 3, 4]))
    fields.set("order", "priority", rng.choice([0, 0, 1, 8]))
    fields.set("order", "argument", rng.choice(PORTS))
    fields.set("order", "show", 0)


def _state(fields: Fields, rng: random.Random) -> None:
    code = rng.choice([1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14])
    fields.set("request", "code", code)
    if code in (1, 2, 3, 4):
        fields.set("request", "index", rng.randint(0, 3))


def _tables(fields: Fields, rng: random.Random) -> None:
    fields.set("probe", "which", rng.randint(1, 8))


def _unions(fields: Fields, rng: random.Random) -> None:
    items = sum(d.header.startswith("items") for d in fields.drawn)
    fields.set("order", "count", items + rng.choice([0, 0, 0, 1]))
    what = fields.get("order", "what")
    if what is not None:
        fields.set("order", "what", what & 0xF0 | rng.choice([0, 1, 2, 3, 4, 5, 8]))


def _arithmetic(fields: Fields, rng: random.Random) -> None:
    code = fields.get("operation", "code")
    if code is not None and rng.random() < 0.9:
        fields.set("operation", "code", code & 0xC0 | rng.randint(0, 13))


CASES = (
    Case("arithmetic", _arithmetic, True, ()),
    Case(
        "copies",
        _copies,
        False,
        (
            Excluded("order.code 11", "packet-ins are checked in tests/packet/p4runtime"),
            Excluded("order.code 12", "resubmits for ever on bmv2, here 256 times"),
            Excluded("order.argument outside the ports", "no interface shows what left there"),
        ),
    ),
    Case(
        "parsing",
        _parsing,
        True,
        (Excluded("value set tails", "simple_switch_grpc does not serve value sets"),),
    ),
    Case(
        "profiles",
        _as_drawn,
        True,
        (Excluded("idle notices", "bmv2 sweeps every second of its own clock"),),
    ),
    Case(
        "queues",
        _queues,
        False,
        (
            Excluded("order.show", "depths and times; tests/packet/test_queues.py checks them"),
            Excluded("order.argument outside the ports", "no interface shows what left there"),
        ),
    ),
    Case(
        "state",
        _state,
        True,
        (
            Excluded("request.code 6", "a value read into a signed field has its sign (README)"),
            Excluded("request.code 12", "random()"),
            Excluded("request.index past an array", "bmv2 does not check it in a release build"),
            Excluded("meter rates", "colours depend on each switch's clock"),
        ),
    ),
    Case("tables", _tables),
    Case(
        "unions",
        _unions,
        True,
        (Excluded("order.what 6 and 7", "bmv2 keeps what is shifted out of a stack of unions"),),
    ),
)
