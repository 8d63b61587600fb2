"""Placing k aggregation switches in a tree so that the most congested link is least congested.

Pure algorithms: no I/O, no clock, no randomness. Indices are switches, index 0 is the root.
"""

from controller.placement.errors import PlacementError
from controller.placement.loads import Loads, Placement, loads
from controller.placement.tree import Tree

__all__ = ["Loads", "Placement", "PlacementError", "Tree", "loads"]
