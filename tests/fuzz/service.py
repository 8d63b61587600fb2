"""Damaged P4Runtime requests over a real channel: each is answered, never by a broken server."""

import random
from types import TracebackType

import grpc
from finsy.proto import U128, p4r
from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from controller.p4rt import SwitchAddress
from softswitch import Device
from softswitch.p4runtime import P4RuntimeServer, ServerThread
from tests.differential.cases import CASES, Case
from tests.differential.entries import EntryMaker
from tests.differential.packets import Domains
from tests.fuzz.inputs import Steered
from tests.packet.targets_stub import Stream, StubClient

DEADLINE_S = 10.0
_ELECTION = 10
_BROKEN = frozenset([grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED])
_SEEDS = 8


class ServiceFuzzer:
    """One server with a device, its primary, and valid requests to damage."""

    def __init__(self) -> None:
        # a C compiler takes a second for every pipeline that still loads
        self._device = Device(device_id=1, cpu_port=510, backend="python")
        self._server = ServerThread(P4RuntimeServer([self._device]))
        self._client = StubClient(SwitchAddress("fuzzed", self._server.start(), 1))
        self._stub = self._client.stub
        self._primary = self._lead()
        self._valid: list[Message] = []
        for case in CASES:
            self._valid += _requests(case)

    def feed(self, data: bytes) -> None:
        """One request: `data` chooses and damages it. AssertionError if the server breaks."""
        draw = Steered(data)
        chosen = draw.choice(self._valid)
        text = bytearray(chosen.SerializeToString())
        for _ in range(draw.choice([0, 1, 1, 2, 8])):
            _damage(text, draw)
        request = type(chosen)()
        try:
            request.ParseFromString(bytes(text))
        except DecodeError:
            return  # the client library itself would not send it
        self._send(request)

    def _send(self, request: Message) -> None:
        try:
            match request:
                case p4r.WriteRequest():
                    self._stub.Write(request, timeout=DEADLINE_S)
                case p4r.ReadRequest():
                    list(self._stub.Read(request, timeout=DEADLINE_S))
                case p4r.SetForwardingPipelineConfigRequest():
                    self._stub.SetForwardingPipelineConfig(request, timeout=DEADLINE_S)
                case p4r.GetForwardingPipelineConfigRequest():
                    self._stub.GetForwardingPipelineConfig(request, timeout=DEADLINE_S)
                case p4r.StreamMessageRequest():
                    self._stream(request)
                    return
        except grpc.RpcError as error:
            _check(error, request)

    def _stream(self, request: p4r.StreamMessageRequest) -> None:
        """As the primary, whose stream may end by it; then all answers come, and the end."""
        self._primary.send(request)
        self._primary.close()
        self._primary = self._lead()

    def _lead(self) -> Stream:
        stream = self._client.stream()
        status, _ = stream.become(_ELECTION)
        assert status == grpc.StatusCode.OK.value[0]
        return stream

    def close(self) -> None:
        """End the channel and the server."""
        self._client.close()
        self._server.stop()

    def __enter__(self) -> "ServiceFuzzer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _bid() -> p4r.StreamMessageRequest:
    bid = p4r.StreamMessageRequest()
    bid.arbitration.device_id = 1
    bid.arbitration.election_id.CopyFrom(U128.encode(_ELECTION))
    return bid


def _check(error: grpc.RpcError, request: Message) -> None:
    shown = text_format.MessageToString(request, as_one_line=True)[:400]
    code, details = error.code(), error.details() or ""
    assert code not in _BROKEN, f"{code.name} {details} for {shown}"
    assert "Traceback" not in details, f"{details} for {shown}"
    if code == grpc.StatusCode.UNKNOWN:
        # of a batch with refused updates; each has its own status in the trailing metadata
        keys = [key for key, _ in error.trailing_metadata() or ()]
        assert "grpc-status-details-bin" in keys, f"UNKNOWN {details} for {shown}"


def _damage(text: bytearray, draw: random.Random) -> None:
    at = draw.randrange(len(text) + 1)
    match draw.randrange(4):
        case 0 if text:
            text[at % len(text)] = draw.randrange(256)
        case 1:
            text[at:at] = draw.randbytes(draw.randint(1, 4))
        case 2:
            del text[at : at + draw.randint(1, 4)]
        case _ if text:
            text[at % len(text)] ^= 1 << draw.randrange(8)


def _requests(case: Case) -> list[Message]:
    """Valid requests about one program, the push of it first."""
    election = U128.encode(_ELECTION)
    push = p4r.SetForwardingPipelineConfigRequest(device_id=1, election_id=election)
    push.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    push.config.p4info.CopyFrom(case.p4info)
    push.config.p4_device_config = case.artefacts.json
    found: list[Message] = [push]
    for seed in range(_SEEDS):
        draw = random.Random(seed)
        updates = EntryMaker(case.program, case.p4info, draw, Domains(draw)).updates()
        for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
            batch = [p4r.Update(type=kind, entity=u.entity) for u in draw.sample(updates, 3)]
            found.append(p4r.WriteRequest(device_id=1, election_id=election, updates=batch))
        wanted = [u.entity for u in draw.sample(updates, 3)]
        found.append(p4r.ReadRequest(device_id=1, entities=wanted))
    found += [
        p4r.GetForwardingPipelineConfigRequest(device_id=1),
        p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=bytes(20))),
        _bid(),
    ]
    return found
