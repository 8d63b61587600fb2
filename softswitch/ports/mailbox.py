"""How other threads, and signal handlers, have things done in the thread of a loop."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from softswitch.errors import SoftswitchError
from softswitch.ports.errors import PortError

ANSWER_S = 10.0
"""How long another thread waits for the loop to answer."""

Answer = TypeVar("Answer")


class Mailbox:
    """Things to do, and a descriptor that is readable while there are any."""

    def __init__(self) -> None:
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._asked: deque[Callable[[], None]] = deque()

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._wake

    def ask(self, what: Callable[[], None]) -> None:
        """Have `what` called by the loop; from any thread or signal handler."""
        self._asked.append(what)
        os.eventfd_write(self._wake, 1)

    @property
    def waiting(self) -> int:
        """How many things are to be done."""
        return len(self._asked)

    def call(self, what: Callable[[], Answer]) -> Answer:
        """Have `what` called by the loop, and return what it returns; from any other thread.

        Raises what it raises of the switch's errors, and PortError if the loop does not answer.
        """
        answer: Future[Answer] = Future()

        def run() -> None:
            try:
                answer.set_result(what())
            except SoftswitchError as error:
                answer.set_exception(error)

        self.ask(run)
        try:
            return answer.result(ANSWER_S)
        except TimeoutError as error:
            raise PortError(f"the switch did not answer in {ANSWER_S:g} s") from error

    def empty(self) -> None:
        """Do all there is to do; called by the loop."""
        os.eventfd_read(self._wake)
        while self._asked:
            self._asked.popleft()()

    def close(self) -> None:
        """Take nothing more."""
        os.close(self._wake)
