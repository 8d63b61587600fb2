"""What can go wrong with a collective call; each error is one line that names the thing."""

from traffic.errors import TrafficError


class CollectiveError(TrafficError):
    """A collective call that cannot be made or did not end; afterwards see the text."""


class UnsuitableArrayError(CollectiveError):
    """An array that no collective takes: its type, or a value that is no number.

    `index` is the place of the value, if it is one.
    """

    def __init__(self, message: str, index: tuple[int, ...] | None = None) -> None:
        super().__init__(message)
        self.index = index


class SumOverflowError(CollectiveError):
    """A sum, or a part of it on the way, does not fit its type."""


class MissingRankError(CollectiveError):
    """Some ranks have not made the call that the others wait in; `ranks` names them."""

    def __init__(self, message: str, ranks: tuple[int, ...]) -> None:
        super().__init__(message)
        self.ranks = ranks


class MismatchError(CollectiveError):
    """Ranks make different calls where all must make the same."""
