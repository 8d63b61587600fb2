"""The Thrift interface: bytes as Thrift's own library writes them, every method, hostile input."""

import io
import socket
import struct
import threading
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from softswitch.errors import InvalidArgument
from softswitch.ports.errors import PortError
from softswitch.thrift import Services, ThriftServer
from softswitch.thrift.protocol import MAX_CALL, Call, ThriftError, read_call
from softswitch.thrift.server import MAX_CONNECTIONS
from softswitch.thrift.services import PortState

DEADLINE_S = 10.0
# what the library's TBinaryProtocol and TMultiplexedProtocol send for
# set_egress_priority_queue_rate(2, 7, 1000)
RATE_CALL = bytes.fromhex(
    "80010001 0000002c 73696d706c655f7377697463683a"
    "7365745f6567726573735f7072696f726974795f71756575655f72617465"
    "00000000 08 0001 00000002 08 0002 00000007 0a 0003 00000000000003e8 00"
)
REPLY_0 = bytes.fromhex("00000000 08 0000 00000000 00")


class Recorder:
    """A switch that notes what it is asked for."""

    device_id = 5

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def set_queue_rate(self, pps: int, port: int | None, priority: int | None) -> None:
        if priority is not None and priority > 7:
            raise InvalidArgument(f"there is no queue {priority}")
        self.asked.append(("rate", pps, port, priority))

    def set_queue_depth(self, packets: int, port: int | None, priority: int | None) -> None:
        self.asked.append(("depth", packets, port, priority))

    def add_port(self, number: int, interface: str) -> None:
        if interface == "nosuch":
            raise PortError("there is no interface nosuch")
        self.asked.append(("add", number, interface))

    def remove_port(self, number: int) -> None:
        if number == 9:
            raise PortError("there is no port 9")
        self.asked.append(("remove", number))

    def port_states(self) -> Sequence[PortState]:
        return (PortState(1, "veth1", True), PortState(2, "veth2", False))

    def now_us(self) -> int:
        return 1 << 40

    def program_json(self) -> bytes | None:
        return None


def i32(number: int, value: int) -> bytes:
    return struct.pack(">bhi", 8, number, value)


def i64(number: int, value: int) -> bytes:
    return struct.pack(">bhq", 10, number, value)


def string(number: int, value: bytes) -> bytes:
    return struct.pack(">bhi", 11, number, len(value)) + value


def call(name: str, *fields: bytes) -> bytes:
    head = struct.pack(">Ii", 0x80010001, len(name)) + name.encode() + struct.pack(">i", 0)
    return head + b"".join(fields) + b"\0"


def answer(switch: Recorder, message: bytes) -> bytes:
    """The fields of the reply, behind its name and number."""
    found = read_call(io.BytesIO(message))
    assert found is not None
    reply = Services(switch, 9090).answer(found)
    version, length = struct.unpack(">Ii", reply[:8])
    assert version == 0x80010002, reply
    return reply[8 + length + 4 :]


def test_a_call_is_read_as_the_library_writes_it() -> None:
    assert read_call(io.BytesIO(RATE_CALL)) == Call(
        "simple_switch:set_egress_priority_queue_rate", 1, 0, {1: 2, 2: 7, 3: 1000}
    )
    assert read_call(io.BytesIO(b"")) is None


@pytest.mark.parametrize(
    ("method", "fields", "asked"),
    [
        ("set_all_egress_queue_rates", (i64(1, 9),), ("rate", 9, None, None)),
        ("set_egress_queue_rate", (i32(1, 3), i64(2, 9)), ("rate", 9, 3, None)),
        ("set_egress_priority_queue_rate", (i32(1, 3), i32(2, 7), i64(3, 9)), ("rate", 9, 3, 7)),
        ("set_all_egress_queue_depths", (i32(1, 9),), ("depth", 9, None, None)),
        ("set_egress_queue_depth", (i32(1, 3), i32(2, 9)), ("depth", 9, 3, None)),
        ("set_egress_priority_queue_depth", (i32(1, 3), i32(2, 7), i32(3, 9)), ("depth", 9, 3, 7)),
    ],
)
def test_queues_are_set(method: str, fields: tuple[bytes, ...], asked: tuple[object, ...]) -> None:
    switch = Recorder()
    assert answer(switch, call(f"simple_switch:{method}", *fields)) == REPLY_0[4:]
    assert switch.asked == [asked]


def test_ports_come_and_go() -> None:
    switch = Recorder()
    add, remove = "standard:bm_dev_mgr_add_port", "standard:bm_dev_mgr_remove_port"
    assert answer(switch, call(add, string(1, b"veth1"), i32(2, 1), string(3, b""))) == b"\0"
    assert answer(switch, call(remove, i32(1, 1))) == b"\0"
    assert switch.asked == [("add", 1, "veth1"), ("remove", 1)]
    # field 1: InvalidDevMgrOperation(code=ERROR)
    refused = bytes.fromhex("0c 0001 08 0001 00000001 00 00")
    assert answer(switch, call(add, string(1, b"nosuch"), i32(2, 1))) == refused
    assert answer(switch, call(remove, i32(1, 9))) == refused


