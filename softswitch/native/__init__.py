"""The native back end: the intermediate form -> C -> a shared object that holds the packet path.

`compile_native` says whether a program runs natively: a back end is chosen for each pipeline, and
what C is not made for runs in Python.
"""

import logging
import os
import sys
import sysconfig
import time
from threading import Lock, Thread

from softswitch import ir
from softswitch.errors import InvalidArgument
from softswitch.native.build import compiler
from softswitch.native.errors import NativeUnavailable, NotNativeError
from softswitch.native.library import Library
from softswitch.native.module import generate
from softswitch.native.state import NativeState

LOG = logging.getLogger("softswitch")

BACKENDS = ("auto", "python", "native")
"""`auto`: native where it can be had, else Python; the log says why not."""

VARIABLE = "SOFTSWITCH_BACKEND"
"""The environment variable that stands in for a back end that is not named."""

PATIENCE_S = 5.0
"""How long a push waits for the compiler: controllers give up on a push after 10 s."""

_known: dict[str, "_Making"] = {}
_lock = Lock()


def chosen(backend: str | None) -> str:
    """The back end of that name, or of the environment; InvalidArgument if there is none."""
    name = backend or os.environ.get(VARIABLE) or "auto"
    if name not in BACKENDS:
        where = "" if backend else f" (from {VARIABLE})"
        raise InvalidArgument(f"no back end is named '{name}'{where}: {', '.join(BACKENDS)}")
    return name


def why_not() -> str | None:
    """Why this machine runs no program natively; None if it may."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this Python is not CPython with an interpreter lock"
    if sys.byteorder != "little" or sys.maxsize < 1 << 62:
        return "this machine is not little-endian with 64 bits"
    if compiler() is None:
        return "no C compiler is installed (looked for $CC, cc, gcc, clang)"
    return None


def compile_native(program: ir.Program, backend: str) -> Library | None:
    """Native code for a program, None where Python runs it.

    Compiling takes a second or two, once for each program and machine. ``auto`` waits `PATIENCE_S`
    for it at most: on a machine that is busier Python runs the program, and the code is there for
    the next push. NativeUnavailable if `backend` is ``native`` and there is none.
    """
    if backend == "python":
        return None
    making = _making_of(program)
    making.thread.join(None if backend == "native" else making.patience())
    found = making.found
    if isinstance(found, Library):
        return found
    reason = f"it is not compiled within {PATIENCE_S:g} s" if found is None else found.what
    if backend == "native":
        raise NativeUnavailable(
            f"back end 'native' cannot run this program: {reason}; choose 'auto' or 'python'"
        )
    if not making.told:
        making.told = True
        LOG.info("Program %s runs in Python: %s", program.digest[:12], reason)
    return None


class _Making:
    """A program that is being compiled, or was."""

    def __init__(self, program: ir.Program) -> None:
        self.found: Library | NotNativeError | None = None
        self.told = False
        self._until = time.monotonic() + PATIENCE_S
        self.thread = Thread(target=self._run, args=(program,), daemon=True)
        self.thread.start()

    def patience(self) -> float:
        """Seconds that a push still waits."""
        return max(self._until - time.monotonic(), 0.0)

    def _run(self, program: ir.Program) -> None:
        self.found = _compile(program)


def _making_of(program: ir.Program) -> _Making:
    with _lock:
        making = _known.get(program.digest)
        if making is None:
            making = _known[program.digest] = _Making(program)
        return making


def _compile(program: ir.Program) -> Library | NotNativeError:
    try:
        reason = why_not()
        if reason is not None:
            raise NotNativeError(reason)
        return Library(generate(program))
    except NotNativeError as error:
        return error


__all__ = [
    "BACKENDS",
    "VARIABLE",
    "Library",
    "NativeState",
    "NativeUnavailable",
    "chosen",
    "compile_native",
    "why_not",
]
