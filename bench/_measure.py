"""Runs a command and tells what it took. `python -S bench/_measure.py OUTPUT COMMAND ...` is its small parent.

A process counts what its parent held in memory before it began, so that a large benchmark cannot start it itself.
"""

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

# Without these Python compiles all of a program at each start, and writes each line by itself: no installation does.
FOR_DEVELOPING = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


class Cost(NamedTuple):
    """Seconds until its first output and its end, CPU seconds, and the most memory that it held, in MB."""

    first_s: float
    wall_s: float
    cpu_s: float
    memory_mb: float


def cost_of(command: list[str], output: str = os.devnull) -> Cost:
    """Run the command with its standard output into a file, and standard error dropped. SystemExit when it fails."""
    parent = [sys.executable, "-S", "-E", __file__, output, *command]
    environment = {name: value for name, value in os.environ.items() if name not in FOR_DEVELOPING}
    run = subprocess.run(parent, stdout=subprocess.PIPE, text=True, env=environment)
    if run.returncode:
        raise SystemExit(f"failed with status {run.returncode}: {' '.join(command)}")
    return Cost(*json.loads(run.stdout))


def _run(output: str, command: list[str]) -> int:
    reading, writing = os.pipe()
    to_pipe = (os.POSIX_SPAWN_DUP2, writing, 1)
    dropped = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=[to_pipe, dropped])
    os.close(writing)
    first_s = 0.0
    with open(output, "wb", buffering=0) as file:
        while part := os.read(reading, 1 << 20):
            first_s = first_s or time.perf_counter() - started
            file.write(part)
    _, status, used = os.wait4(child, 0)
    wall_s = time.perf_counter() - started
    print(json.dumps(Cost(first_s, wall_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1], sys.argv[2:]))
