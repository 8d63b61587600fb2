"""Messages and constants that the tests of this folder share."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4r

from controller.p4rt import Schema
from controller.program import TableEntry

OK, ALREADY_EXISTS = 0, 6
ME = 1 << 100
"""An election id that needs more than 64 bits."""

DST = 0x02_00_00_00_00_01


def entry(schema: Schema, port: int = 2, dst: int = DST) -> p4r.Entity:
    return schema.entity(TableEntry.of("forward", {"dst_addr": dst}, "to_port", {"port": port}))


def insert(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.INSERT, entity=entity)


def modify(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def delete(entity: p4r.Entity) -> p4r.Update:
    return p4r.Update(type=p4r.Update.DELETE, entity=entity)


def refused(error: pytest.ExceptionInfo[grpc.RpcError]) -> str:
    name: str = error.value.code().name
    return name
