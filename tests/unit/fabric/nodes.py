"""Simple nodes to test the fabric with."""

from collections.abc import Callable, Iterable


class Wire:
    """A switch with two ports that passes everything on."""

    def process(self, port: int, data: bytes, /) -> list[tuple[int, bytes]]:
        return [(3 - port, data)]


class Sink:
    """A host that remembers what it hears, and finishes after so many frames."""

    def __init__(self, expected: int = 0) -> None:
        self.heard: list[tuple[int, bytes]] = []
        self.expected = expected

    @property
    def next_deadline(self) -> int | None:
        return None

    @property
    def finished(self) -> bool:
        return len(self.heard) >= self.expected

    def start(self, now: int) -> list[bytes]:
        return []

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        self.heard.append((now, frame))
        return []

    def tick(self, now: int) -> list[bytes]:
        return []

    @property
    def times(self) -> list[int]:
        return [time for time, _ in self.heard]

    @property
    def frames(self) -> list[bytes]:
        return [frame for _, frame in self.heard]


class Sender(Sink):
    """A host that sends given frames at its start."""

    def __init__(self, frames: Iterable[bytes]) -> None:
        super().__init__()
        self._frames = list(frames)

    def start(self, now: int) -> list[bytes]:
        return self._frames


class Ticker(Sink):
    """A host that sends a frame at each of the given times, and remembers when it was woken."""

    def __init__(self, times: Iterable[int], frame: bytes = b"tick") -> None:
        super().__init__()
        self.due = sorted(times)
        self.frame = frame
        self.woken: list[int] = []
        self.on_receive: Callable[[int], None] | None = None

    @property
    def next_deadline(self) -> int | None:
        return self.due[0] if self.due else None

    @property
    def finished(self) -> bool:
        return not self.due

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        super().receive(frame, now)
        if self.on_receive is not None:
            self.on_receive(now)
        return []

    def tick(self, now: int) -> list[bytes]:
        self.woken.append(now)
        while self.due and self.due[0] <= now:
            self.due.pop(0)
        return [self.frame]


class Echo(Sink):
    """A host that sends everything back, so many times."""

    def __init__(self, times: int, first: Iterable[bytes] = ()) -> None:
        super().__init__()
        self.left = times
        self._first = list(first)

    @property
    def finished(self) -> bool:
        return self.left == 0

    def start(self, now: int) -> list[bytes]:
        return self._first

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        if self.left == 0:
            return []
        self.left -= 1
        return [frame]
