"""A process that ends with its parent, for as long as nothing else tells it that it is alone."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def end_with(parent: int) -> None:
    """From now on raise SystemExit when the process of that id, the parent, is gone."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it went before the kernel was told
        sys.exit(1)


def outlive_parent() -> None:
    """Be told of the parent's end by other means: a connection that ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
