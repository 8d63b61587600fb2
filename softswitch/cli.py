"""``softswitch``: one switch as a process, in the place of bmv2's simple_switch_grpc."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from softswitch import logs
from softswitch.errors import UsageError
from softswitch.options import parse
from softswitch.ports.errors import PortError, PortNameError

DONE, BAD_USAGE, MISSING = 0, 2, 3
"""Exit codes: done, bad usage or input, the machine lacks something."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a switch until SIGTERM or SIGINT; return the exit code."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        logs.set_up(options)
    except UsageError as error:
        return _fail(error, BAD_USAGE)
    # gRPC reads this when it is imported; what it would print in its words, ServerError says.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from softswitch import process
    from softswitch.p4runtime import ServerError

    try:
        process.run(options)
    except (UsageError, PortNameError) as error:
        return _fail(error, BAD_USAGE)
    except (PortError, ServerError) as error:
        return _fail(error, MISSING)
    return DONE


def _fail(error: Exception, code: int) -> int:
    print(f"softswitch: {error}", file=sys.stderr)
    return code
