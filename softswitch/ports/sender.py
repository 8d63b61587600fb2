"""Frames to an interface, many in one system call (sendmmsg).

Python has no binding of it; the structures are those of <sys/socket.h> on Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Sequence

BATCH = 64
"""Frames in one system call."""

BUFFER = 8 * 1024 * 1024
"""Bytes that may wait behind a slow link: more than its queue holds, so that the queue decides."""

_SO_SNDBUFFORCE = 32


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_char_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.c_void_p),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Message(ctypes.Structure):
    _fields_ = (("header", _Header), ("sent", ctypes.c_uint))


_libc = ctypes.CDLL(None, use_errno=True)
_sendmmsg = _libc.sendmmsg
_sendmmsg.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int)
_sendmmsg.restype = ctypes.c_int


class Sender:
    """The sending half of a port; counts since it was made.

    `oversize`: frames above the interface's MTU. `refused`: frames that the interface did not
    take: it was down, or its queue stayed full.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFER)
        self._socket = sock
        self._vectors = (_Vector * BATCH)()
        self._each = list(self._vectors)
        self._messages = (_Message * BATCH)()
        self._at = [ctypes.addressof(message) for message in self._messages]
        for message, vector in zip(self._messages, self._vectors, strict=True):
            message.header.vectors = ctypes.addressof(vector)
            message.header.vector_count = 1
        self.oversize = 0
        self.refused = 0

    def send(self, frames: Sequence[bytes]) -> None:
        """Send frames in their order; those that cannot be sent are counted."""
        for first in range(0, len(frames), BATCH):
            self._send(frames[first : first + BATCH])

    def _send(self, frames: Sequence[bytes]) -> None:
        for vector, frame in zip(self._each, frames, strict=False):
            vector.base = frame
            vector.length = len(frame)
        at, count = 0, len(frames)
        while at < count:
            sent = _sendmmsg(self._socket.fileno(), self._at[at], count - at, socket.MSG_DONTWAIT)
            if sent > 0:
                at += sent
            else:
                at += self._failed(ctypes.get_errno(), count - at)

    def _failed(self, code: int, left: int) -> int:
        """Count the frames that a failed call stands for, and return how many they are.

        A full queue drops, as a link does: to wait for one port would hold up all the others.
        """
        if code == errno.EINTR:
            return 0
        if code == errno.EMSGSIZE:
            self.oversize += 1
            return 1
        if code in (errno.EAGAIN, errno.ENOBUFS, errno.EINVAL):  # the last: no Ethernet header
            self.refused += 1
            return 1
        if code in (errno.ENETDOWN, errno.ENXIO, errno.ENODEV):
            self.refused += left
            return left
        raise OSError(code, os.strerror(code))
