"""The adaptive retransmission timeout of RFC 6298, in integer nanoseconds.

Two things differ from TCP. An answer to a chunk waits for the slowest of many workers, so its time
has a longer tail than a round trip: the timeout is never less than twice the smoothed time. And one
lost message makes every worker of the job send again, so that unambiguous answers can be rare:
keeping a doubled timeout until the next of them (Karn) would let it grow without need. An ambiguous
answer still tells an upper bound, the time since the first transmission. Until the next sample the
timeout is at least twice the least such bound: long enough to time a path that was slower than
expected, and never longer than the losses call for.
"""


class RetransmissionTimer:
    """Estimates how long an answer takes: smoothed time, its variation, and the timeout of both."""

    __slots__ = (
        "_bound",
        "_initial",
        "_max",
        "_max_doublings",
        "_min",
        "_samples",
        "_srtt",
        "_var",
    )

    def __init__(self, initial: int, minimum: int, maximum: int, max_doublings: int) -> None:
        self._initial = initial
        self._min = minimum
        self._max = maximum
        self._max_doublings = max_doublings
        self._srtt = 0
        self._var = 0
        self._samples = 0
        self._bound: int | None = None

    @property
    def samples(self) -> int:
        """How many answers have been timed."""
        return self._samples

    @property
    def smoothed(self) -> int | None:
        """SRTT of RFC 6298, None before the first sample."""
        return self._srtt if self._samples else None

    def sample(self, elapsed: int) -> None:
        """An answer to something sent once only (Karn's rule is the caller's) took `elapsed`."""
        if self._samples == 0:
            self._srtt = elapsed
            self._var = elapsed // 2
        else:
            self._var += (abs(self._srtt - elapsed) - self._var) // 4
            self._srtt += (elapsed - self._srtt) // 8
        self._samples += 1
        self._bound = None

    def bound(self, elapsed: int) -> None:
        """An answer to something sent more than once came `elapsed` after the first time."""
        if self._bound is None or elapsed < self._bound:
            self._bound = elapsed

    def timeout(self, doublings: int = 0) -> int:
        """Time to wait for an answer to a transmission that `doublings` others went before."""
        base = self._srtt + max(self._srtt, 4 * self._var) if self._samples else self._initial
        if self._bound is not None:
            base = max(base, 2 * self._bound)
        return min(self._max, max(self._min, base) << min(doublings, self._max_doublings))
