"""No sum of quantised contributions overflows, and the error is what the documentation says."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traffic.errors import QuantiseError
from traffic.quantise import Quantiser

INT32_MAX = 2**31 - 1
WORKERS = st.one_of(st.integers(1, 2000), st.integers(1, INT32_MAX))
BOUNDS = st.floats(2.0**-200, 2.0**200)


@given(WORKERS, BOUNDS)
@example(1, 1.0)
@example(2, 1.0)
@example(INT32_MAX, 1.5)
@example(3, math.nextafter(1.0, 2.0))
@example(1, float(INT32_MAX))
@example(1, INT32_MAX + 0.5)
@example(1, 2.0**31)
def test_extreme_contributions_fit_and_the_scale_is_the_largest(workers: int, bound: float) -> None:
    quantiser = Quantiser(workers, bound)
    largest, smallest = (int(lane) for lane in quantiser.encode([bound, -bound]))
    assert largest == -smallest == round(Fraction(bound) * Fraction(2) ** quantiser.exponent)
    assert 0 <= workers * largest <= INT32_MAX
    next_larger = round(Fraction(bound) * Fraction(2) ** (quantiser.exponent + 1))
    assert workers * next_larger > INT32_MAX


@given(st.data(), st.integers(1, 40), st.floats(2.0**-60, 2.0**60))
def test_error_of_a_sum_is_within_the_bound(
    data: st.DataObject, workers: int, bound: float
) -> None:
    quantiser = Quantiser(workers, bound)
    values = data.draw(st.lists(st.floats(-bound, bound), min_size=workers, max_size=workers))
    total = sum(int(quantiser.encode([value])[0]) for value in values)
    assert -INT32_MAX <= total <= INT32_MAX
    decoded = quantiser.decode(np.array([total], dtype=np.int32))[0]
    exact = sum((Fraction(value) for value in values), Fraction(0))
    assert abs(Fraction(float(decoded)) - exact) <= Fraction(quantiser.error_bound)


def test_the_error_bound_is_reached() -> None:
    quantiser = Quantiser(4, 1.0)
    half_a_unit = 0.5 / quantiser.scale
    total = 4 * int(quantiser.encode([half_a_unit])[0])
    decoded = quantiser.decode(np.array([total]))[0]
    assert abs(decoded - 4 * half_a_unit) == quantiser.error_bound


@given(WORKERS, BOUNDS)
def test_scale_and_error_bound_are_as_documented(workers: int, bound: float) -> None:
    quantiser = Quantiser(workers, bound)
    assert math.frexp(quantiser.scale)[0] == 0.5
    exact = Fraction(workers) / 2 / Fraction(quantiser.scale)
    assert Fraction(quantiser.error_bound) == exact


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.sampled_from([math.nan, math.inf, -math.inf, 1.0000001, -2.0]),
)
def test_a_bad_value_is_named_by_its_index(index: list[int], bad: float) -> None:
    values = np.zeros((5,) * len(index))
    values[tuple(index)] = bad
    with pytest.raises(QuantiseError) as caught:
        Quantiser(3, 1.0).encode(values)
    assert caught.value.index == tuple(index)
    assert f"value[{', '.join(map(str, index))}]" in str(caught.value)


def test_messages_tell_what_is_wrong() -> None:
    quantiser = Quantiser(3, 1.0)
    for value, text in (
        (math.nan, r"value\[1\] is NaN"),
        (math.inf, r"value\[1\] is infinite"),
        (1.5, r"value\[1\] is 1.5: its magnitude exceeds the bound 1.0"),
    ):
        with pytest.raises(QuantiseError, match=text):
            quantiser.encode([0.0, value, math.nan])
    with pytest.raises(QuantiseError, match=r"^value is NaN"):
        quantiser.encode(math.nan)


def test_impossible_quantisers_are_refused() -> None:
    for workers, bound in ((0, 1.0), (2**31, 1.0), (1, 0.0), (1, -1.0), (1, math.nan)):
        with pytest.raises(QuantiseError):
            Quantiser(workers, bound)
    for bound in (math.inf, 1e-300, 1e300):
        with pytest.raises(QuantiseError, match="bound is"):
            Quantiser(1, bound)
    not_integers: Any = np.zeros(1)
    with pytest.raises(QuantiseError, match="float64: they must be integers"):
        Quantiser(1, 1.0).decode(not_integers)


def test_shapes_and_types_are_kept() -> None:
    quantiser = Quantiser(16, 4.0)
    lanes = quantiser.encode(np.linspace(-4, 4, 24, dtype=np.float32).reshape(2, 3, 4))
    assert lanes.shape == (2, 3, 4)
    assert lanes.dtype == np.int32
    assert quantiser.decode(lanes).dtype == np.float64
    assert quantiser.encode(np.zeros((0, 32))).shape == (0, 32)
