"""Coverage-guided fuzzing with atheris (the extra ``fuzz``).

    python -m tests.fuzz.engine loader|damaged|packets|service [--seconds N] [CORPUS]

Ends with atheris' own report and a file ``crash-...`` when a target fails.
"""

import argparse
import sys
from collections.abc import Callable

from tests.fuzz import inputs
from tests.fuzz.service import ServiceFuzzer


def _packets() -> Callable[[bytes], None]:
    devices = [inputs.device(name) for name in inputs.program_names()]

    def feed(data: bytes) -> None:
        if len(data) > 1:
            devices[data[0] % len(devices)].process(data[1] % 9, data[2:])

    return feed


TARGETS: dict[str, Callable[[], Callable[[bytes], None]]] = {
    "loader": lambda: inputs.load,
    "damaged": lambda: inputs.load_damaged,
    "packets": _packets,
    "service": lambda: ServiceFuzzer().feed,
}


def main() -> int:
    """2 and 3 as the project's other commands; else atheris ends the process."""
    arguments = argparse.ArgumentParser(description="fuzz the software switch")
    arguments.add_argument("target", choices=sorted(TARGETS))
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("corpus", nargs="*")
    chosen = arguments.parse_args()
    try:
        import atheris
    except ImportError:
        print("fuzz: atheris is not installed; `pip install -e .[fuzz]`", file=sys.stderr)
        return 3
    feed = TARGETS[chosen.target]()
    atheris.instrument_all()
    options = [f"-max_total_time={chosen.seconds}", "-timeout=30", "-rss_limit_mb=2048"]
    atheris.Setup([sys.argv[0], *options, *chosen.corpus], feed)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
