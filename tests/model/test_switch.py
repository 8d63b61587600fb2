"""The model's switch against the compiled program: every content of a slot, every message."""

from __future__ import annotations

import pytest

from tests.model import layout, network
from tests.model.layout import parameters
from tests.model.real_switch import RealSwitch, messages, nothing_yet, words


@pytest.mark.parametrize(
    ("switch", "old", "new", "without", "pairs"),
    [
        (layout.S0, 0b11, 0b01, 0, 11_340),
        (layout.S1, 0b11, 0b01, 0, 1_596),
        (layout.S0, 0b10, 0b11, 0, 1_932),
        (layout.S1, 0b10, 0b11, 0, 3_900),
        (layout.S0, 0b11, 0b11, 0b001, 3_420),
        (layout.S0, 0b10, 0b01, 0b100, 1_764),
        (layout.S1, 0b11, 0b11, 0b010, 2_340),
    ],
)
def test_model_does_what_the_program_does(
    switch: int, old: int, new: int, without: int, pairs: int
) -> None:
    """What leaves, to whom, and what is left in the slot and the stored answer."""
    p = parameters(4, old, new)
    real = RealSwitch(switch, p, without)
    asked = list(messages(switch, real, without))
    met = 0
    for word in words(switch, p, without):
        for message in asked:
            t = nothing_yet(without)
            t[2 * switch] = word
            network.deliver(t, p, message)
            real.set_word(word)
            left = real.deliver(message)
            assert left == [m for m in t[layout.FLIGHT :] if m], (hex(word), hex(message))
            assert real.word() == t[2 * switch], (hex(word), hex(message))
            met += 1
    assert met == pairs
