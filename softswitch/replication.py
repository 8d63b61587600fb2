"""Multicast groups and clone sessions of one device; a push of a pipeline keeps them."""

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakMethod

from softswitch.entries import CloneSession, Replica
from softswitch.errors import AlreadyExists, InvalidArgument, NotFound

V = TypeVar("V")
Copies = tuple[tuple[int, int], ...]
Session = tuple[Copies, int]

_MAX_SESSION = 32767
_MAX_GROUP = 65535


class Watched(dict[int, V]):
    """A dict that tells its watchers of every number that is set, or removed (None)."""

    def __init__(self) -> None:
        super().__init__()
        self._watchers: list[WeakMethod[Callable[[int, V | None], None]]] = []

    def watch(self, watcher: Callable[[int, V | None], None]) -> None:
        """Tell a method of every change, as long as its object lives."""
        self._watchers.append(WeakMethod(watcher))

    def __setitem__(self, number: int, value: V) -> None:
        super().__setitem__(number, value)
        self._tell(number, value)

    def forget(self, number: int) -> bool:
        """Remove a number; False if it was not there."""
        if self.pop(number, None) is None:
            return False
        self._tell(number, None)
        return True

    def _tell(self, number: int, value: V | None) -> None:
        gone = False
        for weak in self._watchers:
            watcher = weak()
            gone |= watcher is None
            if watcher is not None:
                watcher(number, value)
        if gone:
            self._watchers = [weak for weak in self._watchers if weak() is not None]


class ReplicationEngine:
    """The packet replication engine (P4Runtime, section 9.5); base of `Device`."""

    def __init__(self) -> None:
        self._groups: Watched[Copies] = Watched()
        self._sessions: Watched[Session] = Watched()

    def create_multicast_group(self, group: int, replicas: tuple[Replica, ...]) -> None:
        """AlreadyExists; InvalidArgument for group 0 or a (port, instance) that comes twice."""
        if group in self._groups:
            raise AlreadyExists(f"multicast group {group} is there already; modify it")
        self._groups[group] = _copies(f"multicast group {group}", group, _MAX_GROUP, replicas)

    def modify_multicast_group(self, group: int, replicas: tuple[Replica, ...]) -> None:
        """NotFound; InvalidArgument as `create_multicast_group`."""
        copies = _copies(f"multicast group {group}", group, _MAX_GROUP, replicas)
        if group not in self._groups:
            raise NotFound(f"there is no multicast group {group}")
        self._groups[group] = copies

    def delete_multicast_group(self, group: int) -> None:
        """NotFound."""
        if not self._groups.forget(group):
            raise NotFound(f"there is no multicast group {group}")

    def multicast_groups(self) -> dict[int, tuple[Replica, ...]]:
        """All groups by id."""
        return {g: tuple(Replica(*c) for c in copies) for g, copies in self._groups.items()}

    def create_clone_session(self, session: CloneSession) -> None:
        """AlreadyExists; InvalidArgument."""
        if session.session in self._sessions:
            raise AlreadyExists(f"clone session {session.session} is there already; modify it")
        self._put_session(session)

    def modify_clone_session(self, session: CloneSession) -> None:
        """NotFound; InvalidArgument."""
        if session.session not in self._sessions:
            raise NotFound(f"there is no clone session {session.session}")
        self._put_session(session)

    def _put_session(self, session: CloneSession) -> None:
        what = f"clone session {session.session}"
        copies = _copies(what, session.session, _MAX_SESSION, session.replicas)
        if session.max_length < 0:
            raise InvalidArgument(f"{what}: packet length {session.max_length} is negative")
        self._sessions[session.session] = (copies, session.max_length)

    def delete_clone_session(self, session: int) -> None:
        """NotFound."""
        if not self._sessions.forget(session):
            raise NotFound(f"there is no clone session {session}")

    def clone_sessions(self) -> dict[int, CloneSession]:
        """All sessions by id."""
        return {
            number: CloneSession(number, tuple(Replica(*c) for c in copies), length)
            for number, (copies, length) in self._sessions.items()
        }


def _copies(
    what: str, number: int, largest: int, replicas: tuple[Replica, ...]
) -> tuple[tuple[int, int], ...]:
    if not 0 < number <= largest:
        raise InvalidArgument(f"{what}: ids are 1..{largest}")
    copies = tuple((r.port, r.instance) for r in replicas)
    for port, instance in copies:
        if not 0 <= port <= 511 or not 0 <= instance <= 65535:
            raise InvalidArgument(f"{what}: port {port} or instance {instance} is out of range")
    if len(set(copies)) != len(copies):
        raise InvalidArgument(f"{what}: a (port, instance) comes twice")
    return copies
