"""The intermediate form -> Python, compiled once per program of the process."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import getrandbits, randint
from threading import Lock
from types import CodeType
from typing import Any
from weakref import WeakValueDictionary

from softswitch import ir
from softswitch.codegen.module import generate
from softswitch.errors import UnsupportedConstruct
from softswitch.hashes import crc16, crc32, crc_ccitt, identity, xor16, xor32
from softswitch.queued import holder

Packets = list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Compiled:
    """A program ready to run: its source, and the function that takes a packet in.

    `ingress` runs a packet to its end. `queued_ingress` stops where copies are queued, and gives a
    `softswitch.queued.QueuedPacket` for each.
    """

    program: ir.Program
    source: str
    ingress: Callable[..., None]
    queued_ingress: Callable[..., None]


# What some device runs is found again. The few latest are kept besides, for a program is compiled
# to be verified before it is run; all of them would be as many as clients care to push.
_compiled: WeakValueDictionary[str, Compiled] = WeakValueDictionary()
_latest: deque[Compiled] = deque(maxlen=4)
_lock = Lock()


def compile_program(program: ir.Program) -> Compiled:
    """Code for a program, shared by every switch of the process that runs it.

    UnsupportedConstruct if Python cannot hold the generated code.
    """
    with _lock:
        known = _compiled.get(program.digest)
        if known is None:
            known = _compile(program)
            _compiled[program.digest] = known
            _latest.append(known)
        return known


def find_compiled(digest: str) -> Compiled | None:
    """Code made before for the program with this digest."""
    with _lock:
        return _compiled.get(digest)


def _compile(program: ir.Program) -> Compiled:
    try:
        generated = generate(program)
        code = compile(generated.source, f"<p4 {program.digest[:12]}>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        where = f"pipelines of program {program.digest[:12]}"
        raise UnsupportedConstruct(f"control flow too deep for Python ({error})", where) from error
    direct, split = _functions(code), _functions(code)
    direct["send"] = direct["egress"]
    split["send"] = holder(split["egress"], generated.priority_at)
    return Compiled(program, generated.source, direct["ingress"], split["ingress"])


def _functions(code: CodeType) -> dict[str, Callable[..., None]]:
    """Run a module's source: its functions, and those that they call."""
    space: dict[str, Any] = {
        "from_bytes": int.from_bytes,
        "randint": randint,
        "getrandbits": getrandbits,
        "crc16": crc16,
        "crc32": crc32,
        "crc_ccitt": crc_ccitt,
        "identity": identity,
        "xor16": xor16,
        "xor32": xor32,
    }
    exec(code, space)
    return space
