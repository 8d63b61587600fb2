"""A piece of generated source with what is known of its value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """Python source of an expression and bounds of its value (None: unbounded)."""

    text: str
    low: int | None
    high: int | None

    def within(self, low: int, high: int) -> bool:
        """True if the value surely lies in [low, high]."""
        return (
            self.low is not None and self.high is not None and self.low >= low and self.high <= high
        )

    @property
    def is_bit(self) -> bool:
        return self.within(0, 1)
