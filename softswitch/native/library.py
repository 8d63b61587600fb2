"""The compiled pipeline as Python sees it.

Functions are called with the interpreter lock held (`ctypes.PyDLL`): a write of the control plane
and a packet never overlap, which is what makes each write atomic to packets.
"""

import ctypes
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softswitch.native.build import discard, shared_object
from softswitch.native.errors import NotNativeError
from softswitch.native.source import NativeSource

Packets = list[tuple[int, bytes]]
Process = Callable[[int, bytes, int], Packets]
Batch = Callable[[int, list[bytes], int], Packets]
Carry = Callable[[int, int, int], Packets]

Held = tuple[int, int, int, int, int, object]
Enqueue = Callable[[int, bytes, int], list[Held]]
Dequeue = Callable[[object, int, int, int, int, int], tuple[list[Held], bytes | None]]

_PROCESS, _BATCH, _CARRY, _ENQUEUE, _DEQUEUE = range(5)
_P, _U32, _I64, _U64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64
_BYTES = ctypes.c_char_p


class Library:
    """One shared object; `Memory` makes switches of it."""

    def __init__(self, source: NativeSource) -> None:
        """NotNativeError if it cannot be compiled or loaded."""
        self.source = source
        for attempt in (1, 2):
            path = shared_object(source)
            try:
                self._dll = ctypes.PyDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
                if self._is(source.key):
                    break
            except OSError as error:
                if attempt == 2:
                    raise NotNativeError(f"{path} does not load: {error}") from None
            # damaged, or not what its name says: made anew once
            discard(Path(path))
        else:
            raise NotNativeError(f"{path} is not what was compiled")
        bind = self._bind
        self.new = bind("sw_new", _P, _U64)
        self.free = bind("sw_free", None, _P)
        self.register = bind("sw_register", _P, _P, _U32)
        self.packets = bind("sw_packets", _P, _P, _U32)
        self.bytes = bind("sw_bytes", _P, _P, _U32)
        self.adopt = bind("sw_adopt", None, _P, _U32, _U32, _P)
        self.now = bind("sw_now", _P, _P)
        self.queues = bind("sw_queues", None, _P, _U32)
        self.put = bind("sw_put", None, _P, _U32, _BYTES, _BYTES, _U32, _I64, _BYTES, _U32, _P)
        self.remove = bind("sw_remove", None, _P, _U32, _BYTES, _BYTES)
        self.row_put = bind(
            "sw_row_put", None, _P, _U32, _U32, _U32, _BYTES, _I64, _BYTES, _U32, _P
        )
        self.row_remove = bind("sw_row_remove", None, _P, _U32, _U32)
        self.default = bind("sw_default", None, _P, _U32, _I64, _BYTES, _U32, _P)
        self.value_set = bind("sw_value_set", None, _P, _U32, _BYTES, _U32, _U32)
        self.copies = bind("sw_copies", None, _P, _U32, _U32, _BYTES, _I64, _U32)
        self.events = bind("sw_events", ctypes.POINTER(_U64), _P, ctypes.POINTER(_U64))
        self.event_count = bind("sw_event_count", _P, _P)
        self.events_done = bind("sw_events_done", None, _P)
        self.method = bind("sw_method", ctypes.py_object, _P, _U32)

    def _is(self, key: str) -> bool:
        try:
            found = (ctypes.c_char * 65).in_dll(self._dll, "sw_key")
        except ValueError:
            return False
        return bool(found.value == key.encode())

    def _bind(self, name: str, result: object, *arguments: object) -> Callable[..., object]:
        function = getattr(self._dll, name)
        function.restype = result
        function.argtypes = arguments
        found: Callable[..., object] = function
        return found


class Memory:
    """The memory of one switch; given back when nothing refers to it any more."""

    def __init__(self, library: Library) -> None:
        self.library = library
        address = library.new(int.from_bytes(os.urandom(8)))
        assert isinstance(address, int)
        self.address = address
        self._end = weakref.finalize(self, library.free, address)
        self._end.atexit = False

    def words(self, address: object, count: int) -> ctypes.Array[ctypes.c_uint64]:
        """`count` 64-bit words at an address in this memory."""
        assert isinstance(address, int)
        return (_U64 * count).from_address(address)

    def _method(self, which: int) -> Callable[..., Any]:
        found = self.library.method(self.address, which)
        assert callable(found)
        return found

    @property
    def process(self) -> Process:
        """process(port, data, now): one packet."""
        return self._method(_PROCESS)

    @property
    def batch(self) -> Batch:
        """batch(port, frames, now): many packets."""
        return self._method(_BATCH)

    @property
    def carry(self) -> Carry:
        """carry(ring, links, now): frames of a ring, to sockets; addresses of the structures."""
        return self._method(_CARRY)

    @property
    def enqueue(self) -> Enqueue:
        """enqueue(port, data, now): copies as (port, priority, length, came_by, passes, handle)."""
        return self._method(_ENQUEUE)

    @property
    def dequeue(self) -> Dequeue:
        """dequeue(handle, passes, now, since, enq_qdepth, deq_qdepth): more copies, the frame."""
        return self._method(_DEQUEUE)

    def take_events(self) -> list[tuple[int, int, list[int]]]:
        """(kind, number, words) of every event since the last call."""
        count = ctypes.c_uint64()
        at = self.library.events(self.address, ctypes.byref(count))
        if not count.value:
            return []
        assert isinstance(at, ctypes._Pointer)
        words: list[int] = at[: count.value]
        self.library.events_done(self.address)
        found: list[tuple[int, int, list[int]]] = []
        start = 0
        while start < len(words):
            kind, number, size = words[start : start + 3]
            found.append((kind, number, words[start + 3 : start + 3 + size]))
            start += 3 + size
        return found
