"""Records of switches -> a checked Topology, with every problem found on the way.

The stages of a file: text -> values (documents) -> records of switches (`records_of_document`,
graphs) -> fields -> structure -> Topology. Each stage adds its problems to one list and the next
works with what is left, so that one reading reports all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from controller.placement import PlacementError, Tree, as_rate
from topologies.documents import Number, Record, Value, shown
from topologies.errors import TopologyError, did_you_mean
from topologies.families import tree_topology
from topologies.topology import Overlay, Topology
from topologies.workload import workers_problem

__all__ = ["FORMAT", "MOST_SWITCHES", "SwitchRecord", "records_of_document", "tree_of_records"]

FORMAT = "bluetree/tree-1"
MOST_SWITCHES = 1 << 20
_LONGEST_NAME = 255
_LARGEST_RATE_BITS = 128
_MOST_CAPACITY = 10**9
_KEYS = ("parent", "rate", "workers", "available", "capacity")
_TOP_KEYS = ("format", "switches")


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """One switch as written: its name and the value of every key.

    parent_known is False where the parent cannot be told because of a problem reported already.
    """

    name: str
    fields: Record
    parent_known: bool = True


@dataclass(slots=True)
class _Switch:
    """A switch whose fields have been read; a field that was wrong has its default."""

    name: str
    parent: str | None
    parent_known: bool = True
    rate: Fraction = field(default_factory=lambda: Fraction(1))
    workers: int = 0
    available: bool = True
    capacity: int | None = None


def records_of_document(document: Value) -> tuple[list[SwitchRecord], list[str]]:
    """The switches of a bluetree/tree-1 document, and the problems of its outer shape."""
    if not isinstance(document, Record):
        return [], [f'expected a mapping with "format": "{FORMAT}" and "switches"']
    problems = list(_key_problems("", document, _TOP_KEYS))
    if not document.has("format"):
        problems.append(f'format: missing, write "format": "{FORMAT}"')
    elif document.get("format") != FORMAT:
        problems.append(f'format: {shown(document.get("format"))} is not "{FORMAT}"')
    switches = document.get("switches")
    if not isinstance(switches, Record):
        missing = "missing" if not document.has("switches") else "not a mapping"
        return [], [*problems, f"switches: {missing}, write one entry a switch, by name"]
    records = []
    for key, value in switches.pairs:
        if not isinstance(key, str):
            problems.append(f"switch {shown(key)}: a name is a string, put it in quotes")
        elif not isinstance(value, Record):
            problems.append(f'switch "{key}": expected a mapping with parent and rate')
        else:
            records.append(SwitchRecord(key, value))
    return records, problems


def tree_of_records(
    records: Sequence[SwitchRecord],
    problems: Sequence[str],
    *,
    source: str,
    name: str,
    rates_given: bool,
) -> Topology:
    """The network of the records, the root first and the others in the order of the file.

    Args:
        records: one a switch.
        problems: what earlier stages have found.
        source: the file, for the error.
        name: the name of the topology.
        rates_given: rates are replaced afterwards, so a switch may leave its rate out.

    Raises:
        TopologyError: with all problems, where there is any.
    """
    found = list(problems)
    if not records and not found:
        found.append("switches: empty, a tree has at least its root")
    if len(records) > MOST_SWITCHES:
        raise TopologyError(source, [f"{len(records)} switches, the limit is {MOST_SWITCHES}"])
    switches = [_read_switch(record, rates_given, found) for record in records]
    _check_structure(switches, found)
    if found:
        raise TopologyError(source, found)
    switches.sort(key=lambda switch: switch.parent is not None)
    index = {switch.name: v for v, switch in enumerate(switches)}
    tree = Tree(
        parent=[-1 if s.parent is None else index[s.parent] for s in switches],
        rate=[s.rate for s in switches],
        load=[s.workers for s in switches],
        # A capacity of 0 leaves no workload to aggregate: Lambda_t = {s | a_t(s) > 0}.
        available=[s.available and s.capacity != 0 for s in switches],
    )
    overlay = Overlay(tuple(index), tree, tuple(s.capacity for s in switches))
    return tree_topology(name, overlay)


def _read_switch(record: SwitchRecord, rates_given: bool, problems: list[str]) -> _Switch:
    place = f'switch "{record.name}"'
    fields = record.fields
    problem = _name_problem(record.name)
    if problem is not None:
        problems.append(f"switch {record.name!r}: {problem}")
    problems.extend(_key_problems(f"{place}: ", fields, _KEYS))
    switch = _Switch(record.name, None, parent_known=record.parent_known)

    parent = fields.get("parent")
    if not record.parent_known:
        pass
    elif isinstance(parent, str):
        switch.parent = parent
    elif parent is not None or not fields.has("parent"):
        what = f"{shown(parent)} is not a name" if fields.has("parent") else "missing"
        problems.append(f"{place}: parent: {what}, write a switch, or null for the root")
        switch.parent_known = False

    if fields.has("rate"):
        rate = _read_rate(fields.get("rate"))
        if isinstance(rate, Fraction):
            switch.rate = rate
        else:
            problems.append(f"{place}: rate: {rate}")
    elif not rates_given:
        problems.append(f'{place}: rate: missing, write that of the link to its parent, like "1"')

    if fields.has("workers"):
        workers = fields.get("workers")
        problem = workers_problem(workers)
        if problem is not None:
            problems.append(f"{place}: workers: {problem}")
        elif isinstance(workers, int):
            switch.workers = workers

    available = fields.get("available")
    if isinstance(available, bool):
        switch.available = available
    elif fields.has("available"):
        problems.append(f"{place}: available: {shown(available)} is not true or false")

    capacity = fields.get("capacity")
    if isinstance(capacity, int) and not isinstance(capacity, bool) and capacity >= 0:
        switch.capacity = capacity
        if capacity > _MOST_CAPACITY:
            problems.append(f"{place}: capacity: {capacity} is too large, use null for unlimited")
    elif capacity is not None:
        problems.append(
            f"{place}: capacity: {shown(capacity)} is not an integer >= 0, or null for unlimited"
        )
    return switch


def _read_rate(value: Value) -> Fraction | str:
    """The rate, or what is wrong with it."""
    try:
        rate = as_rate(value.text if isinstance(value, Number) else value)
    except PlacementError:
        return f"{shown(value)} is not a rate: write a positive integer, decimal or fraction"
    if max(rate.numerator, rate.denominator).bit_length() > _LARGEST_RATE_BITS:
        return f"too large, numerator and denominator are below 2^{_LARGEST_RATE_BITS}"
    return rate


def _name_problem(name: str) -> str | None:
    if not name or name != name.strip():
        return "a name is not empty and does not begin or end with a space"
    if len(name) > _LONGEST_NAME:
        return f"a name has at most {_LONGEST_NAME} characters"
    if not name.isprintable() or "," in name:
        return "a name has no commas, line breaks or control characters"
    return None


def _key_problems(place: str, record: Record, known: Sequence[str]) -> Iterator[str]:
    seen: set[object] = set()
    for key, _ in record.pairs:
        if not isinstance(key, str):
            yield f"{place}key {shown(key)} is not one of {', '.join(known)}"
        elif key in seen:
            yield f"{place}{key}: appears more than once"
        elif key not in known:
            yield f'{place}unknown key "{key}"{did_you_mean(key, known) or _known(known)}'
        if isinstance(key, str):
            seen.add(key)


def _known(known: Sequence[str]) -> str:
    return f", the keys are {', '.join(known)}"


def _check_structure(switches: Sequence[_Switch], problems: list[str]) -> None:
    by_name: dict[str, _Switch] = {}
    for switch in switches:
        if switch.name in by_name:
            problems.append(f'switch "{switch.name}": appears more than once')
        by_name.setdefault(switch.name, switch)
    for switch in switches:
        if switch.parent is not None and switch.parent not in by_name:
            hint = did_you_mean(switch.parent, list(by_name))
            problems.append(
                f'switch "{switch.name}": parent: no switch is called "{switch.parent}"{hint}'
            )
    # Once each: a root that appears twice has been told so above.
    roots = list(dict.fromkeys(s.name for s in switches if s.parent is None and s.parent_known))
    if switches and not roots and all(s.parent_known for s in switches):
        problems.append("no root: exactly one switch has parent null")
    problems.extend(
        f'switch "{extra}": parent: a second root besides "{roots[0]}", give it a parent'
        for extra in roots[1:]
    )
    for cycle in _cycles(by_name):
        path = " -> ".join([*cycle[:6], *(["..."] if len(cycle) > 6 else []), cycle[0]])
        problems.append(f'switch "{cycle[0]}": parent: a cycle, {path}')


def _cycles(by_name: dict[str, _Switch]) -> Iterator[list[str]]:
    """Every cycle of parents once, from its first member in the order of the file."""
    position = {name: i for i, name in enumerate(by_name)}
    done: set[str] = set()
    for start in by_name:
        path: dict[str, int] = {}
        name: str | None = start
        while name in by_name and name not in done and name not in path:
            path[name] = len(path)
            name = by_name[name].parent
        if name in path:
            # The walk began at the first member of the file unless a tail led into the cycle.
            members = list(path)[path[name] :]
            first = min(range(len(members)), key=lambda i: position[members[i]])
            yield members[first:] + members[:first]
        done.update(path)
