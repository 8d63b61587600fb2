"""The model's switch against the compiled program: every content of a slot, every message."""

from __future__ import annotations

import pytest

from tests.model import hosts, layout
from tests.model.layout import parameters
from tests.model.real_switch import RealSwitch, messages, words


@pytest.mark.parametrize(
    ("switch", "old", "new", "pairs"),
    [
        (layout.S0, 0b11, 0b01, 11_340),
        (layout.S1, 0b11, 0b01, 1_596),
        (layout.S0, 0b10, 0b11, 1_932),
        (layout.S1, 0b10, 0b11, 3_900),
    ],
)
def test_model_does_what_the_program_does(switch: int, old: int, new: int, pairs: int) -> None:
    """What leaves, to whom, and what is left in the slot and the stored answer."""
    p = parameters(4, old, new)
    real = RealSwitch(switch, p)
    asked = list(messages(switch, real))
    met = 0
    for word in words(switch, p):
        for message in asked:
            t = [0] * layout.WIDTH
            t[2 * switch] = word
            hosts.deliver(t, p, message)
            real.set_word(word)
            left = real.deliver(message)
            assert left == [m for m in t[layout.FLIGHT :] if m], (hex(word), hex(message))
            assert real.word() == t[2 * switch], (hex(word), hex(message))
            met += 1
    assert met == pairs
