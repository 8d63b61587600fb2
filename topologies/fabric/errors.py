"""What the simulated network refuses."""


class FabricError(Exception):
    """A network that cannot be built, or an order that it cannot follow; says what to change."""


class FrameTooLargeError(FabricError):
    """A host tried to send a frame above the MTU of its link."""
