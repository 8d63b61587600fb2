"""Links between live switches that are cut below running jobs, on the fabric: found, gone round.

Nor is anything taken for a cut link that is none.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.live.client import NetworkClient, launch
from controller.service import closing, healing
from controller.service.admission import Wish
from controller.service.errors import NotNowError
from controller.service.planner import Order
from controller.service.store import Phase
from controller.watchdog import Cause
from tests.e2e.controllers import (
    Controller,
    goes_on,
    run_limited,
    running_controller,
    runs,
    stop_all,
    until,
    watched,
)
from tests.testbeds import Bluetree

ORDER = Order(op="allreduce", chunks=None, seed=3, wish=Wish(budget=3), window=4, workers=())
LINK = "agg0-0-core0"
BOUND_S = 10.0
"""Within which a cut link is found and gone round, on a machine with other work."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkClient]:
    """A fat-tree for several tests; each leaves it whole and without jobs."""
    folder = tmp_path_factory.mktemp("n")
    client = launch(folder, "fat-tree:k=4", ["--workers", "1"], target="fabric")
    yield client
    client.down()


async def _cut(controller: Controller, link: str, *, one_way: bool = False) -> None:
    await asyncio.to_thread(controller.network.kill, link, one_way=one_way)


@pytest.mark.parametrize("link", ["agg0-0-core0", "core0-agg0-0"])
def test_jobs_go_round_a_link_that_loses_one_way(network: NetworkClient, link: str) -> None:
    """Both ends answer, and what goes the other way arrives."""

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await _cut(up, link, one_way=True)
            began = time.monotonic()
            found: set[tuple[str, str]] = set()
            said = set()
            while not runs(up, 2)():
                found |= {(cut.sender, cut.receiver) for cut in up.engine.watchdog.links.cut}
                said |= {stuck.text for stuck in up.engine.watchdog.stuck.values()}
                await asyncio.sleep(0.02)
            assert time.monotonic() - began < BOUND_S
            sender, receiver = ("agg0-0", "core0") if link == LINK else ("core0", "agg0-0")
            assert found == {(sender, receiver)}
            text = f" waits for w0, w1: nothing that {sender} sends to {receiver} arrives"
            assert any(line.endswith(text) for line in said), said
            second = up.engine.jobs()[1]
            assert (second.root, second.avoids) == (None, (LINK,))
            await goes_on(up, 2)
            await until(lambda: up.engine.jobs()[0].phase is Phase.FINISHED)
            assert json.loads(up.engine.jobs()[0].result)["not_compared"] == f"{LINK} failed"
            # It is known as long as nobody can tell; whole again, it carries the job once more.
            (known,) = up.engine.watchdog.links.known
            assert known.link == LINK
            await asyncio.to_thread(network.restart, link)
            # Nobody has to send anything into it to learn that.
            assert await up.engine.watchdog.links.cut_now() == ()
            back = await up.engine.reallocate(2, None, "core0")
            assert (back.was, back.job.avoids) == (2, ())
            await goes_on(up, back.job.id)
            await stop_all(up)

    run_limited(scenario)


def test_a_change_whose_job_goes_round_meanwhile_says_so(network: NetworkClient) -> None:
    """The old number is over while the command waits for the first chunk of the new epoch."""

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await _cut(up, LINK)
            with pytest.raises(NotNowError) as said:
                await up.engine.reallocate(1, Wish(budget=5))
            assert str(said.value) == "job 1: finished while it changed: goes on as job 2"
            await until(runs(up, 2))
            await goes_on(up, 2)
            await stop_all(up, exact=False)
            await asyncio.to_thread(network.restart, LINK)

    run_limited(scenario)


