"""Coverage-guided fuzzing with atheris (the extra ``fuzz``).

    python -m tests.fuzz.engine loader|damaged|packets|service [--seconds N] [CORPUS]

Ends with atheris' own report, and a file ``out/fuzz/crash-...`` when a target fails. Only
`softswitch` and the code that it generates are instrumented: nothing of this module may import it
before atheris listens, and what else is imported (gRPC, protobuf) would cost a minute and guide
nobody.
"""

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

TARGETS = ("damaged", "loader", "packets", "service")
LIBFUZZER = ("-timeout=30", "-rss_limit_mb=2048")
FOUND = Path("out/fuzz")
CHOICES = {"damaged": 64, "service": 128}
"""Targets whose input is a list of choices, and how many bytes of them they can use."""

_SEED_PACKETS = 20


def feeder(target: str) -> tuple[Callable[[bytes], None], Iterator[bytes]]:
    """What takes the bytes, and what to begin with; imports softswitch."""
    from tests.fuzz import inputs

    match target:
        case "loader":
            return inputs.load, map(inputs.compact, inputs.program_names())
        case "damaged":
            return inputs.load_damaged, iter(())
        case "packets":
            twins = inputs.Twins()
            _instrument_generated(inputs.generated_functions())
            return twins.feed, inputs.packet_seeds(_SEED_PACKETS)
    from tests.fuzz.service import ServiceFuzzer

    return ServiceFuzzer().feed, iter(())


def _instrument_generated(functions: Iterator[FunctionType]) -> None:
    """Instrument the Python that programs are made into, which no import brings."""
    import atheris

    for function in functions:
        atheris.instrument_func(function)


def main() -> int:
    """2 and 3 as the project's other commands; else atheris ends the process."""
    arguments = argparse.ArgumentParser(description="fuzz the software switch")
    arguments.add_argument("target", choices=TARGETS)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("corpus", nargs="*")
    chosen = arguments.parse_args()
    try:
        import atheris
    except ImportError:
        print("fuzz: atheris is not installed; `pip install -e .[fuzz]`", file=sys.stderr)
        return 3
    with atheris.instrument_imports(include=["softswitch"]):
        feed, seeds = feeder(chosen.target)
    scratch = FOUND / chosen.target
    # atheris never returns, so each run clears up after the one before
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    for number, seed in enumerate(seeds):
        (scratch / f"seed-{number:04}").write_bytes(seed)
    options = [*LIBFUZZER, f"-max_total_time={chosen.seconds}", f"-artifact_prefix={FOUND}/"]
    if chosen.target in CHOICES:
        options += [f"-max_len={CHOICES[chosen.target]}", "-len_control=0"]
    # libFuzzer writes what it finds into the first folder, and only reads the others
    atheris.Setup([sys.argv[0], *options, *chosen.corpus, str(scratch)], feed)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
