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
from controller.picture_layout import font_size, layout_of, number_texts, point_of_link, shortened
from controller.placement import Tree, loads, smc
from topologies import Overlay, Topology, WorkloadOptions, parse
from topologies.families import tree_topology

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
    numbers = number_texts(list(congestion.values()))
    caption = "on each link: its congestion, messages a chunk over rate"
    legend = [
        caption,
        "destination",
        "blue, aggregates",
        "red, forwards",
        "workers",
        "most congested",
    ]
    for text in {*workers, *numbers, *legend}:
        assert told.count(text) >= [*workers, *numbers, *legend].count(text)
    most = max(congestion.values())
    summary = f"13 of 20 switches  ·  16 workers  ·  {len(blue)} blue  ·  congestion {most}"
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
    if not spec.startswith("random"):
        assert steps == pytest.approx([steps[0]] * len(steps) if steps else [])


@pytest.mark.parametrize("seed", range(4))
def test_what_stands_below_a_leaf_is_its_own_rack(seed: int) -> None:
    tree = parse(f"random-tree:n=150,seed={seed}").overlay.tree
    layout, depth = layout_of(tree), tree.depths()
    for v in range(tree.n):
        if tree.load[v] and not tree.children[v]:
            near = [
                abs(layout.x[u] - layout.x[v]) for u in range(tree.n) if depth[u] == depth[v] + 1
            ]
            assert min(near, default=layout.pitch) > 0.999 * layout.pitch


def test_numbers_stand_clear_of_the_links_beside_them() -> None:
    tree = parse("random-tree:n=200,seed=1").overlay.tree
    layout, depth = layout_of(tree), tree.depths()

    def ends(v: int) -> tuple[tuple[float, float], tuple[float, float]]:
        above = tree.parent[v]
        return (layout.x[v], layout.y[v]), (layout.x[above], layout.y[above])

    for v in range(1, tree.n):
        share = (layout.radius(v) + 0.1) / layout.step
        x = point_of_link(*ends(v), share)[0]
        assert abs(x - layout.x[v]) < 0.1 * abs(ends(v)[1][0] - layout.x[v]) + 1e-9
        for u in range(1, tree.n):
            if u != v and depth[u] == depth[v]:
                assert abs(point_of_link(*ends(u), share)[0] - x) > 0.5 * layout.pitch


def test_every_blue_switch_of_255_is_named(tmp_path: Path) -> None:
    for spec in ("binary-tree:levels=8", "random-tree:n=255,seed=4"):
        for options in (WorkloadOptions(), WorkloadOptions(workers="power-law")):
            topology = parse(spec, options)
            names = topology.overlay.names
            path = tmp_path / "p.svg"
            draw(topology, names, dict.fromkeys(names, Fraction(1)), path, numbers="load")
            told = texts(path)
            assert set(names) <= set(told)
            assert "on each link: its load, messages a chunk over rate" in told


@pytest.mark.parametrize("spec", ["binary-tree:levels=11", "path"])
def test_a_png_has_a_size_that_viewers_open(tmp_path: Path, spec: str) -> None:
    if spec == "path":
        tree = Tree(range(-1, 2000), [1] * 2001, [0] * 2000 + [1], [True] * 2001)
        names = tuple(f"s{v}" for v in range(tree.n))
        topology = tree_topology("path", Overlay(names, tree, (None,) * tree.n))
    else:
        topology = parse(spec)
    path = tmp_path / "p.png"
    draw(topology, ["s1"], dict.fromkeys(topology.overlay.names, Fraction(1)), path)
    width, height = (int.from_bytes(path.read_bytes()[at : at + 4]) for at in (16, 20))
    assert 1000 < width <= 16_000
    assert 1000 < height <= 16_000


def test_255_switches_are_drawn_on_a_page_that_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "p.png"
    picture("binary-tree:levels=8", path, k=16)
    width, height = (int.from_bytes(path.read_bytes()[at : at + 4]) for at in (16, 20))
    assert 2000 < width < 6000
    assert height < width < 3 * height


def test_numbers_are_exact_where_short_and_names_keep_both_ends() -> None:
    assert number_texts([Fraction(7, 3), Fraction(43, 16)]) == ["7/3", "43/16"]
    mixed = [Fraction(n, d) for n, d in ((7, 3), (12345, 1001), (5, 2), (4, 1), (1, 900), (0, 1))]
    assert number_texts(mixed) == ["~2.33", "~12.33", "2.50", "4", "~0.0011", "0"]
    assert number_texts([Fraction(10**7), Fraction(123457, 7)]) == ["1e+07", "~17637"]
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
