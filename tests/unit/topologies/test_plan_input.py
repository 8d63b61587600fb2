"""`bluetree plan` on every kind of file: the same tree, and one line for each kind of fault."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import networkx as nx
import pytest

from controller.cli import invoke
from topologies import parse

KINDS = ("tree.json", "tree.yaml", "graph.graphml", "node-link.json")


@dataclass
class Switch:
    """A switch as a test writes it; rate is JSON, YAML and GraphML text alike."""

    name: str
    parent: str | None
    rate: str = "1"
    more: dict[str, Any] = field(default_factory=dict)


def written(folder: Path, kind: str, switches: list[Switch]) -> Path:
    """The switches as a file of a kind, by hand: the usual writers refuse what is wrong here."""
    path = folder / kind
    links = dict.fromkeys((s.name, s.parent) for s in switches if s.parent is not None)
    if kind == "tree.json":
        entries = ", ".join(
            f'{json.dumps(s.name)}: {{"parent": {json.dumps(s.parent)}, "rate": {s.rate}'
            + "".join(f', "{key}": {json.dumps(value)}' for key, value in s.more.items())
            + "}"
            for s in switches
        )
        text = f'{{"format": "bluetree/tree-1", "switches": {{{entries}}}}}'
    elif kind == "tree.yaml":
        rows = [
            f"  {_yaml(s.name)}: {{parent: {_yaml(s.parent)}, rate: {s.rate}"
            + "".join(f", {key}: {json.dumps(value)}" for key, value in s.more.items())
            + "}"
            for s in switches
        ]
        text = "\n".join(["format: bluetree/tree-1", "switches:", *rows, ""])
    elif kind == "node-link.json":
        nodes = ", ".join(
            f'{{"id": {json.dumps(s.name)}, "rate": {s.rate}'
            + "".join(f', "{key}": {json.dumps(value)}' for key, value in s.more.items())
            + "}"
            for s in switches
        )
        edges = [{"source": name, "target": parent} for name, parent in links]
        text = f'{{"directed": true, "nodes": [{nodes}], "edges": {json.dumps(edges)}}}'
    else:
        keys = "".join(f'<key id="{k}" for="node" attr.name="{k}"/>' for k in _KEYS)
        nodes = "".join(
            f"<node id={quoteattr(s.name)}><data key='rate'>{s.rate}</data>"
            + "".join(f"<data key='{k}'>{str(v).lower()}</data>" for k, v in s.more.items())
            + "</node>"
            for s in switches
        )
        ways = "".join(
            f"<edge source={quoteattr(name)} target={quoteattr(parent)}/>" for name, parent in links
        )
        text = f'<graphml>{keys}<graph edgedefault="directed">{nodes}{ways}</graph></graphml>'
    path.write_text(text, encoding="utf-8")
    return path


def _yaml(name: str | None) -> str:
    return json.dumps(name, ensure_ascii=False)


_KEYS = ("rate", "workers", "available", "capacity")
ROOT = Switch("r", None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("switches", "told"),
    [
        ([Switch("r", None, "NaN")], 'switch "r": rate: '),
        ([Switch("r", None, "Infinity")], 'switch "r": rate: '),
        ([Switch("r", None, "-Infinity")], 'switch "r": rate: '),
        ([Switch("r", None, "0")], 'switch "r": rate: '),
        ([Switch("r", None, "0.0")], 'switch "r": rate: '),
        ([Switch("r", None, "-1")], 'switch "r": rate: '),
        ([Switch("r", None, "1e999")], 'switch "r": rate: '),
        ([ROOT, Switch("a", "b"), Switch("b", "a")], 'switch "a": parent: a cycle, a -> b -> a'),
        ([ROOT, Switch("a", "a")], 'switch "a": parent: a cycle, a -> a'),
        ([ROOT, Switch("q", None)], 'switch "q": parent: a second root besides "r"'),
        ([ROOT, Switch("a", "z")], '"z"'),
        ([ROOT, Switch("a", "r"), Switch("a", "r")], 'switch "a": '),
        ([ROOT, ROOT], 'switch "r": appears more than once'),
        ([Switch("r", None, more={"workers": -1})], 'switch "r": workers: -1 is not a number'),
        ([Switch("r", None, more={"capacity": -1})], 'switch "r": capacity: -1 is not an integer'),
        ([Switch("r", None, more={"worker": 1})], 'switch "r": unknown key "worker", did you'),
        ([Switch("x" * 256, None)], "a name has at most 255 characters"),
        ([Switch("a,b", None)], "a name has no commas, line breaks or control characters"),
        ([Switch(" a", None)], "does not begin or end with a space"),
    ],
)
def test_a_fault_is_one_line_that_names_file_and_place(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    switches: list[Switch],
    told: str,
) -> None:
    path = written(tmp_path, kind, switches)
    assert invoke(["plan", str(path), "-k", "1", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"bluetree: {path}: ")
    assert told in err


@pytest.mark.parametrize(
    "k", ["-1", "-99999999999999999999", "1.5", "two", "", "nan", "1e3", "true"]
)
def test_a_bad_budget_is_one_line_that_names_k(capsys: pytest.CaptureFixture[str], k: str) -> None:
    assert invoke(["plan", "binary-tree:levels=2", "-k", k]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "k is -" in err or "'-k'" in err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["s" * 40, "w" * 255, "Ünïcødé-Schalter", "交換機", "a b/c'd\"<&>", "🦊"]
)
def test_long_and_foreign_names_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, name: str
) -> None:
    leaf = Switch(name, "r", "3/2" if kind == "graph.graphml" else '"3/2"', {"workers": 4})
    path = written(tmp_path, kind, [ROOT, leaf])
    picture = tmp_path / "tree.svg"
    assert invoke(["plan", str(path), "-k", "1", "--json", "--picture", str(picture)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["blue"] == [name]
    assert document["congestion"] == "1"
    assert picture.stat().st_size > 0
    assert invoke(["plan", str(path), "-k", "1"]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_of_twenty_thousand_is_the_same_in_every_file(tmp_path: Path, kind: str) -> None:
    rng = random.Random(5)
    quote = "" if kind == "graph.graphml" else '"'
    switches = [
        Switch(
            f"s{v}",
            f"s{rng.randrange(v)}" if v else None,
            quote + rng.choice(["1", "3/2", "0.1"]) + quote,
            {"workers": rng.randint(0, 9), "available": rng.random() < 0.7},
        )
        for v in range(20_000)
    ]
    overlay = parse(str(written(tmp_path, kind, switches))).overlay
    assert overlay.names == tuple(s.name for s in switches)
    assert [overlay.names[p] if p >= 0 else None for p in overlay.tree.parent] == [
        s.parent for s in switches
    ]
    assert overlay.tree.load == tuple(s.more["workers"] for s in switches)
    assert overlay.tree.available == tuple(s.more["available"] for s in switches)


def test_a_path_of_twenty_thousand_reads_without_recursion(tmp_path: Path) -> None:
    graph = nx.path_graph(20_000, create_using=nx.DiGraph)
    nx.set_node_attributes(graph, 1, "rate")
    path = tmp_path / "deep.graphml"
    nx.write_graphml(graph, path)
    done = subprocess.run(
        [sys.executable, "-m", "controller.cli", "plan", str(path), "-k", "5", "--json"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["links"]) == 20_000
