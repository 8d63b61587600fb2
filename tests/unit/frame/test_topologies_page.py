"""docs/topologies.md: its files are read, its program writes the same tree, its numbers are true.

A block that follows the line <!-- NAME --> is the text of a file of that name; the Python block
writes further ones.
"""

import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from controller import capacity
from controller.targets import AUTO_PROCESSES, BMV2, SOFTSWITCH
from p4src.constants import SOURCES
from tests.unit.frame.repository import ROOT
from topologies import FAMILIES, RATE_LAWS, WorkloadOptions, parse
from topologies.fabric.build import MAX_SWITCHES
from topologies.network import LAST_PORT, MAX_DEPTH, MAX_SOURCE

TEXT = (ROOT / "docs" / "topologies.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^<!-- ([\w.]+) -->\n```\w+\n(.*?)^```", re.M | re.S)
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that the page shows or writes."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in BLOCK.findall(TEXT):
        (folder / name).write_text(text, encoding="utf-8")
    (program,) = PROGRAM.findall(TEXT)
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True, timeout=60)
    return folder


@pytest.mark.parametrize("name", ["rack.json", "rack.yaml", "rack.graphml", "rack-graph.json"])
def test_the_tree_is_the_same_in_every_format(folder: Path, name: str) -> None:
    overlay = parse(str(folder / name)).overlay
    tree = overlay.tree
    assert overlay.names == ("r", "a", "b", "c")
    assert tree.parent == (-1, 0, 0, 1)
    assert tree.rate == tuple(map(Fraction, ("2", "3/2", "1/2", "1")))
    assert tree.load == (0, 5, 2, 3)
    assert tree.available == (True, True, False, True)
    assert overlay.capacity == (4, None, None, None)


def test_the_undirected_graph_is_a_star_with_its_root_in_the_middle(folder: Path) -> None:
    overlay = parse(str(folder / "star.graphml")).overlay
    assert overlay.names == tuple("012345")
    assert overlay.tree.parent == (-1, 0, 0, 0, 0, 0)
    assert overlay.tree.load == (0, 2, 2, 2, 2, 2)


def test_workers_are_read_from_the_file(folder: Path) -> None:
    options = WorkloadOptions(workers=str(folder / "workers.json"))
    assert parse(str(folder / "rack.json"), options).overlay.tree.load == (0, 5, 0, 12)


def test_families_laws_and_limits_are_those_of_the_code() -> None:
    named = set(re.findall(r"^\| `([\w-]+):", TEXT, re.MULTILINE))
    assert named == set(FAMILIES)
    for family in FAMILIES.values():
        for option in family.options.values():
            assert option.most == 2**64 - 1 or f"{option.least} to {option.most:,}" in TEXT
    assert all(f"| `{law}` |" in TEXT for law in RATE_LAWS)
    for limit in (MAX_SWITCHES, LAST_PORT, MAX_SOURCE, MAX_DEPTH, SOURCES):
        assert f"| {limit:,} " in TEXT
    memory = {name: capacity.SWITCH[name].memory >> 20 for name in (SOFTSWITCH, BMV2)}
    each = f"{memory[SOFTSWITCH]} MiB a softswitch, {memory[BMV2]} MiB a bmv2"
    assert f"{each}, {capacity.HOST.memory >> 20} MiB a host" in TEXT
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert f"at most {AUTO_PROCESSES} switches and hosts" in " ".join(architecture.split())
