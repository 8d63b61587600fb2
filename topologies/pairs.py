"""Veth pairs, made and removed all at once: one `ip` for hundreds of links."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from topologies.marks import LINKS, own_mark


@dataclass(frozen=True, slots=True)
class End:
    """One end of a pair.

    `namespace` is a process in whose network namespace it lies, None where that is this one's.
    Without `mac` the kernel takes one at random.
    """

    interface: str
    namespace: int | None = None
    mac: str | None = None


def make_pairs(pairs: Sequence[tuple[End, End]], folder: Path) -> None:
    """Make pairs, of whose ends the first lies here, and mark what lies here as this process's.

    `folder` is that of the run; `ip` reads a file in it, and ends with this process. Raises
    RuntimeError with what it says.
    """
    mark = own_mark()
    lines = []
    for here, there in pairs:
        lines.append(f"link add {_words(here)} type veth peer {_words(there)}")
        lines += [
            f"link set dev {end.interface} alias {mark}"
            for end in (here, there)
            if end.namespace is None
        ]
    batch = folder / LINKS
    batch.write_text("\n".join(lines))
    words = ["setpriv", "--pdeathsig", "KILL", "ip", "-batch", str(batch)]
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"making links: {' | '.join(done.stderr.splitlines())}")


def remove_pairs(pairs: Iterable[tuple[End, End]]) -> None:
    """Remove those of the pairs that are there; the other end goes with the one that lies here."""
    lines = "\n".join(f"link del {here.interface}" for here, _ in pairs)
    # What is gone already is told, one line each, and is no error.
    subprocess.run(
        ["ip", "-force", "-batch", "-"],
        input=lines,
        text=True,
        check=False,
        stderr=subprocess.DEVNULL,
    )


def has_carrier(interface: str) -> bool:
    """Whether an interface that lies here is there and up, and so is the other end of its pair."""
    try:
        return Path(f"/sys/class/net/{interface}/carrier").read_text(encoding="ascii") == "1\n"
    except OSError:
        # Gone, or down: then the kernel does not say.
        return False


def _words(end: End) -> str:
    address = "" if end.mac is None else f" address {end.mac}"
    place = "" if end.namespace is None else f" netns {end.namespace}"
    return f"name {end.interface}{address}{place}"
