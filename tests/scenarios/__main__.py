"""Runs scenario files, or writes what they really print: `python -m tests.scenarios [--rewrite] [FILE...]`.

What `--rewrite` writes is for review: expectations come from the requirements, not from the coordinator.
"""

import argparse
import difflib
import sys
from pathlib import Path

from tests.scenarios.runner import Runner, read_scenarios, run_step, scenario_files, write_scenarios


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rewrite", action="store_true", help="write what is really printed into the files")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    failed = 0
    for path in options.files or scenario_files():
        opening, scenarios = read_scenarios(path)
        for scenario in scenarios:
            runner = Runner()
            for step in scenario.steps:
                printed = run_step(runner, step)
                if printed == step.expected:
                    continue
                failed += 1
                print(f"{path.name}: {scenario.title}", *step.lead, *step.commands, sep="\n")
                print(*difflib.ndiff(step.expected, printed), "", sep="\n")
                if options.rewrite:
                    step.expected = printed
        if options.rewrite:
            write_scenarios(path, opening, scenarios)
    print(f"{failed} step(s) differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
