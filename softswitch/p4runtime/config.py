"""The forwarding pipeline of one device, as P4Runtime pushes and reads it."""

from __future__ import annotations

import time

import grpc
from finsy.proto import p4r

from softswitch.device import Device
from softswitch.errors import SoftswitchError
from softswitch.p4runtime import agreement, reconcile
from softswitch.p4runtime.notices import Digests
from softswitch.p4runtime.p4info import Field, PipelineInfo
from softswitch.p4runtime.status import RefusedError, invalid, refusal
from softswitch.p4runtime.writes import Pipeline

_Push = p4r.SetForwardingPipelineConfigRequest
_Get = p4r.GetForwardingPipelineConfigRequest


class ConfigPool:
    """Lets devices that are pushed the same config, one after the other, keep one copy of it.

    A network's switches run one program: without this 255 devices would hold 255 copies.
    """

    def __init__(self) -> None:
        self._last: tuple[p4r.ForwardingPipelineConfig, PipelineInfo] | None = None

    def read(
        self, config: p4r.ForwardingPipelineConfig
    ) -> tuple[p4r.ForwardingPipelineConfig, PipelineInfo]:
        """Return an equal config to keep, and the index of its P4Info; raises RefusedError."""
        if self._last is None or self._last[0] != config:
            self._last = (config, PipelineInfo.read(config.p4info))
        return self._last


class Configuration:
    """What is saved, and what runs, on one device.

    The config message is kept as it came, for it has to be given back.
    """

    def __init__(self, device: Device, pool: ConfigPool) -> None:
        self._device = device
        self._pool = pool
        self._saved: p4r.ForwardingPipelineConfig | None = None
        self._committed: p4r.ForwardingPipelineConfig | None = None
        self._pipeline: Pipeline | None = None

    def running(self) -> Pipeline:
        """Return the running pipeline; raises RefusedError (FAILED_PRECONDITION) before a push."""
        if self._pipeline is None:
            raise RefusedError(
                grpc.StatusCode.FAILED_PRECONDITION,
                "No forwarding pipeline config set for this device",
            )
        return self._pipeline

    @property
    def pipeline(self) -> Pipeline | None:
        """The running pipeline, or None before a push."""
        return self._pipeline

    @property
    def device_config(self) -> bytes | None:
        """The program that was pushed and runs, or None before a push."""
        return None if self._committed is None else self._committed.p4_device_config

    def packet_in_fields(self) -> tuple[Field, ...] | None:
        """Return the fields of the packet-in header, or None before a push."""
        return None if self._pipeline is None else self._pipeline.info.packet_in

    def push(self, action: _Push.Action.ValueType, config: p4r.ForwardingPipelineConfig) -> None:
        """Verify, save or commit `config`.

        Raises RefusedError: INVALID_ARGUMENT for a config that is not one, UNIMPLEMENTED for a
        program with a construct that the device does not run (named in the text),
        FAILED_PRECONDITION for a COMMIT without anything saved, UNKNOWN where what is written
        cannot be reconciled with it. The running pipeline is then as before.
        """
        match action:
            case _Push.VERIFY:
                self._verify(config)
            case _Push.VERIFY_AND_SAVE:
                self._saved, _ = self._verify(config)
            case _Push.VERIFY_AND_COMMIT:
                self._commit(config)
            case _Push.COMMIT:
                if self._saved is None:
                    raise RefusedError(
                        grpc.StatusCode.FAILED_PRECONDITION,
                        "nothing is saved to commit: push with VERIFY_AND_SAVE first",
                    )
                self._commit(self._saved)
            case _Push.RECONCILE_AND_COMMIT:
                self._reconcile(config)
            case _:
                said = f"{action} is none" if action else "it is not set"
                raise invalid(f"Invalid SetForwardingPipeline action: {said}")

    def read(self, response_type: _Get.ResponseType.ValueType) -> p4r.ForwardingPipelineConfig:
        """Return the parts of the running config that `response_type` asks for."""
        self.running()
        committed = self._committed
        config = p4r.ForwardingPipelineConfig()
        if committed is None:
            return config
        if response_type not in (
            _Get.ALL,
            _Get.COOKIE_ONLY,
            _Get.P4INFO_AND_COOKIE,
            _Get.DEVICE_CONFIG_AND_COOKIE,
        ):
            raise invalid("Invalid response_type in GetForwardingPipelineConfigRequest")
        if response_type in (_Get.ALL, _Get.P4INFO_AND_COOKIE):
            config.p4info.CopyFrom(committed.p4info)
        if response_type in (_Get.ALL, _Get.DEVICE_CONFIG_AND_COOKIE):
            config.p4_device_config = committed.p4_device_config
        if committed.HasField("cookie"):
            config.cookie.CopyFrom(committed.cookie)
        return config

    def _verify(
        self, config: p4r.ForwardingPipelineConfig
    ) -> tuple[p4r.ForwardingPipelineConfig, PipelineInfo]:
        """Return the config to keep and the index of its P4Info; raises RefusedError."""
        kept, info = self._pool.read(config)
        try:
            program = self._device.check_pipeline(kept.p4_device_config)
        except SoftswitchError as error:
            raise refusal(error) from error
        agreement.check(info, program)
        return kept, info

    def _commit(self, config: p4r.ForwardingPipelineConfig) -> None:
        kept, info = self._verify(config)
        try:
            self._device.load_pipeline(kept.p4_device_config)
        except SoftswitchError as error:
            raise refusal(error) from error
        self._saved = None
        self._committed = kept
        self._pipeline = Pipeline(info, Digests(info, time.monotonic_ns))

    def _reconcile(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Commit `config` with all that is held, in one step; before a first push just commit it.

        Packets see the old program or the new one with its entries, never one without.
        """
        if self._pipeline is None:
            self._commit(config)
            return
        kept, info = self._verify(config)
        updates = reconcile.held(self._device, self._pipeline)
        staged = self._device.stage_pipeline(kept.p4_device_config)
        digests = Digests(info, time.monotonic_ns)
        pipeline = Pipeline(info, digests)
        reconcile.take_over(staged, pipeline, updates)
        digests.succeed(self._pipeline.digests)
        self._device.succeed(staged)
        self._saved = None
        self._committed = kept
        self._pipeline = pipeline
