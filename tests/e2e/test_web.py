"""The page of a testbed, in a real browser, and its metrics."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from controller.live.client import NetworkClient
from tests.e2e.chromium import PROGRAM, Browser
from tests.testbeds import Bluetree

DEADLINE_S = 30

STRANGER = "evil.example"
"""Another site, of the names that RFC 2606 leaves for this."""


@pytest.fixture
def bluetree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Bluetree]:
    """A testbed on the fabric with a page and a job."""
    command = Bluetree(tmp_path / "s", capsys)
    yield command
    command.clean_up()


def _up(bluetree: Bluetree, *words: str) -> str:
    where = ("--web", "--web-listen", "127.0.0.1:0")
    up = bluetree("up", "docs/fig1.json", "--target", "fabric", *where, *words)
    bluetree("start", "-k", "2")
    return str(up["page"])


def _get(url: str) -> tuple[str, bytes]:
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return answer.headers["Content-Type"], answer.read()


def _refusal(url: str, body: bytes | None, kind: str, **headers: str) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, {"Content-Type": kind, **headers})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=DEADLINE_S)
    return refused.value.code, json.loads(refused.value.read())["error"]


@pytest.mark.skipif(PROGRAM is None, reason="chromium is absent: the page was not looked at")
def test_the_page_shows_the_tree_and_reallocates(bluetree: Bluetree, tmp_path: Path) -> None:
    url = _up(bluetree)
    blue = "[...document.querySelectorAll('circle[data-blue=\"true\"]')]"
    with Browser() as browser:
        browser.open(url)
        browser.wait_for('document.querySelectorAll("circle").length === 7')
        names = browser.evaluate(f"{blue}.map((one) => one.dataset.switch).sort().join()")
        assert names == "s2,s4"
        assert "7 of 7 switches up; congestion predicted 5" in browser.evaluate(
            'document.getElementById("head").textContent'
        )
        # Measured loads come close to the predicted ones, which stand behind them.
        loads = '[...document.querySelectorAll("text.load")]'
        browser.wait_for(f"{loads}.some((one) => /^[45]\\.\\d\\d \\/ 5$/.test(one.textContent))")
        assert "right" in browser.evaluate('document.getElementById("jobs").textContent')

        browser.evaluate(
            'form.strategy.value = "top"; form.k.value = "2"; form.querySelector("button").click()'
        )
        said = 'document.getElementById("said").textContent'
        browser.wait_for(f'{said}.startsWith("epoch ")')
        epoch = bluetree("status")["jobs"][0]["epoch"]
        assert browser.evaluate(said).startswith(f"epoch {epoch} from chunk ")
        browser.wait_for(f'{blue}.map((one) => one.dataset.switch).sort().join() === "s0,s2"')
        troubles = 'document.getElementById("troubles").textContent'
        assert browser.evaluate(troubles) == ""
        bluetree("fail", "s3-s1")
        browser.wait_for(f'{troubles}.includes("nothing that s3 sends to s1 arrives")')
        browser.wait_for(f'{troubles}.includes("job 1 is stuck: ")')
        bluetree("restart", "s1-s3")
        browser.wait_for(f'{troubles} === ""')
        browser.screenshot(tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as picture:
        assert picture.width >= 1000
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24) or []}
    assert {(0x1F, 0x5F, 0xD0), (0xD0, 0x4A, 0x3A)} <= colours
    assert bluetree("status")["jobs"][0]["strategy"] == "top"


@pytest.mark.skipif(PROGRAM is None, reason="chromium is absent: the page was not looked at")
def test_the_page_changes_the_root_and_says_what_was_refused(bluetree: Bluetree) -> None:
    url = _up(bluetree, "--root", "s2")
    said = 'document.getElementById("said")'
    with Browser() as browser:
        browser.open(url)
        browser.wait_for('document.querySelectorAll("circle").length === 7')
        browser.wait_for("form.root.options.length === 3 && form.job.value === '1'")
        offered = "[...form.root.options].map((one) => one.textContent).join()"
        assert browser.evaluate(offered) == "as it is,s0,s2"
        browser.evaluate('form.strategy.value = ""; form.k.value = ""')
        click = 'form.querySelector("button").click()'
        browser.evaluate(f'form.root.value = "s2"; {click}')
        browser.wait_for(f"{said}.textContent.startsWith('job 2 goes on for job 1 with root s2: ')")
        # The tree hangs from the new root, and only the new number can be chosen.
        browser.wait_for('document.querySelector("circle").dataset.switch === "s2"')
        browser.wait_for("[...form.job.options].map((one) => one.value).join() === '2'")

        with NetworkClient(bluetree.folder) as network:
            network.kill("destination")
        browser.evaluate(f'form.root.value = "s0"; {click}')
        browser.wait_for(f"{said}.className === 'wrong'")
        refusal = browser.evaluate(f"{said}.textContent")
        assert refusal.startswith("not reallocated: job 2: goes on as before: destination: ")
        browser.evaluate(f'form.root.value = ""; {click}')
        browser.wait_for(f"{said}.textContent.includes('say what to change')")
        browser.evaluate(f'form.strategy.value = "smc"; form.k.value = "1"; {click}')
        browser.wait_for(f"{said}.textContent.startsWith('epoch ')")
        assert browser.evaluate(f"{said}.className") == ""
    assert [job["root"] for job in bluetree("status")["jobs"] if job["phase"] == "running"] == [
        "s2"
    ]


def test_metrics_and_refusals(bluetree: Bluetree) -> None:
    url = _up(bluetree)
    kind, text = _get(f"{url}metrics")
    assert kind.startswith("text/plain")
    families = {one.name: one for one in text_string_to_metric_families(text.decode())}
    up = {
        sample.labels["switch"]: sample.value for sample in families["bluetree_switch_up"].samples
    }
    assert up == {f"s{i}": 1.0 for i in range(7)}
    predicted = {
        sample.labels["switch"]: sample.value
        for sample in families["bluetree_link_predicted"].samples
    }
    assert (predicted["s5"], predicted["s2"]) == (5.0, 1.0)
    assert families["bluetree_chunks"].samples[0].value > 0
    assert {s.labels["outcome"] for s in families["bluetree_packets"].samples} >= {"absorbed"}

    assert families["bluetree_link_cut"].samples == []
    # Other sites' pages can post forms, but no JSON; and nothing comes from elsewhere.
    change = f"{url}reallocate"
    assert _refusal(change, b"k=1", "application/x-www-form-urlencoded")[0] == 400
    assert _refusal(change, b'{"k": -1}', "application/json")[0] == 400
    assert _refusal(change, b'{"root": 1}', "application/json")[0] == 400
    assert "s1: no destination" in _refusal(change, b'{"root": "s1"}', "application/json")[1]
    assert "is no JSON" in _refusal(change, b"{", "application/json")[1]
    code, error = _refusal(change, b'{"job": 9, "k": 1}', "application/json")
    assert (code, "no such job" in error) == (400, True)
    # Another site's page, and another site's name for this address, are refused.
    for headers in (
        {"Host": STRANGER},
        {"Host": "[1"},
        {"Origin": f"http://{STRANGER}"},
        {"Origin": "null"},
    ):
        assert _refusal(change, b'{"k": 1}', "application/json", **headers)[0] == 403
    assert _refusal(f"{url}status.json", None, "text/plain", Host=STRANGER)[0] == 403
    own = {"Content-Type": "application/json", "Origin": url.rstrip("/")}
    with urllib.request.urlopen(
        urllib.request.Request(change, b'{"k": 1}', own), timeout=DEADLINE_S
    ) as answer:
        assert answer.status == 200
    page = _get(url)[1].decode()
    assert "src=" not in page
    assert "//" not in page.replace("http://www.w3.org/2000/svg", "").replace("// ", "")

    # The page outlives its controller, and says what is missing.
    os.kill(bluetree("status")["controller"]["pid"], signal.SIGKILL)
    bluetree("up")
    assert json.loads(_get(f"{url}status.json")[1])["jobs"][0]["correct"] is True
