"""The intermediate form -> Python, compiled once per program of the process."""

from collections.abc import Callable
from dataclasses import dataclass
from random import getrandbits, randint
from threading import Lock
from types import CodeType

from softswitch import ir
from softswitch.codegen.module import generate
from softswitch.errors import UnsupportedConstruct
from softswitch.hashes import crc16, crc32, crc_ccitt, identity, xor16, xor32

Packets = list[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program ready to run: its source, and the function that takes a packet in."""

    program: ir.Program
    source: str
    ingress: Callable[..., None]


_compiled: dict[str, Compiled] = {}
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
        return known


def find_compiled(digest: str) -> Compiled | None:
    """Code made before for the program with this digest."""
    with _lock:
        return _compiled.get(digest)


def _compile(program: ir.Program) -> Compiled:
    source = generate(program)
    try:
        code: CodeType = compile(source, f"<p4 {program.digest[:12]}>", "exec")
    except (SyntaxError, RecursionError, MemoryError) as error:
        where = f"pipelines of program {program.digest[:12]}"
        raise UnsupportedConstruct(f"control flow too deep for Python ({error})", where) from error
    space: dict[str, object] = {
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
    ingress = space["ingress"]
    assert callable(ingress)
    return Compiled(program, source, ingress)
