"""Block exponents: the documented error bound holds, whatever the values and the workers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from traffic.collectives.blocks import FLOATS, Blocks, error_bound, mantissa_bits
from traffic.message import LANE_MAX

LANES = 8
TYPES: list[Any] = [np.float32, np.float64]
_SMALLEST = {dtype: Fraction(float(np.finfo(dtype).smallest_subnormal)) for dtype in TYPES}


def summed(values: list[NDArray[Any]]) -> tuple[NDArray[Any], list[Blocks]]:
    """What all workers get: each value encoded under the common exponents, summed, decoded."""
    parts = [Blocks(array, len(values), LANES) for array in values]
    agreed = np.max([part.exponents for part in parts], axis=0)
    sums = np.zeros((parts[0].blocks, LANES), dtype=np.int64)
    for part in parts:
        for block in range(part.blocks):
            lanes = np.frombuffer(part.encode(block, int(agreed[block])), dtype=">i4")
            sums[block] += lanes
    assert np.abs(sums).max(initial=0) <= LANE_MAX
    return parts[0].decode(sums.astype(np.int32), agreed), parts


def magnitudes(dtype: Any) -> st.SearchStrategy[float]:
    narrow = st.floats(allow_nan=False, allow_infinity=False, width=32)
    return narrow if dtype is np.float32 else st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("dtype", TYPES)
@given(data=st.data())
def test_every_sum_is_within_the_bound(dtype: Any, data: st.DataObject) -> None:
    workers = data.draw(st.integers(1, 5))
    count = data.draw(st.integers(0, 20))
    row = st.lists(magnitudes(dtype), min_size=count, max_size=count)
    values = [np.array(data.draw(row), dtype=dtype) for _ in range(workers)]
    got, _ = summed(values)
    assert got.dtype == dtype
    assert got.shape == (count,)
    in_block = LANES // FLOATS[np.dtype(dtype)]
    for i in range(count):
        block = slice(i // in_block * in_block, (i // in_block + 1) * in_block)
        largest = max(float(np.abs(array[block]).max()) for array in values)
        exact = sum((Fraction(float(array[i])) for array in values), Fraction(0))
        if not np.isfinite(got[i]):
            # More than the type holds, by the bound at most.
            assert abs(exact) + Fraction(error_bound(dtype, workers, largest)) > Fraction(
                float(np.finfo(dtype).max)
            )
            continue
        # One unit in the last place; that of the largest number leads to infinity, so downwards.
        below = float(np.nextafter(np.abs(got[i]), dtype(0)))
        rounding = max(Fraction(float(np.abs(got[i]))) - Fraction(below), _SMALLEST[dtype])
        assert abs(Fraction(float(got[i])) - exact) <= (
            Fraction(error_bound(dtype, workers, largest)) + rounding
        )


@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_of_very_different_size_keep_their_precision(dtype: Any) -> None:
    """From 1e-30 to 1e30 in one array, a decade a block: each is as precise as any other."""
    workers, rng = 16, np.random.default_rng(1)
    in_block = LANES // FLOATS[np.dtype(dtype)]
    scale = np.repeat(10.0 ** np.arange(-30, 31), in_block)
    values = [(rng.uniform(-1, 1, scale.size) * scale).astype(dtype) for _ in range(workers)]
    got, _ = summed(values)
    exact = np.sum(np.array(values, dtype=np.longdouble), axis=0)
    relative = np.abs((got - exact) / scale)
    # M <= 1 in units of the block: workers * 2**-b, or workers * 2**-(2b + 1), and the rounding.
    bits = mantissa_bits(workers)
    bound = workers * 2.0 ** -(bits if dtype is np.float32 else 2 * bits + 1)
    assert relative.max() <= bound + workers * np.finfo(dtype).eps


@pytest.mark.parametrize("workers", [1, 2, 3, 16, 1024, 65535])
def test_no_sum_leaves_int32(workers: int) -> None:
    """The largest value of a block at every worker."""
    bits = mantissa_bits(workers)
    assert workers * 2**bits <= LANE_MAX < workers * 2 ** (bits + 1)
    for dtype in TYPES:
        info = np.finfo(dtype)
        for value in (info.max, -info.max, info.tiny, info.smallest_subnormal, 1.0, -1.0):
            part = Blocks(np.full(3, value, dtype=dtype), workers, LANES)
            lanes = np.frombuffer(part.encode(0, int(part.exponents[0])), dtype=">i4")
            assert np.abs(lanes.astype(np.int64)).max() <= 2**bits


@pytest.mark.parametrize("dtype", TYPES)
def test_zeros_ask_for_no_exponent(dtype: Any) -> None:
    got, parts = summed([np.zeros(5, dtype=dtype), np.array([0, 0, -0.0, 0, 0], dtype=dtype)])
    assert not np.any(parts[0].exponents)
    assert got.tolist() == [0] * 5


def test_a_power_of_two_is_exact() -> None:
    got, _ = summed([np.array([2.0**-100] * 9, dtype=np.float32)] * 4)
    assert got.tolist() == [2.0**-98] * 9


@pytest.mark.parametrize("dtype", TYPES)
def test_a_mean_is_formed_before_it_is_rounded(dtype: Any) -> None:
    """The sum of two of the largest values fits no float, their mean does."""
    largest = np.finfo(dtype).max
    part = Blocks(np.full(2, largest, dtype=dtype), 2, LANES)
    lanes = np.frombuffer(part.encode(0, int(part.exponents[0])), dtype=">i4")
    sums = (2 * lanes.astype(np.int32)).reshape(1, -1)
    assert np.isinf(part.decode(sums, part.exponents)).all()
    mean = part.decode(sums, part.exponents, divisor=2)
    assert np.abs(mean / largest - 1).max() < 2.0**-20
