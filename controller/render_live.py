"""What a testbed that is up looks like in a terminal; scripts take `--json`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markup import escape
from rich.table import Column, Table

from controller.render import MAX_ROWS, counted
from controller.service import bluetree_pb2 as api
from p4src.builds import NARROW


def status_view(status: api.Status) -> RenderableType:
    """Switches, jobs and links."""
    down = [switch for switch in status.switches if switch.state != "up"]
    standbys = f", {len(status.standbys)} on standby" if status.standbys else ""
    lanes = "" if status.lanes in (0, NARROW.lanes) else f"; {status.lanes} lanes"
    head = (
        f"[bold]{escape(status.topology)}[/] on {status.target}: {len(status.switches)} switches, "
        f"{len(status.switches) - len(down)} up; controller {status.controller.pid}, election id "
        f"{status.controller.election_id}{standbys}{lanes}"
    )
    parts: list[RenderableType] = [head]
    parts += [f"[red]{escape(switch.detail)}[/]" for switch in down]
    parts += [f"[red]{escape(cut.text)}[/]" for cut in status.cut_links]
    if status.jobs:
        parts.append(_Jobs(status))
        parts += [line for job in status.jobs if (line := _how_it_goes_on(job))]
        parts += [
            f"job {job.job}: {escape(job.detail or job.waits_for)}"
            for job in status.jobs
            if job.detail
        ]
        parts += [
            f"[red]{escape(job.stuck.text)}[/]" for job in status.jobs if job.HasField("stuck")
        ]
    else:
        parts.append("no jobs: `bluetree start -k 4` starts one")
    if any(not _is_over(job) for job in status.jobs):
        parts.append(_links(list(status.links)))
        parts.append(
            f"congestion predicted {status.predicted_congestion}, "
            f"measured {status.measured_congestion:.2f}"
        )
    return Group(*parts)


def counters_view(counters: api.Counters) -> RenderableType:
    """Outcomes by switch, and the links."""
    columns = sorted({name for switch in counters.switches for name in switch.outcomes})
    table = Table("switch", *(name.lower() for name in columns))
    for switch in counters.switches[:MAX_ROWS]:
        table.add_row(escape(switch.name), *(str(switch.outcomes.get(name, 0)) for name in columns))
    return Group(table, _links(list(counters.links)))


def change_view(change: api.Change, what: str) -> RenderableType:
    """What a change came to, and how long it took."""
    first = "no chunk since"
    if change.HasField("first_chunk_after"):
        first = f"first chunk after {change.first_chunk_after * 1e3:.0f} ms"
    full = f"; no capacity left at {', '.join(change.full)}" if change.full else ""
    if change.HasField("was"):
        what = f"goes on for job {change.was} with root {escape(change.root)}"
    return Group(
        f"job {change.job} {what}: {change.strategy}, congestion {change.congestion} "
        f"(all jobs: {change.total_congestion}){escape(full)}",
        f"blue ({len(change.blue)}): {escape(', '.join(change.blue) or 'none')}",
        f"epoch {change.epoch} from chunk {change.first_chunk} on; {change.inserted} entries "
        f"written, {change.deleted} removed; installed after "
        f"{change.installed_after * 1e3:.0f} ms, {first}, done after {change.seconds * 1e3:.0f} ms",
    )


def stopped_view(reply: api.StopJobReply) -> RenderableType:
    """What became of the jobs, and whether links carried what the placements say."""
    if not reply.jobs:
        return "no jobs"
    lines = []
    for job in reply.jobs:
        sums = "[green]every sum right[/]" if job.correct else "[red]NOT RIGHT[/]"
        if job.phase == "failed" and job.correct:
            sums += " as far as it came"
        differing = [link for link in job.links if link.messages != link.expected]
        carried = (
            "its links were not compared"
            + (f" ({escape(job.not_compared)})" if job.not_compared else "")
            if not job.links
            else f"{len(job.links)} links carried exactly what was predicted"
            if not differing
            else f"{len(differing)} of {len(job.links)} links differ from the prediction, "
            f"such as {escape(differing[0].switch)}: {differing[0].messages} messages, "
            f"{differing[0].expected} predicted"
        )
        lines.append(
            f"job {job.job} {'failed' if job.phase == 'failed' else 'stopped'}: {sums}; {carried}\n"
            f"{counted(job.completed, 'chunk')}, {counted(job.reallocations, 'reallocation')}, "
            f"{counted(job.retransmissions, 'retransmission')}"
        )
    return Group(*lines)


def _how_it_goes_on(job: api.JobStatus) -> str:
    """What a job does without, and its next number where its `detail` does not say that."""
    parts = []
    if job.left_out:
        parts.append(f"{'went' if _is_over(job) else 'goes'} on without {', '.join(job.left_out)}")
    if job.came_back:
        back = ", ".join(f"{one.worker} from chunk {one.first_chunk} on" for one in job.came_back)
        parts.append(f"{'had' if _is_over(job) else 'has'} again {back}")
    if job.avoids:
        parts.append(
            f"{'went' if _is_over(job) else 'goes'} round {', '.join(job.avoids)}, root {job.root}"
        )
    if job.HasField("goes_on_as") and not job.detail:
        parts.append(f"goes on as job {job.goes_on_as}")
    return f"job {job.job}: {escape('; '.join(parts))}" if parts else ""


def _is_over(job: api.JobStatus) -> bool:
    return job.phase in ("finished", "failed")


class _Jobs:
    """The jobs, with as many columns as fit: whatever is shown is shown whole."""

    def __init__(self, status: api.Status) -> None:
        self._status = status

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table(())
        for count in range(1, len(_SPARE_COLUMNS) + 1):
            # The names of blue switches may take several lines, but not of one letter each.
            if table.__rich_measure__(console, options.update(max_width=_WIDE)).minimum <= (
                options.max_width
            ):
                break
            table = self._table(_SPARE_COLUMNS[:count])
        yield table

    def _table(self, without: Sequence[str]) -> Table:
        rows = [_job_cells(job) for job in self._status.jobs]
        names = [name for name in rows[0] if name not in without]
        table = Table(*(Column(name, no_wrap=name != "blue", overflow="fold") for name in names))
        for cells in rows:
            table.add_row(*(cells[name] for name in names))
        return table


_WIDE = 1_000
_SPARE_COLUMNS = ("slots", "strategy", "resent", "workers", "k", "congestion")
"""What is left out where the terminal is narrow, first the first; `--json` has all."""


def _job_cells(job: api.JobStatus) -> dict[str, str]:
    """A job's cells by the heads of their columns."""
    total = f" of {job.chunks}" if job.HasField("chunks") else ""
    return {
        "job": str(job.job),
        "op": job.op,
        "phase": job.phase,
        "epoch": str(job.epoch),
        "strategy": job.strategy,
        "k": str(job.k) if job.HasField("k") else "",
        "congestion": job.congestion,
        "workers": str(job.workers),
        "slots": f"{job.slot_base}+{job.window}",
        "chunks": f"{job.completed}{total}",
        "sums": "[green]right[/]" if job.correct else "[red]WRONG[/]",
        "resent": str(job.retransmissions),
        "blue": escape(", ".join(job.blue[:6]) + (", ..." if len(job.blue) > 6 else "")),
    }


def _links(links: list[api.LinkStatus]) -> Table:
    """The most congested links first."""
    table = Table(
        "switch", "parent", "colour", "rate", "predicted", "measured", "messages", "resent"
    )
    links.sort(key=lambda link: -link.measured)
    for link in links[:MAX_ROWS]:
        table.add_row(
            escape(link.switch),
            escape(link.parent or "destination"),
            "[blue]blue[/]" if link.blue else "[red]red[/]",
            link.rate,
            str(link.predicted),
            f"{link.measured:.2f}",
            str(link.messages),
            str(link.retransmitted),
        )
    return table
