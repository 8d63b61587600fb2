"""The errors that end a command, each with its exit code.

Every package has errors of its own; the command line maps all of them onto these four, so that a
script can tell a wrong sum from a typing mistake from a machine that lacks something.
"""

from collections.abc import Mapping


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


class SilentHostsError(RunFailedError):
    """Hosts have not answered for so long; what they were told they do once they go on.

    `hosts` has them by name, with their processes where these are known.
    """

    def __init__(self, hosts: Mapping[str, int | None], seconds: float) -> None:
        super().__init__(silence_text(hosts, seconds))
        self.hosts = dict(hosts)
        self.seconds = seconds


def silence_text(hosts: Mapping[str, int | None], seconds: float) -> str:
    """That hosts do not answer, and what to do about it."""
    names = ", ".join(hosts)
    pids = " ".join(str(pid) for pid in hosts.values() if pid is not None)
    what, it = ("host", "it was") if len(hosts) == 1 else ("hosts", "they were")
    have = "has" if len(hosts) == 1 else "have"
    remedy = f"if {it} stopped, `kill -CONT {pids}` lets them go on" if pids else "look at the host"
    if len(hosts) == 1:
        remedy = remedy.replace("lets them", "lets it")
    return f"{what} {names} {have} not answered for {seconds:g} s: {remedy}"
