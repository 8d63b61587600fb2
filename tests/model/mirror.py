"""The mirror image of a state: workers 1 and 2, which are alike, changed for each other.

In the part of Python that numba compiles, as `tests.model.rules`.
"""

from __future__ import annotations

from tests.model.layout import DONE, GATHERED, MEMBERS, REQUEST, W1, W2, WORKERS


def swapped(bits: int, low: int, width: int) -> int:
    """Two neighbouring fields of a number, changed for each other."""
    mask = (1 << width) - 1
    one, two = bits >> low & mask, bits >> low + width & mask
    return bits & ~(mask << low | mask << low + width) | two << low | one << low + width


def mirrored_word(index: int, word: int) -> int:
    """One of the words before those in flight."""
    if index < WORKERS:
        # The set of sources, the sum, the stored answer.
        return swapped(swapped(swapped(word, 5, 1), 9, 2), 21, 2)
    if index == WORKERS:
        return swapped(word, 10, 10)
    if index == MEMBERS:
        return swapped(swapped(swapped(word, 1, 1), 4, 1), 7, 1)
    if GATHERED <= index < DONE:
        return swapped(swapped(swapped(swapped(word, 1, 1), 6, 1), 11, 1), 16, 1)
    return word


def mirrored_message(message: int) -> int:
    """A message in flight."""
    to, source = message & 7, message >> 5 & 7
    if W1 <= to <= W2:
        message += W1 + W2 - 2 * to
    if 1 <= source <= 2:
        message += 3 - 2 * source << 5
    if message >> 3 & 3 == REQUEST:
        return swapped(message, 14, 1)
    return swapped(message, 15, 2)
