"""The native back end: the intermediate form -> C -> a shared object that holds the packet path.

`compile_native` says whether a program runs natively: a back end is chosen for each pipeline, and
what C is not made for runs in Python.
"""

import logging
import os
import sys
import sysconfig
from threading import Lock

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

_known: dict[str, Library | NotNativeError] = {}
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

    NativeUnavailable if `backend` is ``native`` and there is none. Compiling takes a second or
    two, once for each program and machine.
    """
    if backend == "python":
        return None
    with _lock:
        found = _known.get(program.digest)
        if found is None:
            found = _compile(program)
            _known[program.digest] = found
            if isinstance(found, NotNativeError) and backend == "auto":
                LOG.info("Program %s runs in Python: %s", program.digest[:12], found.what)
    if isinstance(found, Library):
        return found
    if backend == "native":
        raise NativeUnavailable(
            f"back end 'native' cannot run this program: {found.what}; choose 'auto' or 'python'"
        )
    return None


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
