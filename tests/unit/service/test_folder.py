"""The folder of a testbed: who serves, who waits."""

from __future__ import annotations

import threading
from pathlib import Path

from controller.service.folder import Folder, Process, waiting


def test_whoever_waits_is_seen_whenever_others_look(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            folder.standbys()

    others = [threading.Thread(target=look) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for number in range(1, 200):
            with waiting(folder, Process(number, number, 0.0)):
                assert [one.pid for one in folder.standbys()] == [number]
    finally:
        ended.set()
        for other in others:
            other.join()
    assert folder.standbys() == []


def test_a_standby_that_was_killed_is_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "standby-7.json"
    path.write_text("[7, 1, 0.0]")
    assert Folder(tmp_path).standbys() == []
    assert not path.exists()
