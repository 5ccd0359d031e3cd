"""Long runs of the share groups' simulations: `python -m tests.simulation.share [--seed N] [--runs N] [--steps M]`."""

import argparse
import sys
import time

from tests.simulation.share import fetching as share_fetching
from tests.simulation.share import groups as share_groups
from tests.simulation.share.base import Outcome

RUN = {"groups": share_groups.run, "fetching": share_fetching.run}


def report(name: str, seed: int, steps: int, outcome: Outcome) -> str:
    """What went wrong, and the events before it."""
    return "\n".join([f"{name}, seed {seed}, {steps} steps", *outcome.trace[-80:], f"{outcome.violation}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, default=100, help="runs of each, with consecutive seeds")
    parser.add_argument("--steps", type=int, default=1_000, help="events of each run")
    options = parser.parse_args()
    for name, run in RUN.items():
        started, seen, restarts = time.process_time(), 0, 0
        for seed in range(options.seed, options.seed + options.runs):
            outcome = run(seed, options.steps)
            if outcome.violation is not None:
                print(report(name, seed, options.steps, outcome))
                return 1
            seen += outcome.seen
            restarts += outcome.restarts
        seconds = time.process_time() - started
        told = "deliveries" if name == "fetching" else "heartbeats heard"
        print(f"{name}: {options.runs} runs, {seen} {told}, {restarts} restarts, {seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
