"""Switches over P4Runtime: names instead of ids, typed errors, a deadline on every RPC.

schema    the P4 program's names; values of `controller.program` <-> messages
diff      what to write so that a switch holds what it should
session   one switch
fleet     all of them; `connect` is where to start
blocking  the same for code without an event loop
errors    what may go wrong, each with the switch's name
"""

from controller.p4rt.blocking import BlockingFleet, connect_blocking
from controller.p4rt.diff import diff
from controller.p4rt.errors import (
    DeadlineExceededError,
    EntryRefusedError,
    NotPrimaryError,
    PipelineMissingError,
    PipelineRefusedError,
    Refusal,
    RequestRefusedError,
    SchemaError,
    SwitchError,
    SwitchUnreachableError,
)
from controller.p4rt.fleet import CounterValue, Fleet, connect, fleet_of
from controller.p4rt.schema import Artefacts, Schema
from controller.p4rt.session import SwitchAddress

__all__ = [
    "Artefacts",
    "BlockingFleet",
    "CounterValue",
    "DeadlineExceededError",
    "EntryRefusedError",
    "Fleet",
    "NotPrimaryError",
    "PipelineMissingError",
    "PipelineRefusedError",
    "Refusal",
    "RequestRefusedError",
    "Schema",
    "SchemaError",
    "SwitchAddress",
    "SwitchError",
    "SwitchUnreachableError",
    "connect",
    "connect_blocking",
    "diff",
    "fleet_of",
]
