"""What a run that was killed leaves, and that it is removed and nothing else is."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from topologies.marks import free_tag, mark_folder, mark_tag, own_mark, remove_leftovers
from topologies.mininet_plan import FOLDER_PREFIX

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make interfaces")


@pytest.fixture
def pair() -> Iterator[str]:
    """An interface, by the name of a switch's port in a run."""
    name = f"{free_tag()}s1-1"
    made = ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name[:4]}s2-1"]
    subprocess.run(made, check=True)
    yield name
    subprocess.run(["ip", "link", "del", name], check=False, stderr=subprocess.DEVNULL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair: str) -> Path:
    """The folder of a run whose process is gone, that makes such interfaces."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    path = tmp_path / f"{FOLDER_PREFIX}x"
    path.mkdir()
    # A process of this id there may be, but none that began then.
    (path / "owner").write_text(f"{os.getpid()}.1")
    mark_tag(path, pair[:4])
    return path


def _is_there(name: str) -> bool:
    return Path("/sys/class/net", name).exists()


def test_what_was_not_marked_yet_goes_with_the_folder(pair: str, folder: Path) -> None:
    remove_leftovers()
    assert not folder.exists()
    assert not _is_there(pair)


def test_what_another_process_has_marked_stays(pair: str, folder: Path) -> None:
    for name in (pair, f"{pair[:4]}s2-1"):
        Path("/sys/class/net", name, "ifalias").write_text(own_mark())
    remove_leftovers()
    assert not folder.exists()
    assert _is_there(pair)


def test_a_run_that_goes_on_keeps_what_it_has(pair: str, folder: Path) -> None:
    mark_folder(folder)
    remove_leftovers()
    assert folder.exists()
    assert _is_there(pair)
