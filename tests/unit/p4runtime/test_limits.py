"""What the server bounds: messages that wait, digests, lines of the log, programs that it keeps."""

from __future__ import annotations

import asyncio
import gc
import json

import grpc
import pytest
from finsy.proto import p4r

from softswitch import Device
from softswitch.codegen import find_compiled
from softswitch.errors import InvalidPipeline, UnsupportedConstruct
from softswitch.loader import digest_of
from softswitch.loader.node import MAX_BYTES
from softswitch.p4runtime import inbox
from softswitch.p4runtime.complaints import Complaints
from softswitch.p4runtime.digests import MAX_KNOWN, MAX_SAMPLES, DigestBuffer, DigestConfig
from softswitch.p4runtime.sessions import NOTICE_QUEUE, PACKET_IN_QUEUE, REPLY_QUEUE, Stream
from softswitch.ports.dataplane import PACKET_OUTS, DataPlane
from softswitch.state import Sparse
from tests.unit.softswitch.programs import PROGRAMS

MESSAGE = p4r.StreamMessageResponse()


def test_what_may_be_lost_is_lost_first() -> None:
    async def run() -> None:
        stream = Stream()
        assert all(stream.offer(MESSAGE) for _ in range(PACKET_IN_QUEUE))
        assert not stream.offer(MESSAGE)
        stream.tell(MESSAGE)
        assert stream.refusal is None

    asyncio.run(run())


def test_a_client_that_takes_no_notices_loses_its_stream() -> None:
    async def run() -> None:
        stream = Stream()
        for _ in range(NOTICE_QUEUE):
            stream.tell(MESSAGE)
        assert stream.refusal is None
        for _ in range(5):
            stream.tell(MESSAGE)
        assert stream.refusal is not None
        assert stream.refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
        # what waited is gone: the end is next
        assert await stream.take() is None

    asyncio.run(run())


def test_who_asks_and_does_not_listen_waits() -> None:
    async def run() -> None:
        stream = Stream()
        for _ in range(REPLY_QUEUE):
            await stream.reply(MESSAGE)
        further = asyncio.create_task(stream.reply(MESSAGE))
        done, _ = await asyncio.wait([further], timeout=0.05)
        assert not done
        assert await stream.take() is MESSAGE
        await asyncio.wait_for(further, 5)

    asyncio.run(run())


def test_the_inbox_refuses_what_the_loop_has_no_time_for() -> None:
    async def run() -> None:
        taken: list[int] = []
        box = inbox.Inbox(asyncio.get_running_loop(), taken.append)
        assert all(box.put(i) for i in range(inbox.LIMIT))
        assert not box.put(-1)
        done = asyncio.Event()
        asyncio.get_running_loop().call_soon(done.set)
        await done.wait()
        assert taken == list(range(inbox.LIMIT))
        assert box.put(7)

    asyncio.run(run())


def test_complaints_of_a_kind_come_once_a_second(caplog: pytest.LogCaptureFixture) -> None:
    times = iter((0.0, 0.3, 0.9, 1.1, 1.2, 1.2))
    complaints = Complaints(lambda: next(times))
    for _ in range(5):
        complaints.add("bad request", "it is none")
    complaints.add("other", "as well")
    assert [r.getMessage() for r in caplog.records] == [
        "P4Runtime: bad request: it is none (1 so far)",
        "P4Runtime: bad request: it is none (4 so far)",
        "P4Runtime: other: as well (1 so far)",
    ]


def test_a_list_of_digests_ends_by_itself() -> None:
    for limit in (0, 10 * MAX_SAMPLES):
        gathered = DigestBuffer(DigestConfig(1 << 62, limit, 0))
        sent = [gathered.learn((i,), 0) for i in range(MAX_SAMPLES)]
        assert sent[:-1] == [None] * (MAX_SAMPLES - 1)
        assert sent[-1] is not None
        assert len(sent[-1].samples) == MAX_SAMPLES


def test_the_oldest_lists_without_acknowledgement_are_forgotten() -> None:
    gathered = DigestBuffer(DigestConfig(0, 1, 1 << 62))
    for i in range(MAX_KNOWN + 1):
        assert gathered.learn((i,), 0) is not None
    # the first is new again, the last is not
    assert gathered.learn((MAX_KNOWN,), 0) is None
    assert gathered.learn((0,), 0) is not None


def variant(number: int) -> bytes:
    return (PROGRAMS / "copies.json").read_bytes() + b" " * number


def test_programs_that_nobody_runs_are_forgotten() -> None:
    devices = [Device(1), Device(2)]
    devices[0].load_pipeline(variant(1))
    for number in range(2, 10):
        devices[1].check_pipeline(variant(number))
    gc.collect()
    assert find_compiled(digest_of(variant(1))) is not None
    assert find_compiled(digest_of(variant(2))) is None
    # compiled to be verified, and not again to be run
    assert find_compiled(digest_of(variant(9))) is not None


def test_cells_of_large_programs_take_memory_as_they_are_written() -> None:
    program = json.loads((PROGRAMS / "copies.json").read_text())
    program["register_arrays"] = [
        {"name": f"r{i}", "id": i, "size": 1 << 16, "bitwidth": 32} for i in range(100)
    ]
    device = Device(1, backend="python")
    device.load_pipeline(json.dumps(program).encode())
    device.set_register("r99", 65535, 7)
    assert (device.register("r99", 65535), device.register("r99", 0)) == (7, 0)
    assert sum(isinstance(held, Sparse) for held in gc.get_objects()) >= 100 - 64


def test_a_pipeline_beyond_the_limits_is_refused_in_words() -> None:
    device = Device(1)
    with pytest.raises(InvalidPipeline, match=f"has {MAX_BYTES + 1} bytes: at most {MAX_BYTES}"):
        device.check_pipeline(b" " * (MAX_BYTES + 1))
    with pytest.raises(InvalidPipeline, match="expected an object, found an array of 1000000"):
        device.check_pipeline(b"[" + b"0," * 999_999 + b"0]")
    deep = b'{"op":' * 300 + b"1" + b"}" * 300
    nested = (PROGRAMS / "copies.json").read_bytes().replace(b'"op" : "=="', b'"op" : ' + deep, 1)
    with pytest.raises((InvalidPipeline, UnsupportedConstruct)):
        device.check_pipeline(nested)


def test_packet_outs_that_come_too_fast_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    device = Device(1, cpu_port=510)
    plane = DataPlane(device, lambda _: None, lambda: 0)
    try:
        for _ in range(PACKET_OUTS + 3):
            plane.packet_out(b"x")
        plane.stop()
        plane.run()
    finally:
        plane.close()
    assert [r.getMessage() for r in caplog.records if "packet-outs" in r.msg] == [
        "Dropped 3 packet-outs that came too fast"
    ]
