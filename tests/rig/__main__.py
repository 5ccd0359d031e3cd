"""Makes traffic whose truth is known, and compares what our commands say with it.

    python -m tests.rig --seed 1 --minutes 3 --clusters embedded,apache-4.4.0

`apache-4.4.0#2` is a second one of a kind. The same seed gives the same story: who writes and reads what, and how. When
something differs, the smallest story is looked for that still shows it, and printed.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.rig.asking import Difference
from tests.rig.cast import draw
from tests.rig.run import Run
from tests.rig.shrink import shrink
from tests.rig.story import Story


def say(line: str) -> None:
    print(line, flush=True)


def play(story: Story, folder: Path, *, has_pipeline: bool, lake: str = "") -> Run:
    """Performs a story with its files in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(story, folder, say, has_pipeline=has_pipeline, lake=lake)
    run.perform()
    return run


def explain(story: Story, difference: Difference, folder: Path, lake: str) -> None:
    """Prints the smallest story that shows it."""
    count = 0

    def perform(smaller: Story) -> list[Difference]:
        nonlocal count
        count += 1
        say(f"again with {len(smaller.actors)} actors on {', '.join(smaller.clusters)}")
        has_pipeline = difference.judge == "pipeline"
        return play(
            smaller, folder / f"smaller-{count}", has_pipeline=has_pipeline, lake=lake
        ).report.verdict.differences

    smallest, shown = shrink(story, difference, perform)
    smallest.save(folder / "smallest.json")
    say(f"the smallest story that shows it (python -m tests.rig --story {folder / 'smallest.json'}):")
    say(smallest.text())
    say(f"DIFFERENCE {shown}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the story (default: 1)")
    parser.add_argument("--minutes", type=float, default=3, help="of traffic (default: 3)")
    parser.add_argument("--clusters", default="embedded", help="separated by commas (default: embedded)")
    parser.add_argument("--story", type=Path, help="a story that was saved, instead of a drawn one")
    parser.add_argument("--folder", type=Path, help="keep the facts and logs here")
    parser.add_argument("--no-pipeline", action="store_true", help="leave out the pipeline, which starts Spark")
    parser.add_argument(
        "--table-format", choices=["delta", "iceberg"], default="",
        help="judge the tables of a lake, with the PySpark that it is made for",
    )  # fmt: skip
    parser.add_argument("--no-shrink", action="store_true", help="don't look for a smaller story")
    options = parser.parse_args()
    os.nice(5)  # a guest on the machine
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends with it
    folder = options.folder or Path(tempfile.mkdtemp(prefix="groupkeeper-rig-"))
    if (folder / "run").exists():
        parser.error(f"--folder {folder}: there are the facts of another run; name an empty folder")
    drawn = draw(options.seed, options.minutes, options.clusters.split(","))
    story = Story.load(options.story) if options.story else drawn
    run = play(story, folder / "run", has_pipeline=not options.no_pipeline, lake=options.table_format)
    print(run.report.text(run.truth), flush=True)
    differences = run.report.verdict.differences
    if differences and not options.no_shrink:
        explain(story, differences[0], folder, options.table_format)
    if differences or run.report.verdict.missed:
        print(f"seed {story.seed}; facts and logs: {folder}")
        return 1
    if options.folder is None:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
