"""Messages of different sizes: what a Reduce puts on the links when a sum can outgrow its parts.

Sec. II counts every message as one unit. In word count a message is the set of words that were
seen, and merging two sets gives a larger set; in a parameter server with dropout a message is the
features that were kept. Here a message has a content, contents merge, and a content has a size in
units. The unit model is the special case in which every content has size 1 (`unit_sizes`).

Whatever is blue below it, a blue switch sends the merger of all contents of its subtree: merging
is associative and commutative. So its size does not depend on the blue set, real data are merged
once a tree, and then any number of blue sets is evaluated by arithmetic alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from controller.placement.errors import PlacementError
from controller.placement.loads import loads, most_congested
from controller.placement.tree import Tree

__all__ = ["MessageSizes", "SizedLoads", "message_sizes", "sized_loads", "unit_sizes"]

_Content = TypeVar("_Content")


@dataclass(frozen=True, slots=True)
class MessageSizes:
    """The sizes that decide what every link carries, one entry a switch, in units.

    Attributes:
        own: the sizes of the messages of the switch's own workers, summed.
        merged: the size of the one message that the switch sends when it is blue; 0 where nothing
            is at or below it.
    """

    own: tuple[int, ...]
    merged: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SizedLoads:
    """What one Reduce puts on the links of a tree, by size.

    Attributes:
        messages: messages of every link, msg_e(T, L, U) of Sec. II.
        units: the sizes of these messages, summed, one entry a link.
        congestion: the largest units / rate over all links, exact.
    """

    messages: tuple[int, ...]
    units: tuple[int, ...]
    congestion: Fraction


def message_sizes(
    tree: Tree,
    contents: Sequence[Sequence[_Content]],
    merge: Callable[[_Content, _Content], _Content],
    size: Callable[[_Content], int],
) -> MessageSizes:
    """Merge real contents up the tree, and keep the sizes.

    Args:
        tree: the tree; its loads say how many workers each switch has.
        contents: for every switch the contents of its workers, tree.load[v] of them.
        merge: the content of the message that aggregates two; associative and commutative.
        size: the units of a content, an integer >= 0.

    Raises:
        PlacementError: contents for another number of switches or workers, or a size below 0.
    """
    if len(contents) != tree.n:
        raise PlacementError(
            f"contents has {len(contents)} entries and the tree {tree.n} switches: "
            "give one a switch"
        )
    own, merged = [0] * tree.n, [0] * tree.n
    arrived: dict[int, _Content] = {}  # by switch: the merger of what its children have seen
    for v in tree.order:
        mine = contents[v]
        if len(mine) != tree.load[v]:
            raise PlacementError(
                f"contents[{v}] has {len(mine)} messages: switch {v} has {tree.load[v]} workers, "
                "give one message a worker"
            )
        own[v] = sum(_checked_size(size(content), v) for content in mine)
        whole = [arrived.pop(v)] if v in arrived else []
        whole.extend(mine)
        if not whole:
            continue
        total = whole[0]
        for content in whole[1:]:
            total = merge(total, content)
        merged[v] = _checked_size(size(total), v)
        if v:
            above = tree.parent[v]
            arrived[above] = merge(arrived[above], total) if above in arrived else total
    return MessageSizes(tuple(own), tuple(merged))


def unit_sizes(tree: Tree) -> MessageSizes:
    """The sizes of the paper's model: every message, aggregated or not, is one unit."""
    return MessageSizes(tree.load, tuple(min(1, below) for below in tree.subtree_loads()))


def sized_loads(tree: Tree, sizes: MessageSizes, blue: Iterable[int]) -> SizedLoads:
    """The units on every link when the switches of `blue` aggregate. O(n).

    A red switch forwards what its workers and children send; a blue one sends its merged message.

    Raises:
        PlacementError: sizes of another tree, or an entry of `blue` that is not a switch.
    """
    if len(sizes.own) != tree.n or len(sizes.merged) != tree.n:
        raise PlacementError(
            f"sizes are of {len(sizes.own)} switches and the tree has {tree.n}: "
            "compute them for this tree"
        )
    chosen = frozenset(blue)
    messages = loads(tree, chosen).messages
    units = list(sizes.own)
    for v in tree.order:
        if v in chosen:
            units[v] = sizes.merged[v]
        if v:
            units[tree.parent[v]] += units[v]
    return SizedLoads(messages, tuple(units), most_congested(tree, units))


def _checked_size(units: int, v: int) -> int:
    if units < 0:
        raise PlacementError(f"a message at switch {v} has size {units}: sizes are integers >= 0")
    return units
