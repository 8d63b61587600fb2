"""Random entries and packets on softswitch and on simple_switch_grpc, for as long as you like.

    python -m tests.differential.campaign [--seeds N] [--first SEED] [--packets N] [--program NAME]

Prints every difference with the seed that shows it again, and what is kept out of the comparison.
"""

import argparse
import sys

from tests.differential.cases import CASES
from tests.differential.compare import WithPorts, differs
from tests.packet.targets_process import Bmv2Target, why_not


def main() -> int:
    """0 if nothing differs, 1 if something does, 3 without bmv2."""
    arguments = argparse.ArgumentParser(description="softswitch against simple_switch_grpc")
    arguments.add_argument("--seeds", type=int, default=50, help="cases of each program")
    arguments.add_argument("--first", type=int, default=1000, help="the first seed")
    arguments.add_argument("--packets", type=int, default=200, help="packets of each case")
    arguments.add_argument("--program", default="", help="only programs whose name contains this")
    chosen = arguments.parse_args()
    reason = why_not(Bmv2Target.command)
    if reason is not None:
        print(f"differential: {reason}", file=sys.stderr)
        return 3
    cases = [case for case in CASES if chosen.program in case.name]
    ours, theirs = WithPorts(), Bmv2Target()
    found = 0
    try:
        for case in cases:
            for seed in range(chosen.first, chosen.first + chosen.seeds):
                difference = differs(ours, theirs, case, seed, chosen.packets)
                found += bool(difference)
                if difference:
                    print(difference, flush=True)
            for excluded in case.excluded:
                print(f"{case.name}: kept out: {excluded.what}: {excluded.reason}", flush=True)
    finally:
        theirs.close()
        ours.close()
    total = len(cases) * chosen.seeds
    print(f"{found} of {total} cases differ, each of {chosen.packets} packets")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
