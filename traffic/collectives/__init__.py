"""AllReduce and its kin for programs: `Communicator`, and what its ranks need."""

from traffic.collectives.communicator import Communicator
from traffic.collectives.errors import (
    CollectiveError,
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
