"""The committed output of p4c belongs to the committed sources."""

import json
import re
import shutil
from pathlib import Path

import pytest

from p4src import artefacts
from p4src.builds import BUILDS, Build


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The P4 sources, their output and manifest, free to be changed."""
    copy = tmp_path / "p4src"
    shutil.copytree(
        artefacts.SOURCE_DIR, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    return copy


def test_committed_output_is_fresh() -> None:
    assert artefacts.stale() == [], "run `make p4`"


def test_unchanged_copy_is_fresh(copied: Path) -> None:
    assert artefacts.stale(copied) == []


@pytest.mark.parametrize(
    "name",
    [
        "bluetree.p4",
        "include/headers.p4",
        "include/control/aggregation.p4",
        "build/bluetree.json",
        "build/bluetree.p4info.txtpb",
        "build/lanes-240/bluetree.json",
        "constants.py",
    ],
)
def test_changed_file_is_stale(copied: Path, name: str) -> None:
    path = copied / name
    path.write_bytes(path.read_bytes() + b"\n")
    assert artefacts.stale(copied) == [f"{name}: changed since p4c ran"]


def test_added_source_is_stale(copied: Path) -> None:
    (copied / "include" / "extra.p4").write_text("const bit<8> EXTRA = 1;\n")
    assert artefacts.stale(copied) == ["include/extra.p4: not in the manifest"]


@pytest.mark.parametrize("name", ["include/sizes.p4", "build/bluetree.json"])
def test_absent_file_is_stale(copied: Path, name: str) -> None:
    (copied / name).unlink()
    assert artefacts.stale(copied) == [f"{name}: in the manifest, but absent"]


def test_absent_manifest_is_stale(copied: Path) -> None:
    (copied / "build" / "manifest.json").unlink()
    (problem,) = artefacts.stale(copied)
    assert problem.startswith("manifest.json: ")


def test_p4c_makes_the_committed_output() -> None:
    if shutil.which(artefacts.COMPILER) is None:
        pytest.skip(f"{artefacts.COMPILER} is absent: output is checked by its digests only")
    assert artefacts.recompiled_differences() == [], "run `make p4`"


@pytest.mark.parametrize("build", BUILDS.values(), ids=lambda build: f"lanes-{build.lanes}")
def test_committed_builds_have_the_sizes_that_they_are_said_to_have(build: Build) -> None:
    compiled = json.loads(artefacts.load(artefacts.folder_of(build)).json)
    (lanes,) = (kind for kind in compiled["header_types"] if kind["name"] == "lanes_h")
    widths = [width for _, width, _ in lanes["fields"]]
    assert widths == [32 * build.lanes // build.words] * build.words
    assert widths[0] == build.set_bits


def test_manifest_names_the_compiler_that_was_used() -> None:
    manifest = json.loads((artefacts.BUILD_DIR / artefacts.MANIFEST_NAME).read_text())
    assert manifest["compiler"] == artefacts.COMPILER
    assert re.fullmatch(r"\d+(\.\d+)+", manifest["version"])
