"""The adaptive retransmission timeout of RFC 6298, in integer nanoseconds.

An answer to a chunk waits for the slowest of many workers, and for any message of theirs that was
lost. That changes two things against TCP:

* An answer that was held up by another worker's loss says nothing of the path. Taken as a sample it
  would raise this worker's timeout, which holds the others up, which raises theirs: each waits for
  all, and all timeouts climb to the maximum. So a sample above twice the least of the last
  `HORIZON` is left out, and the timeout is at least twice the smoothed time to make up for it.
* One lost message makes many workers send again, so that unambiguous answers (Karn) may be rare.
  An ambiguous answer still bounds the time: by how long ago the first transmission was. While the
  last `HORIZON` answers are all ambiguous, the timeout is a quarter above the least such bound:
  enough to time a path slower than expected, without the doubling that Karn's rule would keep.
"""

from collections import deque

HORIZON = 64


class RoundTripTimer:
    """RFC 6298 as it stands: smoothed time, its variation, and the timeout of both.

    For what one end alone determines, such as how long a request takes to help.
    """

    __slots__ = ("_initial", "_max", "_max_doublings", "_min", "_srtt", "_timed", "_var")

    def __init__(self, initial: int, minimum: int, maximum: int, max_doublings: int) -> None:
        self._initial = initial
        self._min = minimum
        self._max = maximum
        self._max_doublings = max_doublings
        self._srtt = 0
        self._var = 0
        self._timed = False

    def took(self, elapsed: int) -> None:
        """A sample."""
        if self._timed:
            self._var += (abs(self._srtt - elapsed) - self._var) // 4
            self._srtt += (elapsed - self._srtt) // 8
        else:
            self._srtt = elapsed
            self._var = elapsed // 2
            self._timed = True

    def timeout(self, doublings: int = 0) -> int:
        """Time to wait after `doublings` earlier attempts."""
        base = self._srtt + 4 * self._var if self._timed else self._initial
        return min(self._max, max(self._min, base) << min(doublings, self._max_doublings))


class RetransmissionTimer:
    """Estimates how long an answer takes: smoothed time, its variation, and the timeout of both."""

    __slots__ = (
        "_base",
        "_count",
        "_exact",
        "_initial",
        "_least",
        "_max",
        "_max_doublings",
        "_min",
        "_srtt",
        "_timed",
        "_var",
    )

    def __init__(self, initial: int, minimum: int, maximum: int, max_doublings: int) -> None:
        self._initial = initial
        self._base = initial
        self._min = minimum
        self._max = maximum
        self._max_doublings = max_doublings
        self._srtt = 0
        self._var = 0
        self._timed = False
        self._count = 0
        # Of the last HORIZON answers those that took less than all after them: (its number, how
        # long it took at most). The first took least of all.
        self._least: deque[tuple[int, int]] = deque()
        # The number of the last one of which that is not only a bound.
        self._exact = 0

    @property
    def smoothed(self) -> int | None:
        """SRTT of RFC 6298, None before the first sample."""
        return self._srtt if self._timed else None

    def answered(self, elapsed: int, *, unambiguous: bool) -> None:
        """An answer came `elapsed` after the first transmission, which was the only one or not."""
        self._count = count = self._count + 1
        recent = self._least
        while recent and recent[-1][1] >= elapsed:
            recent.pop()
        recent.append((count, elapsed))
        if recent[0][0] <= count - HORIZON:
            recent.popleft()
        least = recent[0][1]
        if unambiguous:
            self._exact = count
            if elapsed <= 2 * least:
                self._take(elapsed)
        self._base = self._srtt + max(self._srtt, 4 * self._var) if self._timed else self._initial
        if not self._exact or count - self._exact >= HORIZON:
            self._base = max(self._base, least + least // 4)

    def timeout(self, doublings: int = 0) -> int:
        """Time to wait for an answer to a transmission that `doublings` others went before."""
        base = max(self._min, self._base)
        return min(self._max, base << min(doublings, self._max_doublings))

    def _take(self, elapsed: int) -> None:
        if self._timed:
            self._var += (abs(self._srtt - elapsed) - self._var) // 4
            self._srtt += (elapsed - self._srtt) // 8
        else:
            self._srtt = elapsed
            self._var = elapsed // 2
            self._timed = True
