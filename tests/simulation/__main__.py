"""Long runs: `python -m tests.simulation [--seed N] [--runs N] [--steps M]`."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.plan import Plan
from tests.simulation.run import Outcome, minimal, plan_text, run


def report(outcome: Outcome) -> str:
    """What went wrong, and the events before it."""
    violation = outcome.violation
    return "\n".join([f"plan: {plan_text(outcome.plan)}", f"steps: {outcome.steps}", *outcome.trace, f"{violation}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, default=1, help="runs, with consecutive seeds")
    parser.add_argument("--steps", type=int, default=20_000, help="events of each run")
    parser.add_argument("--no-minimal", action="store_true", help="show the first failure as it is")
    options = parser.parse_args()
    for seed in range(options.seed, options.seed + options.runs):
        started = time.process_time()
        outcome = run(Plan.of_seed(seed), options.steps)
        seconds = time.process_time() - started
        if outcome.violation is not None:
            print(f"seed {seed}: {outcome.violation}", flush=True)
            print(report(outcome if options.no_minimal else minimal(outcome)))
            return 1
        print(
            f"seed {seed}: {options.steps} steps, {outcome.generations} generations, {outcome.records} records,"
            f" {outcome.restarts} restarts, {seconds:.1f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
