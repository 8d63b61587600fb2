"""A host is told what to do by values, and a command that does not fit changes nothing."""

import pytest

from tests.unit.traffic.hosts import EPOCH, JOB, destination, worker
from traffic.commands import (
    AttachDestination,
    AttachWorker,
    Command,
    Commands,
    Detach,
    Finish,
    Hold,
    Move,
    Progress,
    Release,
    Report,
    Start,
)
from traffic.errors import CommandError
from traffic.host import Host
from traffic.message import decode_frame
from traffic.reports import DestinationProgress, DestinationReport, WorkerProgress, WorkerReport
from traffic.stream import Stream

STREAM = Stream(seed=1, workers=1)


def a_host() -> tuple[Host, Commands]:
    host = Host("h", "02:00:00:01:00:00", "10.1.0.0")
    return host, Commands(host, clock=lambda: 77)


def attached() -> tuple[Host, Commands]:
    host, commands = a_host()
    config = worker(0, 1, chunks=0, window=2).config
    commands.carry_out(AttachWorker(config, STREAM), 0)
    to = destination(
        [frozenset({0})], 1, chunks=0, job=JOB + 1, window=2, stream=Stream(seed=1, workers=1)
    ).config
    commands.carry_out(AttachDestination(to), 0)
    return host, commands


def test_a_worker_is_held_moved_and_ended() -> None:
    _, commands = attached()
    answer, frames = commands.carry_out(Start(JOB), 0)
    assert (answer, [decode_frame(frame).chunk for frame in frames]) == (None, [0, 1])
    assert commands.carry_out(Hold(JOB), 1) == (2, [])
    assert commands.carry_out(Release(JOB), 1) == (None, [])
    assert commands.carry_out(Move(JOB, EPOCH + 2, 5), 1) == (None, [])
    progress, _ = commands.carry_out(Progress(JOB), 2)
    assert isinstance(progress, WorkerProgress)
    assert (progress.epoch, progress.moved_at, progress.next_chunk) == (EPOCH + 2, 5, 2)
    assert (progress.drained_below, progress.in_flight, progress.held) == (0, 2, False)
    assert commands.carry_out(Finish(JOB, 2), 3) == (None, [])
    report, _ = commands.carry_out(Report(JOB), 3)
    assert isinstance(report, WorkerReport)
    assert not report.done


def test_a_destination_is_moved_and_ended() -> None:
    _, commands = attached()
    job = JOB + 1
    sources = {1: frozenset({0}), 4: frozenset({0})}
    assert commands.carry_out(Move(job, EPOCH + 1, 3, sources), 0) == (None, [])
    assert commands.carry_out(Hold(job), 0) == (0, [])
    progress, _ = commands.carry_out(Progress(job), 1)
    assert isinstance(progress, DestinationProgress)
    assert (progress.epoch, progress.moved_at, progress.complete_below) == (EPOCH + 1, 3, 0)
    assert progress.waits_for == "chunk 0 of job 8 waits for w0"
    commands.carry_out(Finish(job, 0), 1)
    report, _ = commands.carry_out(Report(job), 1)
    assert isinstance(report, DestinationReport)
    assert (report.done, report.waits_for) == (True, "")


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (Start(9), "host h has no part in job 9"),
        (Move(JOB + 1, EPOCH + 1, 3), "must know its sources"),
        (Release(JOB + 1), "destination h cannot release"),
    ],
)
def test_what_does_not_fit_is_refused(command: Command, text: str) -> None:
    _, commands = attached()
    with pytest.raises(CommandError, match=text):
        commands.carry_out(command, 0)


def test_detaching_twice_is_no_error() -> None:
    host, commands = attached()
    for _ in range(2):
        assert commands.carry_out(Detach(JOB), 0) == (None, [])
    assert list(host.endpoints) == [JOB + 1]
