"""What workers send: synthetic numbers, or the gradients of a model that they train together.

The second is softmax regression on scikit-learn's digits (1,797 images of 8 x 8 pixels): every
worker holds a shard of the training images and sends, each round, its part of the full-batch
gradient in fixed point; the sum is applied with momentum. Everything but the sum is computed here,
so that a run whose sums come from a network can be compared bit for bit with one whose sums come
from numpy.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from p4src.constants import LANES
from traffic.errors import ConfigError
from traffic.message import LANE_MAX
from traffic.quantise import Quantiser

CLASSES = 10
_PIXEL_MAX = 16.0
_HELD_OUT = 360
_LEARNING_RATE = 1.5
_MOMENTUM = 0.8


def synthetic(workers: int, chunks: int, seed: int, lanes: int = LANES) -> NDArray[np.int32]:
    """Values [workers, chunks, lanes], uniform over all that no sum of `workers` can overflow.

    Each worker's come from a stream of its own: they do not depend on how many others there are,
    but for the range.
    """
    limit = LANE_MAX // workers
    streams = np.random.SeedSequence(seed).spawn(workers)
    values = np.empty((workers, chunks, lanes), dtype=np.int32)
    for worker, stream in enumerate(streams):
        generator = np.random.default_rng(stream)
        values[worker] = generator.integers(
            -limit, limit, (chunks, lanes), dtype=np.int32, endpoint=True
        )
    return values


def exact_sums(
    values: NDArray[np.int32], without: Mapping[int, frozenset[int]] = MappingProxyType({})
) -> NDArray[np.int64]:
    """Sums over the workers of values [workers, chunks, lanes], in 64 bits.

    `without`: the ranks whose values are not in a sum, by chunk.
    """
    sums: NDArray[np.int64] = values.sum(axis=0, dtype=np.int64)
    for chunk, ranks in without.items():
        for rank in ranks:
            sums[chunk] -= values[rank, chunk]
    return sums


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """How a training went: accuracy on held-out images after each round, and the final weights."""

    accuracies: tuple[float, ...]
    weights: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Shard:
    """Training images of one worker, [images, pixels + 1], and their classes one-hot."""

    images: NDArray[np.float64]
    targets: NDArray[np.float64]


class DigitsTraining:
    """Softmax regression trained by `workers` workers; a round is gradients, sum, apply.

    Raises ConfigError if there are more workers than training images. `lanes` shapes the chunks.
    """

    def __init__(self, workers: int = 16, seed: int = 0, lanes: int = LANES) -> None:
        train, held_out = _load(seed)
        count = len(train.images)
        if not 1 <= workers <= count:
            raise ConfigError(
                f"{workers} workers cannot share {count} training images: use 1 to {count}"
            )
        self._train_count = count
        self._held_out = held_out
        self._shards = [
            _Shard(images, targets)
            for images, targets in zip(
                np.array_split(train.images, workers),
                np.array_split(train.targets, workers),
                strict=True,
            )
        ]
        self._weights = np.zeros((train.images.shape[1], CLASSES))
        self._velocity = np.zeros_like(self._weights)
        self._lanes = lanes
        self._round = 0
        self.workers = workers
        self.chunks = -(-self._weights.size // lanes)
        # A pixel is at most 1 and a probability at most 1 off, so a worker's part of the mean
        # gradient is at most its share of the images: known before the first round.
        self.quantiser = Quantiser(workers, max(len(s.images) for s in self._shards) / count)

    @property
    def round(self) -> int:
        """Rounds applied so far."""
        return self._round

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights [pixels + 1, classes], the last row the bias; a copy."""
        return self._weights.copy()

    def gradients(self, round_: int) -> NDArray[np.int32]:
        """Lanes [workers, chunks, lanes] of each worker's part of the gradient of a round.

        Raises ConfigError unless that is the next round: its gradient needs the sums before.
        """
        if round_ != self._round:
            raise ConfigError(f"round {round_} is not next: {self._round} rounds are applied")
        padded = np.zeros((self.workers, self.chunks * self._lanes), dtype=np.int32)
        for worker, shard in enumerate(self._shards):
            errors = _softmax(shard.images @ self._weights) - shard.targets
            gradient = shard.images.T @ errors / self._train_count
            padded[worker, : gradient.size] = self.quantiser.encode(gradient).ravel()
        return padded.reshape(self.workers, self.chunks, self._lanes)

    def apply(self, sums: NDArray[np.integer]) -> None:
        """Finish the round with the workers' sum [chunks, lanes]; ConfigError on another shape."""
        if sums.shape != (self.chunks, self._lanes):
            raise ConfigError(
                f"sums have the shape {list(sums.shape)}, not {[self.chunks, self._lanes]}"
            )
        flat = self.quantiser.decode(sums).ravel()[: self._weights.size]
        self._velocity = _MOMENTUM * self._velocity + flat.reshape(self._weights.shape)
        self._weights = self._weights - _LEARNING_RATE * self._velocity
        self._round += 1

    def accuracy(self) -> float:
        """Share of the held-out images that are classified right."""
        scores = self._held_out.images @ self._weights
        hits = scores.argmax(axis=1) == self._held_out.targets.argmax(axis=1)
        return float(hits.mean())

    def train(
        self, rounds: int, reduce: Callable[[NDArray[np.int32]], NDArray[np.integer]]
    ) -> TrainingRun:
        """Train with sums from `reduce`, which maps [workers, chunks, lanes] to [chunks, lanes]."""
        accuracies = []
        for _ in range(rounds):
            self.apply(reduce(self.gradients(self._round)))
            accuracies.append(self.accuracy())
        return TrainingRun(tuple(accuracies), self.weights)


def train_without_network(workers: int, rounds: int, seed: int = 0) -> TrainingRun:
    """The reference: the same training, with sums by numpy."""
    return DigitsTraining(workers, seed).train(rounds, exact_sums)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def _load(seed: int) -> tuple[_Shard, _Shard]:
    """Training and held-out images, shuffled by the seed, pixels 0 to 1 and a constant 1."""
    # Imported here since it takes a second, which only this workload should cost.
    from sklearn.datasets import load_digits

    data, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(data))
    images = np.hstack([data[order] / _PIXEL_MAX, np.ones((len(data), 1))])
    targets = np.eye(CLASSES)[labels[order]]
    return (
        _Shard(images[_HELD_OUT:], targets[_HELD_OUT:]),
        _Shard(images[:_HELD_OUT], targets[:_HELD_OUT]),
    )
