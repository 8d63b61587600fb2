"""A foreign controller: p4runtime-shell drives every target, from an environment of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.packet.targets import Target
from tests.packet.targets_sentinels import PROGRAMS, probe, probe_sentinel

ROOT = Path(__file__).resolve().parents[3]
PYTHON = ROOT / ".venv-shell" / "bin" / "python"
SCRIPT = Path(__file__).with_name("shell_session.py")
DEADLINE_S = 90
FRAME = bytes.fromhex("020000000001") + bytes(54)
ALREADY_EXISTS = 6


@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.skipif(
    not PYTHON.exists(),
    reason="p4runtime-shell is absent (`make shell-env`): no switch was driven with it",
)
def test_p4runtime_shell_drives_the_switch(target: Target) -> None:
    target.push(probe(), probe_sentinel())
    target.disconnect()
    session = subprocess.Popen(
        [
            str(PYTHON),
            str(SCRIPT),
            target.address.address,
            str(target.address.device_id),
            str(PROGRAMS / "probe.p4info.txtpb"),
            str(PROGRAMS / "probe.json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert session.stdout is not None
        said = {}
        for line in session.stdout:
            step, said[step] = json.loads(line)
            if step == "ready":
                target.send(6, FRAME)
        _, errors = session.communicate(timeout=DEADLINE_S)
    finally:
        session.kill()
        session.wait()
    assert session.returncode == 0, errors
    assert said == {
        "inserted": [2],
        "refused": [ALREADY_EXISTS],
        "modified": [3],
        "deleted": [],
        "group": [1, 2],
        "sent": None,
        "ready": None,
        "packet": [FRAME.hex(), ["06", "05", "00"]],
        "cell": [1],
        "direct": [1],
        "done": None,
    }
    assert target.collect(at_least=1) == [(4, b"p" * 60)]
