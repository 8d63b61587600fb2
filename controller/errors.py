"""The errors that end a command, each with its exit code.

Every package has errors of its own; the command line maps all of them onto these four, so that a
script can tell a wrong sum from a typing mistake from a machine that lacks something.
"""


class BluetreeError(Exception):
    """Base: one line that names the thing and the remedy."""

    exit_code = 4


class CheckFailedError(BluetreeError):
    """The run ended, and its own check says no: a wrong sum, or measured is not predicted."""

    exit_code = 1


class BadInputError(BluetreeError):
    """A file, an option or a combination of options that cannot be used."""

    exit_code = 2


class EnvironmentLacksError(BluetreeError):
    """The machine lacks something that the command needs: root, a program, a package."""

    exit_code = 3


class RunFailedError(BluetreeError):
    """A switch, a controller or a worker failed."""

    exit_code = 4
