"""Links between live switches that are cut over Mininet: found, and gone round or named."""

from __future__ import annotations

import subprocess
from pathlib import Path

from controller.live.client import NetworkClient
from controller.live.requests import NetworkDescription
from tests.testbeds import Bluetree

LINK = "agg0-0-core0"


def _interface(up: NetworkDescription, switch: str, other: str) -> str:
    """The interface of a switch at the link to another one."""
    network = up.network
    port = next(
        port
        for link in network.links
        for ends, port in (
            ((link.lower, link.upper), link.lower_port),
            ((link.upper, link.lower), link.upper_port),
        )
        if ends == (switch, other)
    )
    for path in Path("/sys/class/net").glob(f"*s{network.device_id[switch]}-{port}"):
        owner = (path / "ifalias").read_text().strip().partition(":")[2].partition(".")[0]
        parent = Path(f"/proc/{owner}/stat").read_text().rpartition(")")[2].split()[1]
        if int(parent) == up.pids["daemon"]:
            return path.name
    raise AssertionError(f"no interface of {switch} is at the link to {other}")


def test_a_job_goes_round_links_that_are_cut(bluetree: Bluetree, target: str) -> None:
    bluetree("up", "fat-tree:k=4", "--workers", "1", "--target", target)
    bluetree("start", "-k", "3", "--op", "allreduce")
    bluetree.until(lambda job: job["completed"] > 20)
    # Both ends look up, and what goes the other way arrives.
    bluetree("fail", LINK, "--one-way")
    job = bluetree.until(lambda job: (job["job"], job["phase"]) == (2, "running"))
    assert job["avoids"] == [LINK]
    (cut,) = bluetree("status")["cut_links"]
    assert (cut["sender"], cut["receiver"]) == ("agg0-0", "core0")
    bluetree.until(lambda other: other["completed"] > job["completed"] + 20)

    bluetree("restart", LINK)
    bluetree("reallocate", "--job", "2", "--root", "core0")
    with NetworkClient(bluetree.folder) as network:
        interface = _interface(network.describe(), "agg0-0", "core0")
    subprocess.run(["ip", "link", "delete", interface], check=True)
    job = bluetree.until(lambda job: (job["job"], job["phase"]) == (4, "running"))
    assert job["avoids"] == [LINK]
    assert {cut["text"] for cut in bluetree("status")["cut_links"]} <= {
        f"link {LINK} has no carrier"
    }
    bluetree.until(lambda other: other["completed"] > job["completed"] + 20)
    said = bluetree("restart", LINK, exit_code=4)["stderr"]
    assert said.startswith(f"bluetree: link {LINK}: ")
    assert [job["correct"] for job in bluetree("stop")["jobs"]] == [True] * 4
