"""A testbed's status and counters as Prometheus metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from controller.service import bluetree_pb2 as api


def exposition(status: api.Status, counters: api.Counters) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(_Collector(status, counters))
    return generate_latest(registry)


class _Collector:
    def __init__(self, status: api.Status, counters: api.Counters) -> None:
        self._status = status
        self._counters = counters

    def collect(self) -> Iterator[Metric]:
        """All metrics of one moment."""
        yield from self._switches()
        yield from self._jobs()
        yield from self._links()

    def _switches(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("bluetree_switch_up", "1: it answers.", labels=["switch"])
        for switch in self._status.switches:
            up.add_metric([switch.name], float(switch.state == "up"))
        yield up
        packets = CounterMetricFamily(
            "bluetree_packets", "Packets by what became of them.", labels=["switch", "outcome"]
        )
        for counted in self._counters.switches:
            for outcome, count in sorted(counted.outcomes.items()):
                packets.add_metric([counted.name, outcome.lower()], float(count))
        yield packets

    def _jobs(self) -> Iterator[Metric]:
        chunks = CounterMetricFamily("bluetree_chunks", "Complete chunks.", labels=["job"])
        right = GaugeMetricFamily("bluetree_job_correct", "1: every sum right.", labels=["job"])
        resent = CounterMetricFamily(
            "bluetree_retransmissions", "Repetitions by workers.", labels=["job"]
        )
        for job in self._status.jobs:
            labels = [str(job.job)]
            chunks.add_metric(labels, float(job.completed))
            right.add_metric(labels, float(job.correct))
            resent.add_metric(labels, float(job.retransmissions))
        yield from (chunks, right, resent)

    def _links(self) -> Iterator[Metric]:
        labels = ["switch", "parent"]
        carried = CounterMetricFamily(
            "bluetree_link_messages", "First transmissions towards the destination.", labels=labels
        )
        predicted = GaugeMetricFamily(
            "bluetree_link_predicted", "Messages a chunk, by the placement.", labels=labels
        )
        measured = GaugeMetricFamily(
            "bluetree_link_measured", "Messages a chunk, by the counters.", labels=labels
        )
        for link in self._status.links:
            names = [link.switch, link.parent or "destination"]
            carried.add_metric(names, float(link.messages))
            predicted.add_metric(names, float(link.predicted))
            measured.add_metric(names, link.measured)
        cut = GaugeMetricFamily(
            "bluetree_link_cut", "1: nothing that is sent arrives.", labels=["sender", "receiver"]
        )
        for found in self._status.cut_links:
            cut.add_metric([found.sender, found.receiver], 1.0)
        yield from (carried, predicted, measured, cut)
