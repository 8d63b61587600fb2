"""What can go wrong between the controller and a switch.

Every text is one line that names the switch, says what was tried, and what to do about it.
"""

from __future__ import annotations

from dataclasses import dataclass

from controller.program import Update


class SwitchError(Exception):
    """Base of every error of this package; `switch` names the switch, or is empty."""

    def __init__(self, switch: str, text: str) -> None:
        super().__init__(f"{switch}: {text}" if switch else text)
        self.switch = switch


class SchemaError(SwitchError):
    """A name or a value that the P4 program does not have; nothing was sent."""


class SwitchUnreachableError(SwitchError):
    """No answer from the switch: nothing listens there, or the connection broke."""


class DeadlineExceededError(SwitchError):
    """The switch is there but did not answer in time."""


class NotPrimaryError(SwitchError):
    """Another controller has the right to write to the switch; `other` is its election id, or 0."""

    def __init__(self, switch: str, text: str, other: int = 0) -> None:
        super().__init__(switch, text)
        self.other = other


class PipelineMissingError(SwitchError):
    """The switch has no P4 program yet; push one first."""


class PipelineRefusedError(SwitchError):
    """The switch does not take the P4 program."""


class RequestRefusedError(SwitchError):
    """The switch refuses a request that is not a write of entries; `code` names the gRPC status."""

    def __init__(self, switch: str, text: str, code: str) -> None:
        super().__init__(switch, text)
        self.code = code


@dataclass(frozen=True, slots=True)
class Refusal:
    """One update that a switch refused: the gRPC code by name, and the switch's own words."""

    update: Update
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.update}: {self.code} {self.text}".rstrip()


class EntryRefusedError(SwitchError):
    """A switch refused some updates of a batch; the others of that batch were carried out.

    `refusals` holds all of them, in the order they were written; the text shows the first.
    """

    def __init__(self, switch: str, refusals: tuple[Refusal, ...]) -> None:
        more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
        super().__init__(switch, f"refused {refusals[0]}{more}")
        self.refusals = refusals
