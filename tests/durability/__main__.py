"""The long form: `python -m tests.durability --kills N --seed S [--minutes M] [--java] [--broker apache]`.

Its files are removed when everything is as it should be, and named otherwise.
"""

import argparse
import math
import shutil
import sys
import tempfile
from pathlib import Path

from tests.conformance.brokers import PYTHONS, new_broker
from tests.durability.run import PROPERTIES, Plan, run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300, help="of the broker (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments (default: 1)")
    parser.add_argument("--pause", type=float, default=2.0, help="longest time between kills, in seconds (default: 2)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="make no further kill after so many")
    parser.add_argument("--java", action="store_true", help="with a loop of the Java clients")
    parser.add_argument("--broker", choices=(*PYTHONS, "apache"), default="groupkeeper")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="groupkeeper-durability-"))
    broker = new_broker(options.broker, PROPERTIES)
    broker.start()
    try:
        plan = Plan(options.kills, options.seed, options.java, options.pause, options.minutes)
        report = run(broker, plan, directory, lambda line: print(line, flush=True))
    except AssertionError as failure:
        broker.kill()
        print(f"seed {options.seed}: {failure}\nfiles: {directory}, and the broker's", file=sys.stderr)
        return 1
    broker.stop()
    shutil.rmtree(directory)
    print(f"seed {options.seed}: {report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
