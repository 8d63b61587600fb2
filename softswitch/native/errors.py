"""What the native back end cannot do."""

from softswitch.errors import Unimplemented


class NotNativeError(Exception):
    """A program that this back end does not compile; `what` names the construct and its place."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class NativeUnavailable(Unimplemented):
    """Native code was asked for by name, and cannot be had; the text says why."""
