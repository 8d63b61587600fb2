"""The numbers of the P4 program. Generated from p4src by `make p4`: do not edit."""

from enum import IntEnum, IntFlag

LANES = 32
WORDS = 1
SOURCES = 2048
SLOTS = 4096
JOBS = 1024
QUEUES = 8
WINDOWS = 2048
AGG_UDP_PORT = 9590
AGG_VERSION = 2
OPTION_LAYER = 158
OPTION_ITERATION = 222
TICKET_BYTES = 4


class Kind(IntEnum):
    """Kinds of message (`kind_t`)."""

    CONTRIBUTE = 1
    RESULT = 2
    ACK = 3
    REQUEST = 4


class Outcome(IntEnum):
    """What became of a packet (`outcome_t`): its cell in `outcomes`."""

    FORWARDED = 0
    FORWARDED_MARKED = 1
    FORWARDED_LATE = 2
    EMITTED = 3
    REEMITTED = 4
    ABSORBED = 5
    DUPLICATE = 6
    FANNED_OUT = 7
    ROUTED = 8
    NOT_IPV4 = 9
    MALFORMED = 10
    BAD_CHECKSUM = 11
    UNKNOWN_KIND = 12
    UNREGISTERED = 13
    BAD_WEIGHT = 14
    BAD_SLOT = 15
    NO_PARENT = 16
    NO_ROUTE = 17
    TTL_EXPIRED = 18
    ANSWERED = 19
    STALE = 20


class Flag(IntFlag):
    """Flags of a message (`FLAG_*`)."""

    DIRECT = 1
    LATE = 2
    RESENT = 4
    OVERFLOW = 8
