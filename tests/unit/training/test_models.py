"""The tables of layers against what was published of the models."""

import pytest

from p4src.constants import LANES
from traffic.errors import ConfigError
from traffic.training import MODELS, Ordering, Schedule, compress
from traffic.training.schedule import PATTERNS, patterns, values


@pytest.mark.parametrize(
    ("name", "parameters", "millions", "multiplications", "layers"),
    [
        # Parameters exactly as the architectures give them; millions as the papers and model
        # collections state them; multiplications of a forward pass, in billions.
        ("alexnet", 61_100_840, 61.1, 0.71, 8),
        ("vgg16", 138_357_544, 138.4, 15.5, 16),
        ("resnet50", 25_557_032, 25.6, 4.1, 54),
        ("bert-base", 109_482_240, 110, 11.2, 26),
    ],
)
def test_totals_are_the_published_ones(
    name: str, parameters: int, millions: float, multiplications: float, layers: int
) -> None:
    model = MODELS[name]
    assert model.parameters == parameters
    assert model.parameters / 1e6 == pytest.approx(millions, rel=0.005)
    assert model.multiplications / 1e9 == pytest.approx(multiplications, rel=0.01)
    assert len(model.layers) == layers
    assert len({layer.name for layer in model.layers}) == layers


def test_single_layers() -> None:
    vgg = {layer.name: layer for layer in MODELS["vgg16"].layers}
    assert vgg["conv1_1"].parameters == 1_792
    assert vgg["fc6"].parameters == 102_764_544
    assert vgg["conv1_2"].multiplications == 64 * 64 * 9 * 224 * 224
    bert = MODELS["bert-base"].layers
    assert bert[0].parameters == 23_837_184
    assert bert[1].parameters + bert[2].parameters == 7_087_872


def test_compression_rounds_up_and_keeps_times() -> None:
    model = MODELS["vgg16"]
    layers = compress(model, factor=1000, batch=2, multiplications_per_second=1e12)
    assert layers[0].chunks == 1
    assert layers[13].chunks == -(-102_764_544 // (32 * 1000))
    forward = sum(layer.forward for layer in layers)
    assert forward == pytest.approx(model.multiplications * 2 * 1e-3, rel=1e-6)
    assert sum(layer.backward for layer in layers) == 2 * forward
    with pytest.raises(ConfigError, match="must be positive"):
        compress(model, factor=0, batch=1, multiplications_per_second=1)


def test_schedule() -> None:
    layers = compress(MODELS["alexnet"], factor=8192, batch=1, multiplications_per_second=1e12)
    schedule = Schedule(layers=layers, iterations=1, window=1, ordering=Ordering.READY)
    assert schedule.chunks == sum(layer.chunks for layer in layers) == len(schedule.layer_of())
    assert schedule.pool // 2 < schedule.chunks <= schedule.pool
    for layer, first in enumerate(schedule.first_chunks()):
        assert schedule.layer_of()[first] == layer
        assert first == 0 or schedule.layer_of()[first - 1] == layer - 1
    with pytest.raises(ConfigError, match="iterations is 0"):
        Schedule(layers=layers, iterations=0, window=1, ordering=Ordering.READY)
    with pytest.raises(ConfigError, match="window is 0"):
        Schedule(layers=layers, iterations=1, window=0, ordering=Ordering.READY)
    with pytest.raises(ConfigError, match="needs layers"):
        Schedule(layers=(), iterations=1, window=1, ordering=Ordering.READY)


def test_chunks_that_share_a_slot_have_other_values() -> None:
    rows = [tuple(row) for row in patterns()]
    assert len(set(rows)) == PATTERNS
    assert {len(row) for row in rows} == {LANES}
    assert max(abs(value) for row in rows for value in row) <= 1_000_000
    for pool in (64, 256, 1024, 2048):
        assert values(0, 5) != values(0, 5 + pool)
    assert len({values(rank, 9) for rank in range(PATTERNS)}) == PATTERNS
