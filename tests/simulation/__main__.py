"""Long runs: `python -m tests.simulation [--protocol consumer] [--seed N] [--runs N] [--steps M]`."""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.classic import run
from tests.simulation.classic.plan import Plan
from tests.simulation.consumer import run as consumer_run
from tests.simulation.consumer.plan import ConsumerPlan
from tests.simulation.minimal import plan_text

STEPS = {"classic": 20_000, "consumer": 800}


def report(outcome: run.Outcome | consumer_run.Outcome) -> str:
    """What went wrong, and the events before it."""
    plan = plan_text(outcome.plan)
    return "\n".join([f"plan: {plan}", f"steps: {outcome.steps}", *outcome.trace, f"{outcome.violation}"])


def run_classic(seed: int, steps: int, *, makes_minimal: bool) -> bool:
    """Whether a run went well, which is told in one line."""
    started = time.process_time()
    outcome = run.run(Plan.of_seed(seed), steps)
    seconds = time.process_time() - started
    if outcome.violation is not None:
        print(f"seed {seed}: {outcome.violation}", flush=True)
        print(report(run.minimal(outcome) if makes_minimal else outcome))
        return False
    print(
        f"seed {seed}: {steps} steps, {outcome.generations} generations, {outcome.records} records,"
        f" {outcome.restarts} restarts, {seconds:.1f} s",
        flush=True,
    )
    return True


def run_consumer(first_seed: int, runs: int, steps: int, *, makes_minimal: bool, keeps_going: bool) -> bool:
    """Whether all runs went well; tells of every thousandth, and of the first that did not, or of all those."""
    started = time.process_time()
    total: Counter[str] = Counter()
    for seed in range(first_seed, first_seed + runs):
        outcome = consumer_run.run(ConsumerPlan.of_seed(seed), steps)
        if outcome.violation is not None:
            print(f"seed {seed}: {outcome.violation}", flush=True)
            print(report(consumer_run.minimal(outcome) if makes_minimal else outcome))
            print(f"again: python -m tests.simulation --protocol consumer --seed {seed} --steps {steps}", flush=True)
            if not keeps_going:
                return False
            total["failures"] += 1
        for name in ("records", "restarts", "upgrades", "downgrades"):
            total[name] += getattr(outcome, name)
        done = seed - first_seed + 1
        if done % 1_000 == 0 or done == runs:
            counts = ", ".join(f"{count} {name}" for name, count in total.items())
            print(f"{done} seeds from {first_seed}: {counts}, {time.process_time() - started:.1f} s", flush=True)
    return not total["failures"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--runs", type=int, default=1, help="runs, with consecutive seeds")
    parser.add_argument("--protocol", choices=sorted(STEPS), default="classic", help="of the groups (default: classic)")
    parser.add_argument("--steps", type=int, help="events of each run (default: 20000; of consumer groups 800)")
    parser.add_argument("--no-minimal", action="store_true", help="show the first failure as it is")
    parser.add_argument("--keep-going", action="store_true", help="consumer groups: show every failure, not one")
    options = parser.parse_args()
    steps, makes_minimal = options.steps or STEPS[options.protocol], not options.no_minimal
    if options.protocol == "consumer":
        went_well = run_consumer(
            options.seed, options.runs, steps, makes_minimal=makes_minimal, keeps_going=options.keep_going
        )
        return int(not went_well)
    for seed in range(options.seed, options.seed + options.runs):
        if not run_classic(seed, steps, makes_minimal=makes_minimal):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
