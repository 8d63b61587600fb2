"""Pictures: what is in them, where it stands, and that the same input gives the same bytes."""

import re
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import pytest

from controller.picture import MOST_SWITCHES, PictureError, draw
from controller.picture_layout import font_size, layout_of, number_text, shortened
from controller.placement import loads, smc
from topologies import Topology, WorkloadOptions, parse

SPECS = ["fat-tree:k=4", "fat-tree:k=8", "binary-tree:levels=8", "random-tree:n=120,seed=2"]


def picture(spec: str, path: Path, k: int = 4) -> tuple[Topology, set[str], dict[str, Fraction]]:
    """Draw the optimal placement on a network; what was drawn."""
    topology = parse(spec, WorkloadOptions(rates="linear"))
    names, tree = topology.overlay.names, topology.overlay.tree
    blue = smc(tree, k).blue
    congestion = dict(zip(names, loads(tree, blue).link_congestion, strict=True))
    chosen = {names[v] for v in blue}
    draw(topology, chosen, congestion, path)
    return topology, chosen, congestion


def texts(svg: Path) -> list[str]:
    """The texts of a picture: matplotlib writes each as a comment beside its outlines."""
    return re.findall(r"<!-- (.*?) -->", svg.read_text())


def test_a_picture_tells_names_workers_congestions_and_the_most_congested(tmp_path: Path) -> None:
    path = tmp_path / "p.svg"
    topology, blue, congestion = picture("fat-tree:k=4", path)
    told = texts(path)
    assert set(topology.overlay.names) <= set(told)
    workers = [str(load) for load in topology.overlay.tree.load if load]
    numbers = [number_text(value) for value in congestion.values()]
    legend = ["destination", "blue, aggregates", "red, forwards", "workers", "most congested"]
    for text in {*workers, *numbers, *legend}:
        assert told.count(text) >= [*workers, *numbers, *legend].count(text)
    most = number_text(max(congestion.values()))
    summary = f"13 switches  ·  16 workers  ·  {len(blue)} blue  ·  congestion {most}"
    assert summary in told
    body = path.read_text()
    hot = sum(value == max(congestion.values()) for value in congestion.values())
    assert body.count("fill: #e07b00") == hot  # the labels of the most congested links
    assert body.count("fill: #2563a8") == len(blue) + 1  # and the legend's


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_input_gives_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    for name in "ab":
        picture("random-tree:n=30,seed=1", tmp_path / f"{name}.{suffix}")
    first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert first == second
    assert len(first) > 5000


def test_drawing_leaves_the_state_of_matplotlib_alone(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    picture("fat-tree:k=2", tmp_path / "p.svg")
    assert dict(mpl.rcParams) == before
    code = "import sys, controller.picture; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("spec", [*SPECS, "binary-tree:levels=1"])
def test_the_layout_is_tidy(spec: str) -> None:
    tree = parse(spec).overlay.tree
    layout = layout_of(tree)
    for v in range(tree.n):
        r = layout.radius(v)
        assert r < layout.x[v] < layout.width - r
        assert r < layout.y[v] < layout.height - r
        above = layout.y[tree.parent[v]] if v else layout.top
        assert layout.y[v] + r < above
        if tree.children[v]:
            ends = [layout.x[c] for c in tree.children[v]]
            assert layout.x[v] == pytest.approx((ends[0] + ends[-1]) / 2)
    rows: dict[float, list[int]] = {}
    for v in range(tree.n):
        rows.setdefault(layout.y[v], []).append(v)
    for members in rows.values():
        members.sort(key=layout.x.__getitem__)
        for a, b in pairwise(members):
            assert layout.x[a] + layout.radius(a) < layout.x[b] - layout.radius(b)
    leaves = sorted(layout.x[v] for v in range(tree.n) if not tree.children[v])
    steps = [b - a for a, b in pairwise(leaves)]
    assert steps == pytest.approx([steps[0]] * len(steps) if steps else [])


def test_255_switches_are_drawn_on_a_page_that_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    picture("binary-tree:levels=8", path, k=16)
    width, height = (int.from_bytes(path.read_bytes()[at : at + 4]) for at in (16, 20))
    assert 2000 < width < 6000
    assert height < width < 3 * height


def test_numbers_are_exact_where_short_and_names_keep_both_ends() -> None:
    assert number_text(Fraction(7, 3)) == "7/3"
    assert number_text(Fraction(12345, 1001)) == "12.3"
    assert font_size(1.0, 3, 9.0) == 9.0
    assert font_size(0.05, 3, 9.0) == 0.0
    assert shortened("rack-of-the-north-17", 0.6, 6.5) == "rack-…h-17"
    assert shortened("s1", 0.6, 6.5) == "s1"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("p.pdf", r"p\.pdf: a picture ends in \.svg or \.png, not in '\.pdf'"),
        ("p", "a picture ends in"),
        ("nowhere/p.svg", "there is no folder .*nowhere, create it first"),
        ("folder.png", "cannot be written: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(PictureError, match=message):
        picture("fat-tree:k=2", tmp_path / name)


def test_what_does_not_fit_the_tree_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.svg"
    topology = parse("fat-tree:k=2")
    congestion = dict.fromkeys(topology.overlay.names, Fraction(1))
    with pytest.raises(PictureError, match='blue switch "agg" is not in the overlay'):
        draw(topology, ["agg"], congestion, path)
    del congestion["edge0-0"]
    with pytest.raises(PictureError, match='no congestion is given for the link of "edge0-0"'):
        draw(topology, [], congestion, path)
    large = parse("binary-tree:levels=13")
    with pytest.raises(PictureError, match=f"8191 switches are too many.* {MOST_SWITCHES}"):
        draw(large, [], dict.fromkeys(large.overlay.names, Fraction(1)), path)
    assert not path.exists()
