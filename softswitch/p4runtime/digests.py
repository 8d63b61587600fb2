"""Digests on their way to the controller (P4Runtime, section 9.8). Pure: time in, lists out.

A sample is a tuple of values. Samples gather in a list until it is full, or until the first of
them has waited long enough. With an acknowledgement timeout, a sample that is in the list, or in
one that has been sent and not acknowledged, is not taken again.
"""

from __future__ import annotations

from dataclasses import dataclass

Sample = tuple[int, ...]

MAX_SAMPLES = 4096
"""Samples of a list, if the controller sets no limit or a larger one."""

MAX_KNOWN = 65536
"""Samples that wait for an acknowledgement."""


@dataclass(frozen=True, slots=True)
class DigestConfig:
    """How samples are gathered: times in nanoseconds; a `max_list_size` of 0 sets no limit."""

    max_timeout_ns: int
    max_list_size: int
    ack_timeout_ns: int


@dataclass(frozen=True, slots=True)
class SampleList:
    """One list to send. Ids rise from 1 and never come again."""

    list_id: int
    samples: tuple[Sample, ...]


class DigestBuffer:
    """The samples of one digest that are not yet sent, or not yet acknowledged."""

    def __init__(self, config: DigestConfig) -> None:
        self.config = config
        self._last_id = 0
        self._waiting: list[Sample] = []
        self._started_ns = 0
        self._unacknowledged: dict[int, tuple[int, tuple[Sample, ...]]] = {}
        self._known: set[Sample] = set()

    def learn(self, sample: Sample, now_ns: int) -> SampleList | None:
        """Take a sample; return the list that it completes, if it does.

        A list is complete with MAX_SAMPLES, whatever its limit; of samples that are not
        acknowledged the oldest lists are forgotten beyond MAX_KNOWN.
        """
        self._expire(now_ns)
        while len(self._known) >= MAX_KNOWN and self._unacknowledged:
            self.acknowledge(next(iter(self._unacknowledged)))
        if self.config.ack_timeout_ns:
            if sample in self._known:
                return None
            self._known.add(sample)
        if not self._waiting:
            self._started_ns = now_ns
        self._waiting.append(sample)
        full = len(self._waiting) >= min(self.config.max_list_size or MAX_SAMPLES, MAX_SAMPLES)
        return self._send(now_ns) if full or not self.config.max_timeout_ns else None

    def due_ns(self) -> int | None:
        """Return when `tick` has something to send, or None."""
        return self._started_ns + self.config.max_timeout_ns if self._waiting else None

    def tick(self, now_ns: int) -> SampleList | None:
        """Return the list that has waited long enough, if there is one."""
        due = self.due_ns()
        return self._send(now_ns) if due is not None and now_ns >= due else None

    def acknowledge(self, list_id: int) -> None:
        """The controller has a list: its samples are new when they come again."""
        _, samples = self._unacknowledged.pop(list_id, (0, ()))
        self._known.difference_update(samples)

    def reconfigure(self, config: DigestConfig) -> None:
        """Gather by another configuration from now on; what waits stays."""
        self.config = config
        if not config.ack_timeout_ns:
            self._unacknowledged.clear()
            self._known.clear()

    def _send(self, now_ns: int) -> SampleList:
        self._last_id += 1
        samples = tuple(self._waiting)
        self._waiting.clear()
        if self.config.ack_timeout_ns:
            self._unacknowledged[self._last_id] = (now_ns, samples)
        return SampleList(self._last_id, samples)

    def _expire(self, now_ns: int) -> None:
        """Forget lists whose acknowledgement has not come in time."""
        while self._unacknowledged:
            # the oldest comes first
            list_id, (sent_ns, _) = next(iter(self._unacknowledged.items()))
            if now_ns - sent_ns < self.config.ack_timeout_ns:
                return
            self.acknowledge(list_id)
