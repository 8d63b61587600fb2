"""The egress queues of all ports of a switch process, and how they are set.

Queues are off until something asks for them: more than one a port, or a rate or depth. With them
off a packet is run to its end as it comes, which is cheaper, and nothing ever waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from softswitch.errors import InvalidArgument
from softswitch.ports.errors import QueueSettingError
from softswitch.ports.naming import MAX_PORT
from softswitch.queued import QueuedPacket
from softswitch.queues import PortQueues, Served

LOG = logging.getLogger("softswitch")

What = Literal["rate", "depth"]
_COMMANDS: dict[str, What] = {"set_queue_rate": "rate", "set_queue_depth": "depth"}


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """A rate (packets/s, 0: unlimited) or a depth (packets) of queues.

    `port` None: of all ports; `priority` None: of all queues of the port.
    """

    what: What
    value: int
    port: int | None = None
    priority: int | None = None


def parse_setting(what: What, text: str) -> QueueSetting:
    """Read ``[PORT:[QUEUE:]]N``, as on the command line; raises QueueSettingError."""
    words = text.split(":")
    if len(words) > 3 or not all(map(_is_number, words)):
        raise QueueSettingError(f"{text!r} is no queue {what}: write [PORT:[QUEUE:]]N, as 2:7:1000")
    *place, value = map(int, words)
    return _setting(what, value, place)


def read_settings(path: Path) -> tuple[QueueSetting, ...]:
    """Read a file of ``set_queue_rate PPS [PORT [QUEUE]]`` and ``set_queue_depth N [...]``.

    One command a line, as simple_switch_CLI takes them; empty lines and those from a ``#`` on say
    nothing. Raises QueueSettingError, naming the file and every line that is wrong.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise QueueSettingError(f"cannot read the queues of {path}: {error}") from error
    settings: list[QueueSetting] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        command, *values = words
        try:
            if command not in _COMMANDS:
                raise QueueSettingError(f"{command!r} is none of {', '.join(_COMMANDS)}")
            if not 1 <= len(values) <= 3 or not all(map(_is_number, values)):
                raise QueueSettingError(f"{command} takes N [PORT [QUEUE]]")
            value, *place = map(int, values)
            settings.append(_setting(_COMMANDS[command], value, place))
        except QueueSettingError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise QueueSettingError(f"{path}: " + "; ".join(problems))
    return tuple(settings)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _setting(what: What, value: int, place: list[int]) -> QueueSetting:
    port, priority = [*place, None, None][:2]
    if port is not None and port > MAX_PORT:
        raise QueueSettingError(f"port {port} of a queue {what} is outside 0..{MAX_PORT}")
    return QueueSetting(what, value, port, priority)


def check_settings(settings: Iterable[QueueSetting], queues: int) -> None:
    """Raise QueueSettingError if one names a queue that a port does not have."""
    trial = PortQueues(queues)
    for setting in settings:
        try:
            _apply(trial, setting)
        except InvalidArgument as error:
            raise QueueSettingError(f"{error}; --priority-queues sets how many") from error


class QueueBank:
    """The queues of every port, by port number; made when a packet first goes there."""

    def __init__(self, queues: int, settings: Iterable[QueueSetting] = ()) -> None:
        self._count = queues
        self._settings: tuple[QueueSetting, ...] = ()
        self._ports: dict[int, PortQueues] = {}
        self._busy: dict[int, PortQueues] = {}
        self._told: dict[tuple[int, int], int] = {}
        self.configure(settings)

    @property
    def active(self) -> bool:
        """Whether packets are queued at all."""
        return self._count > 1 or bool(self._settings) or bool(self._busy)

    def configure(self, settings: Iterable[QueueSetting]) -> None:
        """Have all queues as `settings` say, later ones over earlier; others as by default.

        Raises QueueSettingError, and changes nothing then.
        """
        wanted = tuple(settings)
        check_settings(wanted, self._count)
        self._settings = wanted
        for number, queues in self._ports.items():
            self._set_up(number, queues)

    def add(self, setting: QueueSetting) -> None:
        """Change one thing; raises QueueSettingError."""
        kept = [s for s in self._settings if not _replaces(setting, s)]
        self.configure((*kept, setting))

    def of(self, port: int) -> PortQueues:
        """The queues of a port."""
        queues = self._ports.get(port)
        if queues is None:
            queues = self._ports[port] = PortQueues(self._count)
            self._set_up(port, queues)
        return queues

    def has_room(self, packet: QueuedPacket) -> bool:
        """Whether `offer` would take a packet."""
        queues = self.of(packet.port)
        return queues.waiting(packet.priority) < queues.depth(packet.priority)

    def offer(self, packet: QueuedPacket, now_ns: int) -> None:
        """Queue a packet, or drop and count it."""
        queues = self.of(packet.port)
        if queues.offer(packet, now_ns):
            self._busy[packet.port] = queues

    def take(self, now_ns: int) -> Served | None:
        """A packet of any port whose turn has come; within a port the highest priority's."""
        for port, queues in self._busy.items():
            served = queues.take(now_ns)
            if served is not None:
                if not queues:
                    del self._busy[port]
                return served
        return None

    def next_turn(self) -> int | None:
        """When a packet may leave next, in nanoseconds; None if none waits."""
        turns = [turn for queues in self._busy.values() if (turn := queues.next_turn()) is not None]
        return min(turns, default=None)

    def remove(self, port: int) -> None:
        """Drop what waits at a port that goes."""
        self._busy.pop(port, None)
        queues = self._ports.pop(port, None)
        if queues is not None:
            queues.clear()
            for priority in range(self._count):
                self._told.pop((port, priority), None)

    def tell_losses(self, name: Callable[[int], str]) -> None:
        """Log what full queues dropped since the last call; `name` tells of a port."""
        for port, queues in self._ports.items():
            for priority in range(self._count):
                count = queues.counters(priority).dropped
                news = count - self._told.get((port, priority), 0)
                if news:
                    self._told[port, priority] = count
                    LOG.warning(
                        "Port %d%s: dropped %d packets that found queue %d full (%d so far): it "
                        "holds %d packets and serves %s",
                        port,
                        name(port),
                        news,
                        priority,
                        count,
                        queues.depth(priority),
                        f"{queues.rate(priority)}/s" if queues.rate(priority) else "at any rate",
                    )

    def _set_up(self, number: int, queues: PortQueues) -> None:
        queues.reset()
        for setting in self._settings:
            if setting.port is None or setting.port == number:
                _apply(queues, setting)


def _replaces(new: QueueSetting, old: QueueSetting) -> bool:
    """Whether nothing is left of an old setting under a new one."""
    return (
        new.what == old.what
        and new.port in (None, old.port)
        and new.priority in (None, old.priority)
    )


def _apply(queues: PortQueues, setting: QueueSetting) -> None:
    if setting.what == "rate":
        queues.set_rate(setting.value, setting.priority)
    else:
        queues.set_depth(setting.value, setting.priority)
