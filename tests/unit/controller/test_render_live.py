"""What a testbed that is up looks like in a terminal."""

from __future__ import annotations

import pytest
from rich.console import Console, RenderableType

from controller.render_live import status_view, stopped_view
from controller.service import bluetree_pb2 as api


def shown(view: RenderableType, width: int = 200) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(view)
    return capture.get().splitlines()


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (api.JobStatus(job=1, left_out=["w4", "w5"]), "job 1: goes on without w4, w5"),
        (api.JobStatus(job=1, phase="finished", left_out=["w4"]), "job 1: went on without w4"),
        (
            api.JobStatus(
                job=1, left_out=["w5"], came_back=[api.Rejoined(worker="w4", first_chunk=70)]
            ),
            "job 1: goes on without w5; has again w4 from chunk 70 on",
        ),
        (api.JobStatus(job=2, avoids=["a"], root="r"), "job 2: goes round a, root r"),
        (api.JobStatus(job=1, phase="draining", goes_on_as=2), "job 1: goes on as job 2"),
        (
            api.JobStatus(job=1, goes_on_as=2, phase="finished", detail="goes on as job 2"),
            "job 1: goes on as job 2",
        ),
        (
            api.JobStatus(job=3, left_out=["w4"], avoids=["a", "b"], root="r", goes_on_as=4),
            "job 3: goes on without w4; goes round a, b, root r; goes on as job 4",
        ),
    ],
)
def test_status_says_once_how_a_job_goes_on(job: api.JobStatus, line: str) -> None:
    lines = shown(status_view(api.Status(jobs=[job])))
    assert [one for one in lines if one.startswith("job ")] == [line]


def test_a_job_that_needs_nothing_special_has_no_line() -> None:
    job = api.JobStatus(job=1, phase="running", root="r", waits_for="chunk 3 of w1")
    assert not [one for one in shown(status_view(api.Status(jobs=[job]))) if one.startswith("job ")]


def test_stop_says_why_links_were_not_compared_and_counts_in_words() -> None:
    job = api.JobStatus(
        job=1, correct=True, completed=9, reallocations=1, not_compared="w5 left out at chunk 4"
    )
    assert shown(stopped_view(api.StopJobReply(jobs=[job]))) == [
        "job 1 stopped: every sum right; its links were not compared (w5 left out at chunk 4)",
        "9 chunks, 1 reallocation, 0 retransmissions",
    ]


@pytest.mark.parametrize("width", [80, 100, 200])
def test_what_is_shown_of_a_job_is_shown_whole(width: int) -> None:
    job = api.JobStatus(
        job=17,
        op="allreduce",
        phase="draining",
        epoch=1_796_082_251,
        strategy="brute-force",
        k=8,
        congestion="123/7",
        workers=1_024,
        window=256,
        slot_base=1_024,
        chunks=123_456,
        completed=12_345,
        correct=True,
        retransmissions=9_999,
        blue=[f"agg{i}-0" for i in range(4)],
    )
    lines = shown(status_view(api.Status(jobs=[job])), width)
    assert max(map(len, lines)) <= width
    first = next(line for line in lines if "allreduce" in line)
    assert "…" not in "".join(lines)
    for value in ("17", "draining", "1796082251", "12345 of 123456", "right"):
        assert f" {value} " in first
    assert "strategy" in "".join(lines) or width < 200
