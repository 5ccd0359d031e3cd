"""Record what the official tools print on Apache Kafka, for tests/cli to compare with.

python tools/record_cli.py            # every stage; needs Java and Maven, and takes a few minutes
python tools/record_cli.py inactive   # one stage

The commands are those of tests/cli/goldens/STAGE.txt: to add one, write it there behind a `$`, and record the stage.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.cli import golden
from tests.cli.golden import Output
from tests.cli.recorded import STAGES
from tests.cli.stages import GOLDENS, SETTINGS, Stage, arguments, put_back, set_up, tool_of

from tools.apache_kafka import NEWEST, ApacheKafka, run_tool


def record(stage: Stage) -> dict[str, Output]:
    """The output of each command of a stage, on a broker of its own."""
    commands = golden.commands((GOLDENS / f"{stage.name}.txt").read_text())
    outputs = {}
    with ApacheKafka(SETTINGS, version=NEWEST) as broker, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(set_up(stage, broker.bootstrap_servers, folder))
        for command in commands:
            run = run_tool(
                tool_of(command), *arguments(command, broker.bootstrap_servers, folder), version=stage.release
            )
            output = Output(run.returncode, run.stdout, run.stderr)
            outputs[command] = output.comparable(broker.bootstrap_servers, folder)
            if command.startswith("!"):
                asyncio.run(put_back(stage, broker.bootstrap_servers))
            print(f"recorded {stage.name}: {command}", flush=True)
    return outputs


def main(names: Sequence[str]) -> int:
    """Record the stages named, or all."""
    for stage in STAGES:
        if not names or stage.name in names:
            (GOLDENS / f"{stage.name}.txt").write_text(golden.write(record(stage)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
