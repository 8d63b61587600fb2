"""One connection to the network that lives in a folder."""

from __future__ import annotations

import threading
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from controller.errors import BadInputError, RunFailedError, SilentHostsError
from controller.live import state as folder
from controller.live.requests import Refused, Request, Silent
from controller.live.state import NetworkDownError

ANSWER_DEADLINE_S = 120.0


class Lane:
    """A connection, on which one question after the other is asked."""

    def __init__(self, state: Path) -> None:
        """Connect; NetworkDownError where no network is up."""
        self._state = state
        try:
            connection: Connection[Any, Any] = Client(str(folder.socket_path(state)), "AF_UNIX")
        except (OSError, ValueError):
            raise NetworkDownError(why_down(state)) from None
        self._connection = connection
        self._lock = threading.Lock()
        self._asked = 0

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def ask(self, request: Request) -> Any:
        """The answer; raises as `NetworkClient` does."""
        with self._lock:
            self._asked += 1
            try:
                self._connection.send((self._asked, request))
                number, is_done, answer = self._receive()
                # Answers that nobody waited for to the end come first.
                while number != self._asked:
                    number, is_done, answer = self._receive()
            except (EOFError, OSError):
                raise NetworkDownError(why_down(self._state)) from None
        if isinstance(answer, Silent):
            raise SilentHostsError(answer.hosts, answer.seconds)
        if isinstance(answer, Refused):
            raise BadInputError(answer.text)
        if not is_done:
            raise RunFailedError(str(answer))
        return answer

    def _receive(self) -> tuple[int, bool, Any]:
        if not self._connection.poll(ANSWER_DEADLINE_S):
            raise RunFailedError(
                f"the network of {self._state} has not answered for {ANSWER_DEADLINE_S:g} s"
            )
        answer: tuple[int, bool, Any] = self._connection.recv()
        return answer


def why_down(state: Path) -> str:
    """Why there is no network in a folder, in words."""
    if folder.is_locked(state):
        return f"--state {state}: the network is not up yet, or just ending; try again"
    if folder.socket_path(state).exists():
        return f"--state {state}: the network that was here has been killed; start one anew"
    return f"--state {state}: no network is up here; start one, or name the folder of one"
