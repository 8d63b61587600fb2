"""The runner of .stf files: what it accepts, and that it notices what differs."""

import os
import shutil
from pathlib import Path

import pytest

from softswitch import Switch
from tests.differential import stf
from tests.unit.softswitch.programs import PROGRAMS

FOLDER = os.environ.get("STF", "")

SCRIPT = """
# entries, a group, a session
add forward dst_addr:0x020000000001 to_port(port:2)
add acl 5 src_addr:0x0300******** ether_type:0x9000 drop()
setdefault acl permit()
mc_mgrp_create 7
mc_node_create 1 3 4
mc_node_associate 7 0
mirroring_add_mc 5 7
wait
packet 1 020000000001 020000000099 88b5 00000000
packet 1 020000000001 03004444 5555 9000
expect 2 020000000001 0200000000** 88B5
"""


def run(script: str) -> Switch:
    switch = Switch.load(PROGRAMS / "probe.json")
    stf.Run(switch).run(stf.parse(script))
    return switch


def test_a_script_drives_tables_groups_and_packets() -> None:
    device = run(SCRIPT).device
    groups = {g: [(r.port, r.instance) for r in c] for g, c in device.multicast_groups().items()}
    assert groups == {7: [(3, 1), (4, 1)]}
    assert device.clone_sessions()[5].replicas == device.multicast_groups()[7]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("expect 2 02", "port 2: 1 packets instead of 2"),
        ("expect 5", None),
        ("packet 1 020000000001 020000000099 88b5", "port 2: 2 packets instead of 1"),
        ("add forward dst_addr:1 nowhere()", "line 14: add: no action of table"),
        ("add acl 1 colour:0x1 drop()", "line 14: add: no key 'colour'"),
        ("teleport 1", "line 14: teleport: "),
    ],
)
def test_what_differs_is_named(wrong: str, reason: str | None) -> None:
    if reason is None:
        run(SCRIPT + wrong)
        return
    with pytest.raises(stf.StfError, match=reason):
        run(SCRIPT + wrong)


def test_packets_are_compared_as_far_as_the_pattern_goes() -> None:
    assert stf.same("01*3", b"\x01\x23\x45")
    assert not stf.same("01*3$", b"\x01\x23\x45")
    assert stf.same("01*3$", b"\x01\x23")
    assert not stf.same("0124", b"\x01\x23")
    assert not stf.same("012345", b"\x01\x23")


@pytest.mark.skipif(
    not FOLDER or shutil.which(stf.COMPILER) is None,
    reason="STF names no testdata/p4_16_samples of p4c, or p4c is missing: its packets did not run",
)
def test_more_than_95_percent_of_p4c_programs_pass(tmp_path: Path) -> None:
    sources = stf.programs(Path(FOLDER))
    outcomes = [o for o in (stf.run_one(s, tmp_path) for s in sources) if o.compiled]
    failed = [f"{o.name}: {o.reason}" for o in outcomes if o.reason]
    assert len(failed) < (1 - stf.REQUIRED) * len(outcomes), "\n".join(failed)
