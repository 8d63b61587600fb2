"""`parse`: from what a user writes for TOPOLOGY to the network it means."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from topologies.documents import Record, parse_json, parse_yaml, read_text
from topologies.errors import TopologyError, did_you_mean
from topologies.families import binary_tree, fat_tree, random_tree
from topologies.graphs import is_node_link, records_of_graphml, records_of_node_link
from topologies.topology import Topology
from topologies.treefile import MOST_SWITCHES, records_of_document, tree_of_records
from topologies.workload import WorkloadOptions, apply_workload

__all__ = ["FAMILIES", "parse"]

_SUFFIXES = (".json", ".yaml", ".yml", ".graphml")
_MOST_PODS = 128
_MOST_LEVELS = 20
_LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True, slots=True)
class _Option:
    """An integer option of a family: its range, and its value where it may be left out."""

    least: int
    most: int
    required: bool = True


@dataclass(frozen=True, slots=True)
class _Family:
    """A kind of generated network: its options, an example and how to build it."""

    example: str
    options: Mapping[str, _Option]
    build: Callable[[str, Mapping[str, int], int], Topology]


FAMILIES: Mapping[str, _Family] = {
    "fat-tree": _Family(
        "fat-tree:k=4",
        {"k": _Option(2, _MOST_PODS)},
        lambda name, given, seed: fat_tree(given["k"], name),
    ),
    "binary-tree": _Family(
        "binary-tree:levels=8",
        {"levels": _Option(1, _MOST_LEVELS)},
        lambda name, given, seed: binary_tree(given["levels"], name),
    ),
    "random-tree": _Family(
        "random-tree:n=200,seed=1",
        {"n": _Option(1, MOST_SWITCHES), "seed": _Option(0, _LARGEST_SEED, required=False)},
        lambda name, given, seed: random_tree(given["n"], given.get("seed", seed), name),
    ),
}
"""The generated networks by the word before the colon."""


def parse(spec: str, options: WorkloadOptions | None = None) -> Topology:
    """The network that a specification names, with the workers and rates of the options.

    Args:
        spec: "fat-tree:k=4", "binary-tree:levels=8", "random-tree:n=200,seed=1", or the path of
            a .json (bluetree/tree-1 or networkx node-link), .yaml or .graphml file.
        options: workers and rates that replace the network's own.

    Raises:
        TopologyError: one line for a bad specification; every problem of a bad file.
    """
    options = options or WorkloadOptions()
    family = spec.partition(":")[0].strip()
    if Path(spec).suffix.lower() in _SUFFIXES and family not in FAMILIES:
        topology = _of_file(Path(spec), rates_given=options.rates is not None)
    else:
        topology = _generated(spec, options.seed)
    return apply_workload(topology, options)


def _of_file(path: Path, *, rates_given: bool) -> Topology:
    text, source = read_text(path), str(path)
    if path.suffix.lower() == ".graphml":
        records, problems = records_of_graphml(text, source)
    else:
        is_json = path.suffix.lower() == ".json"
        document = parse_json(text, source) if is_json else parse_yaml(text, source)
        if is_node_link(document) and isinstance(document, Record):
            records, problems = records_of_node_link(document)
        else:
            records, problems = records_of_document(document)
    return tree_of_records(
        records, problems, source=source, name=path.stem, rates_given=rates_given
    )


def _generated(spec: str, seed: int) -> Topology:
    word, _, rest = spec.partition(":")
    word = word.strip()
    family = FAMILIES.get(word)
    if family is None:
        hint = did_you_mean(word, list(FAMILIES))
        known = f"{', '.join(FAMILIES)} or a {', '.join(_SUFFIXES)} file"
        raise TopologyError(spec or "topology", [f'"{word}" is not one of {known}{hint}'])
    given: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, value = _option(spec, family, part)
        if key in given:
            raise TopologyError(spec, [f"{key}: appears more than once"])
        given[key] = value
    for key, option in family.options.items():
        if option.required and key not in given:
            raise TopologyError(spec, [f"{key}: missing, write it like {family.example}"])
    if given.get("k", 2) % 2:
        raise TopologyError(spec, [f"k: {given['k']} is odd, a fat-tree has an even k"])
    return family.build(spec.strip(), given, seed)


def _option(spec: str, family: _Family, part: str) -> tuple[str, int]:
    key, equals, text = (piece.strip() for piece in part.partition("="))
    option = family.options.get(key)
    if option is None:
        hint = did_you_mean(key, list(family.options)) or f", write it like {family.example}"
        raise TopologyError(spec, [f'unknown option "{key}"{hint}'])
    if not equals or not re.fullmatch(r"-?[0-9]{1,30}", text):
        raise TopologyError(spec, [f'{key}: "{text}" is not an integer, as in {family.example}'])
    value = int(text)
    if not option.least <= value <= option.most:
        raise TopologyError(spec, [f"{key}: {value} is outside {option.least}..{option.most}"])
    return key, value
