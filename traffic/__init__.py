"""What hosts do: workers, destinations, and collective calls over them.

For programs that sum arrays: `from traffic import Communicator`.
"""

from traffic.collectives import (
    CollectiveError,
    Communicator,
    MismatchError,
    MissingRankError,
    SumOverflowError,
    UnsuitableArrayError,
)

__all__ = [
    "CollectiveError",
    "Communicator",
    "MismatchError",
    "MissingRankError",
    "SumOverflowError",
    "UnsuitableArrayError",
]
