"""What a testbed that is up looks like in a terminal; scripts take `--json`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from controller.render import MAX_ROWS, counted
from controller.service import bluetree_pb2 as api


def status_view(status: api.Status) -> RenderableType:
    """Switches, jobs and links."""
    down = [switch for switch in status.switches if switch.state != "up"]
    standbys = f", {len(status.standbys)} on standby" if status.standbys else ""
    head = (
        f"[bold]{escape(status.topology)}[/] on {status.target}: {len(status.switches)} switches, "
        f"{len(status.switches) - len(down)} up; controller {status.controller.pid}, election id "
        f"{status.controller.election_id}{standbys}"
    )
    parts: list[RenderableType] = [head]
    parts += [f"[red]{escape(switch.detail)}[/]" for switch in down]
    parts += [f"[red]{escape(cut.text)}[/]" for cut in status.cut_links]
    if status.jobs:
        parts.append(_jobs(status))
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


def _jobs(status: api.Status) -> Table:
    table = Table(
        "job", "op", "phase", "epoch", "strategy", "k", "congestion", "workers", "slots", "chunks",
        "sums", "resent", "blue",
    )  # fmt: skip
    for job in status.jobs:
        total = f" of {job.chunks}" if job.HasField("chunks") else ""
        table.add_row(
            str(job.job),
            job.op,
            job.phase,
            str(job.epoch),
            job.strategy,
            str(job.k) if job.HasField("k") else "",
            job.congestion,
            str(job.workers),
            f"{job.slot_base}+{job.window}",
            f"{job.completed}{total}",
            "[green]right[/]" if job.correct else "[red]WRONG[/]",
            str(job.retransmissions),
            escape(", ".join(job.blue[:6]) + (", ..." if len(job.blue) > 6 else "")),
        )
    return table


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
