"""Short runs of what the fuzzers run for long: seeded, so that a failure comes back."""

import json
import random

import pytest

from tests.fuzz import inputs
from tests.fuzz.packets import Task, run
from tests.fuzz.service import ServiceFuzzer

PACKETS = 10_000


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("name", inputs.program_names())
def test_random_packets_leave_no_trace(name: str, filled: bool) -> None:
    count = PACKETS // len(inputs.program_names()) // 2
    report = run(Task(name, count, seed=1, filled=filled))
    assert report.stray == ""
    assert not report.leaks, f"{report.grown} bytes, {report.heap} of the heap"


@pytest.mark.parametrize("seed", range(60))
def test_damaged_pipelines_are_refused_or_run(seed: int) -> None:
    inputs.load_damaged(seed.to_bytes(4))


def test_any_bytes_as_a_pipeline_are_refused() -> None:
    draw = random.Random(1)
    for _ in range(200):
        inputs.load(draw.randbytes(draw.randrange(200)))
    intact = inputs.pipeline("tables")
    for _ in range(60):
        cut = bytearray(intact)
        for _ in range(draw.randint(1, 3)):
            cut[draw.randrange(len(cut))] = draw.randrange(256)
        inputs.load(bytes(cut))


def test_deep_json_is_refused() -> None:
    inputs.load(b"[" * 100_000)
    inputs.load(json.dumps({"parsers": [{"parse_states": [[]]}]}).encode())


def test_damaged_requests_are_answered() -> None:
    with ServiceFuzzer() as fuzzer:
        for seed in range(400):
            fuzzer.feed(seed.to_bytes(4))