def test_ports_are_listed() -> None:
    listed = answer(Recorder(), call("standard:bm_dev_mgr_show_ports"))
    assert listed == bytes.fromhex(
        "0f 0000 0c 00000002"
        "08 0001 00000001 0b 0002 00000005 7665746831 02 0003 01 0d 0004 0b 0b 00000000 00"
        "08 0001 00000002 0b 0002 00000005 7665746832 02 0003 00 0d 0004 0b 0b 00000000 00"
        "00"
    )


def test_what_the_cli_asks_for_at_its_start() -> None:
    switch = Recorder()
    assert answer(switch, call("standard:bm_get_config")) == string(0, b"{}") + b"\0"
    digest = answer(switch, call("standard:bm_get_config_md5"))
    assert digest[7:-1].hex() == "99914b932bd37a50b983c5e7c90ae93b"
    info = answer(switch, call("standard:bm_mgmt_get_info"))
    assert info == bytes.fromhex("0c 0000") + i64(1, 5) + i32(2, 9090) + b"\0\0"
    assert answer(switch, call("simple_switch:get_time_elapsed_us")) == i64(0, 1 << 40) + b"\0"


@pytest.mark.parametrize(
    ("message", "kind", "words"),
    [
        (call("standard:bm_mt_add_entry"), 1, b"does not serve standard:bm_mt_add_entry over Thr"),
        (call("simple_switch:set_egress_queue_rate"), 6, b"0 numbers for a queue"),
        (call("simple_switch:set_egress_queue_rate", string(1, b"x")), 6, b"argument 1 is missing"),
        (call("standard:bm_dev_mgr_add_port", i32(2, 1)), 6, b"name of the interface is missing"),
        (
            call("simple_switch:set_egress_priority_queue_rate", i32(1, 1), i32(2, 8), i64(3, 1)),
            6,
            b"there is no queue 8",
        ),
    ],
)
def test_what_cannot_be_done_is_said(message: bytes, kind: int, words: bytes) -> None:
    found = read_call(io.BytesIO(message))
    assert found is not None
    reply = Services(Recorder(), 9090).answer(found)
    assert reply[:4] == bytes.fromhex("80010003")
    assert words in reply
    assert reply.endswith(i32(2, kind) + b"\0")


@given(st.binary(max_size=200), st.booleans())
@example(b"\xff" * 50, True)
@example(bytes.fromhex("0f 0001 0f 7fffffff"), True)
@example(bytes.fromhex("0d 0001 0b 0b 7fffffff"), True)
@example(bytes.fromhex("0c 0001") * 60, True)
def test_garbage_is_a_call_or_an_error(garbage: bytes, framed: bool) -> None:
    message = call("x")[:-1] + garbage if framed else garbage
    try:
        found = read_call(io.BytesIO(message))
    except ThriftError:
        return
    assert found is None or found.name is not None


def test_a_call_without_end_is_cut_off() -> None:
    endless = call("x")[:-1] + i32(1, 7) * (MAX_CALL // 7 + 1)
    with pytest.raises(ThriftError, match="more than"):
        read_call(io.BytesIO(endless))


# --- over TCP -------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[ThriftServer]:
    found = ThriftServer(Services(Recorder(), 0), 0)
    try:
        yield found
    finally:
        found.close()


def connect(server: ThriftServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), DEADLINE_S)


def test_calls_follow_each_other_on_a_connection(server: ThriftServer) -> None:
    with connect(server) as client, client.makefile("rb") as replies:
        for _ in range(3):
            client.sendall(RATE_CALL)
            head = replies.read(8 + len("set_egress_priority_queue_rate"))
            assert head[:4] == bytes.fromhex("80010002")
            assert replies.read(len(REPLY_0)) == REPLY_0


def test_garbage_ends_its_own_connection_only(
    server: ThriftServer, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(server) as other, connect(server) as client:
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert b"not with version 1 of the protocol" in client.recv(1000)
        assert client.recv(1000) == b""
        other.sendall(RATE_CALL)
        assert other.recv(1000).startswith(bytes.fromhex("80010002"))
    assert [r.getMessage().count("a call begins with 47455420") for r in caplog.records] == [1]


def test_connections_are_bounded_and_freed(server: ThriftServer) -> None:
    held = [connect(server) for _ in range(MAX_CONNECTIONS)]
    try:
        for client in held:
            client.sendall(RATE_CALL)
            assert client.recv(1000)
        with connect(server) as refused:
            assert refused.recv(1) == b""
        for client in held[:-1]:
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        freed = threading.Event()

        def again() -> None:
            while not freed.is_set():
                with connect(server) as client:
                    client.settimeout(DEADLINE_S)
                    try:
                        client.sendall(RATE_CALL)
                        if client.recv(1000):
                            freed.set()
                    except OSError:
                        continue

        thread = threading.Thread(target=again, daemon=True)
        thread.start()
        assert freed.wait(DEADLINE_S)
        thread.join(DEADLINE_S)
    finally:
        for client in held:
            client.close()


def test_an_address_that_is_taken(server: ThriftServer) -> None:
    with pytest.raises(PortError, match=f"cannot serve Thrift at 127.0.0.1:{server.port}"):
        ThriftServer(Services(Recorder(), 0), server.port)


def test_closing_ends_connections() -> None:
    server = ThriftServer(Services(Recorder(), 0), 0)
    with connect(server) as client:
        client.sendall(RATE_CALL)
        assert client.recv(1000)
        server.close()
        assert client.recv(1000) == b""
