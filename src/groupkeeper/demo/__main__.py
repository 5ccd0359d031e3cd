"""Runs the tour: `make demo`, or `python -m groupkeeper.demo`."""

import signal
import sys
from types import FrameType

MISSING = """The demo uses real clients beside groupkeeper, and {module!r} is not installed.
Install the extra that brings them:  pip install '.[demo]'   in a checkout, or make demo"""


def interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    try:
        from groupkeeper.demo import tour
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] not in ("confluent_kafka", "kafka"):
            raise
        print(MISSING.format(module=missing.name), file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, interrupt)
    try:
        tour.run()
    except KeyboardInterrupt:
        print("\nstopped; the broker and its files are gone", file=sys.stderr)
        return 130
    except tour.TourFailed as failure:
        print(f"\nThe demo failed: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
