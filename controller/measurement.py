"""Predicted against measured: what every link should have carried, and what its counter says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from controller.planning import Plan


@dataclass(frozen=True, slots=True)
class LinkCount:
    """Messages that one switch sent to its parent, read from its counters."""

    first: int = 0
    """First transmissions, comparable with the model."""
    resent: int = 0
    """Retransmissions."""

    def __sub__(self, earlier: LinkCount) -> LinkCount:
        return LinkCount(self.first - earlier.first, self.resent - earlier.resent)

    def __add__(self, other: LinkCount) -> LinkCount:
        return LinkCount(self.first + other.first, self.resent + other.resent)


@dataclass(frozen=True, slots=True)
class MeasuredLink:
    """A link's messages a chunk: predicted, first transmissions measured, retransmissions."""

    switch: str
    parent: str | None
    predicted: int
    measured: Fraction
    retransmitted: Fraction
    rate: Fraction


@dataclass(frozen=True, slots=True)
class Measurement:
    """Every link of a run.

    Congestions are messages a chunk over the rate, the largest over all links (paper, eq. 1),
    summed over the jobs that ran together.
    """

    links: tuple[MeasuredLink, ...]

    @property
    def predicted(self) -> Fraction:
        """psi as the model has it."""
        return max(link.predicted / link.rate for link in self.links)

    @property
    def measured(self) -> Fraction:
        """psi as the counters have it."""
        return max(link.measured / link.rate for link in self.links)

    @property
    def differing(self) -> tuple[MeasuredLink, ...]:
        """The links whose counters do not say what the model predicted."""
        return tuple(link for link in self.links if link.measured != link.predicted)


def add_measurements(parts: Sequence[Measurement]) -> Measurement:
    """One for jobs that were measured apart, on the same links."""
    return Measurement(
        tuple(
            replace(
                by_job[0],
                predicted=sum(link.predicted for link in by_job),
                measured=sum((link.measured for link in by_job), Fraction(0)),
                retransmitted=sum((link.retransmitted for link in by_job), Fraction(0)),
            )
            for by_job in zip(*(part.links for part in parts), strict=True)
        )
    )


def measure(plans: Sequence[Plan], counts: Mapping[str, LinkCount], chunks: int) -> Measurement:
    """Compare the plans of all jobs that ran together with what the switches counted.

    `counts` maps every overlay switch to its messages over the whole run; each job had `chunks`.
    """
    links = []
    for by_job in zip(*(plan.links for plan in plans), strict=True):
        link = by_job[0]
        count = counts[link.switch]
        links.append(
            MeasuredLink(
                switch=link.switch,
                parent=link.parent,
                predicted=sum(job.messages for job in by_job),
                measured=Fraction(count.first, chunks),
                retransmitted=Fraction(count.resent, chunks),
                rate=link.rate,
            )
        )
    return Measurement(tuple(links))
