"""Arithmetic at 32, 13 and 1024 bits, wrapped and saturated, against plain integers."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softswitch.switch import Switch
from tests.unit.softswitch.programs import load, one

M32 = (1 << 32) - 1
M1024 = (1 << 1024) - 1
_switch: list[Switch] = []


def switch() -> Switch:
    """One switch for all examples; the program keeps no state."""
    if not _switch:
        _switch.append(load("arithmetic"))
    return _switch[0]


def words(code: int, a: int, b: int, result: int = 0) -> int:
    packet = bytes([code]) + b"".join(v.to_bytes(4) for v in (a, b, result))
    out = one(switch(), packet)
    assert out[:9] == packet[:9]
    return int.from_bytes(out[9:13])


def signed(code: int, a: int, b: int, odd: int = 0) -> tuple[int, int]:
    packet = bytes([code]) + a.to_bytes(4, signed=True) + b.to_bytes(4, signed=True)
    out = one(switch(), packet + bytes(4) + (odd & 0x1FFF | 0xA000).to_bytes(2))
    low = int.from_bytes(out[13:15])
    assert low >> 13 == 5
    return int.from_bytes(out[9:13], signed=True), (low & 0x1FFF ^ 0x1000) - 0x1000


def wide(code: int, a: int, b: int) -> int:
    out = one(switch(), bytes([code]) + a.to_bytes(128) + b.to_bytes(128))
    assert out[129:] == b.to_bytes(128)
    return int.from_bytes(out[1:129])


def wrap(value: int, width: int) -> int:
    half = 1 << (width - 1)
    return (value + half & (1 << width) - 1) - half


def clamp(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


UNSIGNED: dict[int, Callable[[int, int], int]] = {
    0x00: lambda a, b: a + b & M32,
    0x01: lambda a, b: a - b & M32,
    0x02: lambda a, b: a * b & M32,
    0x03: lambda a, b: clamp(a + b, 0, M32),
    0x04: lambda a, b: clamp(a - b, 0, M32),
    0x05: lambda a, b: a << (b & 255) & M32,
    0x06: lambda a, b: a >> (b & 255),
    0x07: lambda a, b: ~a & M32,
    0x08: lambda a, b: -a & M32,
    0x0A: lambda a, b: (a & 255) << 24 | b >> 8,
    0x0B: lambda a, b: int(a < b),
    0x0C: lambda a, b: a & b | 1 ^ a,
}
LOW, HIGH = -(1 << 31), (1 << 31) - 1
SIGNED: dict[int, Callable[[int, int], int]] = {
    0x40: lambda a, b: wrap(a + b, 32),
    0x41: lambda a, b: wrap(a - b, 32),
    0x42: lambda a, b: wrap(a * b, 32),
    0x43: lambda a, b: clamp(a + b, LOW, HIGH),
    0x44: lambda a, b: clamp(a - b, LOW, HIGH),
    0x45: lambda a, b: a >> 4,
    0x46: lambda a, b: int(a < b),
}
u32 = st.one_of(st.integers(0, M32), st.sampled_from([0, 1, M32, M32 - 1, 1 << 31]))
s32 = st.one_of(st.integers(LOW, HIGH), st.sampled_from([0, 1, -1, LOW, HIGH]))
u1024 = st.one_of(st.integers(0, M1024), st.sampled_from([0, 1, M1024]))


@pytest.mark.parametrize("code", UNSIGNED)
@given(a=u32, b=u32)
def test_unsigned(code: int, a: int, b: int) -> None:
    assert words(code, a, b) == UNSIGNED[code](a, b)


@pytest.mark.parametrize("code", SIGNED)
@given(a=s32, b=s32)
def test_signed(code: int, a: int, b: int) -> None:
    assert signed(code, a, b)[0] == SIGNED[code](a, b)


@given(a=u32, b=u32, old=u32)
def test_slice_assignment(a: int, b: int, old: int) -> None:
    assert words(0x09, a, b, old) == old & 0xFF0000FF | (a & 0xFFFF) << 8


@given(a=s32, odd=st.integers(-4096, 4095))
def test_thirteen_bits(a: int, odd: int) -> None:
    assert signed(0x47, a, 0, odd)[1] == wrap(a, 13)
    assert signed(0x48, a, 0, odd)[0] == odd
    assert signed(0x49, a, 0, odd)[1] == clamp(odd + 1, -4096, 4095)


@given(a=u1024, b=u1024)
def test_wide(a: int, b: int) -> None:
    assert wide(0x80, a, b) == a + b & M1024
    assert wide(0x81, a, b) == a - b & M1024
    assert wide(0x82, a, b) == min(a + b, M1024)
    assert wide(0x83, a, b) == a << 255 & M1024


def test_saturation_and_wrap_at_the_border() -> None:
    assert signed(0x43, 0x7FFFFFFF, 1)[0] == 0x7FFFFFFF
    assert signed(0x40, 0x7FFFFFFF, 1)[0] == -0x80000000
    assert signed(0x44, -0x80000000, 1)[0] == -0x80000000
    assert words(0x03, M32, 1) == M32
    assert words(0x04, 0, 1) == 0
