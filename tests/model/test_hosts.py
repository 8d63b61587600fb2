"""The model's hosts against the machines of traffic/, on random paths of the model.

`HOST_PATHS` says how many paths each case has; `make campaign-model` has many.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from tests.model import actions, controller, destination, hosts, layout, network, rules
from tests.model.layout import budget, parameters
from tests.model.real_hosts import DESTINATION, RealHosts
from tests.model.trace import message_text

PATHS = int(os.environ.get("HOST_PATHS", "20"))
STEPS = 80
FEW = 12
"""Messages in flight beyond which some are lost, as the model has room for so many only."""
BOTH, ROOT, CHILD, NONE = 0b11, 0b01, 0b10, 0b00
_CONTROL = {
    layout.HOLD: RealHosts.hold,
    layout.MOVE: RealHosts.move,
    layout.RELEASE: RealHosts.release,
    layout.FOLLOW: RealHosts.follow,
    layout.START: RealHosts.start_worker,
}


class Path:
    """One path of the model, and the real hosts on it."""

    def __init__(self, p: list[int], faults: int, rng: random.Random) -> None:
        self.p, self.rng = p, rng
        self.t = [0] * layout.WIDTH
        actions.begin(self.t, p, faults)
        self.is_hasty = rng.random() < 0.5
        self.real = RealHosts(self.t, p, is_hasty=self.is_hasty)
        assert sorted(self.real.start()) == self.flight
        self.happened: Counter[str] = Counter()

    @property
    def flight(self) -> list[int]:
        """What is under way, sorted."""
        return [message for message in self.t[layout.FLIGHT :] if message]

    def go(self, steps: int) -> None:
        """So many steps."""
        for _ in range(steps):
            self._drop()
            self._step()
            assert self.t[layout.FAULT] == 0
            self.real.check()

    def _drop(self) -> None:
        """Lose what there is no room for, and what is for the dead."""
        t = self.t
        for message in self.flight:
            rank = (message & 7) - layout.W0
            if 0 <= rank < 3 and rules.is_dead(t, rank):
                rules.take(t, t.index(message, layout.FLIGHT))
        while len(flight := self.flight) > FEW:
            rules.take(t, t.index(self.rng.choice(flight), layout.FLIGHT))

    def _step(self) -> None:
        rng, flight = self.rng, self.flight
        what = rng.choices(
            ("deliver", "lose", "double", "tick", "control", "restart", "rebirth"),
            (60, 6, 6, 8, 14, 2, 2),
        )[0]
        if what in ("deliver", "lose", "double") and flight:
            message = rng.choice(flight)
            if what == "double":
                rules.put(self.t, message)
                return
            rules.take(self.t, self.t.index(message, layout.FLIGHT))
            if what == "deliver":
                self._deliver(message)
        elif what == "tick":
            self._tick(rng.randrange(4))
        elif what == "control":
            self._control()
        elif what == "restart":
            rules.restart(self.t, rng.randrange(2))
        elif what == "rebirth":
            self._restart_destination()
        self.happened[what] += 1

    def _deliver(self, message: int) -> None:
        t, to = self.t, message & 7
        if to < layout.W0:
            network.deliver(t, self.p, message)
            return
        may_be_ignored = network.may_be_ignored(t, message)
        rng = self.rng
        left = self.real.deliver(message, claims=rng.random() < 0.5, resent=rng.random() < 0.5)
        expected = self._expect(lambda: network.deliver(t, self.p, message))
        host = DESTINATION if to == layout.DEST else to - layout.W0
        if may_be_ignored and host != DESTINATION:
            expected = [sent for sent in expected if sent in left]
        self._compare(host, left, expected)

    def _expect(self, step: Callable[[], object]) -> list[int]:
        """What a step of the model sends; it is not yet under way."""
        t, flight = self.t, self.t[layout.FLIGHT :]
        t[layout.FLIGHT :] = [0] * layout.MOST_IN_FLIGHT
        step()
        sent = self.flight
        t[layout.FLIGHT :] = flight
        return sent

    def _compare(self, host: int, left: list[int], expected: list[int]) -> None:
        """All that is expected left, and nothing else but repetitions; all is under way now."""
        missing = Counter(expected) - Counter(left)
        assert not missing, [message_text(message) for message in missing]
        for message in Counter(left) - Counter(expected):
            assert message in (*self._repetitions(host), *expected), message_text(message)
        for message in left:
            self._drop()
            rules.put(self.t, message)

    def _repetitions(self, host: int) -> list[int]:
        """What a host may send because of a timeout."""
        t, p = self.t, self.p
        told: list[int] = []
        for chunk in range(p[layout.CHUNKS]):
            for flags in (0, layout.DIRECT):
                if host != DESTINATION and actions.repeats(t, host, chunk):
                    sent = self._expect(partial(hosts.contribute, t, host, chunk, flags))
                elif host == DESTINATION and destination.is_expected(t, chunk):
                    sent = self._expect(partial(destination.request, t, p, chunk, flags))
                else:
                    sent = []
                told += sent
        return told

    def _last_answers(self) -> list[int]:
        """What the destination repeats when all chunks are complete."""
        t, chunks = self.t, range(self.p[layout.CHUNKS])
        if not all(rules.is_complete(t, chunk) for chunk in chunks):
            return []
        answers = []
        for chunk in chunks:
            epoch = destination.destination_epoch(t, chunk)
            head = layout.S0 | layout.RESULT << 3 | chunk << 8 | epoch << 10
            answers.append(head | rules.sum_of(t, chunk, epoch) << 13)
        return answers

    def _tick(self, host: int) -> None:
        answers = self._last_answers() if host == DESTINATION else []
        left = self.real.tick(host)
        self._compare(host, left, [answer for answer in answers if answer in left])
        chunks = range(self.p[layout.CHUNKS])
        said = {message >> 8 & 3 for message in left if message not in answers}
        if host == DESTINATION:
            assert said == {chunk for chunk in chunks if destination.is_expected(self.t, chunk)}
        else:
            assert said == {chunk for chunk in chunks if actions.repeats(self.t, host, chunk)}

    def _control(self) -> None:
        """A step that the controller may take now, or a worker goes."""
        t, p = self.t, self.p
        labels, scratch = [0] * actions.MOST_SUCCESSORS, [0] * layout.WIDTH
        flight = t[layout.FLIGHT :]
        t[layout.FLIGHT :] = [0] * layout.MOST_IN_FLIGHT
        count = actions.actions(t, p, labels, scratch)
        t[layout.FLIGHT :] = flight
        able = [
            label
            for label in labels[:count]
            if label >> layout.ARGUMENT_BITS in (layout.CONTROL, layout.DIE)
        ]
        if not able:
            return
        label = self.rng.choice(able)
        argument = label & (1 << layout.ARGUMENT_BITS) - 1
        if label >> layout.ARGUMENT_BITS == layout.DIE:
            t[layout.MEMBERS] |= 1 << 6 + argument
            self.real.die(argument)
            argument = argument << 4 | layout.EXCLUDE
        step, who = argument & 15, argument >> 4
        expected = self._expect(lambda: controller.control(t, p, step, who))
        if step in _CONTROL:
            self._compare(who, _CONTROL[step](self.real, who), expected)
        elif step == layout.CUT:
            self._compare(DESTINATION, self.real.choose(), expected)
        elif step == layout.EXCLUDE:
            self._compare(DESTINATION, self.real.exclude(), expected)

    def _restart_destination(self) -> None:
        """It is killed, perhaps with a message that it has just heard."""
        t = self.t
        heard = [message for message in self.flight if message & 7 == layout.DEST]
        message = self.rng.choice([*heard, None])
        if message is not None:
            rules.take(t, t.index(message, layout.FLIGHT))

        def kill() -> None:
            if message is not None:
                source, chunk, epoch = message >> 5 & 7, message >> 8 & 3, message >> 10 & 1
                destination.gather(t, source, chunk, epoch, message >> 13, is_killed=True)
            destination.begin_anew(t)

        self._compare(DESTINATION, self.real.kill_destination(message), self._expect(kill))


@pytest.mark.parametrize(
    ("p", "faults"),
    [
        pytest.param(parameters(4, BOTH, ROOT), budget(reallocations=1, roll_backs=1), id="move"),
        pytest.param(parameters(4, NONE, CHILD), budget(reallocations=1), id="move from red"),
        pytest.param(parameters(4, BOTH, BOTH), budget(deaths=1), id="go on without"),
        pytest.param(parameters(4, CHILD, NONE), budget(deaths=1), id="go on without, red"),
        pytest.param(parameters(4, BOTH, BOTH, away=1), budget(reallocations=1), id="w0 back"),
        pytest.param(parameters(4, ROOT, BOTH, away=4), budget(reallocations=1), id="w2 back"),
    ],
)
def test_machines_do_what_the_model_does(p: list[int], faults: int) -> None:
    """On every path, at every step; and the paths get somewhere."""
    happened: Counter[str] = Counter()
    complete = 0
    for seed in range(PATHS):
        path = Path(p, faults, random.Random(seed))
        path.go(STEPS)
        happened += path.happened
        complete += sum(rules.is_complete(path.t, chunk) for chunk in range(4))
    assert set(happened) >= {"deliver", "lose", "tick", "control", "restart", "rebirth"}
    assert complete > PATHS
