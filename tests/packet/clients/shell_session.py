"""A session of p4runtime-shell, in its own environment: run as a script by test_clients.py.

Arguments: address, device id, P4Info, JSON. It prints one line of JSON for every step; behind
"ready" the test has 20 s to send a frame that is a packet-in.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

errors: Any = importlib.import_module("p4runtime_sh.p4runtime")
sh: Any = importlib.import_module("p4runtime_sh.shell")
"""Both by name, as they are not there where this file is type checked."""

DST = "02:00:00:00:00:01"
PACKET_IN_S = 20


def say(step: str, value: object = None) -> None:
    """Print what a step gave."""
    print(json.dumps([step, value]), flush=True)


def forward(action: str, **params: str) -> Any:
    """Return an entry of `forward` for DST."""
    entry = sh.TableEntry("ProbeIngress.forward")(action=f"ProbeIngress.{action}")
    entry.match["dst_addr"] = DST
    for name, value in params.items():
        entry.action[name] = value
    return entry


def forwarded() -> list[int]:
    """Return the values of the parameters of every entry of `forward`."""
    return [
        int.from_bytes(param.value, "big")
        for entry in sh.TableEntry("ProbeIngress.forward").read()
        for param in entry.action.msg().params
    ]


def entries() -> None:
    """Insert, refuse a second time, modify, delete."""
    entry = forward("to_port", port="2")
    entry.insert()
    say("inserted", forwarded())
    try:
        entry.insert()
    except errors.P4RuntimeWriteException as refused:
        say("refused", [error.canonical_code for _, error in refused.errors])
    forward("to_port", port="3").modify()
    say("modified", forwarded())
    entry.delete()
    say("deleted", forwarded())


def groups() -> None:
    """Write a multicast group and read it back."""
    group = sh.MulticastGroupEntry(5)
    group.add(1, 1)
    group.add(2, 1)
    group.insert()
    (read,) = sh.MulticastGroupEntry(5).read()
    say("group", sorted(replica.egress_port for replica in read.replicas))
    forward("to_group", group="5").insert()


def sentinels() -> None:
    """Insert the routes that the test's sentinels need."""
    for port in range(1, 9):
        entry = sh.TableEntry("ProbeIngress.routes")(action="ProbeIngress.to_port")
        entry.match["dst_addr"] = f"02:5e:00:00:00:{port:02x}/48"
        entry.action["port"] = str(port)
        entry.insert()


def packets() -> None:
    """Send a packet-out, and wait for a packet-in."""
    sh.PacketOut(b"p" * 60, egress_port="4", unused="0").send()
    say("sent")
    forward("to_cpu", reason="5").modify()
    arrived = sh.PacketIn()
    say("ready")
    message = arrived.packet_in_queue.get(timeout=PACKET_IN_S).packet
    say("packet", [message.payload.hex(), [m.value.hex() for m in message.metadata]])


def counters() -> None:
    """Read a cell of an indirect counter, and the direct counter of the entry."""
    cell = sh.CounterEntry("ProbeIngress.arrived")
    cell.index = 6
    say("cell", [read.packet_count for read in cell.read()])
    direct = sh.DirectCounterEntry("ProbeIngress.forwarded")
    say("direct", [read.packet_count for read in direct.read()])


def main(address: str, device_id: str, p4info: str, program: str) -> None:
    """Run all steps."""
    sh.setup(
        device_id=int(device_id),
        grpc_addr=address,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(p4info, program),
        verbose=False,
    )
    entries()
    groups()
    sentinels()
    packets()
    counters()
    say("done")


if __name__ == "__main__":
    code = 1
    try:
        main(*sys.argv[1:])
        code = 0
    finally:
        if code:
            traceback.print_exc()
        # The client's threads never end, and would keep this process alive.
        os._exit(code)
