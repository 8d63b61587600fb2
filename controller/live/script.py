"""What a destination was told, for the one that takes its place when it starts anew."""

from __future__ import annotations

from collections.abc import Sequence

from traffic.commands import (
    Answer,
    AttachDestination,
    Command,
    Exclude,
    Finish,
    Follow,
    Move,
    Start,
)
from traffic.destination_config import DestinationConfig
from traffic.epochs import Term

_TERMS = 8
"""Latest terms that are kept: chunks of earlier ones were complete before these began."""


class Script:
    """Of one job. What is complete is in the destination's journal, and not here."""

    def __init__(self, config: DestinationConfig) -> None:
        self._config = config
        self._terms: list[Follow] = []
        self._end: Finish | None = None

    def note(self, command: Command, answer: Answer) -> None:
        """The destination has carried out a command, with this answer."""
        match command, answer:
            case Move(job, epoch, first, sources, asked, absent), _:
                if absent is None:
                    absent = self._terms[-1].term.absent if self._terms else self._config.absent
                self._follow(Follow(job, Term(epoch, first, absent=absent), sources, asked))
            case Exclude(job=job, sources=sources, asked=asked), Term() as term:
                self._follow(Follow(job, term, sources, asked))
            case Finish(), _:
                self._end = command

    def replay(self) -> Sequence[Command]:
        """What puts another destination where this one was, and lets it go on."""
        end = () if self._end is None else (self._end,)
        attach = AttachDestination(self._config, resume=True, terms=tuple(self._terms))
        return (attach, *end, Start(self._config.job))

    def _follow(self, follow: Follow) -> None:
        # Steps may be told again.
        if not self._terms or self._terms[-1].term.epoch != follow.term.epoch:
            self._terms = [*self._terms, follow][-_TERMS:]
