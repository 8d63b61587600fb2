"""Kill -9 of commands, controllers, switches and workers of a testbed, at random moments.

python -m evaluation.campaign_testbed --target fabric --kills 50

After each kill the testbed has to work: the job that ran is right to its last sum, or, where one of
its workers was killed, has failed within FAIL_S with that worker's name; and a reallocation, or the
next job, succeeds within RECOVER_S. In turn the job goes on without a worker that is killed, and
controllers, or another worker, are killed while it comes back: then all come back within RECOVER_S.
Ends with 1 at the first that does not.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from controller.errors import BluetreeError
from controller.live.client import NetworkClient, launch
from controller.service import bluetree_pb2 as api
from controller.service.client import ControllerClient
from controller.service.errors import NotNowError
from controller.service.folder import Folder
from controller.service.launch import end_controllers, start_controller

TOPOLOGY = "fat-tree:k=4"
FAIL_S = 30.0
RECOVER_S = 60.0
_POLL_S = 0.05


class Testbed:
    """A testbed in a folder of its own, with a standby, and one job that runs on."""

    def __init__(self, target: str, chance: random.Random) -> None:
        self._target = target
        self._chance = chance
        self._folder = tempfile.TemporaryDirectory(prefix="kills-")
        self.folder = Folder(Path(self._folder.name))
        self.up()

    def up(self) -> None:
        """Bring all up, and a job."""
        launch(self.folder.path, TOPOLOGY, target=self._target).close()
        for _ in range(2):
            start_controller(self.folder, None)
        self.start("fail")

    def start(self, on_worker_loss: str) -> None:
        """Start the job, which is the only one."""
        with ControllerClient(self.folder) as client:
            client.stop(None)
            client.start(
                api.StartJobRequest(
                    op="allreduce", choice=api.Choice(k=4), on_worker_loss=on_worker_loss
                )
            )

    def down(self) -> None:
        """Take all down."""
        end_controllers(self.folder)
        with NetworkClient(self.folder.path) as network:
            network.down()
        self.folder.database.unlink()

    def close(self) -> None:
        """Take all down for good."""
        self.down()
        self._folder.cleanup()

    def blue(self) -> list[str]:
        """Some switches of the tree."""
        with NetworkClient(self.folder.path) as network:
            names = network.network.topology.overlay.names
        return self._chance.sample(names, self._chance.randint(0, 6))

    def reallocate(self) -> None:
        """Reallocate once, whatever becomes of it."""
        with suppress(BluetreeError), ControllerClient(self.folder) as client:
            client.reallocate(api.ReallocateRequest(choice=self._choice()))

    def rejoin(self) -> None:
        """Let all workers come back once, whatever becomes of it."""
        with suppress(BluetreeError), ControllerClient(self.folder) as client:
            client.rejoin(api.RejoinRequest())

    def works(self) -> float:
        """Reallocate until that succeeds, and check the job; seconds that it took."""

        def once(client: ControllerClient) -> bool:
            # Where it has gone round a switch, back to its own tree.
            root = next((one.root for one in client.status().jobs if _goes_round(one)), "")
            client.reallocate(api.ReallocateRequest(choice=self._choice(), root=root))
            for one in client.status().jobs:
                if one.HasField("goes_on_as"):
                    client.stop(one.job)
            (job,) = client.status().jobs
            if not job.correct:
                raise RuntimeError(f"job {job.job}: a sum is wrong")
            return True

        return self._until(once)

    def is_whole(self) -> float:
        """Let workers come back until none is out; seconds that it took."""

        def once(client: ControllerClient) -> bool:
            (job,) = client.status().jobs
            if job.left_out:
                client.rejoin(api.RejoinRequest())
            (job,) = client.status().jobs
            return not job.left_out and job.phase == "running"

        return self._until(once)

    def loses(self, name: str) -> None:
        """Kill a worker, and wait until the job goes on without it."""
        with NetworkClient(self.folder.path) as network:
            network.kill(name)

        def once(client: ControllerClient) -> bool:
            (job,) = client.status().jobs
            return name in job.left_out and job.phase == "running"

        self._until(once)

    def _until(self, once: Callable[[ControllerClient], bool]) -> float:
        """Try something, with a controller, until it is so; RuntimeError after RECOVER_S."""
        began = time.monotonic()
        while True:
            late = time.monotonic() - began > RECOVER_S
            try:
                with ControllerClient(self.folder) as client:
                    if once(client):
                        return time.monotonic() - began
                if late:
                    raise RuntimeError(f"{once.__qualname__}: not so after {RECOVER_S:g} s")
            except BluetreeError as error:
                if late:
                    raise
                if not isinstance(error, NotNowError) and self.folder.serving() is None:
                    start_controller(self.folder, None)
            time.sleep(_POLL_S)

    def _choice(self) -> api.Choice:
        return api.Choice(blue=self.blue(), given=True)


def _goes_round(job: api.JobStatus) -> bool:
    """Whether it is not in the tree that it began in."""
    return job.phase == "running" and bool(job.avoids)


def kill_command(testbed: Testbed, chance: random.Random) -> float:
    """A `bluetree reallocate` that dies on its way."""
    words = ["reallocate", "--blue", ",".join(testbed.blue()), "--state", str(testbed.folder.path)]
    command = subprocess.Popen(
        [sys.executable, "-m", "controller.cli", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with suppress(subprocess.TimeoutExpired):
        command.wait(chance.uniform(0.5, 4))
    command.kill()
    command.wait()
    return testbed.works()


def kill_controller(testbed: Testbed, chance: random.Random) -> float:
    """The controller that serves, while it reallocates; every other time with the standby."""
    change = threading.Thread(target=testbed.reallocate)
    change.start()
    change.join(chance.uniform(0, 0.3))
    victims = [testbed.folder.serving(), *testbed.folder.standbys()]
    for victim in victims if chance.random() < 0.5 else victims[:1]:
        if victim is not None:
            os.kill(victim.pid, signal.SIGKILL)
    change.join()
    seconds = testbed.works()
    if not testbed.folder.standbys():
        start_controller(testbed.folder, None)
    return seconds


def kill_switch(testbed: Testbed, chance: random.Random) -> float:
    """A switch, which starts anew a little later."""
    with NetworkClient(testbed.folder.path) as network:
        name = chance.choice(network.network.topology.overlay.names)
        network.kill(name)
        threading.Event().wait(chance.uniform(0, 1))
        network.restart(name)
    return testbed.works()


def kill_worker(testbed: Testbed, chance: random.Random) -> float:
    """A worker: its job fails and names it, and the next job runs without it."""
    with NetworkClient(testbed.folder.path) as network:
        workers = [host.name for host in network.network.workers]
        name = chance.choice(workers)
        network.kill(name)
    began = time.monotonic()
    with ControllerClient(testbed.folder) as client:
        while (job := client.status().jobs[0]).phase != "failed":
            if time.monotonic() - began > FAIL_S:
                raise RuntimeError(f"{name} was killed {FAIL_S:g} s ago and the job is {job.phase}")
            time.sleep(_POLL_S)
        seconds = time.monotonic() - began
        if name not in job.detail:
            raise RuntimeError(f"{name} was killed and the job says: {job.detail}")
        rest = [worker for worker in workers if worker != name]
        client.start(api.StartJobRequest(choice=api.Choice(k=2), workers=rest, chunks=20))
    testbed.down()
    testbed.up()
    return seconds


def kill_rejoin(testbed: Testbed, chance: random.Random) -> float:
    """The controller, with the standby or without, or another worker, while one comes back."""
    testbed.start("continue")
    with NetworkClient(testbed.folder.path) as network:
        one, other = chance.sample([host.name for host in network.network.workers], 2)
    testbed.loses(one)
    change = threading.Thread(target=testbed.rejoin)
    change.start()
    change.join(chance.uniform(0, 0.3))
    if chance.random() < 0.3:
        testbed.loses(other)
    else:
        victims = [testbed.folder.serving(), *testbed.folder.standbys()]
        for victim in victims if chance.random() < 0.5 else victims[:1]:
            if victim is not None:
                os.kill(victim.pid, signal.SIGKILL)
    change.join()
    seconds = testbed.is_whole()
    testbed.works()
    if not testbed.folder.standbys():
        start_controller(testbed.folder, None)
    testbed.start("fail")
    return seconds


VICTIMS: tuple[Callable[[Testbed, random.Random], float], ...] = (
    kill_command,
    kill_controller,
    kill_controller,
    kill_switch,
    kill_rejoin,
    kill_worker,
)


def main(arguments: Sequence[str]) -> int:
    """Kill, and say what was killed and how long the testbed took to work again."""
    parser = argparse.ArgumentParser(prog="evaluation.campaign_testbed", description=__doc__)
    parser.add_argument("--target", default="fabric")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    # Told to end, it takes its testbed down first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    chance = random.Random(options.seed)
    killed: Counter[str] = Counter()
    longest: dict[str, float] = {}
    testbed = Testbed(options.target, chance)
    try:
        for number in range(options.kills):
            victim = VICTIMS[number % len(VICTIMS)]
            what = victim.__name__.removeprefix("kill_")
            seconds = victim(testbed, chance)
            killed[what] += 1
            longest[what] = max(longest.get(what, 0.0), seconds)
            print(f"{number + 1:3d} {what:10s} {seconds:6.2f} s", flush=True)
    finally:
        testbed.close()
    for what, count in sorted(killed.items()):
        print(f"{options.target}: {what} killed {count} times, at most {longest[what]:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
