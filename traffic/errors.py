"""What can go wrong at the hosts: one tree, each error one line naming the thing and the remedy."""

from enum import Enum


class TrafficError(Exception):
    """Base of every error of the hosts' side."""


class ConfigError(TrafficError):
    """A worker, destination or workload was described in a way that cannot work."""


class CommandError(TrafficError):
    """A host was told something that does not fit its jobs."""


class EncodeError(TrafficError):
    """A message field does not fit the header; the error names the field."""


class Refusal(Enum):
    """Why bytes are not an aggregation message; the value names the counter."""

    TRUNCATED = "truncated"
    NOT_IPV4 = "not-ipv4"
    BAD_IPV4_HEADER = "bad-ipv4-header"
    BAD_IPV4_CHECKSUM = "bad-ipv4-checksum"
    FRAGMENT = "fragment"
    NOT_UDP = "not-udp"
    BAD_LENGTH = "bad-length"
    BAD_UDP_CHECKSUM = "bad-udp-checksum"
    BAD_ICMP_CHECKSUM = "bad-icmp-checksum"
    BAD_VERSION = "bad-version"
    UNKNOWN_KIND = "unknown-kind"
    BAD_LANE_COUNT = "bad-lane-count"
    ZERO_ID = "zero-id"


class DecodeError(TrafficError):
    """Bytes that are not an aggregation message; `reason` says in what way."""

    def __init__(self, reason: Refusal, detail: str) -> None:
        super().__init__(f"not an aggregation message ({reason.value}): {detail}")
        self.reason = reason


class QuantiseError(TrafficError):
    """A value that has no fixed-point form; `index` is its place in the array, if it has one."""

    def __init__(self, message: str, index: tuple[int, ...] | None = None) -> None:
        super().__init__(message)
        self.index = index
