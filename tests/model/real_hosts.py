"""The machines of `traffic/` in the place of the model's hosts: paths of the model, replayed.

Whatever happens to a host on a path, a message, a timeout, a command of the controller, a kill,
happens to a real worker or destination too, and what leaves it must be what the model says, with
the chunk and epoch, the weight and sum of each message; what it has and lacks must agree as well.
The hosts' messages travel through the model's switches, which `tests.model.real_switch` compares.

What the model leaves out, and how the two are held together all the same:

* Time. All timers of a host come at once, when a step says so: then a worker must repeat all that
  is in flight, and the destination ask for all that it expects, or, when all is complete, perhaps
  repeat the last answers; neither sends anything else.
* What makes a host repeat or ask sooner than its timers (what answers call complete, requests that
  come often, chunks that overtake others), and in how many copies. So a step may have messages
  beside those of the model, but only such as a timeout in that state would send, or copies of an
  answer; the model's network has them too from then on. `RESENT` is not looked at; whether a
  repetition is `DIRECT` is the machine's to say.
* That a worker repeats a chunk only once for requests for a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.compile import JobPlan, destination_bits
from controller.endpoints import (
    Timing,
    absent_ranks,
    destination_config,
    job_sources,
    worker_config,
)
from p4src.constants import LANES, Flag, Kind
from tests.model import destination, hosts, rules
from tests.model import layout as at
from tests.model.real_switch import JOB, KINDS, NETWORK, SOURCES, WINDOW, lanes_of, value_of
from topologies.network import ip_text, mac_text
from traffic.destination import Destination
from traffic.endpoint import Op
from traffic.epochs import Term
from traffic.journal import Journal, size_of
from traffic.message import (
    DESTINATION_SOURCE,
    Flow,
    Message,
    decode_frame,
    encode_frame,
    group_ip,
    group_mac,
    unpack_lanes,
)
from traffic.worker import Worker

_SECOND = 1_000_000_000
_TIMING = Timing(timeout=_SECOND, max_timeout=4 * _SECOND, max_tries=1_000_000)
_NEVER = 1_000_000
_DESTINATION_PORT = 9590
DESTINATION = 3
"""Of hosts: workers are 0 to 2."""


class RealHosts:
    """Three workers and the destination, beside a state of the model that they are to agree with.

    `is_hasty`: machines mark all repetitions `DIRECT`, and otherwise none.
    """

    def __init__(self, t: list[int], p: Sequence[int], *, is_hasty: bool) -> None:
        self._t, self._p = t, p
        self._direct_after = 0 if is_hasty else _NEVER
        self._now = 0
        self._terms: list[tuple[Term, JobPlan]] = []
        config = destination_config(NETWORK, self._plan(0), Op.ALLREDUCE, _TIMING, p[at.CHUNKS], 0)
        assert config.requests is not None
        requests = replace(config.requests, direct_after=self._direct_after, direct_time=1)
        self._config = replace(config, requests=requests, answer_interval=0)
        self._journal = bytearray(size_of(self._config))
        self.destination = self._destination(resume=False)
        self.workers: list[Worker | None] = [
            self._worker(rank, 0) if rules.present(t, 0) >> rank & 1 else None for rank in range(3)
        ]

    def start(self) -> list[int]:
        """All begin; what leaves them."""
        self.destination.start(0)
        machines = [worker for worker in self.workers if worker is not None]
        return self._read([frame for worker in machines for frame in worker.start(0)])

    # --- steps; each says what leaves, in the model's numbers -------------------------------------

    def deliver(self, message: int, *, claims: bool, resent: bool) -> list[int]:
        """A message arrives; an answer may say which chunks before it are complete, truly."""
        self._now += 1
        to = message & 7
        frame = self._frame(message, claims=claims, resent=resent)
        if to == at.DEST:
            return self._read(self.destination.receive(frame, self._now))
        worker = self.workers[to - at.W0]
        return [] if worker is None else self._read(worker.receive(frame, self._now))

    def tick(self, host: int) -> list[int]:
        """All timers of a host are due."""
        self._now += 100 * _SECOND
        machine = self.destination if host == DESTINATION else self.workers[host]
        return [] if machine is None else self._read(machine.tick(self._now))

    def hold(self, rank: int) -> list[int]:
        """A worker keeps new chunks back."""
        self._the(rank).hold()
        return []

    def release(self, rank: int) -> list[int]:
        """A worker goes on as before."""
        return self._read(self._the(rank).release(self._now))

    def choose(self) -> list[int]:
        """All are held: the destination moves, and who was away is attached."""
        left = [worker for worker in self.workers if worker is not None]
        first = max(self.destination.next_chunk, *(worker.next_chunk for worker in left))
        assert first == hosts.cut(self._t)
        plan = self._plan(1)
        sources, bits = job_sources(NETWORK, plan), destination_bits(NETWORK, plan)
        self.destination.move(plan.epoch, first, sources, bits, frozenset())
        self._terms.append((Term(plan.epoch, first), plan))
        for rank in range(3) if first < self._p[at.CHUNKS] else ():
            if self.workers[rank] is None:
                back = self.workers[rank] = self._worker(rank, first)
                assert self._move(back) == []
        return []

    def move(self, rank: int) -> list[int]:
        """A worker is told of the new epoch."""
        return self._read(self._move(self._the(rank)))

    def start_worker(self, rank: int) -> list[int]:
        """Who came back begins."""
        worker = self.workers[rank]
        return [] if worker is None else self._read(worker.start(self._now))

    def die(self, rank: int) -> None:
        """A worker hears and says nothing any more."""
        self.workers[rank] = None

    def exclude(self) -> list[int]:
        """The destination decides which chunks are summed without whom the model is without."""
        plan = self._plan(1)
        absent, sources = absent_ranks(NETWORK, plan), job_sources(NETWORK, plan)
        bits = destination_bits(NETWORK, plan)
        term = self.destination.exclude(plan.epoch, absent, sources, self._now, bits)
        chunks = range(self._p[at.CHUNKS])
        assert term.from_chunk == hosts.cut(self._t)
        assert term.kept == {chunk for chunk in chunks if hosts.is_kept(self._t, chunk)}
        self._terms.append((term, plan))
        return []

    def follow(self, rank: int) -> list[int]:
        """A worker goes on without who is left out."""
        return self._read(self._the(rank).follow(self._terms[-1][0], self._now))

    def kill_destination(self, message: int | None) -> list[int]:
        """The destination starts anew from its journal; killed with a message, if there is one."""
        if message is not None:
            frame = self._frame(message, claims=False, resent=False)
            self.destination.receive(frame, self._now)
        self.destination = self._destination(resume=True)
        return self._read(self.destination.start(self._now))

    # --- what they have ---------------------------------------------------------------------------

    def check(self) -> None:
        """Everyone has and lacks what the model says."""
        t, chunks = self._t, range(self._p[at.CHUNKS])
        for chunk in chunks:
            bits = destination.gathered(t, chunk) & 31
            epoch = destination.destination_epoch(t, chunk)
            missing = rules.present(t, epoch) & ~destination.covered(t, bits, epoch)
            if rules.is_complete(t, chunk):
                missing = 0
            assert sum(1 << rank for rank in self.destination.missing(chunk)) == missing
        for rank, worker in enumerate(self.workers):
            if worker is not None:
                first = worker.config.first_chunk
                known = [chunk < first or bool(worker.known[chunk - first]) for chunk in chunks]
                assert known == [hosts.is_answered(t, rank, chunk) for chunk in chunks]
                left = [chunk for chunk in chunks if hosts.has_left(t, rank, chunk)]
                assert worker.in_flight == sum(not known[chunk] for chunk in left)

    # --- between the two --------------------------------------------------------------------------

    def _plan(self, epoch: int) -> JobPlan:
        blue = frozenset(v for v in (0, 1) if self._p[at.BLUE_OLD + epoch] >> v & 1)
        present = rules.present(self._t, epoch)
        absent = frozenset(rank for rank in range(3) if not present >> rank & 1)
        return JobPlan(JOB, epoch + 1, blue, 0, WINDOW, absent=absent)

    def _worker(self, rank: int, first: int) -> Worker:
        host = NETWORK.workers[rank]
        config = worker_config(NETWORK, self._plan(0), host, Op.ALLREDUCE, _TIMING, first)
        rows = [
            unpack_lanes(lanes_of(rules.once_each(1 << rank, chunk)))
            for chunk in range(first, self._p[at.CHUNKS])
        ]
        values = np.array(rows, dtype=np.int32).reshape(-1, LANES)
        return Worker(replace(config, direct_after=self._direct_after), values)

    def _the(self, rank: int) -> Worker:
        worker = self.workers[rank]
        assert worker is not None
        return worker

    def _move(self, worker: Worker) -> list[bytes]:
        return worker.move(2, hosts.cut(self._t), self._now, frozenset())

    def _destination(self, *, resume: bool) -> Destination:
        journal = Journal(self._config, self._journal, resume=resume)
        destination = Destination(self._config, journal)
        for term, plan in self._terms:
            sources, bits = job_sources(NETWORK, plan), destination_bits(NETWORK, plan)
            destination.follow(term, sources, self._now, bits)
        return destination

    def _weight(self, source: int, epoch: int) -> int:
        return rules.speaks_for(self._t, source, epoch).bit_count()

    def _frame(self, message: int, *, claims: bool, resent: bool) -> bytes:
        """A message on its way to a host."""
        to, kind, source = message & 7, message >> 3 & 3, message >> 5 & 7
        chunk, epoch, flags = message >> 8 & 3, message >> 10 & 1, message >> 11 & 3
        is_up = to == at.DEST
        said = SOURCES[source] if is_up else DESTINATION_SOURCE
        if claims and kind == at.RESULT:
            for before in range(chunk):
                said ^= int(rules.is_complete(self._t, before)) << chunk - 1 - before
        lanes = bytes(4 * LANES) if kind == at.REQUEST else lanes_of(message >> 13)
        told = Message(
            KINDS[kind].value,
            flags | (Flag.RESENT.value if resent and kind != at.REQUEST else 0),
            JOB,
            said,
            epoch + 1,
            chunk,
            self._weight(source if is_up else at.FROM_S0, epoch),
            lanes,
        )
        mac, destination = mac_text(NETWORK.destination.mac), ip_text(NETWORK.destination.ip)
        if is_up:
            host = NETWORK.workers[min(source, 2)]
            return encode_frame(Flow(mac, mac, ip_text(host.ip), destination, host.udp_port), told)
        group = group_ip(JOB)
        return encode_frame(
            Flow(mac, group_mac(group), destination, group, _DESTINATION_PORT), told
        )

    def _read(self, frames: Sequence[bytes]) -> list[int]:
        """What hosts have sent."""
        return [self._number(decode_frame(frame)) for frame in frames]

    def _number(self, message: Message) -> int:
        kind = {real.value: kind for kind, real in KINDS.items()}[message.kind]
        epoch, to, source = message.epoch - 1, at.S0, 0
        if message.kind == Kind.REQUEST:
            plan = self._plan(epoch)
            asked, heard = int.from_bytes(message.lanes, "big"), job_sources(NETWORK, plan)
            bits = destination_bits(NETWORK, plan).items()
            ranks = [heard[said] for said, bit in bits if asked >> bit & 1]
            value = sum(1 << rank for each in ranks for rank in each)
        else:
            value = value_of(message.lanes)
        if kind == at.CONTRIBUTE:
            source = SOURCES.index(message.source)
            to = at.S0 if source == 0 else at.S1
        assert message.weight == self._weight(
            source if kind == at.CONTRIBUTE else at.FROM_S0, epoch
        )
        flags = message.flags & at.DIRECT
        head = to | kind << 3 | source << 5 | message.chunk << 8 | epoch << 10 | flags << 11
        return head | value << 13
