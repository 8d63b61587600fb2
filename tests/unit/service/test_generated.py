"""The committed Python of the API belongs to its proto."""

from __future__ import annotations

from controller.service import generate
from controller.service.rpc import METHODS, SERVICE


def test_committed_code_is_fresh() -> None:
    assert generate.stale() == [], "run `make proto`"


def test_every_method_of_the_proto_is_known() -> None:
    text = generate.PROTO.read_text(encoding="utf-8")
    assert {f"rpc {name}(" in text for name in METHODS} == {True}
    assert text.count("  rpc ") == len(METHODS)
    assert METHODS["WatchStatus"].is_stream
    assert METHODS["StartJob"].path == f"/{SERVICE.full_name}/StartJob"
