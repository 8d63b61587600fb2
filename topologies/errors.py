"""What the topologies package refuses, as one exception type."""

from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["TopologyError", "did_you_mean"]

_MOST_COMPARED = 512


class TopologyError(ValueError):
    """A topology or workload that cannot be used, with every problem found in it.

    Attributes:
        source: the specification or the file that was read.
        problems: one line each, starting with its place inside the source.
    """

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = f"{len(self.problems)} problems: " if len(self.problems) > 1 else ""
        super().__init__(f"{source}: {count}{'; '.join(self.problems)}")


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """', did you mean "x"?' for the closest of the known words, or nothing."""
    # Comparing is slow, and a large file can be wrong in as many places as it has names.
    if len(known) > _MOST_COMPARED:
        return ""
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f', did you mean "{close[0]}"?' if close else ""
