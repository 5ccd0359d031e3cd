"""Long runs: `python -m tests.simulation [--protocol consumer] [--seed N] [--runs N] [--steps M]`."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.simulation.classic import run as classic_run
from tests.simulation.classic.plan import Plan
from tests.simulation.consumer import run as consumer_run
from tests.simulation.consumer.plan import ConsumerPlan
from tests.simulation.life import Outcome
from tests.simulation.minimal import plan_text, smallest

RUN: dict[str, tuple[type[Plan], Callable[[Any, int], Outcome]]] = {
    "classic": (Plan, classic_run.run), "consumer": (ConsumerPlan, consumer_run.run)
}  # fmt: skip
STEPS = {"classic": 20_000, "consumer": 800}
TOLD_EVERY = {"classic": 1, "consumer": 1_000}
"""After so many runs it is said how much has happened."""


def report(outcome: Outcome) -> str:
    """What went wrong, and the events before it."""
    plan = plan_text(outcome.plan)
    return "\n".join([f"plan: {plan}", f"steps: {outcome.steps}", *outcome.trace, f"{outcome.violation}"])


def went_well(protocol: str, seeds: range, steps: int, *, makes_minimal: bool, keeps_going: bool) -> bool:
    """Whether all runs did; tells of the first that did not, or of all those."""
    started = time.process_time()
    total: Counter[str] = Counter()
    plans, run = RUN[protocol]
    for done, seed in enumerate(seeds, 1):
        outcome = run(plans.of_seed(seed), steps)
        if outcome.violation is not None:
            print(f"seed {seed}: {outcome.violation}", flush=True)
            print(report(smallest(outcome, run) if makes_minimal else outcome))
            print(f"again: python -m tests.simulation --protocol {protocol} --seed {seed} --steps {steps}", flush=True)
            if not keeps_going:
                return False
            total["failures"] += 1
        total.update(outcome.counts)
        if done % TOLD_EVERY[protocol] == 0 or done == len(seeds):
            counts = ", ".join(f"{count} {name}" for name, count in total.items())
            print(f"{done} seeds from {seeds[0]}: {counts}, {time.process_time() - started:.1f} s", flush=True)
    return not total["failures"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, default=1, help="runs, with consecutive seeds")
    parser.add_argument("--protocol", choices=sorted(STEPS), default="classic", help="of the groups (default: classic)")
    parser.add_argument("--steps", type=int, help="events of each run (default: 20000; of consumer groups 800)")
    parser.add_argument("--no-minimal", action="store_true", help="show the first failure as it is")
    parser.add_argument("--keep-going", action="store_true", help="show every failure, not one")
    options = parser.parse_args()
    seeds, steps = range(options.seed, options.seed + options.runs), options.steps or STEPS[options.protocol]
    makes_minimal, keeps_going = not options.no_minimal, options.keep_going
    return int(not went_well(options.protocol, seeds, steps, makes_minimal=makes_minimal, keeps_going=keeps_going))


if __name__ == "__main__":
    sys.exit(main())
