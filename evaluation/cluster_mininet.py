"""Training jobs over Mininet, see `evaluation.training_jobs`: switch and host processes, real time.

The bottleneck is the switches' own queues: each lets go so many packets a second. bmv2 and
softswitch count that for each priority queue alone, so a port with eight queues in use carries more
than one with a single queue; docs/evaluation.md says what follows.
"""

from __future__ import annotations

from controller.mininet_testbed import MininetTestbed
from controller.peers import Watch
from controller.queues import QueueSettings
from evaluation.training_jobs import JobResult, TrainingJobs, TrainingSettings, message_time
from p4src.constants import QUEUES
from traffic.commands import AttachServer, AttachTrainer, Command, Report, Start
from traffic.training import Schedule, TrainingReport

__all__ = ["train_over_mininet"]

_SECOND_NS = 1_000_000_000
_DEADLINE_S = 120.0
_DEPTH = 1 << 20


def train_over_mininet(
    target: str, schedules: tuple[Schedule, ...], settings: TrainingSettings
) -> tuple[JobResult, ...]:
    """Bring a network of a target up, train, take it down; the results of each job.

    `settings.loss` is not used here. Raises what `MininetTestbed` raises.
    """
    jobs = TrainingJobs(schedules, settings)
    queues = QueueSettings(
        queues=QUEUES,
        rate=_SECOND_NS // message_time(settings.payload_rate),
        depth=settings.depth or _DEPTH,
    )
    destination = jobs.network.destination.name
    trainers = list(jobs.trainers())
    with MininetTestbed(jobs.network, target, queues=queues) as testbed:
        testbed.switches.hold(jobs.programs())
        attach: list[tuple[str, Command]] = [
            (destination, AttachServer(told)) for told in jobs.servers()
        ]
        attach += [(host.name, AttachTrainer(told)) for host, told in trainers]
        testbed.tell(attach)
        testbed.tell([(host.name, Start(told.worker.job)) for host, told in trainers])
        for plan in jobs.plans:
            names = [host.name for host, told in trainers if told.worker.job == plan.job]
            testbed.running.hosts.wait(
                names,
                destination,
                [plan.job],
                _DEADLINE_S,
                Watch(lambda _: testbed.running.check()),
            )
        reports = testbed.tell([(host.name, Report(told.worker.job)) for host, told in trainers])
    return jobs.results([report for report in reports if isinstance(report, TrainingReport)])
