"""A `softswitch` process under clients that mean no good: it goes on forwarding, its memory stays
bounded, and the log says in a line or two what happened.

Every attack runs while frames go round through the switch; each of them must come back.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from softswitch.p4runtime.arbitration import MAX_STREAMS
from softswitch.p4runtime.server import MAX_MESSAGE
from softswitch.ports.pair import create_pair, delete_pair
from tests.packet import certificates
from tests.packet.certificates import Identity, half_handshakes, identity, secure_channel
from tests.packet.switch_process import SwitchProcess, Wire, wait_for
from tests.packet.targets_process import free_port, why_not
from tests.packet.targets_sentinels import PROGRAMS

pytestmark = pytest.mark.skipif(
    why_not(sys.executable) is not None, reason=str(why_not(sys.executable))
)

PACKET = bytes([0, 0, 0, 1]) + bytes(60)
PATIENCE_S = 10.0
GROWTH_KIB = 384 * 1024
"""Of the largest requests, 16 MiB each, and what is made of them; 250 MiB were seen."""
MAX_LINES = 4
SERVICE = "/p4.v1.P4Runtime/"
UNARY = ("Write", "SetForwardingPipelineConfig", "GetForwardingPipelineConfig", "Capabilities")


class Victim:
    """A switch with a link on which frames go round."""

    def __init__(
        self, directory: Path, here: str, there: str, authority: Identity | None = None
    ) -> None:
        self._authority = authority
        self.address = f"127.0.0.1:{free_port()}"
        self.switch = SwitchProcess(
            directory,
            *(str(PROGRAMS / "queues.json"), "-i", f"1@{there}", "--device-id", "1"),
            *("--log-console", "-L", "info"),
            *("--", "--grpc-server-addr", self.address, "--cpu-port", "510"),
            *(() if authority is None else _tls(authority)),
        )
        self.wire = Wire(here)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_round)
        self.rounds = self.lost = 0

    @property
    def where(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    def memory_kib(self) -> int:
        """What the process has in memory, and the most it ever had since `forget_peak`."""
        status = Path(f"/proc/{self.switch.process.pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1])

    def forget_peak(self) -> None:
        Path(f"/proc/{self.switch.process.pid}/clear_refs").write_text("5")

    def channel(self) -> grpc.Channel:
        if self._authority is not None:
            return secure_channel(self.address, self._authority)
        return grpc.insecure_channel(
            self.address,
            options=[
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.max_send_message_length", -1),
            ],
        )

    def _go_round(self) -> None:
        while not self._stop.is_set():
            self.wire.send(PACKET)
            if self.wire.receive(PATIENCE_S) == PACKET:
                self.rounds += 1
            else:
                self.lost += 1

    def __enter__(self) -> Victim:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.wire.close()
        self.switch.__exit__(None, None, None)


def _tls(own: Identity) -> tuple[str, ...]:
    files = ("--grpc-server-cert", str(own.certificate), "--grpc-server-key", str(own.key))
    return ("--grpc-server-ssl", *files)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Victim]:
    with under_traffic(tmp_path) as found:
        yield found


@contextmanager
def under_traffic(directory: Path, authority: Identity | None = None) -> Iterator[Victim]:
    """A switch, over TLS with a certificate that is its own authority, whose frames go round."""
    token = secrets.token_hex(3)
    here, there = f"sh{token}h", f"sh{token}s"
    create_pair(here, there)
    try:
        with Victim(directory, here, there, authority) as found:
            wait_for(lambda: found.rounds or None, found.switch.evidence)
            yield found
    finally:
        delete_pair(here)


def survive(victim: Victim, attack: Callable[[Victim], None]) -> list[str]:
    """Run an attack; what the switch logged meanwhile."""
    victim.forget_peak()
    before, lines = victim.memory_kib(), len(victim.switch.lines())
    attack(victim)
    rounds = victim.rounds
    wait_for(lambda: victim.rounds > rounds or None, victim.switch.evidence)
    assert victim.lost == 0
    assert victim.memory_kib() - before < GROWTH_KIB
    said = victim.switch.lines()[lines:]
    assert len(said) <= MAX_LINES, said
    with victim.channel() as channel:
        reply = p4r_grpc.P4RuntimeStub(channel).Capabilities(
            p4r.CapabilitiesRequest(), timeout=PATIENCE_S, wait_for_ready=True
        )
    assert reply.p4runtime_api_version
    return said


def bid(election_id: int) -> p4r.StreamMessageRequest:
    message = p4r.StreamMessageRequest()
    message.arbitration.device_id = 1
    message.arbitration.election_id.low = election_id
    return message


def a_thousand_streams(victim: Victim) -> None:
    """All opened at once, none closed in order."""
    over = threading.Event()

    def requests(number: int) -> Iterator[p4r.StreamMessageRequest]:
        yield bid(number)
        over.wait(PATIENCE_S)

    with ExitStack() as channels:
        stubs = [
            p4r_grpc.P4RuntimeStub(channels.enter_context(victim.channel())) for _ in range(10)
        ]
        calls = [stubs[i % 10].StreamChannel(requests(i + 1)) for i in range(1000)]
        wait_for(
            lambda: sum(call.done() for call in calls) >= len(calls) - MAX_STREAMS or None,
            victim.switch.evidence,
        )
        codes = {call.code() for call in calls if call.done()}
        assert codes == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        for call in calls:
            call.cancel()
        over.set()


def garbage(victim: Victim) -> None:
    """Bytes that are no messages, on every method."""
    with victim.channel() as channel:
        for name in UNARY:
            for _ in range(50):
                with pytest.raises(grpc.RpcError) as refused:
                    channel.unary_unary(SERVICE + name)(b"\xff" * 40, timeout=PATIENCE_S)
                assert refused.value.code() is grpc.StatusCode.INTERNAL
                assert refused.value.details() == f"the request is no p4.v1.{name}Request"
        for name in ("Read", "StreamChannel"):
            many = channel.stream_stream if name == "StreamChannel" else channel.unary_stream
            sent = iter([b"\xff" * 40]) if name == "StreamChannel" else b"\xff" * 40
            with pytest.raises(grpc.RpcError) as refused:
                list(many(SERVICE + name)(sent, timeout=PATIENCE_S))
            assert refused.value.code() is grpc.StatusCode.INTERNAL
    for _ in range(100):
        with socket.create_connection(victim.where) as noise:
            noise.sendall(os.urandom(300))


def pipelines_of_every_kind(victim: Victim) -> None:
    """Too large, too deep, of nothing, and of far too much."""
    program = json.loads((PROGRAMS / "queues.json").read_text())
    registers = [{"name": f"r{i}", "id": i, "size": 1 << 16, "bitwidth": 32} for i in range(5000)]
    states = [
        {
            "name": f"s{i}",
            "id": i,
            "parser_ops": [],
            "transition_key": [],
            "transitions": [
                {"type": "default", "value": None, "mask": None, "next_state": f"s{i + 1}"}
            ],
        }
        for i in range(2000)
    ]
    states[-1]["transitions"] = []
    parser = program["parsers"][0] | {"init_state": "s0", "parse_states": states}
    size = MAX_MESSAGE - 1000
    bodies = {
        b"\0" * (MAX_MESSAGE + 1): grpc.StatusCode.RESOURCE_EXHAUSTED,
        b"[" * size: grpc.StatusCode.INVALID_ARGUMENT,
        b'{"a":' * (size // 5): grpc.StatusCode.INVALID_ARGUMENT,
        b"[0" + b",0" * (size // 2 - 2) + b"]": grpc.StatusCode.INVALID_ARGUMENT,
        b'"' + b"x" * (size - 2) + b'"': grpc.StatusCode.INVALID_ARGUMENT,
        b"9" * size: grpc.StatusCode.INVALID_ARGUMENT,
        b"": grpc.StatusCode.INVALID_ARGUMENT,
        b"{}": grpc.StatusCode.INVALID_ARGUMENT,
        b"null": grpc.StatusCode.INVALID_ARGUMENT,
        os.urandom(1000): grpc.StatusCode.INVALID_ARGUMENT,
        json.dumps(program | {"parsers": [parser]}).encode(): grpc.StatusCode.UNIMPLEMENTED,
        json.dumps(program | {"register_arrays": registers}).encode(): None,
    }
    with victim.channel() as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        for body, code in bodies.items():
            request = p4r.SetForwardingPipelineConfigRequest(device_id=1)
            request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            request.config.p4_device_config = body
            if code is None:
                stub.SetForwardingPipelineConfig(request, timeout=PATIENCE_S)
                continue
            with pytest.raises(grpc.RpcError) as refused:
                stub.SetForwardingPipelineConfig(request, timeout=PATIENCE_S)
            assert refused.value.code() is code, refused.value.details()
            assert "Traceback" not in refused.value.details()


def a_client_that_does_not_listen(victim: Victim) -> None:
    """It asks for errors without end, and takes none of them."""
    wrong = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(1000)))
    asked = 0
    over = threading.Event()

    def requests() -> Iterator[p4r.StreamMessageRequest]:
        nonlocal asked
        yield bid(5)
        until = time.monotonic() + 2
        while time.monotonic() < until:
            asked += 1
            yield wrong
        over.wait(PATIENCE_S)

    with victim.channel() as channel:
        call = p4r_grpc.P4RuntimeStub(channel).StreamChannel(requests())
        wait_for(lambda: asked > 300 or None, victim.switch.evidence)
        call.cancel()
        over.set()


def a_client_that_bids_without_end(victim: Victim) -> None:
    """Another hears of every new primary, and does not listen."""
    over = threading.Event()

    def quiet() -> Iterator[p4r.StreamMessageRequest]:
        yield bid(1)
        over.wait(PATIENCE_S)

    def loud() -> Iterator[p4r.StreamMessageRequest]:
        yield from (bid(number) for number in range(2, 5_000))
        over.wait(PATIENCE_S)

    with victim.channel() as channel, victim.channel() as other:
        calls = [p4r_grpc.P4RuntimeStub(channel).StreamChannel(quiet())]
        calls.append(p4r_grpc.P4RuntimeStub(other).StreamChannel(loud()))
        heard = 0
        for message in calls[1]:
            heard += 1
            if message.arbitration.election_id.low == 4_999:
                break
        assert heard == 4_998
        for call in calls:
            call.cancel()
        over.set()


def connections_that_say_nothing(victim: Victim) -> None:
    """Five hundred of them, all at once; some leave after half a greeting."""
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection(victim.where)) for _ in range(500)]
        for connection in opened[::2]:
            connection.sendall(b"PRI * HTTP/2.0\r\n")
        rounds = victim.rounds
        wait_for(lambda: victim.rounds > rounds + 10 or None, victim.switch.evidence)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (a_thousand_streams, "Too many connections: 16 streams are open to this device"),
        (garbage, "bad request: the request is no p4.v1.WriteRequest, from ipv4:127.0.0.1"),
        (pipelines_of_every_kind, None),
        (a_client_that_does_not_listen, None),
        (a_client_that_bids_without_end, None),
        (connections_that_say_nothing, None),
    ],
)
def test_it_survives(victim: Victim, attack: Callable[[Victim], None], words: str | None) -> None:
    said = survive(victim, attack)
    if words is not None:
        assert any(words in line for line in said), said


def handshakes_that_hang(victim: Victim) -> None:
    """Four hundred and fifty, some of them cut within the greeting; then clients that are well."""
    with ExitStack() as stack:
        half_handshakes(stack, victim.where, 150)
        rounds = victim.rounds
        wait_for(lambda: victim.rounds > rounds + 10 or None, victim.switch.evidence)
        with victim.channel() as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            for _ in range(20):
                stub.Capabilities(
                    p4r.CapabilitiesRequest(), timeout=PATIENCE_S, wait_for_ready=True
                )


@pytest.mark.skipif(certificates.why_none() is not None, reason=str(certificates.why_none()))
def test_it_survives_handshakes_that_hang(tmp_path: Path) -> None:
    own = identity(tmp_path, certificates.NAME, None)
    with under_traffic(tmp_path, own) as victim:
        survive(victim, handshakes_that_hang)
