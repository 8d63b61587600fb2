"""Errors of the software switch.

One class per outcome that P4Runtime distinguishes (specification, section 8 "Error Reporting
Messages" and the canonical gRPC codes), so that the server maps a class to a status code and the
Python API raises the same thing. Every message names the object and says what would be right.
"""

# ruff: noqa: N818 - the classes carry the names of the gRPC status codes that they stand for


class SoftswitchError(Exception):
    """Base of everything the switch raises on bad input; one line of text."""


class AlreadyExists(SoftswitchError):
    """The entry, group or session to insert is there already; modify it instead."""


class NotFound(SoftswitchError):
    """No entry, group, session or object of that name is there."""


class InvalidArgument(SoftswitchError):
    """A value, key, priority or name does not fit what the program declares."""


class OutOfRange(InvalidArgument):
    """An index lies outside the array it addresses."""


class ResourceExhausted(SoftswitchError):
    """The table has reached the size that the program declares."""


class FailedPrecondition(SoftswitchError):
    """No pipeline is loaded yet, or an object is in use and cannot go."""


class PermissionDenied(SoftswitchError):
    """The program declares the object constant: const entries or a const default action."""


class Unimplemented(SoftswitchError):
    """The request is legal P4Runtime, but this switch does not serve it."""


class UsageError(SoftswitchError):
    """The command line is not one; the text says what to write."""


class InvalidPipeline(InvalidArgument):
    """The pushed JSON is not what p4c's bmv2 backend emits (malformed or dangling names)."""


class UnsupportedConstruct(SoftswitchError):
    """The program uses a construct that this switch does not run.

    `construct` names it as the JSON does (``hash algorithm 'xyz'``), `where` is its place in the
    program (``action 'MyIngress.mark'``).
    """

    def __init__(self, construct: str, where: str) -> None:
        super().__init__(f"unsupported {construct} in {where}; see softswitch/README.md")
        self.construct = construct
        self.where = where