def test_a_job_that_is_stopped_without_every_answer_was_right_so_far(
    network: NetworkClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closing, "FINISH_S", 0.3)

    async def scenario() -> None:
        # Nobody looks after it, so it does not go round.
        async with running_controller(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await _cut(up, LINK)
            (ended,) = await up.engine.stop(1)
            result = json.loads(ended.result)
            assert ended.phase is Phase.FAILED
            assert result["detail"].startswith("stopped; not answered: chunk ")
            assert (result["correct"], result["completed"] > 20) == (True, True)
            await asyncio.to_thread(network.restart, LINK)

    run_limited(scenario)


def test_an_idle_job_cuts_no_link(network: NetworkClient) -> None:
    """Its workers hold back: all is asked for, and nothing comes."""

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await goes_on(up, 1)
            await asyncio.to_thread(network.hold, 1)
            await until(lambda: 1 in up.engine.watchdog.stuck)
            await _no_cut_for(up, 2.0)
            await asyncio.to_thread(network.release, 1)
            await goes_on(up, 1)
            await stop_all(up, exact=False)

    run_limited(scenario)


async def _no_cut_for(controller: Controller, seconds: float) -> None:
    """See that no link is taken for cut, looking at all of them twice a second."""
    links, deadline = controller.engine.watchdog.links, time.monotonic() + seconds
    names = controller.engine.network.topology.overlay.names
    while time.monotonic() < deadline:
        await links.look(names)
        assert links.known == ()
        await asyncio.sleep(0.05)


def test_loss_is_none_and_a_cut_link_is_found_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a tree no way leads round a link: those below it are named."""
    monkeypatch.setattr(healing, "GIVE_UP_S", 0.5)
    options = ["--workers", "1", "--loss", "0.2"]
    network = launch(tmp_path, "binary-tree:levels=3", options, target="fabric")

    async def scenario() -> None:
        async with watched(network, 2) as up:
            await up.engine.start(ORDER)
            await _no_cut_for(up, 3.0)
            await _cut(up, "s2-s0")
            await until(lambda: up.engine.jobs()[0].phase is Phase.FAILED)
            detail = json.loads(up.engine.jobs()[0].result)["detail"]
            assert detail.startswith(
                "link s2-s0 has carried nothing for 0.5 s and cuts off w2, w3: "
            )
            await up.engine.stop(None)

    try:
        run_limited(scenario)
    finally:
        network.down()


def test_the_commands_that_cut_a_link_and_end_that(bluetree: Bluetree, tree: str) -> None:
    assert "no testbed is up" in bluetree("fail", "b-r", exit_code=2)["stderr"]
    bluetree("up", tree, "--target", "fabric")
    said = bluetree("fail", "b-a", exit_code=2)["stderr"]
    assert said == (
        "bluetree: b-a: no such switch, link A-B or host; `bluetree status` lists switches and "
        "links, and the hosts are w0 to w5 and destination\n"
    )
    assert (
        "only a link A-B has two ways" in bluetree("fail", "b", "--one-way", exit_code=2)["stderr"]
    )
    for words in (("restart", "b-r"), ("restart", "b"), ("restart", "w0")):
        bluetree(*words, exit_code=2)
    bluetree("start", "--blue", "r,b", "--op", "allreduce")
    done = bluetree("fail", "b-r", "--one-way")
    assert (done["part"], done["one_way"]) == ("b-r", True)
    said = bluetree("fail", "b-r", "--one-way", exit_code=2)["stderr"]
    assert "b-r: nothing that b sends to r arrives already; `bluetree restart b-r`" in said
    stuck = bluetree.until(lambda job: job["stuck"] and job["stuck"]["cause"] == Cause.LINK.value)
    text = "nothing that b sends to r arrives"
    assert (stuck["stuck"]["switch"], stuck["stuck"]["link"]) == ("b", "b-r")
    assert stuck["stuck"]["text"].endswith(f" waits for w3, w4, w5: {text}")
    (cut,) = bluetree("status")["cut_links"]
    assert (cut["link"], cut["sender"], cut["receiver"], cut["text"]) == ("b-r", "b", "r", text)
    assert cut["lost"] >= 10
    assert text in bluetree.text("status")
    back = bluetree("restart", "r-b")
    assert (back["part"], back["link"]) == ("r-b", "r-b")
    assert bluetree("status")["cut_links"] == []
    assert "is not cut" in bluetree("restart", "b-r", exit_code=2)["stderr"]
    bluetree.until(lambda job: job["stuck"] is None)
    said = bluetree.text("fail", "r-b", "--one-way")
    assert said.startswith("nothing that r sends to b arrives any more; ")
    assert bluetree.text("fail", "b-r").startswith("b-r carries nothing any more; ")
    assert "nor the other way, already" in bluetree("fail", "r-b", exit_code=2)["stderr"]
    assert "carries all again" in bluetree.text("restart", "b-r")
    # A switch likewise.
    bluetree("fail", "b")
    bluetree.until(lambda job: job["stuck"] and job["stuck"]["cause"] == Cause.SWITCH.value)
    assert "b: is dead already" in bluetree("fail", "b", exit_code=2)["stderr"]
    assert "since switch b is dead" in bluetree("fail", "r-b", exit_code=2)["stderr"]
    assert "switch b is dead: `bluetree restart b` starts it anew" in bluetree.text("status")
    back = bluetree("restart", "b")
    assert (back["part"], back["switch"]) == ("b", "b")
    completed = bluetree("status")["jobs"][0]["completed"]
    bluetree.until(lambda job: job["completed"] > completed + 20)
    assert bluetree("stop")["jobs"][0]["correct"] is True


def test_every_host_can_be_killed_and_brought_back_by_commands(
    bluetree: Bluetree, tree: str
) -> None:
    bluetree("up", tree, "--target", "fabric", "--lanes", "240")
    assert bluetree("status")["lanes"] == 240
    assert "240 lanes" in bluetree.text("status")
    start = ("start", "--blue", "r,b", "--op", "allreduce", "--on-worker-loss", "continue")
    bluetree(*start)
    assert "`bluetree rejoin w3` brings it back" in bluetree.text("fail", "w3")
    assert "w3: is dead already" in bluetree("fail", "w3", exit_code=2)["stderr"]

    def left_out(*names: str) -> None:
        bluetree.until(lambda job: (job["left_out"], job["phase"]) == ([*names], "running"))

    left_out("w3")
    assert bluetree("rejoin")["came_back"] == ["w3"]
    # What a cut link keeps away does not come back before the link does.
    bluetree("fail", "b-r")
    left_out("w3", "w4", "w5")
    said = bluetree("rejoin", "w3", exit_code=4)["stderr"]
    assert said.startswith("bluetree: w3: nothing that ")
    assert said.endswith(", which is on its way: `bluetree restart b-r`\n")
    bluetree("restart", "b-r")
    assert bluetree("rejoin")["came_back"] == ["w3", "w4", "w5"]
    bluetree("fail", "destination")
    assert bluetree("restart", "destination")["host"] == "destination"
    completed = bluetree("status")["jobs"][0]["completed"]
    bluetree.until(lambda job: job["completed"] > completed + 20)
    assert bluetree("stop")["jobs"][0]["correct"] is True
