"""A host: one network card shared by the workers and destinations of several jobs.

A frame of the aggregation protocol goes to the endpoint of its job, a ping is answered, and
everything else is counted and left alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from traffic.endpoint import Endpoint
from traffic.errors import ConfigError, DecodeError
from traffic.icmp import PROTOCOL_ICMP, Echo, decode_echo, echo_reply, echo_request
from traffic.message import ETHERTYPE_IPV4, PROTOCOL_UDP, UDP_BYTES, ip_bytes, mac_bytes

_ETHERTYPE = slice(12, 14)
_MULTICAST_BIT = 1
_VERSION_AT = 14
_PROTOCOL_AT = 23
_JOB_IN_UDP = UDP_BYTES + 4


class Host:
    """One host with its endpoints, at most one for each job."""

    def __init__(self, name: str, mac: str, ip: str, endpoints: Iterable[Endpoint] = ()) -> None:
        self.name = name
        self.mac = mac
        self.ip = ip
        self._mac = mac_bytes(mac)
        self._ip = ip_bytes(ip)
        self._endpoints: dict[int, Endpoint] = {}
        self._unfinished: set[int] = set()
        self._ignored: Counter[str] = Counter()
        self._replies: list[Echo] = []
        for endpoint in endpoints:
            self.attach(endpoint)

    def attach(self, endpoint: Endpoint) -> None:
        """Add an endpoint; raises ConfigError if its job has one here already."""
        if endpoint.job in self._endpoints:
            raise ConfigError(f"host {self.name} takes part in job {endpoint.job} already")
        self._endpoints[endpoint.job] = endpoint
        self._unfinished.add(endpoint.job)

    def detach(self, job: int) -> None:
        """Remove the endpoint of a job, if it has one."""
        self._endpoints.pop(job, None)
        self._unfinished.discard(job)

    @property
    def endpoints(self) -> Mapping[int, Endpoint]:
        """The endpoints by job."""
        return MappingProxyType(self._endpoints)

    @property
    def finished(self) -> bool:
        """Whether every endpoint is done or has failed."""
        if self._unfinished:
            self._settle()
        return not self._unfinished

    @property
    def ignored(self) -> Mapping[str, int]:
        """Frames that were for none of the endpoints, by reason."""
        return MappingProxyType(dict(self._ignored))

    @property
    def echo_replies(self) -> tuple[Echo, ...]:
        """Answers to its own pings."""
        return tuple(self._replies)

    @property
    def next_deadline(self) -> int | None:
        """The earliest deadline of an endpoint."""
        endpoints = self._endpoints
        if len(endpoints) == 1:
            for only in endpoints.values():
                return only.next_deadline
        deadlines = [endpoint.next_deadline for endpoint in endpoints.values()]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def start(self, now: int) -> list[bytes]:
        """The first frames of all endpoints."""
        return [frame for endpoint in self._endpoints.values() for frame in endpoint.start(now)]

    def tick(self, now: int) -> list[bytes]:
        """What the endpoints send when their deadlines have passed."""
        return [frame for endpoint in self._endpoints.values() for frame in endpoint.tick(now)]

    def receive(self, frame: bytes, now: int) -> list[bytes]:
        """Take a frame in; the frames to send."""
        if len(frame) < _PROTOCOL_AT + 1 or frame[_ETHERTYPE] != ETHERTYPE_IPV4:
            return self._ignore("not-ipv4")
        if frame[:6] != self._mac and not frame[0] & _MULTICAST_BIT:
            return self._ignore("other-mac")
        protocol = frame[_PROTOCOL_AT]
        if protocol == PROTOCOL_UDP:
            job = _job_of(frame)
            if job is None:
                return self._ignore("truncated")
            endpoint = self._endpoints.get(job)
            if endpoint is None:
                return self._ignore("no-such-job")
            return endpoint.receive(frame, now)
        if protocol == PROTOCOL_ICMP:
            return self._echo(frame)
        return self._ignore("other-protocol")

    def ping(self, gateway_mac: str, ip: str, identifier: int, sequence: int = 0) -> bytes:
        """The frame of a ping of another host; its answer appears in `echo_replies`."""
        return echo_request(self.mac, gateway_mac, self.ip, ip, identifier, sequence)

    def _echo(self, frame: bytes) -> list[bytes]:
        try:
            reply = echo_reply(frame, self.mac, self.ip)
            if reply is not None:
                return [reply]
            echo = decode_echo(frame)
        except DecodeError as error:
            return self._ignore(error.reason.value)
        if echo is None or not echo.is_reply or echo.dst_ip != self._ip:
            return self._ignore("other-icmp")
        self._replies.append(echo)
        return []

    def _ignore(self, reason: str) -> list[bytes]:
        self._ignored[reason] += 1
        return []

    def _settle(self) -> None:
        endpoints = self._endpoints
        for job in tuple(self._unfinished):
            endpoint = endpoints[job]
            if endpoint.done or endpoint.failed:
                self._unfinished.discard(job)


def _job_of(frame: bytes) -> int | None:
    """Job field of a UDP frame, wherever IPv4 options put it; the endpoint checks all else."""
    at = _VERSION_AT + (frame[_VERSION_AT] & 0xF) * 4 + _JOB_IN_UDP
    if len(frame) < at + 2:
        return None
    return frame[at] << 8 | frame[at + 1]
