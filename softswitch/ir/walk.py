"""Visiting every node of a piece of the intermediate form."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass


def walk(node: object) -> Iterator[object]:
    """`node` and everything in it."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(item)
        elif is_dataclass(item) and not isinstance(item, type):
            yield item
            stack.extend(getattr(item, f.name) for f in fields(item))
