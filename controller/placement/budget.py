"""The budget k, checked the same way by every algorithm."""

from controller.placement.errors import PlacementError

__all__ = ["checked_budget"]


def checked_budget(k: object) -> int:
    """k as an int >= 0. A budget above n is legal: the constraint is |U| <= k.

    Raises:
        PlacementError: k is negative or not an integer.
    """
    if isinstance(k, bool) or not hasattr(k, "__index__"):
        raise PlacementError(f"k is {k!r}: the budget of blue switches is an integer >= 0")
    budget = int(k.__index__())
    if budget < 0:
        raise PlacementError(f"k is {budget}: the budget of blue switches is an integer >= 0")
    return budget
