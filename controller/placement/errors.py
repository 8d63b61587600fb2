"""What the placement library refuses, as one exception type."""

__all__ = ["PlacementError"]


class PlacementError(ValueError):
    """Bad input to the placement library: one line that names the place and the remedy."""
