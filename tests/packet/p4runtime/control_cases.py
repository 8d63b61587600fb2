"""Batches of updates and the code that every one of them gets, on simple_switch_grpc and here.

A case is a name, its steps and the codes. Where the two switches differ on purpose a code is a
`Differs`, with the reason; docs/softswitch.md lists the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from finsy.proto import p4r

from tests.packet.p4runtime.control_messages import (
    NO_ID,
    action,
    digest,
    direct_counter,
    direct_meter,
    entry,
    group,
    member,
    meter,
    one_shot,
    to_group,
    to_member,
    value_set,
)

LIMITS = (10, 20, 30, 40)
OTHER = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Differs:
    """The code here, that of simple_switch_grpc, and why they are not the same."""

    here: str
    bmv2: str
    why: str


Code = str | Differs
Step = tuple[str, p4r.Entity]

TARGET_SAYS_UNKNOWN = "there, whatever the data plane refuses is UNKNOWN"


def _at(here: str) -> Differs:
    return Differs(here, "UNKNOWN", TARGET_SAYS_UNKNOWN)


def _timeout(ns: int) -> Callable[[p4r.TableEntry], None]:
    def change(e: p4r.TableEntry) -> None:
        e.idle_timeout_ns = ns

    return change


def _default(e: p4r.TableEntry) -> None:
    e.is_default_action = True
    del e.match[:]


def _aged_since(e: p4r.TableEntry) -> None:
    e.time_since_last_hit.elapsed_ns = 1


def _metered(e: p4r.TableEntry) -> None:
    e.meter_config.cir = e.meter_config.pir = 1


def _counted(e: p4r.TableEntry) -> None:
    e.counter_data.packet_count = 1


def _nobody(e: p4r.Entity) -> p4r.Entity:
    e.action_profile_member.action_profile_id = NO_ID
    return e


PORT = action(port=1)
WATCH = action("watch", port=1)

CASES: dict[str, list[tuple[Step, Code]]] = {
    "members": [
        (("modify", member(1, PORT)), "NOT_FOUND"),
        (("delete", member(1, PORT)), "NOT_FOUND"),
        (("insert", member(1, PORT)), "OK"),
        (("insert", member(1, PORT)), "ALREADY_EXISTS"),
        (("modify", member(1, action("drop"))), "OK"),
        (("insert", member(2, action("watch", port=1))), "INVALID_ARGUMENT"),
        (("insert", member(2, action())), "INVALID_ARGUMENT"),
        (("insert", member(2, action(port=512))), "INVALID_ARGUMENT"),
        (("insert", member(2, p4r.Action(action_id=NO_ID))), "INVALID_ARGUMENT"),
        (("insert", _nobody(member(2, PORT))), "INVALID_ARGUMENT"),
        (("delete", member(1, PORT)), "OK"),
    ],
    "a full profile": [
        *((("insert", member(n, PORT, "picks")), "OK") for n in range(1, 5)),
        (
            ("insert", member(5, PORT, "picks")),
            Differs("RESOURCE_EXHAUSTED", "OK", "there, the size of a profile is not enforced"),
        ),
    ],
    "groups": [
        (("modify", group(1)), "NOT_FOUND"),
        (("delete", group(1)), "NOT_FOUND"),
        (("insert", group(1, [(1, 1)])), "NOT_FOUND"),
        (("insert", member(1, PORT)), "OK"),
        (("insert", member(2, PORT)), "OK"),
        (("insert", group(2, [(1, 1), (2, 2)])), "OK"),
        (("insert", group(2, [(1, 1)])), "ALREADY_EXISTS"),
        (("modify", group(2, [(1, 1), (9, 1)])), "NOT_FOUND"),
        (("modify", group(2, [(1, 1), (1, 1)])), "INVALID_ARGUMENT"),
        (("modify", group(2, [(1, 0)])), "INVALID_ARGUMENT"),
        (("modify", group(2, [(1, 3), (2, 2)])), "RESOURCE_EXHAUSTED"),
        (("modify", group(2, [(1, 4)])), "OK"),
        (("modify", group(2, [(1, 1)], max_size=2)), "INVALID_ARGUMENT"),
        (("insert", group(3, [(1, 1)], max_size=5)), "INVALID_ARGUMENT"),
        (("insert", group(3, [(1, 1)], max_size=-1)), "INVALID_ARGUMENT"),
        (("insert", group(4, [(1, 1)], max_size=2)), "OK"),
        (("modify", group(4, [(1, 3)])), "RESOURCE_EXHAUSTED"),
        (("modify", group(4, [(1, 1), (2, 1)])), "OK"),
        (("delete", member(1, PORT)), _at("FAILED_PRECONDITION")),
        (("delete", group(4)), "OK"),
        (("delete", group(2)), "OK"),
        (("delete", member(1, PORT)), "OK"),
    ],
    "groups without a selector": [
        (
            ("insert", group(1, profile="picks")),
            Differs("INVALID_ARGUMENT", "OK", "nothing could choose among its members"),
        ),
    ],
    "entries that refer to members": [
        (("insert", entry("picked", 1, to_member(1))), "INVALID_ARGUMENT"),
        (("insert", member(1, PORT, "picks")), "OK"),
        (("insert", entry("picked", 1, to_member(1))), "OK"),
        (("insert", entry("picked", 1, to_member(1))), "ALREADY_EXISTS"),
        (("modify", entry("picked", 2, to_member(1))), "NOT_FOUND"),
        (("modify", entry("picked", 1, to_member(2))), "INVALID_ARGUMENT"),
        (("insert", entry("picked", 2, PORT)), "INVALID_ARGUMENT"),
        (("insert", entry("aged", 2, to_member(1))), "INVALID_ARGUMENT"),
        (("modify", entry("picked", 0, PORT, _default)), "INVALID_ARGUMENT"),
        (("delete", member(1, PORT, "picks")), _at("FAILED_PRECONDITION")),
        (("delete", entry("picked", 1, None)), "OK"),
        (("delete", member(1, PORT, "picks")), "OK"),
    ],
    "entries that refer to groups": [
        (("insert", entry("balanced", 1, to_group(1))), "INVALID_ARGUMENT"),
        (("insert", group(1)), "OK"),
        (
            ("insert", entry("balanced", 1, to_group(1))),
            Differs("OK", "UNKNOWN", "an entry may refer to a group that is empty yet"),
        ),
        (("insert", member(1, PORT)), "OK"),
        (("modify", group(1, [(1, 1)])), "OK"),
        (("insert", entry("balanced", 2, to_group(1))), "OK"),
        (("delete", group(1)), _at("FAILED_PRECONDITION")),
        (
            ("delete", entry("balanced", 1, None)),
            Differs("OK", "NOT_FOUND", "it was not inserted there"),
        ),
        (("delete", entry("balanced", 2, None)), "OK"),
        (("delete", group(1)), "OK"),
    ],
    "one-shot sets": [
        (("insert", entry("balanced", 1, one_shot())), "UNIMPLEMENTED"),
        (("insert", entry("balanced", 1, one_shot((PORT, 0)))), "INVALID_ARGUMENT"),
        (("insert", entry("balanced", 1, one_shot((PORT, 5)))), "RESOURCE_EXHAUSTED"),
        (("insert", entry("balanced", 1, one_shot((WATCH, 1)))), "INVALID_ARGUMENT"),
        (("insert", entry("balanced", 1, one_shot((PORT, 1), (action("drop"), 2)))), "OK"),
        (("insert", entry("balanced", 1, one_shot((PORT, 1)))), "ALREADY_EXISTS"),
        (("modify", entry("balanced", 1, one_shot((PORT, 4)))), "OK"),
        (("modify", entry("balanced", 2, one_shot((PORT, 4)))), "NOT_FOUND"),
        (("insert", member(1, PORT)), "INVALID_ARGUMENT"),
        (("delete", entry("balanced", 1, None)), "OK"),
        (("insert", member(1, PORT)), "OK"),
        (("insert", entry("balanced", 1, one_shot((PORT, 4)))), "INVALID_ARGUMENT"),
        (("delete", member(1, PORT)), "OK"),
    ],
    "indirect meters": [
        (("modify", meter(0, LIMITS)), "OK"),
        (("insert", meter(0, LIMITS)), "INVALID_ARGUMENT"),
        (("delete", meter(0, LIMITS)), "INVALID_ARGUMENT"),
        (("modify", meter(None, LIMITS)), "UNIMPLEMENTED"),
        (("modify", meter(8, LIMITS)), _at("OUT_OF_RANGE")),
        (("modify", meter(-1, LIMITS)), "INVALID_ARGUMENT"),
        (("modify", meter(1, (-2, 1, 1, 1))), "INVALID_ARGUMENT"),
        (("modify", meter(1, (1, 1, 1, -2))), "INVALID_ARGUMENT"),
        (("modify", meter(1, (1, 1 << 32, 1, 1))), "UNIMPLEMENTED"),
        (("modify", meter(1, (1, 1, 1, 1 << 32))), "UNIMPLEMENTED"),
        (("modify", meter(1, (30, 1, 10, 1))), _at("INVALID_ARGUMENT")),
        (("modify", meter(1, (-1, -1, -1, -1))), "OK"),
        (("modify", meter(0, None)), "OK"),
    ],
    "direct meters": [
        (("modify", direct_meter(1, LIMITS)), "INVALID_ARGUMENT"),
        (("insert", entry("watched", 1, WATCH)), "OK"),
        (("modify", direct_meter(1, LIMITS)), "OK"),
        (("insert", direct_meter(1, LIMITS)), "INVALID_ARGUMENT"),
        (("delete", direct_meter(1, LIMITS)), "INVALID_ARGUMENT"),
        (("modify", direct_meter(1, (-2, 1, 1, 1))), "INVALID_ARGUMENT"),
        (("modify", direct_meter(1, None)), "OK"),
        (("insert", entry("aged", 1, PORT)), "OK"),
        (("modify", direct_meter(1, LIMITS, "aged")), "INVALID_ARGUMENT"),
        (("insert", entry("watched", 2, WATCH, _metered)), "OK"),
        (("insert", entry("aged", 2, PORT, _metered)), "INVALID_ARGUMENT"),
        (("modify", p4r.Entity(direct_meter_entry=p4r.DirectMeterEntry())), "INVALID_ARGUMENT"),
    ],
    "direct counters": [
        (("modify", direct_counter(1, 5)), "INVALID_ARGUMENT"),
        (("insert", entry("watched", 1, WATCH, _counted)), "OK"),
        (("modify", direct_counter(1, 5)), "OK"),
        (("insert", entry("aged", 1, PORT)), "OK"),
        (("modify", direct_counter(1, 5, "aged")), "INVALID_ARGUMENT"),
        (("insert", entry("aged", 2, PORT, _counted)), "INVALID_ARGUMENT"),
    ],
    "idle timeouts": [
        (("insert", entry("aged", 1, PORT, _timeout(10**9))), "OK"),
        (("modify", entry("aged", 1, PORT, _timeout(2 * 10**9))), "OK"),
        (("modify", entry("aged", 1, PORT, _timeout(-1))), "INVALID_ARGUMENT"),
        (("insert", entry("aged", 2, PORT, _aged_since)), "INVALID_ARGUMENT"),
        (("insert", entry("measured", 1, action("note", cell=1), _timeout(1))), "INVALID_ARGUMENT"),
    ],
    "digests": [
        (("modify", digest()), "NOT_FOUND"),
        (("delete", digest()), "NOT_FOUND"),
        (("insert", digest(10**9, 10, 10**9)), "OK"),
        (("insert", digest()), "ALREADY_EXISTS"),
        (("modify", digest(0, 1, 0)), "OK"),
        (("delete", digest()), "OK"),
        (("insert", p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=NO_ID))), "NOT_FOUND"),
    ],
    "value sets": [
        (("modify", value_set(1, 2)), Differs("OK", "UNIMPLEMENTED", "served here")),
        (("insert", value_set(1)), Differs("INVALID_ARGUMENT", "UNIMPLEMENTED", "MODIFY only")),
        (("modify", value_set(*range(5))), Differs("RESOURCE_EXHAUSTED", "UNIMPLEMENTED", "size")),
    ],
    "not served": [
        (
            ("modify", p4r.Entity(register_entry=p4r.RegisterEntry(register_id=NO_ID))),
            "UNIMPLEMENTED",
        ),
        (("insert", p4r.Entity(extern_entry=p4r.ExternEntry(extern_type_id=1))), "UNIMPLEMENTED"),
        (
            ("insert", p4r.Entity()),
            Differs("INVALID_ARGUMENT", "UNKNOWN", "the batch is the client's fault"),
        ),
    ],
}
