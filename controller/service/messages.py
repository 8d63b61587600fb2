"""Between the engine's values and the API's messages."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from controller.cuts import Cut
from controller.live.progress import JobProgress
from controller.p4rt import NotPrimaryError, SwitchAddress, SwitchError
from controller.service import bluetree_pb2 as api
from controller.service import ledger
from controller.service.admission import Wish
from controller.service.change import Changed
from controller.service.ledger import LinkLine
from controller.service.progress import completed, waits_for
from controller.service.store import Job, Role
from controller.watchdog import Stuck
from topologies.network import Network


def wish_of(choice: api.Choice, defaults: Wish) -> Wish:
    """How the blue switches are to be chosen; the defaults are for what is not said."""
    if choice.given:
        return Wish(blue=tuple(choice.blue), budget=choice.k if choice.HasField("k") else None)
    return Wish(
        strategy=choice.strategy or defaults.strategy,
        budget=choice.k if choice.HasField("k") else defaults.budget,
    )


def change_message(changed: Changed) -> api.Change:
    """What a change came to."""
    allocation = changed.job.current
    return api.Change(
        job=changed.job.id,
        epoch=allocation.epoch,
        strategy=allocation.strategy,
        k=allocation.budget,
        blue=allocation.blue,
        congestion=str(changed.congestion),
        total_congestion=str(changed.total),
        first_chunk=changed.first_chunk,
        inserted=changed.written.inserted,
        deleted=changed.written.deleted,
        installed_after=changed.installed_after,
        first_chunk_after=changed.first_chunk_after,
        seconds=changed.seconds,
        full=changed.full,
        root=changed.root,
        was=changed.was,
        steps=[api.Step(name=step.name, seconds=step.seconds) for step in changed.steps],
        came_back=changed.came_back,
    )


def job_message(
    network: Network, job: Job, progress: JobProgress | None, stuck: Stuck | None = None
) -> api.JobStatus:
    """A job as it is; `progress` is None where nobody could say, or it is over."""
    allocation = job.current
    result = json.loads(job.result)
    message = api.JobStatus(
        job=job.id,
        op=job.op,
        phase=job.phase,
        epoch=allocation.epoch,
        strategy=allocation.strategy,
        k=allocation.budget,
        blue=allocation.blue,
        congestion=str(ledger.congestion_of(network, job, allocation)),
        workers=len(job.present(range(len(network.workers)))),
        left_out=[network.workers[rank].name for rank in allocation.absent],
        came_back=[
            api.Rejoined(worker=network.workers[rank].name, first_chunk=first)
            for rank, first in job.returned.items()
        ],
        on_worker_loss=job.on_loss,
        avoids=job.avoids,
        window=job.window,
        slot_base=job.slot_base,
        chunks=job.chunks,
        seed=job.seed,
        completed=result.get("completed", 0),
        correct=result.get("correct", False),
        retransmissions=result.get("retransmissions", 0),
        detail=result.get("detail", ""),
        # One that starts has none that holds.
        reallocations=max(0, sum(one.role is not Role.NEW for one in job.allocations) - 1),
        links=[
            api.LinkTotal(switch=name, messages=messages, expected=round(expected))
            for name, (messages, expected) in result.get("links", {}).items()
        ],
        not_compared=result.get("not_compared", ""),
        root=job.root or network.destination.switch,
        goes_on_as=job.successor,
    )
    # It may have ended since its hosts were asked; then what it ended with holds.
    if progress is not None and not job.phase.is_over:
        message.completed = job.begins + completed(progress)
        message.correct = not progress.mismatches
        message.retransmissions = progress.resent
        message.waits_for = waits_for(progress)
        message.detail = progress.failure
        if stuck is not None:
            message.stuck.CopyFrom(
                api.StuckChunk(
                    chunk=stuck.chunk,
                    switch=stuck.switch or "",
                    workers=stuck.workers,
                    cause=stuck.cause.value,
                    text=stuck.text,
                    link="" if stuck.cut is None else stuck.cut.link,
                )
            )
    return message


def cut_message(cut: Cut) -> api.CutLink:
    """A link that carries nothing."""
    return api.CutLink(
        link=cut.link, sender=cut.sender, receiver=cut.receiver, lost=cut.lost, text=cut.text
    )


def link_message(line: LinkLine) -> api.LinkStatus:
    """A link as it is."""
    return api.LinkStatus(
        switch=line.switch,
        parent=line.parent or "",
        rate=str(line.rate),
        blue=line.blue,
        predicted=line.predicted,
        measured=line.measured,
        messages=line.messages,
        expected=round(line.expected),
        retransmitted=line.resent,
        root=line.root,
    )


def switch_message(
    network: Network,
    jobs: Sequence[Job],
    where: SwitchAddress,
    troubles: Mapping[str, SwitchError],
    in_use: frozenset[str],
    dead: Collection[str] = (),
) -> api.SwitchStatus:
    """A switch as it is; `in_use` are those in some tree, `dead` those without a process."""
    trouble = troubles.get(where.name)
    state = "up"
    if trouble is not None:
        state = "other primary" if isinstance(trouble, NotPrimaryError) else "down"
    detail = "" if trouble is None else str(trouble)
    if state == "down" and where.name in dead:
        detail = f"switch {where.name} is dead: `bluetree restart {where.name}` starts it anew"
    overlay = network.topology.overlay
    in_tree = where.name in overlay.names
    serves = [job for job in jobs if any(where.name in one.blue for one in job.installed)]
    return api.SwitchStatus(
        name=where.name,
        device_id=where.device_id,
        address=where.address,
        state=state,
        detail=detail,
        blue_for=[job.id for job in serves],
        capacity=overlay.capacity[overlay.index(where.name)] if in_tree else None,
        in_tree=where.name in in_use,
        slots_used=sum(job.window for job in serves),
    )


def measured_congestion(lines: Sequence[LinkLine]) -> float:
    """psi as the counters have it."""
    return max((line.measured / float(line.rate) for line in lines), default=0.0)


def predicted_congestion(lines: Sequence[LinkLine]) -> Fraction:
    """psi as the model has it."""
    return max((line.predicted / line.rate for line in lines), default=Fraction(0))
