"""Synthetic values never overflow; digits are learned, the same whoever computes the sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from p4src.constants import LANES
from traffic.errors import ConfigError
from traffic.workloads import DigitsTraining, exact_sums, synthetic, train_without_network

INT32_MAX = 2**31 - 1


@given(st.integers(1, 50), st.integers(0, 5), st.integers(0, 2**32))
def test_synthetic_values_fit_and_are_reproducible(workers: int, chunks: int, seed: int) -> None:
    values = synthetic(workers, chunks, seed)
    assert values.shape == (workers, chunks, LANES)
    assert values.dtype == np.int32
    assert workers * int(np.abs(values.astype(np.int64)).max(initial=0)) <= INT32_MAX
    assert (values == synthetic(workers, chunks, seed)).all()


def test_synthetic_values_use_the_whole_range_and_differ() -> None:
    values = synthetic(4, 200, seed=1).astype(np.int64)
    limit = INT32_MAX // 4
    assert values.max() > 0.99 * limit
    assert values.min() < -0.99 * limit
    assert len(np.unique(values[:, 0, 0])) == 4
    assert (values != synthetic(4, 200, seed=2)).mean() > 0.99


def test_a_workers_stream_does_not_depend_on_the_number_of_chunks() -> None:
    assert (synthetic(3, 10, seed=1)[:, :4] == synthetic(3, 4, seed=1)).all()


@pytest.mark.parametrize("workers", [1, 16, 37])
def test_training_reaches_ninety_percent(workers: int) -> None:
    run = train_without_network(workers, rounds=25)
    assert run.accuracies[-1] > 0.9
    assert run.accuracies[-1] > run.accuracies[0]


def test_fixed_point_follows_the_training_in_floating_point() -> None:
    training = DigitsTraining(16)
    single = DigitsTraining(1)
    for round_ in range(5):
        training.apply(exact_sums(training.gradients(round_)))
        single.apply(exact_sums(single.gradients(round_)))
    # One worker has 16 times the precision; both stay within what rounding can add up to.
    assert np.abs(training.weights - single.weights).max() < 1e-5


def test_weights_are_equal_bit_for_bit_however_the_sums_are_made() -> None:
    def pairwise_in_int32(values: NDArray[np.int32]) -> NDArray[np.int32]:
        total = np.zeros(values.shape[1:], dtype=np.int32)
        for worker in reversed(range(len(values))):
            total += values[worker]
        return total

    reference = train_without_network(16, rounds=10, seed=4)
    other = DigitsTraining(16, seed=4).train(10, pairwise_in_int32)
    assert other.weights.tobytes() == reference.weights.tobytes()
    assert other.accuracies == reference.accuracies


def test_one_wrong_lane_shows() -> None:
    def off_by_one(values: NDArray[np.int32]) -> NDArray[np.int64]:
        sums = exact_sums(values)
        sums[0, 0] += 1
        return sums

    reference = train_without_network(16, rounds=3)
    other = DigitsTraining(16).train(3, off_by_one)
    assert other.weights.tobytes() != reference.weights.tobytes()


def test_gradients_are_lanes_of_the_known_shape_padded_with_zeros() -> None:
    training = DigitsTraining(16)
    lanes = training.gradients(0)
    assert lanes.shape == (16, training.chunks, LANES)
    assert lanes.dtype == np.int32
    assert lanes.any(axis=(1, 2)).all()
    size = training.weights.size
    assert (lanes.reshape(16, -1)[:, size:] == 0).all()
    assert training.chunks == -(-size // LANES)


def test_rounds_come_in_order_and_sums_in_shape() -> None:
    training = DigitsTraining(4)
    with pytest.raises(ConfigError, match="round 1 is not next: 0 rounds are applied"):
        training.gradients(1)
    with pytest.raises(ConfigError, match="sums have the shape"):
        training.apply(np.zeros((1, LANES), dtype=np.int32))
    training.apply(exact_sums(training.gradients(0)))
    assert training.round == 1
    with pytest.raises(ConfigError, match="round 0 is not next"):
        training.gradients(0)


def test_too_many_workers_are_refused() -> None:
    with pytest.raises(ConfigError, match="2000 workers cannot share 1437 training images"):
        DigitsTraining(2000)
