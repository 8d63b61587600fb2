"""The change of a root over Mininet: a job goes on under its next number, and comes back."""

from __future__ import annotations

from tests.emulation.runs import eventually
from tests.testbeds import Bluetree

DEADLINE_S = 60


def test_a_job_goes_on_with_another_root_and_back(
    bluetree: Bluetree, target: str, tree: str
) -> None:
    bluetree("up", tree, "--target", target, "--root", "b")
    bluetree("start", "--blue", "r", "--op", "allreduce")
    turned = bluetree("reallocate", "--root", "b", "--blue", "r,b")
    assert (turned["was"], turned["job"], turned["root"]) == (1, 2, "b")
    assert 0 < turned["first_chunk_after"] < turned["seconds"]
    links = {link["switch"]: link for link in bluetree("status")["links"]}
    # At b the sum of r and its own three workers are summed.
    assert {links[name]["predicted"] for name in ("r", "b")} == {1}
    assert (links["r"]["parent"], links["b"]["parent"]) == ("b", "")
    first = turned["first_chunk"]
    assert eventually(lambda: bluetree("status")["jobs"][1]["completed"] > first, DEADLINE_S)

    bluetree("reallocate", "--job", "2", "--blue", "r")
    back = bluetree("reallocate", "--job", "2", "--root", "r")
    assert (back["was"], back["job"], back["root"], back["blue"]) == (2, 3, "r", ["r"])
    jobs = bluetree("stop")["jobs"]
    assert [(job["job"], job["correct"]) for job in jobs] == [(1, True), (2, True), (3, True)]
    assert jobs[0]["completed"] <= first < jobs[1]["completed"] <= jobs[2]["completed"]
    for job in jobs:
        for link in job["links"]:
            assert link["messages"] == link["expected"], (job["job"], link)
